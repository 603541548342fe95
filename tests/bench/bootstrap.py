# SPDX-License-Identifier: Apache-2.0
"""bootstrap.py OLD NEW [RANKS [ROUNDS]]: does it take longer until ranks have met than with an older library?

    make tests/bench/bootstrap
    python3 tests/bench/bootstrap.py ../old/runtime/.libs runtime/.libs 64 40

OLD and NEW are folders with libslurmdl-comm.so.0.  Each round runs both, in an order of its own; printed are the medians, and of the
ratios within a round the median with its 95 % interval (10,000 samples).  The ranks have their secret in the environment, as from srun.
"""
import os
import random
import statistics
import subprocess
import sys


def run(libraries, ranks):
    here = os.path.join("tests", "bench", ".libs", "bootstrap")
    program = here if os.path.exists(here) else os.path.join("tests", "bench", "bootstrap")
    env = dict(os.environ, LD_LIBRARY_PATH=libraries, DL_SECRET=os.urandom(16).hex())
    return [float(x) for x in subprocess.run([program, str(ranks)], env=env, stdout=subprocess.PIPE, check=True, timeout=600).stdout.split()]


def interval(ratios):
    samples = sorted(statistics.median(random.choices(ratios, k=len(ratios))) for _ in range(10000))
    return samples[250], samples[9749]


def main():
    builds = sys.argv[1:3]
    ranks, rounds = (int(x) for x in (sys.argv[3:5] + ["64", "20"])[:2]) if len(sys.argv) > 4 else (int((sys.argv[3:] + ["64"])[0]), 20)
    times = {b: [] for b in builds}
    for i in range(rounds + 1):
        for b in random.sample(builds, 2):
            t = run(b, ranks)
            if i:
                times[b].append(t)
    for k, what in enumerate(["met", "met, and had a sum"]):
        old, new = ([t[k] for t in times[b]] for b in builds)
        ratios = [n / o for n, o in zip(new, old)]
        print("%d ranks %s: old %.1f ms, new %.1f ms, ratio %.3f (%.3f to %.3f)"
              % ((ranks, what, statistics.median(old), statistics.median(new), statistics.median(ratios)) + interval(ratios)))


if __name__ == "__main__":
    main()
