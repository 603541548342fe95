# SPDX-License-Identifier: Apache-2.0
"""Run workers on one experiment, each through its own NFS client (nfs.c).

usage: nfs.py NFS --model     check that nfs.c behaves as documented
       nfs.py NFS [--trials=N] [--workers=N] [--lost=PERCENT] [--seed=S] [--keep]
       (the long run, from the build folder:
        python3 tests/faults/nfs.py tests/faults/nfs --trials=2000 --workers=4)

Missing names stay missing for seconds, attributes are stale, data arrive when a
file is closed, replies are lost although the call succeeded, and the server's
disk fills up at times.  A worker that gives up is restarted.  At the end,
check.py must find the experiment sound and complete.
"""
import errno
import os
import random
import re
import shutil
import subprocess
import sys
import time

import check
from bench import create, environment, work_folder

STATUSES = {0, 7, 75, 8}        # dl(1), EXIT STATUS

CONF = """
name = "nfs";
entrypoint = "sleep 0.0$((DL_TRIAL %% 10)); echo loss=0.$DL_TRIAL$DL_LENGTH";
searcher = { name = "asha"; metric = "loss"; max_trials = %d; max_length = 9; divisor = 3; };
metrics = { pattern = "loss={loss}"; };
hyperparameters = { x = { type = "float"; minval = 0; maxval = 1; }; };
resources = { workers = %d; };
reproducibility = { experiment_seed = 1; };
worker = { heartbeat = 1; lease = 6; grace = 2; };
max_restarts = 50;
"""


class Client:
    """A mount, and the worker that uses it."""

    def __init__(self, nfs, number, options, work):
        self.number = number
        self.starts = 0
        self.statuses = []
        self.mount = f"{work}/client{number}"
        self.text = open(f"{work}/client{number}.log", "ab")
        os.mkdir(self.mount)
        self.server = subprocess.Popen([nfs, "-o", options, self.mount], stderr=self.text)
        for _ in range(100):
            if os.path.ismount(self.mount):
                break
            time.sleep(0.05)
        else:
            raise SystemExit(f"{self.mount}: cannot mount")
        self.worker = None
        self.done = False

    def work(self):
        """Start a worker unless one runs. Return False once one has completed."""
        if self.worker:
            status = self.worker.poll()
            if status is None:
                return True
            if status != 0 or not self.done:
                self.statuses.append(status)
            self.done = status == 0
            if self.done:
                return False
            time.sleep(0.1)
        self.starts += 1
        self.worker = subprocess.Popen(["dl", "worker", "--slot", f"client{self.number}", f"{self.mount}/nfs-0001"],
                                       env=environment(), stdin=subprocess.DEVNULL, stdout=self.text,
                                       stderr=self.text)
        return True

    def close(self):
        if self.worker and self.worker.poll() is None:
            self.worker.kill()
            self.worker.wait()
        subprocess.run(["umount", "-l", self.mount] if os.geteuid() == 0 else ["fusermount3", "-uz", self.mount],
                       check=False, stderr=subprocess.DEVNULL)
        try:
            self.server.wait(timeout=60)
        except subprocess.TimeoutExpired:
            self.server.kill()
        self.text.close()


def error(f, *args):
    """Return the name of the error that a call fails with, or None."""
    try:
        f(*args)
    except OSError as e:
        return errno.errorcode[e.errno]
    return None


def create_new(path):
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL))


# name, call, from, to, error of a second try
LOSABLE = [("mkdir", os.mkdir, None, "dir", "EEXIST"), ("link", os.link, "{}/more", "linked", "EEXIST"),
           ("symlink", os.symlink, "more", "led", "EEXIST"), ("create", create_new, None, "made", "EEXIST"),
           ("rename", os.rename, "{}/more", "most", "ENOENT")]


