# SPDX-License-Identifier: Apache-2.0
"""Kill writers at random moments; every file must open and hold what was acknowledged.

usage: crash.py WRITER DIR KILLS SEED
"""
import os
import random
import shutil
import signal
import subprocess
import sys
import time

import h5py


def last_number(path):
    with open(path, "rb") as f:
        lines = f.read().split(b"\n")
    return int(lines[-2].split()[-1]) if len(lines) > 1 else 0


def killed(command, out, seconds):
    """Run a command, kill it after a while; the number it acknowledged last."""
    with open(out, "wb") as f:
        p = subprocess.Popen(command, stdout=f)
        time.sleep(seconds)
        p.send_signal(signal.SIGKILL)
        p.wait(timeout=10)
    assert p.returncode == -signal.SIGKILL, f"{command}: status {p.returncode}"
    return last_number(out)


def check_metrics(path, acknowledged):
    with h5py.File(path, "r") as f:
        rows, names = f["metrics"][1:], f["names"][:]
    assert len(rows) >= acknowledged, f"{len(rows)} rows of {acknowledged}"
    for i in (*range(0, len(rows), 371), *range(max(0, len(rows) - 50), len(rows))):
        want = f"n{i // 500 % 100}".encode()
        assert rows["step"][i] == i and rows["value"][i] == i / 8 and names[rows["name"][i]] == want, f"row {i}"


def kill_loggers(writer, top, kills, rng):
    for k in range(kills):
        d = f"{top}/m{k}"
        os.mkdir(d)
        n = killed([writer, "metrics", d], f"{top}/out", rng.uniform(0.002, 0.12))
        path = f"{d}/metrics.h5"
        if os.path.exists(path):
            check_metrics(path, n)
            if k % 10 == 0:
                subprocess.run(["h5dump", "-H", path], check=True, stdout=subprocess.DEVNULL)
        else:
            assert n == 0, "rows were acknowledged, and there is no file"
        shutil.rmtree(d)


def kill_savers(writer, top, kills, rng):
    saved = 0
    for _ in range(kills):
        n = killed([writer, "save", f"{top}/run"], f"{top}/out", rng.uniform(0.01, 0.08))
        with open(f"{top}/out", "rb") as f:
            first = f.readline()
        if first.startswith(b"restored"):
            restored = int(first.split()[1])
            assert restored >= saved, f"restored {restored}, but {saved} was acknowledged"
            saved = max(saved, n)
    assert saved > kills / 10, "the writers came to nothing"


def read_live(writer, top):
    """A plain reader beside a running writer never fails."""
    d = f"{top}/live"
    os.mkdir(d)
    with open(f"{top}/out", "wb") as out:
        p = subprocess.Popen([writer, "metrics", d], stdout=out)
    try:
        while not os.path.exists(f"{d}/metrics.h5"):
            time.sleep(0.01)
        lengths = []
        for _ in range(300):
            n = last_number(f"{top}/out")
            check_metrics(f"{d}/metrics.h5", n)
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
