# SPDX-License-Identifier: Apache-2.0
"""Measure how the cost of a trial, and of commands that read the experiment, grows with the number of trials.

    make tests/bench/attach && python tests/bench/growth.py --attach tests/bench/attach [NAME=DL ...]

Creates an experiment with N finished no-op trials on tmpfs (attach writes its log and metrics as a worker does), writes
its results.h5 for the first time, runs 'dl show' and 'dl export', and then lets one worker train 1,000 more trials.
With several dl, they take turns for each N.
"""
import argparse
import os
import pathlib
import resource
import shutil
import subprocess
import tempfile
import time

from peer_runs import dl_conf

MORE = 1000
COLUMNS = ("results.h5", "show", "export")


def spent(argv):
    """Return the CPU seconds and wall clock seconds of a command."""
    start, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(argv, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return cpu, time.perf_counter() - start


def processor(pid):
    words = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def peak_memory(pid):
    text = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(text.split("VmHWM:")[1].split()[0]) / 1024


def entries(folder):
    block = max((folder / "log").glob("??????"))
    return int(block.name) * 256 + len([e for e in os.listdir(block) if not e.startswith(".")])


def train(dl, folder):
    """Return the worker's CPU and wall clock ms per trial, without the first and last tenth, and its peak memory."""
    first, samples, memory = entries(folder), [], 0
    worker = subprocess.Popen([dl, "worker", "--slot", "local-1-1", folder], stdout=subprocess.DEVNULL)
    try:
        while worker.poll() is None:
            n = entries(folder) - first
            if MORE // 10 <= n <= MORE * 9 // 10:
                samples.append((n, processor(worker.pid), time.perf_counter()))
            memory = max(memory, peak_memory(worker.pid))
            time.sleep(0.02)
    except (FileNotFoundError, IndexError):
        worker.wait()  # it ended between two polls
    assert worker.wait() == 0
    n, cpu, wall = (b - a for a, b in zip(samples[0], samples[-1]))
    return 1000 * cpu / n, 1000 * wall / n, memory


def measure(a, dl, n, metrics):
    top = tempfile.mkdtemp(prefix="growth-", dir=a.tmpfs)
    conf = dl_conf(top, '["printf", "loss 0\\\\n"]', n + MORE, 1)
    made = subprocess.run([a.attach, conf, top, str(n), metrics], check=True, capture_output=True, text=True).stdout
    folder = pathlib.Path(made.strip())
    commands = {
        "results.h5": [dl, "export", "--format=h5", f"--output={folder}/results.h5", folder],
        "show": [dl, "show", folder],
        "export": [dl, "export", folder],
    }
    times = {what: spent(command) for what, command in commands.items()}
    for what in ("show", "export"):
        times[what] = min(times[what], spent(commands[what]))
    each = train(dl, folder)
    shutil.rmtree(top)
    return each, times


def template(a, dl):
    """Return the metrics.h5 of a no-op trial, and the directory to remove."""
    top = tempfile.mkdtemp(prefix="growth-", dir=a.tmpfs)
    conf = dl_conf(top, '["printf", "loss 0\\\\n"]', 1, 1)
    subprocess.run([dl, "run", "--local", "--dir", top, conf], check=True, stdout=subprocess.DEVNULL)
    return f"{top}/b-0001/trials/0001/a.1/metrics.h5", top


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("dl", nargs="*", default=["dl=dl"], help="NAME=PROGRAM")
    p.add_argument("--attach", required=True)
    p.add_argument("--trials", default="0,1000,10000,50000,100000")
    p.add_argument("--tmpfs", default="/dev/shm")
    a = p.parse_args()
    builds = [d.split("=", 1) for d in a.dl]
    print(f"# {time.strftime('%Y-%m-%d')}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; s of processor (of "
          "the clock)\n| dl | trials | a trial: processor, ms | clock, ms | peak memory, MB | "
          + " | ".join(COLUMNS) + " |\n" + "| --- " * (5 + len(COLUMNS)) + "|", flush=True)
    metrics, top = template(a, builds[0][1])
    for n in map(int, a.trials.split(",")):
        for name, dl in builds:
            (cpu, wall, memory), times = measure(a, dl, n, metrics)
            print(f"| {name} | {n} | {cpu:.2f} | {wall:.2f} | {memory:.0f} | "
                  + " | ".join("%.2f (%.2f)" % times[c] for c in COLUMNS) + " |", flush=True)
    shutil.rmtree(top)


if __name__ == "__main__":
    main()
