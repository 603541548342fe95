#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the monitor of a node costs, without Slurm: python3 monitor.py DL [SECONDS [INTERVAL]]

Starts 8 ranks of 20 processes each (a quarter of a core is busy in all, the others sleep), samples them for
SECONDS (default 60) at INTERVAL (default 5), and prints the CPU time of the monitor and of its children for a
second of the clock.  Then: the time of a fixed amount of work of one process, five times with and five times
without a monitor beside it, in turn.
"""
import os
import resource
import subprocess
import sys
import tempfile
import time

RANKS, PROCESSES = 8, 20

RANK = """
import os, time
for _ in range(%d):
    if os.fork() == 0:
        while True:
            time.sleep(1000)
while True:
    t = time.process_time()
    while time.process_time() - t < 0.003:
        pass
    time.sleep(0.1)
""" % (PROCESSES - 1)

WORK = """
import time
t = time.perf_counter()
for i in range(30000000):
    pass
print(time.perf_counter() - t)
"""


def environment(rank, pid=None):
    env = dict(os.environ, SLURM_JOB_ID="1", SLURM_STEP_ID="0", SLURM_PROCID=str(rank), SLURM_LOCALID=str(rank),
               SLURM_GTIDS=",".join(map(str, range(RANKS))), SLURMD_NODENAME="bench")
    if pid:
        env["SLURM_TASK_PID"] = str(pid)
    return env


def start_rank(rank, program):
    """Its environment has its own pid, as Slurm's tasks' have."""
    return subprocess.Popen(["sh", "-c", 'SLURM_TASK_PID=$$ exec "$0" -c "$1"', sys.executable, program],
                            env=environment(rank), start_new_session=True, stdout=subprocess.PIPE)


def start_monitor(dl, interval, task, folder):
    return subprocess.Popen([dl, "sample", str(interval)], env=dict(environment(0, task), DL_MONITOR_DIR=folder))


def stop(rank):
    os.killpg(rank.pid, 9)
    rank.wait()


def cost(dl, seconds, interval, folder):
    ranks = [start_rank(r, RANK) for r in range(RANKS)]
    time.sleep(2)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.monotonic()
    monitor = start_monitor(dl, interval, ranks[0].pid, folder)
    time.sleep(seconds)
    pids = subprocess.run(["pgrep", "-P", str(monitor.pid)], capture_output=True, text=True).stdout.split()
    spent = {}
    for pid in [str(monitor.pid)] + pids:
        fields = open("/proc/%s/stat" % pid).read().rpartition(")")[2].split()
        spent[pid] = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    took = time.monotonic() - began
    for r in ranks:
        stop(r)
    monitor.wait(timeout=10)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    total = sum(spent.values())
    print("%d ranks of %d processes, every %g s for %.0f s: %.2f s of CPU, %.3f %% of a core (start included)" %
          (RANKS, PROCESSES, interval, took, total, 100 * total / took))
    print("the most memory of any child: %.0f MB" % (max(before.ru_maxrss, after.ru_maxrss) / 1e3))


def work(dl, interval, folder):
    rank = start_rank(0, WORK)
    monitor = start_monitor(dl, interval, rank.pid, folder) if dl else None
    seconds = float(rank.communicate()[0])
    if monitor:
        monitor.wait(timeout=10)
    return seconds


def main():
    dl = sys.argv[1]
    seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 60
    interval = int(sys.argv[3]) if len(sys.argv) > 3 else 5
    with tempfile.TemporaryDirectory() as folder:
        cost(dl, seconds, interval, folder)
        pairs = [(work(None, interval, folder), work(dl, interval, folder)) for _ in range(5)]
    off, on = (min(p[i] for p in pairs) for i in (0, 1))
    print("work without a monitor: %.3f s, with: %.3f s (the best of %d): %+.1f %%" %
          (off, on, len(pairs), 100 * (on / off - 1)))


main()
