# SPDX-License-Identifier: Apache-2.0
"""Compare dl with Optuna's JournalStorage under the same kills and freezes, and with no-op trials.

    python tests/bench/peers.py kills --seeds 1-3        count lost, duplicate and stuck trials
    python tests/bench/peers.py throughput               overhead, fsyncs and metadata operations per trial
    python tests/bench/peers.py throughput --base DL     also compare with an older dl

Needs `pip install optuna xxhash`, dl in PATH or $DL, and strace. Creates directories below --disk and --tmpfs.
"""
import argparse
import collections
import os
import pathlib
import random
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

from peer_runs import DL, DlRun, OptunaRun, dl_conf, dl_events, fork, study

FREEZE = 8
PRINTF = shutil.which("printf")
METADATA = ("link", "linkat", "symlink", "symlinkat", "unlink", "unlinkat", "rename", "renameat", "renameat2", "mkdir",
            "mkdirat", "rmdir")


def heading(a):
    load = ", ".join(f"{x:.1f}" for x in os.getloadavg())
    print(f"# {time.strftime('%Y-%m-%d')}, {os.cpu_count()} cores, load average {load}; {vars(a)}", flush=True)


# ---- kills and freezes ----

def schedule(seed, workers, seconds):
    """Return (time, what, slot) events: a kill about every 0.6 s, a freeze about every 3 s."""
    rng = random.Random(seed)
    events = []
    for what, low, high in (("kill", 0.3, 0.9), ("freeze", 2, 4)):
        t = rng.uniform(low, high)
        while t < seconds:
            events.append((t, what, rng.randrange(workers)))
            t += rng.uniform(low, high)
    return sorted(events)


