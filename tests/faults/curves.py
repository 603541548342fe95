# SPDX-License-Identifier: Apache-2.0
"""Kill workers of sweeps with unmodified scripts at random, and check the learning curve of every trial.

usage: curves.py [--kills=N] [--trials=N] [--workers=N] [--seed=S] [--minutes=M] [--keep]
       (20 minutes, with launcher/ in PATH: python3 tests/faults/curves.py --kills=300)

The script prints an epoch, writes its checkpoint to a temporary file and renames it; it resumes from {resume_dir}.
Workers, trainers and the launcher get SIGKILL, workers are stopped for longer than their lease and continued, and the
sweep is paused and then resumed three times at once.  judge() shares no code with dl or check.py: it reads the decision
log as JSON lines and metrics.h5 with h5py.  Each trial must have one accepted result for each segment, and each epoch
exactly once, with the value that follows from its hyperparameter.
"""
import collections
import getopt
import glob
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import h5py

TRAINER = '''import os, sys, time
lr, length, out = float(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
step = int(open(sys.argv[4]).read()) if len(sys.argv) > 4 else 0
while step < length:
    time.sleep(%g)
    step += 1
    print(f"epoch {step}: loss {lr / step!r}", flush=True)
    with open(out + "/last.new", "w") as f:
        f.write(str(step))
    os.rename(out + "/last.new", out + "/last")
'''
CONF = '''name = "c";
entrypoint = ["%s", "train.py", "{lr}", "{length}", "{attempt_dir}", "[{resume_dir}/last]"];
metrics = { pattern = "epoch {step}: loss {loss}"; };
searcher = { name = "%s"; metric = "loss"; max_trials = %d; max_length = %d; %s };
hyperparameters = { lr = { type = "float"; minval = 0.5; maxval = 1.5; }; };
resources = { workers = %d; };
reproducibility = { experiment_seed = %d; };
worker = { heartbeat = 1; lease = 5; grace = 2; };
max_restarts = 1000;
'''
KINDS = [("random", 6, "", 0.15), ("asha", 9, "divisor = 3;", 0.1)]


def processes(word, last):
    """Yield the pids of processes whose command line contains 'word' and ends with 'last'."""
    for path in glob.glob("/proc/[0-9]*/cmdline"):
        try:
            with open(path, "rb") as f:
                words = f.read().decode(errors="replace").split("\0")[:-1]
        except OSError:
            continue
        if words and words[-1] == last and word in words:
            yield int(path.split("/")[2])


def children(pids):
    for path in glob.glob("/proc/[0-9]*/stat"):
        try:
            with open(path, "rb") as f:
                fields = f.read().decode(errors="replace").rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) in pids and fields[0] != "Z":
            yield int(path.split("/")[2])


def kill(pid, number=signal.SIGKILL):
    try:
        os.kill(pid, number)
        return 1
    except ProcessLookupError:
        return 0


