# SPDX-License-Identifier: Apache-2.0
"""integrity.py OLD NEW [ROUNDS]: measure the cost of message tags, compared with an older library and without tags.

    make tests/bench/comm tests/bench/bootstrap
    python3 tests/bench/integrity.py ../old/runtime/.libs runtime/.libs 9        # as root, in a build folder

OLD and NEW are directories with libslurmdl-comm.so.0. Each round runs old, new, and new with
DL_COMM_INTEGRITY=handshake, in random order: 64 ranks on this host connect, and two ranks in network namespaces, joined
by a veth pair, reduce 4 KiB, 1 MiB and 64 MiB. Prints the medians, and the median ratio to old within a round with its
95 % interval.
"""
import os
import random
import statistics
import subprocess
import sys

from benchlib import enter, free_port, made_hosts, rank_environment, ratios, with_interval

SIZES = {"4 KiB": 4096, "1 MiB": 1 << 20, "64 MiB": 64 << 20}
RUNS = 5


def program(name):
    here = os.path.join("tests", "bench", ".libs", name)
    return os.path.abspath(here if os.path.exists(here) else os.path.join("tests", "bench", name))


def meet(env):
    out = subprocess.run([program("bootstrap"), "64"], env=dict(os.environ, **env), stdout=subprocess.PIPE, check=True, timeout=600).stdout
    return float(out.split()[0]) / 1e3


def reduce(hosts, env):
    cpus, port, ranks = sorted(os.sched_getaffinity(0)), free_port(), []
    for r in range(2):
        on = ["taskset", "-c", str(cpus[r % len(cpus)])]
        argv = enter(hosts[r]) + on + [program("comm"), str(RUNS)] + [str(n) for n in SIZES.values()]
        ranks.append(
            subprocess.Popen(argv, env=dict(rank_environment(r, 2, r, "10.219.7.1", port), **env), stdout=subprocess.PIPE if r == 0 else subprocess.DEVNULL, text=True)
        )
    out = ranks[0].communicate(timeout=600)[0]
    if any([p.wait(60) for p in ranks]):
        raise SystemExit("integrity.py: a rank failed")
    found = {}
    for line in out.splitlines():
        size, seconds = line.split()
        found.setdefault(int(size), []).append(float(seconds))
    return {name: statistics.median(found[size]) for name, size in SIZES.items()}


def main():
    old, new = sys.argv[1:3]
    rounds = int(sys.argv[3]) if len(sys.argv) > 3 else 9
    ways = {"old": (old, "frames"), "new": (new, "frames"), "new, handshake only": (new, "handshake")}
    what = ["64 ranks met", *SIZES]
    times = {way: {w: [] for w in what} for way in ways}
    with made_hosts(2) as hosts:
        for i in range(rounds + 1):
            for way in random.sample(list(ways), len(ways)):
                library, integrity = ways[way]
                env = {"LD_LIBRARY_PATH": library, "DL_COMM_INTEGRITY": integrity, "DL_SECRET": os.urandom(16).hex()}
                found = {what[0]: meet(env), **reduce(hosts, env)}
                for w in what if i else []:
                    times[way][w].append(found[w])
            print("round %d of %d, load %.1f" % (i, rounds, os.getloadavg()[0]), file=sys.stderr)
    print("| |", " | ".join(ways), "|")
    print("| --- |" + " --- |" * len(ways))
    for w in what:
        cells = []
        for way in ways:
            t = statistics.median(times[way][w])
            cell = "%.1f ms" % (1e3 * t) if t >= 1e-3 else "%.0f us" % (1e6 * t)
            cells.append(cell if way == "old" else cell + ", " + with_interval(ratios(times[way][w], times["old"][w]), "%.2f"))
        print("| %s |" % w, " | ".join(cells), "|")


if __name__ == "__main__":
    main()
