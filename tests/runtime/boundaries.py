# SPDX-License-Identifier: Apache-2.0
"""Check the metrics file after a crash at each boundary of the writer's I/O.

usage: boundaries.py WRITER TRACE.so SHIM.so DIR IMAGES SEED

IMAGES: how many crashes of each kind to pick at random; 0: all of them (the long run)

kill      every call before a point was done, and none after it
torn      the next call was done in part, too
power     each write before the point that was not synced is kept or lost at random
refused   not a crash: one call fails (ENOSPC, EDQUOT, EIO), moves only half of its
          bytes, or succeeds but reports a failure; the program continues
"""
import os
import random
import shutil
import struct
import subprocess
import sys

from crash import check_metrics, check_reader

OPEN, WRITE, TRUNCATE, SYNC, LINK, RENAME, UNLINK, SAY, MKDIR, SYNC_FOLDER = range(1, 11)
ROWS = 3000
MODES = ("ENOSPC", "EDQUOT", "EIO", "short", "lost")


def read_trace(log):
    """(operation, file, offset, bytes or paths) of each call that changes something."""
    with open(log, "rb") as f:
        text = f.read()
    calls, at = [], 0
    while at < len(text):
        op, file, offset, n = struct.unpack_from("<IIQQ", text, at)
        calls.append((op, file, offset, text[at + 24:at + 24 + n]))
        at += 24 + n
    return calls


def trace(writer, tracer, top):
    d, log = f"{top}/run", f"{top}/trace"
    subprocess.run([writer, "mixed", d, str(ROWS)], check=True, stdout=subprocess.DEVNULL,
                   env=dict(os.environ, LD_PRELOAD=tracer, TRACE_DIR=d, TRACE_LOG=log))
    shutil.rmtree(d)
    return read_trace(log)


class Disk:
    def __init__(self):
        self.files, self.names, self.said = {}, {}, (0, 0)

    def write(self, file, at, data):
        f = self.files[file]
        f.extend(bytes(max(0, at + len(data) - len(f))))
        f[at:at + len(data)] = data

    def truncate(self, file, n):
        f = self.files[file]
        del f[n:]
        f.extend(bytes(n - len(f)))

    def apply(self, call, lost=False):
        op, file, at, data = call
        if op == OPEN:
            self.files[file] = bytearray()
            self.names[data] = file
        elif op == WRITE and not lost:
            self.write(file, at, data)
        elif op == TRUNCATE and not lost:
            self.truncate(file, at)
        elif op == SAY:
            self.said = tuple(int(word) for word in data.split())
        elif op in (LINK, RENAME, UNLINK):
            a, b = data.split(b"\0")
            if op == LINK:
                self.names[b] = self.names[a]
            else:
                file = self.names.pop(a)
                if op == RENAME:
                    self.names[b] = file

    def dump(self, path):
        """Write the file named metrics.h5; hidden files do not count."""
        named = [file for name, file in self.names.items() if name.endswith(b"/metrics.h5")]
        if not named:
            return False
        with open(path, "wb") as f:
            f.write(self.files[named[0]])
        return True


def not_synced(calls, point, rng):
    """Pick some of the writes that a power loss may undo."""
    last = {}
    for k, (op, file, _, _) in enumerate(calls[:point]):
        if op == SYNC:
            last[file] = k
    return {k for k, (op, file, _, _) in enumerate(calls[:point])
            if op in (WRITE, TRUNCATE) and k > last.get(file, -1) and rng.random() < 0.5}


def image(calls, point, cut=None, lost=()):
    disk = Disk()
    for k, call in enumerate(calls[:point]):
        disk.apply(call, k in lost)
    if cut is not None:
        op, file, at, data = calls[point]
        disk.apply((op, file, at, data[:cut]))
    return disk


def some(points, images, rng):
    points = list(points)
    return points if images == 0 or images >= len(points) else sorted(rng.sample(points, images))


def judge(writer, disk, path, power=False):
    if disk.dump(path):
        check_metrics(path, disk.said, power)
        check_reader(writer, path, disk.said, power)
    else:
        assert disk.said == (0, 0), "rows were acknowledged, and there is no file"


def replay(writer, calls, path, images, rng):
    points = range(len(calls) + 1)
    for p in some(points, images, rng):
        judge(writer, image(calls, p), path)
    # the length is one aligned word, so its write cannot be torn
    writes = [p for p in points[:-1] if calls[p][0] == WRITE and len(calls[p][3]) > 8]
    for p in some(writes, images, rng):
        judge(writer, image(calls, p, cut=rng.randrange(1, len(calls[p][3]))), path)
    for _ in range(images or 500):
        p = rng.choice(points)
        judge(writer, image(calls, p, lost=not_synced(calls, p, rng)), path, power=True)


def faulty(writer, shim, d, n, mode, log):
    shutil.rmtree(d, ignore_errors=True)
    env = dict(os.environ, LD_PRELOAD=shim, FAULT_DIR=d, FAULT_AT=str(n), FAULT_MODE=mode, FAULT_COUNT=log,
               ASAN_OPTIONS="verify_asan_link_order=0:detect_leaks=0")
    p = subprocess.run([writer, "mixed", d, str(ROWS)], env=env, capture_output=True, text=True, timeout=300)
    lines = p.stdout.splitlines()
    return p.returncode, tuple(int(word) for word in lines[-1].split()) if lines else (0, 0)


def refuse(writer, shim, top, images, rng):
    """A failed call loses nothing: all rows are written in the end, or the run cannot be opened."""
    d, log = f"{top}/refused", f"{top}/calls"
    status, said = faulty(writer, shim, d, 0, "", log)
    assert status == 0 and said == (ROWS // 20, ROWS), f"without faults: {status}, {said}"
    with open(log, encoding="utf-8") as f:
        calls = [line.split()[1] for line in f]
    cases = [(n + 1, mode) for n, call in enumerate(calls) for mode in MODES
             if mode.startswith("E") or (mode == "short") == call.startswith(("pwrite", "pread"))]
    for n, mode in some(cases, images, rng):
        status, said = faulty(writer, shim, d, n, mode, log)
        where = f"call {n} ({calls[n - 1]}), {mode}: status {status}, {said}"
        assert status in (0, 2, 3), where
        if status == 3:
            assert said == (0, 0), where
            continue
        assert status == 2 or said == (ROWS // 20, ROWS), where
        try:
            check_metrics(f"{d}/a.1/metrics.h5", said)
            check_reader(writer, f"{d}/a.1/metrics.h5", said)
        except Exception as e:
            raise AssertionError(where) from e


def main():
    writer, tracer, shim, top, images, seed = *sys.argv[1:5], int(sys.argv[5]), int(sys.argv[6])
    rng = random.Random(seed)
    calls = trace(writer, tracer, top)
    assert sum(call[0] == RENAME for call in calls) > 2, "the file did not grow"
    print(f"{len(calls)} calls, seed {seed}")
    replay(writer, calls, f"{top}/image.h5", images, rng)
    refuse(writer, shim, top, images, rng)


if __name__ == "__main__":
    main()
