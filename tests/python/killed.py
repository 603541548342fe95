# SPDX-License-Identifier: Apache-2.0
"""A training that is killed in mid-epoch resumes with identical results."""

import os
import re
import signal
import time

import torch  # noqa: F401
from check import ok, same
from forked import start

SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "train.py")


def train(name, workers, seconds):
    return start([SCRIPT, name, "4", str(workers), str(seconds)], "out", os.devnull)


def trained(name, workers):
    """Train to the end and return the first and the last line of the output."""
    os.waitpid(train(name, workers, 0), 0)
    with open("out") as f:
        lines = f.read().splitlines() or [""]
    return lines[0], lines[-1]


for workers in (0, 2):
    _, whole = trained(f"whole{workers}", workers)
    pid = train(f"cut{workers}", workers, 0.2)
    until = time.monotonic() + 300
    while not os.path.exists(f"cut{workers}/a.1/ckpt/00000014.h5") and time.monotonic() < until:
        time.sleep(0.05)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    first, last = trained(f"cut{workers}", workers)
    ok(re.match("from (14|21|28|35|42) [0-3] [1-9]", first), f"{workers} workers: a killed script resumes in mid-epoch")
    same(last, whole, f"{workers} workers: it ends with the same weights, moments and random numbers")
    ok(re.fullmatch("step 44 weights [0-9a-f]{64}", whole), f"{workers} workers: it trains to the last step")
