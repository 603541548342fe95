# SPDX-License-Identifier: Apache-2.0
"""Metrics, checkpoints and stop requests for training on Slurm: libslurmdl for Python.

    import slurmdl

    with slurmdl.init() as run:
        run.protect("model/weights", weights)
        step = run.restore() or 0
        while step < run.length and not run.should_stop():
            step += 1
            run.log("training/loss", train(weights, run.hp["lr"]), step)
            run.save(step)

It works under `dl run`, in any Slurm job, and by hand.
"""

from typing import Any

from ._slurmdl import Checkpoint, Error, Metric, Writer
from .files import Rows, dump, load, newest, read_metrics, read_records
from .hparams import HParams
from .run import Run, init

__all__ = [
    "Checkpoint",
    "DistributedOptimizer",
    "Error",
    "HParams",
    "Metric",
    "Rows",
    "Run",
    "Writer",
    "dump",
    "init",
    "load",
    "newest",
    "read_metrics",
    "read_records",
]


def __getattr__(name: str) -> Any:
    # torch is imported by those only who use it
    if name == "DistributedOptimizer":
        from .distributed import DistributedOptimizer

        return DistributedOptimizer
    raise AttributeError(f"module 'slurmdl' has no attribute {name!r}")
