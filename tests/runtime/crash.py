# SPDX-License-Identifier: Apache-2.0
"""Kill writers at random times; every file must open and hold what was acknowledged.

usage: crash.py WRITER DIR KILLS SEED
"""
import os
import random
import shutil
import signal
import struct
import subprocess
import sys
import time

import h5py


def last_numbers(path):
    """The numbers acknowledged last: (records, rows), or (step,)."""
    with open(path, "rb") as f:
        lines = f.read().split(b"\n")
    return tuple(int(word) for word in lines[-2].split() if word.isdigit()) if len(lines) > 1 else (0, 0)


def lines_of(path):
    with open(path, "rb") as f:
        return f.read().count(b"\n")


def killed(command, out, seconds, lines=0):
    """Run a command and kill it a while after it has printed so many lines; return the numbers it acknowledged last."""
    with open(out, "wb") as f:
        p = subprocess.Popen(command, stdout=f)
        end = time.monotonic() + 100
        while lines_of(out) < lines and time.monotonic() < end:
            time.sleep(0.002)
        time.sleep(seconds)
        p.send_signal(signal.SIGKILL)
        p.wait(timeout=300)
    assert p.returncode == -signal.SIGKILL, f"{command}: status {p.returncode}"
    return last_numbers(out)


def data_of(rows, data, i):
    return data[int(rows["offset"][i]):int(rows["offset"][i] + rows["bytes"][i])].tobytes()


def check_record(kind, data, j):
    """Check that record j is what tests/runtime/writer.c logs."""
    n, text = j % 39 + 1, b'{"j": %d}' % j
    assert kind == j % 5 + 1, f"record {j} is of kind {kind}"
    if kind == 1:
        assert data == struct.pack(f"<{n}d", *range(j, j + n)), f"vector {j}"
    elif kind == 2:
        head, values = struct.unpack_from("<Q4d3Q", data), struct.unpack_from(f"<{n + 1}d{n}Q", data, 64)
        assert head[0] == n and values == (*range(j, j + n + 1), *(j * i for i in range(n))), f"histogram {j}"
    elif kind == 4:
        assert struct.unpack_from("<4I", data) == (n, 2, 3, 0) and data[16:] == bytes([j & 255]) * (n * 6), f"image {j}"
    else:
        assert data == text, f"text {j}"


def check_metrics(path, acknowledged, only_acknowledged=False):
    """Check the file with plain h5py.  After a power loss only what was acknowledged must be right."""
    with h5py.File(path, "r") as f:
        records, rows = f["records"][1:], f["metrics"][1:]
        names, data = f["names"][:], f["bytes"][:]  # after the rows that refer to them: the writer may still run
    assert len(rows) >= acknowledged[1], f"{len(rows)} rows of {acknowledged[1]}"
    assert len(records) >= acknowledged[0], f"{len(records)} records of {acknowledged[0]}"
    if only_acknowledged:
        rows, records = rows[:acknowledged[1]], records[:acknowledged[0]]
    for i in (*range(0, len(rows), 371), *range(max(0, len(rows) - 50), len(rows))):
        want = f"n{i // 500 % 100}".encode()
        assert rows["step"][i] == i and rows["value"][i] == i / 8 and names[rows["name"][i]] == want, f"row {i}"
    for j in (*range(0, len(records), 23), *range(max(0, len(records) - 30), len(records))):
        check_record(records["kind"][j], data_of(records, data, j), j)


def check_reader(writer, path, acknowledged, power=False):
    """Check the file with the library's reader: all it reads is right, and nothing acknowledged is missing.
    After a power loss, rows that were not acknowledged may be missing in between (status 4).
    """
    p = subprocess.run([writer, "check", path], capture_output=True, text=True)
    assert p.returncode in ((0, 4) if power else (0,)), f"the reader: {p.stderr}"
    seen = tuple(int(word) for word in p.stdout.split())
    assert all(a >= b for a, b in zip(seen, acknowledged)), f"the reader sees {seen} of {acknowledged}"


def kill_loggers(writer, top, kills, rng):
    for k in range(kills):
        d = f"{top}/m{k}"
        os.mkdir(d)
        n = killed([writer, "mixed", d], f"{top}/out", rng.uniform(0.002, 0.12))
        path = f"{d}/a.1/metrics.h5"
        if os.path.exists(path):
            check_metrics(path, n)
            check_reader(writer, path, n)
            if k % 10 == 0:
                subprocess.run(["h5dump", "-H", path], check=True, stdout=subprocess.DEVNULL)
                subprocess.run(["h5dump", "-d", "/records", path], check=True, stdout=subprocess.DEVNULL)
        else:
            assert n == (0, 0), "rows were acknowledged, and there is no file"
        shutil.rmtree(d)


def kill_savers(writer, top, kills, rng):
    saved = 0
    for k in range(kills):
        # kill every second writer only after a save, however slow the machine is
        n = killed([writer, "save", f"{top}/run"], f"{top}/out", rng.uniform(0.01, 0.08), 3 * (k % 2))[-1]
        with open(f"{top}/out", "rb") as f:
            first = f.readline()
        if first.startswith(b"restored"):
            restored = int(first.split()[1])
            assert restored >= saved, f"restored {restored}, but {saved} was acknowledged"
            saved = max(saved, n)
    assert saved > kills // 10, "the writers came to nothing"


def read_live(writer, top):
    """A plain reader never fails while the writer runs."""
    d = f"{top}/live"
    os.mkdir(d)
    with open(f"{top}/out", "wb") as out:
        p = subprocess.Popen([writer, "mixed", d], stdout=out)
    path = f"{d}/a.1/metrics.h5"
    try:
        while not os.path.exists(path):
            time.sleep(0.01)
        lengths = []
        for _ in range(300):
            n = last_numbers(f"{top}/out")
            check_metrics(path, n)
            lengths.append(n)
        assert lengths[-1] > lengths[0], "the writer stood still"
    finally:
        p.kill()
        p.wait()


if __name__ == "__main__":
    program, folder, count, seed = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    random_source = random.Random(seed)
    kill_loggers(program, folder, count, random_source)
    kill_savers(program, folder, count, random_source)
    read_live(program, folder)
