# SPDX-License-Identifier: Apache-2.0
"""One of two ranks.  Rank 0 waits for a named tensor of rank 1 and has to report that in err.0."""

import os
import time

import numpy as np
from check import ok

import slurmdl.comm

os.environ["DL_STALL_SECONDS"] = "0.4"
world = slurmdl.comm.init(timeout=120)


def told():
    with open("err.0") as f:
        return '"late" has waited' in f.read()


if world.rank == 1:
    until = time.monotonic() + 90
    while not told() and time.monotonic() < until:
        time.sleep(0.1)
x = np.ones(3, np.float32)
world.submit("late", x).wait()
if world.rank == 0:
    ok(told() and (x == 2).all(), "a rank that waits for a named tensor reports the missing rank")
world.close()