def started(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[19]
    except OSError:
        return None


def harm(run, events, limit):
    """Run the schedule until the run has ended. Return the numbers of kills and freezes, and the seconds."""
    start, done, frozen = time.monotonic(), collections.Counter(), []
    events = collections.deque(events)
    while run.tick() and (now := time.monotonic() - start) < limit:
        while frozen and frozen[0][0] <= now:
            _, pid, since = frozen.pop(0)
            if started(pid) == since:
                os.kill(pid, signal.SIGCONT)
        if events and events[0][0] <= now:
            _, what, slot = events.popleft()
            pid = run.pid(slot)
            if pid:
                if what == "freeze":
                    frozen.append((now + FREEZE, pid, started(pid)))
                os.kill(pid, signal.SIGKILL if what == "kill" else signal.SIGSTOP)
                done[what] += 1
        time.sleep(0.01)
    return done, time.monotonic() - start


def kills(a):
    columns = ("kills", "freezes", "acknowledged", "lost", "doubled", "stuck", "results", "trainings", "corrupt",
               "errors", "ended")
    print("| system | seed | " + " | ".join(columns) + " | s to the last result | s in all |\n"
          + "| --- " * (len(columns) + 4) + "|", flush=True)
    low, high = map(int, a.seeds.split("-"))
    for seed in range(low, high + 1):
        for system in a.systems.split(","):
            folder = tempfile.mkdtemp(prefix="peers-", dir=a.disk)
            if system == "dl":
                run = DlRun(folder, a.trials, a.workers, a.seconds, seed)
            else:
                run = OptunaRun(folder, a.trials, a.workers, a.seconds, system.split("-")[1])
            done, seconds = harm(run, schedule(seed, a.workers, a.limit), a.limit)
            r = run.finish() | {"kills": done["kill"], "freezes": done["freeze"]}
            print(f"| {system} | {seed} | " + " | ".join(str(r.get(c, "-")) for c in columns)
                  + f" | {r.get('last', 0):.1f} | {seconds:.1f} |", flush=True)
            if a.keep:
                print(f"# kept: {folder}")
            else:
                shutil.rmtree(folder)


# ---- no-op trials ----

def spawn_many(n):
    null = os.open("/dev/null", os.O_WRONLY)
    for _ in range(n):
        pid = os.posix_spawn(PRINTF, ["printf", "loss 0\\n"], os.environ, file_actions=[(os.POSIX_SPAWN_DUP2, null, 1)])
        os.waitpid(pid, 0)


def optuna_many(path, n, command):
    def objective(t):
        if command:
            subprocess.run([PRINTF, "loss 0\\n"], stdout=subprocess.DEVNULL, check=True)
        return t.suggest_float("x", 0, 1)

    study(path, "symlink").optimize(objective, n_trials=n)


def together(workers, work, *args):
    start = time.perf_counter()
    for pid in [fork(work, *args) for _ in range(workers)]:
        assert os.waitpid(pid, 0)[1] == 0
    return time.perf_counter() - start


def run_dl(folder, workers, trials, dl=DL):
    """Return the total seconds, and those from the first trial to the last result."""
    conf = dl_conf(folder, '["printf", "loss 0\\\\n"]', trials, workers)
    start = time.perf_counter()
    subprocess.run([dl, "run", "--local", "--dir", folder, conf], check=True, stdout=subprocess.DEVNULL)
    whole = time.perf_counter() - start
    times = [e["time"] for e in dl_events(f"{folder}/b-0001") if e["op"] in ("begin", "result")]
    return whole, times[-1] - times[0]


def run_optuna(folder, workers, trials, command=False):
    study(f"{folder}/journal", "symlink", create=True)
    return together(workers, optuna_many, f"{folder}/journal", trials // workers, command)


def count_calls(folder, argv):
    """Count system calls of a command and its children by kind; 'create' is an open with O_CREAT."""
    out = f"{folder}/strace"
    trace = ",".join((*METADATA, "open", "openat", "creat", "fsync", "fdatasync"))
    subprocess.run(["strace", "-f", "--seccomp-bpf", "-o", out, "-e", f"trace={trace}", *argv], check=True,
                   stdout=subprocess.DEVNULL)
    calls = collections.Counter()
    for line in open(out, errors="replace"):
        name = re.match(r"\d+ +(\w+)\(", line)
        if name and (not name[1].startswith("open") or ("O_CREAT" in line and '"/dev/null' not in line)):
            calls["create" if name[1].startswith("open") else re.sub("at2?$", "", name[1])] += 1
    return calls


def counted(folder, system, workers, trials):
    if system == "dl":
        conf = dl_conf(folder, '["printf", "loss 0\\\\n"]', trials, workers)
        calls = count_calls(folder, [DL, "run", "--local", "--dir", folder, conf])
    else:
        calls = count_calls(folder, [sys.executable, __file__, "optuna-only", folder, str(workers), str(trials)])
    syncs = (calls.pop("fsync", 0) + calls.pop("fdatasync", 0)) / trials
    each = ", ".join(f"{k} {v / trials:.2f}" for k, v in calls.most_common())
    print(f"| {system} | {workers} | {syncs:.2f} | {sum(calls.values()) / trials:.2f} | {each} |", flush=True)


def timed(a, where, top):
    runs = {"bare": lambda f, w: together(w, spawn_many, a.trials // w),
            "dl": lambda f, w: run_dl(f, w, a.trials)[1],
            "optuna": lambda f, w: run_optuna(f, w, a.trials),
            "command": lambda f, w: run_optuna(f, w, a.trials, command=True)}
    if a.base:
        runs["base"] = lambda f, w: run_dl(f, w, a.trials, a.base)[1]
    for workers in map(int, a.numbers.split(",")):
        # interleave them, so that other load affects all alike
        times = collections.defaultdict(list)
        for _ in range(a.rounds):
            for name, run in runs.items():
                with tempfile.TemporaryDirectory(prefix="peers-", dir=top) as folder:
                    times[name].append(run(folder, workers) * 1000 / a.trials)
        ms = {k: f"{statistics.median(v):.2f}" for k, v in times.items()}
        ratio = {k: f"{statistics.median(x / y for x, y in zip(times['dl'], v)):.2f}" for k, v in times.items()}
        print(f"| {where} | {workers} | {ms['bare']} | {ms.get('base', '-')} | {ms['dl']} | {ms['optuna']} | "
              f"{ms['command']} | {ratio.get('base', '-')} | {ratio['optuna']} | {ratio['command']} | "
              f"{os.getloadavg()[0]:.1f} |", flush=True)


def throughput(a):
    import optuna  # noqa: F401 - import once, before forking the workers

    print("ms a trial, wall clock, the median of the rounds, of dl from the first trial to the last result; bare: the\n"
          "command alone, as many at once; the last columns: the median of the ratios of dl in each round\n\n"
          "| on | workers | bare | base | dl | optuna, in process | optuna, which runs the command | to base | to optuna | "
          "to optuna with the command | load |\n" + "| --- " * 11 + "|")
    for where in a.on.split(","):
        timed(a, where, getattr(a, where))
    if a.uncounted:
        return
    print("\n| system | workers | fsyncs a trial | metadata operations a trial | of them |\n" + "| --- " * 5 + "|")
    for workers in map(int, a.numbers.split(",")):
        for system in ("dl", "optuna"):
            with tempfile.TemporaryDirectory(prefix="peers-", dir=a.tmpfs) as folder:
                counted(folder, system, workers, a.trials)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("what", choices=("kills", "throughput"))
    p.add_argument("--seeds", default="1-3")
    p.add_argument("--systems", default="dl,optuna-symlink,optuna-open")
    p.add_argument("--workers", type=int, default=8, help="kills")
    p.add_argument("--numbers", default="1,2,8", help="throughput: numbers of workers")
    p.add_argument("--rounds", type=int, default=3, help="throughput")
    p.add_argument("--base", help="throughput: another dl to compare with")
    p.add_argument("--on", default="tmpfs,disk", help="throughput")
    p.add_argument("--uncounted", action="store_true", help="throughput: without strace")
    p.add_argument("--trials", type=int, help="default: 400, 1000 for throughput")
    p.add_argument("--seconds", type=float, default=0.2, help="kills: a training")
    p.add_argument("--limit", type=float, default=240, help="kills: s a run")
    p.add_argument("--disk", default=tempfile.gettempdir())
    p.add_argument("--tmpfs", default="/dev/shm")
    p.add_argument("--keep", action="store_true", help="kills: keep the folders")
    a = p.parse_args()
    a.trials = a.trials or (400 if a.what == "kills" else 1000)
    heading(a)
    {"kills": kills, "throughput": throughput}[a.what](a)


if __name__ == "__main__":
    if sys.argv[1:2] == ["optuna-only"]:
        run_optuna(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
    else:
        main()
