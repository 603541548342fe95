#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compare searchers with those of other tools on tables of learning curves.

    curve_peers.py BENCH run OUT.csv PEER SEEDS TABLE.csv...     # appends to OUT.csv
    curve_peers.py score OUT.csv FIDELITY SEEDS TABLE.csv...

BENCH is the directory of bench_mf.py. PEER is one of its searchers, such as syne:asha,
optuna:tpe+none, optuna:random+sha or random; SEEDS is FIRST-LAST. FIDELITY is the program
tests/bench/fidelity, which runs `auto` and `asha`. There are two settings: 4 workers for the time
of 20 full trainings, and 16 for that of 60. For each table and setting, score prints the area under
the regret curve of `auto`, relative to Syne Tune's ASHA and to our asha, its final regret, the
final regret of the best peer, and the means.
"""
import collections
import csv
import os
import statistics
import subprocess
import sys

SETTINGS = ((4, 20), (16, 60))
FIRST = "syne:asha"


def table(mf, path):
    """Read a table as bench_mf does, but with any number of hyperparameters."""
    class Table(mf.Table):
        def __init__(self, path):
            head, *rows = csv.reader(open(path))
            n = head.index("sec_per_epoch")
            self.name, self.par, self.E = os.path.basename(path)[:-4], head[1:n], len(head) - n - 2
            self.vals = {p: sorted({float(r[1 + i]) for r in rows}) for i, p in enumerate(self.par)}
            self.space = [mf.I(p, 0, len(self.vals[p]) - 1) for p in self.par]
            self.c, self.t = {}, {}
            for r in rows:
                k = tuple(self.vals[p].index(float(r[1 + i])) for i, p in enumerate(self.par))
                self.c[k], self.t[k] = [float(x) for x in r[n + 2:]], float(r[n])
            best = [min(c) for c in self.c.values()]
            self.best, self.ref = min(best), statistics.median(best)
            self.full = statistics.mean(self.t.values()) * self.E
    return Table(path)


def seeds_of(text):
    first, last = map(int, text.split("-"))
    return range(first, last + 1)


def run(bench, out, peer, seeds, paths):
    sys.path.insert(0, bench)
    import bench_mf
    new = not os.path.exists(out)
    with open(out, "a", newline="") as f:
        w = csv.writer(f)
        if new:
            w.writerow("table,opt,seed,workers,budget,frac,best,nr,trials,epochs,full,ms".split(","))
        for path in paths:
            t = table(bench_mf, path)
            for workers, budget in SETTINGS:
                for seed in seeds_of(seeds):
                    bench_mf.one(t, peer, seed, workers, budget, peer, w)
                f.flush()


def ours(program, path, setting, seeds, name):
    """Return the mean area and final regret of our runs."""
    first, last = seeds.split("-")
    out = subprocess.run([program, path, *map(str, setting), first, last, name],
                         check=True, capture_output=True, text=True).stdout.split()
    return float(out[-3]), float(out[-1])


def score(out, program, seeds, paths):
    peers = collections.defaultdict(lambda: collections.defaultdict(list))
    for r in csv.DictReader(open(out)):
        if int(r["seed"]) in seeds_of(seeds):
            peers[r["table"], int(r["workers"])][r["opt"]].append((float(r["frac"]), float(r["nr"])))
    print("| table | workers | area over Syne Tune's ASHA | over asha | end | best peer's end | (asha over Syne) |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    ratios = []
    for path in paths:
        name = os.path.basename(path)[:-4]
        for setting in SETTINGS:
            runs = peers[name, setting[0]]
            area = statistics.mean(v for _, v in runs[FIRST])
            ends = {o: statistics.mean(v for f, v in r if f == 1) for o, r in runs.items()}
            best = min(ends, key=ends.get)
            (a, end), (b, _) = (ours(program, path, setting, seeds, s) for s in ("auto", "asha"))
            ratios.append((a / area, a / b, b / area))
            print("| %s | %d | %.2f | %.2f | %.3f | %.3f (%s) | %.2f |"
                  % (name, setting[0], a / area, a / b, end, ends[best], best, b / area), flush=True)
    print("| mean | | %.2f | %.2f | | | %.2f |" % tuple(map(statistics.mean, zip(*ratios))))


def main(argv):
    if len(argv) > 6 and argv[2] == "run":
        run(argv[1], *argv[3:6], argv[6:])
    elif len(argv) > 5 and argv[1] == "score":
        score(*argv[2:5], argv[5:])
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv)
