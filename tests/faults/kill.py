# SPDX-License-Identifier: Apache-2.0
"""Kill and freeze all parts of a sweep at random moments, and check that the sweep completes anyway.

usage: kill.py [--kills=N] [--trials=N] [--workers=N] [--gap=SECONDS] [--seed=S] [--cluster=MINICLUSTER]
               [--disk=FOLDER] [--keep]
       (the long runs, from the build folder, with launcher/ in PATH:
        python3 tests/faults/kill.py --kills=1000 --trials=500
        python3 tests/faults/kill.py --kills=1000 --trials=500 --cluster=contrib/minicluster)

Sweeps of N trials run one after the other, alternating between random search
and asha, until N kills have happened, about one every GAP seconds.
`dl run --local` starts the workers.  With --cluster, a job array on a private
Slurm cluster does: then Slurm's daemons are also killed and stopped, and nodes
go down.  As root, each node has its own network, which is cut off at times, and
every third sweep has trials of two nodes.  Two more workers have clocks that are
an hour fast and slow (faketime).  As root, the experiment is on a small tmpfs
that fills up at times; or pass --disk with a FOLDER on a disk of about 128 MB.
After each sweep, check.py checks its files, every log entry that was ever seen
must still exist unchanged, and a random search must have the same results as
without faults.
"""
import collections
import glob
import hashlib
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import check
from bench import environment, run, work_folder
from cluster import Cluster

LEASE = 3

CONF = """
name = "kill";
entrypoint = "./trial.sh";
searcher = { name = "%s"; metric = "loss"; max_trials = %d; max_length = %d; %s };
metrics = { pattern = "loss={loss}"; };
hyperparameters = { x = { type = "float"; minval = 0; maxval = 1; }; };
resources = { workers = %d; %s };
reproducibility = { experiment_seed = %d; };
worker = { heartbeat = 1; lease = %d; grace = 2; };
max_restarts = 1000;
"""

TRIAL = """#!/bin/sh
[ -e quick ] || sleep 0.$(((DL_TRIAL * 7 + DL_ATTEMPT * 3) % 8 + 2))
echo "loss=$DL_HP_x"
"""


def arguments(pid):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as f:
            return f.read().decode(errors="replace").split("\0")[:-1]
    except OSError:
        return []


def parent(pid):
    try:
        with open(f"/proc/{pid}/stat") as f:
            return int(f.read().rpartition(")")[2].split()[1])
    except (OSError, IndexError):
        return 0


def send(pid, number):
    try:
        os.kill(pid, number)
        return True
    except ProcessLookupError:
        return False


