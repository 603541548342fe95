# SPDX-License-Identifier: Apache-2.0
"""Cut the power while a worker runs, and check that everything it acknowledged survives.

usage: power.py TRACE.so [--cuts=N] [--seed=S]
       (from the build folder: python3 tests/faults/power.py tests/fakes/.libs/trace.so)

The file-system calls of a worker are traced.  For N points between two calls the
bench builds a folder as it may be on disk after a cut there: each write to a file
since its last fsync() may be missing, and only the first few changes of names in
a folder since its last fsync() survive.  New folders, and hparams.json and log of
an attempt, are assumed to survive.  Then a second worker completes the sweep
without faults.  Each log entry whose folder was synced must exist unchanged, and
check.py must find the experiment sound: in particular, each result has its
metrics.
"""
import os
import random
import re
import shutil
import sys
import time

sys.path.insert(1, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../runtime"))

import check
from bench import create, run, work_folder
from boundaries import LINK, MKDIR, OPEN, RENAME, SYNC, SYNC_FOLDER, TRUNCATE, UNLINK, WRITE, read_trace

TRIALS = 4
CONF = f"""
name = "power";
entrypoint = "echo loss=0.$DL_TRIAL$DL_LENGTH";
searcher = {{ name = "grid"; metric = "loss"; max_length = 1; }};
metrics = {{ pattern = "loss={{loss}}"; }};
hyperparameters = {{ x = {{ type = "int"; minval = 1; maxval = {TRIALS}; count = {TRIALS}; }}; }};
resources = {{ workers = 1; }};
reproducibility = {{ experiment_seed = 1; }};
worker = {{ heartbeat = 1; lease = 4; grace = 2; }};
"""
COPIES = ("hparams.json", "log")        # an entry has the same data, or nothing promises to keep it
ENTRY = re.compile(r"/log/\d{6}/\d{8}$")


class Disk:
    """The names and contents on disk after 'calls', except those in 'lost', which did not reach it."""

    def __init__(self, calls, lost):
        self.names, self.files, self.folders = {}, {}, []
        for k, (op, file, at, data) in enumerate(calls):
            if k not in lost:
                self.apply(op, file, at, data)
            elif op == OPEN:            # a later link or rename may give the file another name
                self.files[file] = bytearray()

    def apply(self, op, file, at, data):
        if op == OPEN:
            self.files.setdefault(file, bytearray())
            self.names[data.decode()] = file
        elif op in (WRITE, TRUNCATE):
            f = self.files[file]
            size = at if op == TRUNCATE else max(len(f), at + len(data))
            del f[size:]
            f.extend(bytes(size - len(f)))
            f[at:at + len(data)] = data
        elif op in (LINK, RENAME, UNLINK, MKDIR):
            a, b = (part.decode() for part in data.split(b"\0"))
            if op == MKDIR:
                self.folders.append(a)
            elif op == UNLINK:
                self.names.pop(a, None)
            elif file:
                self.names[b] = file
            elif a in self.names:
                self.names[b] = self.names[a]
                if op == RENAME:
                    del self.names[a]

    def write(self, fresh, folder, traced):
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(fresh, folder, symlinks=True)
        for path in self.folders:
            os.makedirs(path.replace(traced, folder, 1), exist_ok=True)
        for path, file in self.names.items():
            with open(path.replace(traced, folder, 1), "wb") as f:
                f.write(self.files[file])


def one_folder_each(calls):
    """Split a rename from one folder to another into a link and an unlink, because either may be lost alone. The link
    names the file itself, in case its old name is lost."""
    files = {}
    for op, file, at, data in calls:
        names = data.split(b"\0")
        if op == OPEN:
            files[data] = file
        elif op in (LINK, RENAME):
            files[names[1]] = files.get(names[0])
        if op == RENAME and os.path.dirname(names[0]) != os.path.dirname(names[1]):
            yield LINK, files[names[0]], at, data
            yield UNLINK, file, at, names[0] + b"\0"
        else:
            yield op, file, at, data


def folder_of(op, data):
    """Return the folder in which a call changes a name, or None."""
    if op == LINK:
        return os.path.dirname(data.split(b"\0")[1])
    return os.path.dirname(data.split(b"\0")[0]) if op in (OPEN, LINK, RENAME, UNLINK) else None


def lost_calls(calls, rng, most=False):
    """Draw the calls that a power cut after 'calls' undoes; 'most': all that it may undo."""
    synced, names = {}, {}
    copies = {file for op, file, _, data in calls if op == OPEN and os.path.basename(data.decode()) in COPIES}
    for k, (op, file, _, data) in enumerate(calls):
        if op in (SYNC, SYNC_FOLDER):
            synced[file if op == SYNC else data] = k
    lost = {k for k, (op, file, _, _) in enumerate(calls) if op in (WRITE, TRUNCATE) and k > synced.get(file, -1)
            and file not in copies and (most or rng.random() < 0.5)}
    for k, (op, _, _, data) in enumerate(calls):
        folder = folder_of(op, data)
        if folder and k > synced.get(folder, -1):
            names.setdefault(folder, []).append(k)
    for pending in names.values():
        lost.update(pending[0 if most else rng.randrange(len(pending) + 1):])
    return lost


def acknowledged(calls):
    """Return the log entries that a power cut must not lose."""
    put, safe = {}, []
    for op, _, _, data in calls:
        if op == LINK and ENTRY.search(data.split(b"\0")[1].decode()):
            path = data.split(b"\0")[1].decode()
            put.setdefault(os.path.dirname(path), []).append(path)
        elif op == SYNC_FOLDER:
            safe += put.pop(data.decode(), [])
    return safe


class Bench:
    def __init__(self, tracer, work):
        self.work, self.fresh, self.traced = work, create(work, CONF), f"{work}/traced"
        shutil.copytree(self.fresh, self.traced, symlinks=True)
        status, text = run(["dl", "worker", "--slot", "bench", self.traced], LD_PRELOAD=os.path.abspath(tracer),
                           TRACE_DIR=self.traced, TRACE_LOG=f"{work}/trace")
        self.calls = list(one_folder_each(read_trace(f"{work}/trace")))
        c = check.judge(self.traced, trials=TRIALS)
        if status or c.problems:
            sys.exit(f"the run that is traced: status {status}: {text}{c.verdict()}")
        self.sum = c.sum()

    def missing(self, disk, safe):
        """Yield the acknowledged entries that are missing on the disk or have changed."""
        folder = f"{self.work}/cut"
        disk.write(self.fresh, folder, self.traced)
        for path in safe:
            with open(path, "rb") as f:
                want = f.read()
            try:
                with open(path.replace(self.traced, folder, 1), "rb") as f:
                    if f.read() != want:
                        yield f"{path} has changed"
            except OSError as e:
                yield str(e)

    def cut(self, calls, lost):
        """Cut the power after these calls, complete the sweep, and return what is wrong."""
        problems = "\n".join(self.missing(Disk(calls, lost), acknowledged(calls)))
        status, text = run(["dl", "worker", "--slot", "bench", f"{self.work}/cut"])
        c = check.judge(f"{self.work}/cut", trials=TRIALS)
        if status:
            problems += f"the clean worker ended with {status}: {text}"
        if c.problems:
            problems += "\n" + c.verdict()
        elif c.sum() != self.sum:
            problems += "\n".join(["other results than without the cut:"] + c.table())
        return problems


def main():
    options = dict(re.fullmatch(r"--(cuts|seed)=(\d+)", a).groups() for a in sys.argv[2:])
    seed = int(options.get("seed", random.randrange(1 << 30)))
    rng, start = random.Random(seed), time.time()
    bench = Bench(sys.argv[1], work_folder("power"))
    calls, wrong = bench.calls, 0
    # half of the cuts come right after a new name, because other workers may rely on it already
    named = [k + n for k, call in enumerate(calls, 1) if call[0] == LINK for n in (0, 1)]
    points = [rng.choice((rng.randrange(1, len(calls) + 1), rng.choice(named))) for _ in range(int(options.get("cuts", 200)))]
    for point in points:
        problems = bench.cut(calls[:point], lost_calls(calls[:point], rng))
        if problems:
            wrong += 1
            print(f"cut behind call {point} ({calls[point - 1]}): {problems}", flush=True)
    # check the bench itself: it must notice if one kind of sync is missing
    for what in (SYNC, SYNC_FOLDER):
        without = [call for call in calls if call[0] != what]
        if not any(bench.missing(Disk(without, lost_calls(without, rng, most=True)), acknowledged(calls))):
            wrong += 1
            print(f"all is there without any call of kind {what}")
    said = sum(b"result" in call[3] for call in calls if call[0] == WRITE)
    print(f"power: seed {seed}: {len(calls)} calls, {len(acknowledged(calls))} entries ({said} results); "
          f"{len(points)} cuts, {wrong} wrong; {time.time() - start:.0f} s")
    shutil.rmtree(bench.work)
    sys.exit(1 if wrong or not acknowledged(calls) else 0)


if __name__ == "__main__":
    main()
