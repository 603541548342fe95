# SPDX-License-Identifier: Apache-2.0
"""ranks.py ROWS: one of several ranks, each with a slab of one tensor and its own random state."""

import os
import sys
import time

import numpy as np

import slurmdl

rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
with slurmdl.init("ranks") as run:
    assert (run.rank, run.size) == (rank, size)
    rows = int(sys.argv[1])
    mine = np.arange(rows)[rank * rows // size : (rank + 1) * rows // size]
    slab = np.zeros((len(mine), 3))
    run.protect_shard("t", slab, (rows, 3), (int(mine[0]), 0))
    run.state("rng.%r", b"rank %d" % rank)
    run.log("rank", rank, 1)
    step = run.restore()
    if step is not None:
        assert (slab[:, 0] == mine * step).all(), slab
        if run.read_state("rng.%r") is not None:
            assert run.read_state("rng.%r") == b"rank %d" % rank
    step = (step or 0) + 1
    slab[:] = (mine * step)[:, None]
    run.save(step)
    if rank == size - 1:
        run.request_stop()
    at = next(i for i in range(1, 60000) if time.sleep(0.005) or run.stop_here(i))
    os.write(1, f"rank {rank}: step {step}, stopped at {at}\n".encode())