class Local:
    """Workers that are processes of `dl run --local`."""

    faults = {"launcher": 1}

    def __init__(self, workers):
        self.workers = workers
        self.process = None
        self.settings = ""

    def start(self, command, log):
        self.process = subprocess.Popen(["dl", command[0], "--local", f"--workers={self.workers}", *command[1:]],
                                        env=environment(), stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def wider(self, _):
        return ""

    def idle(self):
        """Whether no worker is left."""
        return self.process.poll() is not None

    def launcher(self, _):
        return not self.idle() and send(self.process.pid, signal.SIGKILL)

    def end(self):
        if self.process and not self.idle():
            self.process.terminate()
            self.process.wait(timeout=120)

    close = end


class Sweep:
    """One experiment, and the faults that it suffers."""

    def __init__(self, executor, work, random_numbers, searcher, trials, seed, wider):
        self.executor = executor
        self.random = random_numbers
        self.base = f"{work}/{searcher}-{seed}"
        self.log = None
        self.trials = trials
        self.wider = wider
        self.kills = collections.Counter()
        self.seen = {}
        self.frozen = {}    # pid: when to continue it
        self.full = None    # when to free the disk again
        self.clocks = {}    # offset: worker
        self.look = 0       # when to check these workers next
        self.faults = {"trainer": 6, "worker": 5, "freeze": 2, **executor.faults}
        if os.path.ismount(work):
            self.faults["disk"] = 1
        more = "divisor = 3;" if searcher == "asha" else ""
        os.mkdir(self.base)
        self.conf = CONF % (searcher, trials, 9 if more else 1, more, executor.workers,
                            executor.settings + wider, seed, LEASE)
        self.write(self.base, self.conf)

    def write(self, folder, conf):
        with open(f"{folder}/kill.conf", "w") as f:
            f.write(conf)
        with open(f"{folder}/trial.sh", "w") as f:
            f.write(TRIAL)
        os.chmod(f"{folder}/trial.sh", 0o755)

    @property
    def folder(self):
        return f"{self.base}/kill-0001"

    # ---- processes

    def processes(self):
        """Return the workers and their children."""
        all_pids = [int(p) for p in os.listdir("/proc") if p.isdigit()]
        workers = [p for p in all_pids if self.folder in (a := arguments(p)) and "worker" in a and "dl" in a[0]
                   and "srun" not in a[0]]
        return workers, [p for p in all_pids if parent(p) in workers]

    def ended(self):
        newest = max(self.entries(), default=None)
        if not newest:
            return False
        with open(newest) as f:
            return '"op":"end"' in f.read()

    def entries(self):
        return [p for p in glob.glob(f"{self.folder}/log/**", recursive=True) if p[-8:].isdigit()]

    # ---- faults

    def worker(self, workers):
        return bool(workers[0]) and send(self.random.choice(workers[0]), signal.SIGKILL)

    def trainer(self, workers):
        return bool(workers[1]) and send(self.random.choice(workers[1]), signal.SIGKILL)

    def freeze(self, workers):
        """Stop a worker for longer than its lease, as on a suspended machine, with or without its trainer."""
        awake = [p for p in workers[0] if p not in self.frozen]
        if not awake or len(self.frozen) >= len(workers[0]) / 2:
            return False
        pids = [self.random.choice(awake)]
        if self.random.random() < 0.5:
            pids += [p for p in workers[1] if parent(p) == pids[0]]
        wake = time.time() + LEASE * self.random.uniform(1.3, 2)
        for pid in pids:
            if send(pid, signal.SIGSTOP):
                self.frozen[pid] = wake
        return True

    def disk(self, _):
        if self.full:
            return False
        self.full = time.time() + self.random.uniform(0.3, 1.5)
        try:
            with open(f"{self.base}/filler", "wb", buffering=0) as f:
                while True:
                    f.write(bytes(65536))
        except OSError:
            return True

    def harm(self):
        kind = self.random.choices(list(self.faults), list(self.faults.values()))[0]
        act = getattr(self, kind, None) or getattr(self.executor, kind)
        if act(self.processes()):
            self.kills[kind] += 1

    def heal(self, at_once=False):
        now = time.time()
        for pid, wake in list(self.frozen.items()):
            if at_once or now > wake:
                send(pid, signal.SIGCONT)
                del self.frozen[pid]
        if self.full and (at_once or now > self.full):
            os.unlink(f"{self.base}/filler")
            self.full = None

    # ---- the run

    def tend(self):
        """Resume a sweep that has ended early, as a user would, and restart workers with wrong clocks."""
        if self.executor.idle() and not self.full:
            self.executor.start(["resume", self.folder], self.log)
        if not shutil.which("faketime") or self.wider or self.full or time.time() < self.look:
            return
        self.look = time.time() + 0.5
        env = environment(FAKETIME_DONT_FAKE_MONOTONIC="1", ASAN_OPTIONS="verify_asan_link_order=0:detect_leaks=0")
        for offset in ("+1h", "-1h"):
            if offset not in self.clocks or self.clocks[offset].poll() is not None:
                self.clocks[offset] = subprocess.Popen(
                    ["faketime", "-f", offset, "dl", "worker", "--slot", f"clock{offset}", "--", self.folder],
                    env=env, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)

    def note_entries(self):
        for path in self.entries():
            if path not in self.seen:
                with open(path, "rb") as f:
                    self.seen[path] = hashlib.sha256(f.read()).digest()

    def lost(self):
        """Return how many log entries that were seen have changed or vanished."""
        old, self.seen = self.seen, {}
        self.note_entries()
        return sum(self.seen.get(path) != digest for path, digest in old.items())

    def run(self, kills, gap, limit):
        # in TMPDIR: the disk of the sweep may be full
        with tempfile.TemporaryFile() as self.log:
            self.executor.start(["run", "--dir", self.base, f"{self.base}/kill.conf"], self.log)
            start = time.time()
            while not self.entries() and time.time() - start < 30:
                time.sleep(0.02)
            soon = time.time()
            while not self.ended() and time.time() - start < limit:
                self.tend()
                self.note_entries()
                if sum(self.kills.values()) < kills and time.time() > soon:
                    self.harm()
                    soon = time.time() + self.random.uniform(0, 2 * gap)
                self.heal()
                time.sleep(0.02)
            self.heal(at_once=True)
            self.executor.end()
            self.leave()
            self.log.seek(0)
            self.text = self.log.read().decode(errors="replace")

    def leave(self):
        for p in self.clocks.values():
            try:
                p.wait(timeout=120)
            except subprocess.TimeoutExpired:
                p.kill()
                p.wait()

    def unharmed(self):
        """Return the checksum of the results of the same search without faults."""
        quick = f"{self.base}/quick"
        os.mkdir(quick)
        self.write(quick, self.conf.replace(self.wider, ""))
        open(f"{quick}/quick", "w").close()
        status, text = run(["dl", "run", "--local", "--workers=2", "--dir", quick, f"{quick}/kill.conf"], limit=300)
        return check.Check(f"{quick}/kill-0001").sum() if status == 0 else f"status {status}: {text}"

    def judge(self):
        # if the last worker died before it wrote results.h5, dl show writes it
        run(["dl", "show", self.folder], limit=120)
        c = check.judge(self.folder, self.trials, results=True)
        lost = self.lost()
        if lost:
            c.bad(f"{lost} entries that were seen are gone, or others")
        if "random" in self.conf and not c.problems and self.unharmed() != c.sum():
            c.bad("other results than without faults")
        doubled = sum(n - 1 for n in collections.Counter((t.number, r["length"]) for t in c.log.trials
                                                         for r in t.results).values())
        print(c.verdict(), flush=True)
        return c, {"lost": lost, "doubled": doubled, "stuck": sum(t.state == "open" for t in c.log.trials)}


def small_disk(disk):
    """Mount a small disk on this folder. Return whether that worked."""
    return os.geteuid() == 0 and run(["mount", "-t", "tmpfs", "-o", "size=128m", "faults", disk])[0] == 0


def parse(args):
    known = {"kills": 40, "trials": 100, "workers": 8, "gap": 0.2, "seed": random.randrange(1 << 30), "cluster": "",
             "disk": "", "keep": ""}
    options = dict((a.lstrip("-").split("=", 1) + ["yes"])[:2] for a in args)
    if not set(options) <= set(known) or not all(a.startswith("--") for a in args):
        print(__doc__.strip(), file=sys.stderr)
        sys.exit(2)
    return {k: type(v)(options.get(k, v)) for k, v in known.items()}


def bench(o, work, executor):
    numbers = random.Random(o["seed"])
    kills, total, bad, sweeps = collections.Counter(), collections.Counter(), 0, 0
    while sum(kills.values()) < o["kills"] and bad == 0:
        s = Sweep(executor, work, numbers, ("random", "asha")[sweeps % 2], o["trials"], o["seed"] % 100000 + sweeps,
                  executor.wider(sweeps))
        s.run(o["kills"] - sum(kills.values()), o["gap"], 300 + o["trials"] * 10)
        c, counts = s.judge()
        bad += bool(c.problems)
        sweeps += 1
        kills.update(s.kills)
        total.update({"trials": len(c.log.trials), "results": c.log.counts.get("result", 0), **counts})
        if bad:
            print("\n".join("  said: " + line for line in s.text.splitlines()[-20:]))
        elif not o["keep"]:
            shutil.rmtree(s.base)
    print("kill: seed %d: %d sweeps, %d trials, %d results, %d kills (%s): %d lost, %d doubled, %d stuck, "
          "%d sweeps bad%s" % (
              o["seed"], sweeps, total["trials"], total["results"], sum(kills.values()),
              ", ".join(f"{n} {kind}" for kind, n in sorted(kills.items())), total["lost"], total["doubled"],
              total["stuck"], bad, "; two clocks were wrong" if shutil.which("faketime") else ""), flush=True)
    return bad


def main():
    o = parse(sys.argv[1:])
    work = work_folder("kill")
    disk = o["disk"] or f"{work}/disk"
    os.makedirs(disk, exist_ok=True)
    small = not o["disk"] and small_disk(disk)
    skipped = [] if small or o["disk"] else ["a full disk (not root)"]
    skipped += [] if shutil.which("faketime") else ["wrong clocks (no faketime)"]
    if skipped:
        print("skipped: " + ", ".join(skipped))
    bad = 1
    executor = None
    try:
        executor = Cluster(o["cluster"], o["workers"], o["seed"]) if o["cluster"] else Local(o["workers"])
        bad = bench(o, disk, executor)
    finally:
        if executor:
            executor.close()
        if o["keep"]:
            print(disk)
        else:
            if small:
                run(["umount", "-l", disk])
            shutil.rmtree(work)
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