def model(nfs, work):
    """Compare nfs.c with its documentation: two clients, and a third that loses every reply."""
    server = f"{work}/server"
    os.mkdir(server)
    options = f"backing={server},negative=30,attr=30,writeback=60,full={work}/full"
    clients = [Client(nfs, n, f"{options},lost={lost}", work) for n, lost in enumerate((0, 0, 100))]
    a, b, c = (client.mount for client in clients)
    checks = {}
    try:
        missing = os.path.exists(f"{a}/name")
        late = open(f"{b}/name", "wb", buffering=0)
        late.write(b"data")
        checks["an absent name stays absent"] = not missing and not os.path.exists(f"{a}/name")
        checks["a listing sees it"] = "name" in os.listdir(a)
        checks["an exclusive create sees it, and clears it up"] = (
            error(create_new, f"{a}/name") == "EEXIST" and os.path.exists(f"{a}/name"))
        checks["data come late"] = os.path.getsize(f"{server}/name") == 0
        old = os.stat(f"{a}/name").st_size
        late.close()
        checks["with close"] = os.path.getsize(f"{server}/name") == 4
        checks["attributes stay"] = old == 0 and os.stat(f"{a}/name").st_size == 0
        with open(f"{a}/name", "rb", buffering=0) as f:
            checks["open asks anew"] = f.read(4) == b"data"
            os.unlink(f"{b}/name")
            checks["a file that another client has unlinked is stale"] = error(os.pread, f.fileno(), 4, 0) == "ESTALE"
        with open(f"{a}/own", "w+b", buffering=0) as f:
            f.write(b"own")
            os.unlink(f"{a}/own")
            checks["one that this client has unlinked is not"] = os.pread(f.fileno(), 3, 0) == b"own"
        with open(f"{a}/more", "wb", buffering=0) as f:
            open(f"{work}/full", "w").close()
            checks["a full disk takes data"] = error(f.write, b"x") is None
            checks["and says so with fsync"] = error(os.fsync, f.fileno()) == "ENOSPC"
            checks["or create"] = error(create_new, f"{a}/other") == "ENOSPC"
            f.write(b"y")
            os.fstat(f.fileno())
            os.unlink(f"{work}/full")
            checks["of what it lost meanwhile, too"] = error(os.fsync, f.fileno()) == "ENOSPC"
            checks["but once"] = error(os.fsync, f.fileno()) is None
        for name, call, from_, to, again in LOSABLE:
            told = error(call, *[p for p in (from_ and from_.format(c), f"{c}/{to}") if p])
            checks[f"a lost reply of {name}"] = told in ("EIO", again) and os.path.lexists(f"{server}/{to}")
    finally:
        for client in clients:
            client.close()
    for what, good in checks.items():
        print("model: %s: %s" % (what, "yes" if good else "NO"))
    return not all(checks.values())


def sweep(clients, full, seed, limit):
    """Run until all workers have ended, and fill the disk at times. Return the seconds this took."""
    start = now = time.time()
    moments = random.Random(seed)
    turn = start + moments.uniform(0.3, 1)
    busy = True
    while busy and now - start < limit:
        if now > turn:
            if os.path.exists(full):
                os.unlink(full)
                turn = now + moments.uniform(3, 10)
            else:
                open(full, "w").close()
                turn = now + moments.uniform(0.2, 1)
        busy = any([c.work() for c in clients])
        time.sleep(0.02)
        now = time.time()
    return now - start


def main():
    args = [a for a in sys.argv[1:] if not a.startswith("--")]
    options = dict((a[2:].split("=", 1) + [""])[:2] for a in sys.argv[1:] if a.startswith("--"))
    if len(args) != 1 or not set(options) <= {"trials", "workers", "lost", "seed", "keep", "model"}:
        print(__doc__.strip(), file=sys.stderr)
        sys.exit(2)
    trials, workers = int(options.get("trials", 60)), int(options.get("workers", 3))
    lost = float(options.get("lost", 2))
    seed = int(options.get("seed", random.randrange(1 << 30)))
    work = work_folder("nfs")
    if "model" in options:
        bad = model(args[0], work)
        shutil.rmtree(work)
        sys.exit(bad)
    folder = create(work, CONF % (trials, workers))
    clients = []
    try:
        for i in range(workers):
            clients.append(Client(args[0], i, f"backing={work}/fresh,negative=3,attr=1,writeback=1,lost={lost},"
                                              f"seed={seed + i},full={work}/full", work))
        seconds = sweep(clients, f"{work}/full", seed, 120 + trials * 3)
    finally:
        for c in clients:
            c.close()
    c = check.judge(folder)
    if len(c.log.trials) != trials:
        c.bad(f"{len(c.log.trials)} trials, not {trials}")
    for client in clients:
        for status in set(client.statuses) - STATUSES:
            c.bad(f"a worker ended with {status}")
    print(c.verdict())
    print("nfs: seed %d: %d clients, %d starts of workers (statuses %s), %d trials, %.0f s" % (
        seed, workers, sum(x.starts for x in clients), sorted(s for x in clients for s in x.statuses), trials, seconds))
    for line in sorted(set(said(work)))[:10] if c.problems or "keep" in options else []:
        print("  said:", line)
    if "keep" in options:
        print(work)
    else:
        shutil.rmtree(work)
    sys.exit(1 if c.problems else 0)


def said(work):
    """Yield the workers' messages, without numbers and nonces, so that equal ones can be merged."""
    for name in os.listdir(work):
        if name.endswith(".log"):
            with open(f"{work}/{name}", errors="replace") as f:
                yield from (re.sub(r"[0-9a-f]{32}|\d+", "N", line.strip()) for line in f)


main()
