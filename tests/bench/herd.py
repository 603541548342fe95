# SPDX-License-Identifier: Apache-2.0
"""Start thousands of workers of one experiment at once: does each get its share of the trials, and does the run end?

    python tests/bench/herd.py 1000 5000             1,000 workers, 5,000 trials of 0.5 s

Needs dl in PATH or $DL. Creates its directory on tmpfs (--top). A worker and its training script use about 4.5 MB of
memory.
"""
import argparse
import collections
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import threading
import time

from peer_runs import DL, dl_conf


def entries(folder):
    for path in sorted(pathlib.Path(folder, "log").glob("[0-9]*[0-9]/[0-9]*")):
        yield [json.loads(line) for line in path.read_text().splitlines()[:-1]]


def memory_peak(stop, peak):
    """Record the peak increase of the host's memory use in MB, and the highest load average."""
    def used():
        lines = dict(line.split()[:2] for line in open("/proc/meminfo"))
        return (int(lines["MemTotal:"]) - int(lines["MemAvailable:"])) / 1024

    start = used()
    while not stop.wait(0.5):
        peak["MB"] = max(peak["MB"], used() - start)
        peak["load"] = max(peak["load"], os.getloadavg()[0])


def judge(folder, workers, trials):
    pulled, results, begun = collections.Counter(), collections.Counter(), {}
    ops, count, start, times = collections.Counter(), 0, None, []
    for count, events in enumerate(entries(folder), 1):
        for e in events:
            ops[e["op"]] += 1
            start = start or e["time"]
            if e["op"] == "result":
                pulled[e["by"]] += 1
                results[e["trial"]] += 1
                begun.setdefault(e["by"], e["time"] - e["seconds"] - start)
                times.append(e["time"] - start)
    shares = [pulled[w] for w in pulled] + [0] * (workers - len(pulled))
    print(f"entries {count}, events {dict(ops)}")
    print(f"trials with a result {len(results)} of {trials}, with two {sum(v > 1 for v in results.values())}")
    print(f"first trial begun by a worker: median {sorted(begun.values())[len(begun) // 2]:.1f} s, "
          f"last {max(begun.values()):.1f} s; workers with no trial {workers - len(pulled)}")
    print(f"trials a worker: least {min(shares)}, most {max(shares)}, mean {sum(shares) / workers:.2f}, "
          f"most of the middle 98 % {sorted(shares)[-max(1, workers // 100)]}, "
          f"least {sorted(shares)[max(0, workers // 100 - 1)]}")
    print(f"last result after {max(times):.1f} s: {60 * len(times) / max(times):.0f} trials a minute")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("workers", type=int)
    p.add_argument("trials", type=int)
    p.add_argument("--seconds", type=float, default=0.5, help="a training")
    p.add_argument("--limit", type=float, default=400)
    p.add_argument("--top", default="/dev/shm")
    p.add_argument("--keep", action="store_true")
    a = p.parse_args()
    folder = tempfile.mkdtemp(prefix="herd-", dir=a.top)
    conf = dl_conf(folder, f'["sh", "-c", "echo loss $DL_HP_x; exec sleep {a.seconds}"]', a.trials, a.workers)
    stop, peak = threading.Event(), {"MB": 0, "load": os.getloadavg()[0]}
    watch = threading.Thread(target=memory_peak, args=(stop, peak))
    print(f"# {vars(a)}, {os.cpu_count()} cores, load average before {os.getloadavg()[0]:.1f}", flush=True)
    watch.start()
    start = time.monotonic()
    run = subprocess.Popen([DL, "run", "--local", "--dir", folder, conf], stdout=open(f"{folder}/out", "wb"),
                           stderr=subprocess.STDOUT)
    try:
        status = run.wait(a.limit)
    except subprocess.TimeoutExpired:
        run.terminate()
        status = f"not ended after {a.limit} s"
        run.wait(60)
    print(f"dl run: {status}, {time.monotonic() - start:.1f} s; memory {peak['MB']:.0f} MB, load {peak['load']:.0f}")
    stop.set()
    watch.join()
    judge(f"{folder}/b-0001", a.workers, a.trials)
    logs = "".join(p.read_text() for p in pathlib.Path(folder, "b-0001/workers").glob("*.log"))
    print(f"lines that workers printed: {collections.Counter(logs.splitlines()).most_common(3)}")
    if a.keep:
        print(f"kept: {folder}")
    else:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