class Sweep:
    def __init__(self, folder, kind, trials, workers, seed):
        name, length, more, pause = kind
        self.name, self.workers, self.random = name, workers, random.Random(seed)
        self.base, self.folder = folder, folder + "/c-0001"
        os.mkdir(folder)
        with open(folder + "/train.py", "w") as f:
            f.write(TRAINER % pause)
        with open(folder + "/c.conf", "w") as f:
            f.write(CONF % (sys.executable, name, trials, length, more, workers, seed))
        self.hits, self.stopped, self.ours = collections.Counter(), {}, []

    def dl(self, *words, wait=False):
        with open(self.base + "/out", "ab") as out:
            p = subprocess.Popen(["dl", *words], cwd=self.base, stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                                 env=dict(os.environ, DL_FREEZE="false"))
        if wait:
            return p.wait()
        self.ours.append(p)
        return None

    def wake(self, everybody=False):
        for pid, when in list(self.stopped.items()):
            if everybody or time.monotonic() > when:
                kill(pid, signal.SIGCONT)
                del self.stopped[pid]

    def hit(self):
        workers = list(processes("worker", self.folder))
        what = self.random.choices(["worker", "trainer", "stop", "launcher", "pause"], [50, 15, 15, 8, 4])[0]
        if what == "pause":
            self.dl("pause", "c", wait=True)
            for _ in range(3):
                self.dl("resume", "--local", "c")
        elif what == "launcher":
            self.hits[what] += sum(kill(p.pid) for p in self.ours if p.poll() is None)
        elif what == "stop":
            free = [w for w in workers if w not in self.stopped]
            if free:
                pid = self.random.choice(free)
                kill(pid, signal.SIGSTOP)
                self.stopped[pid] = time.monotonic() + self.random.uniform(6, 10)
        else:
            some = workers if what == "worker" else list(children(workers))
            if some:
                pid = self.random.choice(some)
                self.hits[what] += kill(pid)
                return
        self.hits[what] += what in ("pause", "stop")

    def state(self):
        found = subprocess.run(["dl", "show", "--json", "c"], cwd=self.base, stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL, check=False).stdout
        try:
            return json.loads(found)["state"]
        except (ValueError, KeyError):
            return "?"

    def run(self, kills, deadline):
        self.dl("run", "--local", "c.conf")
        while not os.path.isdir(self.folder):
            time.sleep(0.1)
        while time.monotonic() < deadline:
            time.sleep(self.random.uniform(0.2, 1.0))
            self.wake()
            self.ours = [p for p in self.ours if p.poll() is None]
            if not self.ours:
                if self.state() in ("completed", "failed", "partial"):
                    break
                self.dl("resume", "--local", "c")
            elif sum(self.hits[k] for k in ("worker", "trainer", "launcher")) < kills:
                self.hit()
        self.wake(everybody=True)
        for p in self.ours:
            try:
                p.wait(timeout=60)
            except subprocess.TimeoutExpired:
                p.kill()

    # ---- checks of the files

    def events(self):
        for path in sorted(glob.glob(self.folder + "/log/*/*")):
            with open(path) as f:
                for line in f:
                    event = json.loads(line)
                    if "op" in event:
                        yield event

    def rows(self, trial, attempt):
        for path in sorted(glob.glob(f"{self.folder}/trials/{trial:04d}/a.{attempt}/metrics*.h5")):
            with h5py.File(path, "r") as f:
                names = [n.decode() for n in f["names"][:]]
                for row in f["metrics"][1:]:
                    if names[row["name"]] == "loss":
                        yield int(row["step"]), float(row["value"])

    def judge(self):
        lr, open_to, results, over, ends = {}, {}, collections.defaultdict(list), collections.Counter(), collections.Counter()
        r = collections.Counter()
        for e in self.events():
            if e["op"] == "begin":
                open_to[e["trial"]] = e["length"]
                if "hparams" in e:
                    lr[e["trial"]] = e["hparams"]["lr"]
            elif e["op"] in ("result", "fail", "lost", "park"):
                if e["attempt"] != over[e["trial"]] + 1 or e["trial"] not in open_to:
                    r["late"] += 1
                    continue
                over[e["trial"]] += 1
                ends[e["op"]] += 1
                if e["op"] == "lost" and e.get("seconds", 0) > 0:
                    r["timed"] += 1
                if e["op"] == "result":
                    results[e["trial"]].append((e["length"], e["attempt"], e["metric"]))
                    del open_to[e["trial"]]
            elif e["op"] == "exit" and open_to.pop(e["trial"], None):
                r["given up"] += 1
        for trial, got in results.items():
            curve, length = [], got[-1][0]
            for k in range(1, got[-1][1] + 1):
                new = list(self.rows(trial, k))
                if new:
                    first = min(s for s, _ in new)
                    curve = [x for x in curve if x[0] < first] + new
            steps = [s for s, _ in curve]
            r["holes"] += len(set(range(1, length + 1)) - set(steps))
            r["doubles"] += len(steps) - len(set(steps))
            r["wrong"] += sum(v != lr[trial] / s for s, v in curve)
            r["wrong"] += sum(m != lr[trial] / n for n, _, m in got)
            r["values"] += len(steps)
        r["lost"] = len(open_to)
        r["trials"], r["results"] = len(lr), sum(map(len, results.values()))
        r["attempts"], r["interrupted"] = sum(ends.values()), ends["fail"] + ends["lost"] + ends["park"]
        r["losts"] = ends["lost"]
        return r


def main():
    options = dict(getopt.getopt(sys.argv[1:], "", ["kills=", "trials=", "workers=", "seed=", "minutes=", "keep"])[0])
    kills, trials = int(options.get("--kills", 300)), int(options.get("--trials", 60))
    workers, seed = int(options.get("--workers", 4)), int(options.get("--seed", time.time()))
    deadline = time.monotonic() + 60 * float(options.get("--minutes", 20))
    work = tempfile.mkdtemp(prefix="curves.")
    columns = ["trials", "results", "attempts", "interrupted", "values", "holes", "doubles", "wrong", "lost", "given up"]
    bad = done = 0
    print(f"seed {seed}")
    print("| sweep | " + " | ".join(columns) + " | SIGKILL worker, trainer, launcher | SIGSTOP | pause + 3 resumes | losts with seconds | state |", flush=True)
    print("| --- " * (len(columns) + 6) + "|")
    for n in range(100):
        if done >= kills or time.monotonic() >= deadline:
            break
        s = Sweep(f"{work}/{n}", KINDS[n % 2], trials, workers, seed + n)
        s.run(kills - done, deadline)
        r, h = s.judge(), s.hits
        state = s.state()
        done += h["worker"] + h["trainer"] + h["launcher"]
        print(f"| {s.name} | " + " | ".join(str(r[c]) for c in columns)
              + f" | {h['worker']}, {h['trainer']}, {h['launcher']} | {h['stop']} | {h['pause']} | {r['timed']} of {r['losts']} | {state} |", flush=True)
        bad += r["holes"] + r["doubles"] + r["wrong"] + r["lost"] + r["given up"] + (state != "completed")
    print(f"{done} kills: {'sound' if not bad else 'NOT sound'}")
    if "--keep" in options or bad:
        print(f"kept: {work}")
    else:
        shutil.rmtree(work)
    return bool(bad) or done < kills


if __name__ == "__main__":
    sys.exit(main())
