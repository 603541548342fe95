# SPDX-License-Identifier: Apache-2.0
"""bootstrap.py OLD NEW [RANKS [ROUNDS]]: compare how long ranks take to connect with two builds of the library.

    make tests/bench/bootstrap
    python3 tests/bench/bootstrap.py ../old/runtime/.libs runtime/.libs 64 40

OLD and NEW are directories with libslurmdl-comm.so.0. Each round runs both in random order. Prints the medians, and the
median ratio within a round with its 95 % interval (10,000 samples). The ranks get their secret from the environment, as
with srun.
"""
import os
import random
import statistics
import subprocess
import sys

from benchlib import ratios, with_interval


def run(libraries, ranks):
    here = os.path.join("tests", "bench", ".libs", "bootstrap")
    program = here if os.path.exists(here) else os.path.join("tests", "bench", "bootstrap")
    env = dict(os.environ, LD_LIBRARY_PATH=libraries, DL_SECRET=os.urandom(16).hex())
    return [float(x) for x in subprocess.run([program, str(ranks)], env=env, stdout=subprocess.PIPE, check=True, timeout=600).stdout.split()]


def main():
    builds = sys.argv[1:3]
    ranks = int(sys.argv[3]) if len(sys.argv) > 3 else 64
    rounds = int(sys.argv[4]) if len(sys.argv) > 4 else 20
    times = {b: [] for b in builds}
    for i in range(rounds + 1):
        for b in random.sample(builds, 2):
            t = run(b, ranks)
            if i:
                times[b].append(t)
    for k, what in enumerate(["met", "met, and had a sum"]):
        old, new = ([t[k] for t in times[b]] for b in builds)
        print("%d ranks %s: old %.1f ms, new %.1f ms, ratio %s"
              % (ranks, what, statistics.median(old), statistics.median(new), with_interval(ratios(new, old))))


if __name__ == "__main__":
    main()
