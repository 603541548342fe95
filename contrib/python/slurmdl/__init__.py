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

It works under `dl run`, in any Slurm job, and by hand.  slurmdl.run() starts a sweep from a script or a notebook, and
slurmdl.Experiment looks at one.
"""

import importlib
from typing import TYPE_CHECKING, Any

from ._slurmdl import Checkpoint, Error, Metric, Writer
from .files import Rows, dump, load, newest, read_metrics, read_records
from .hparams import HParams
from .runs import Run, init

if TYPE_CHECKING:
    from .distributed import DistributedOptimizer
    from .experiment import Experiment
    from .space import Choice, Float, Int, LogUniform
    from .sweep import Sweep, run

__all__ = [
    "Checkpoint",
    "Choice",
    "DistributedOptimizer",
    "Error",
    "Experiment",
    "Float",
    "HParams",
    "Int",
    "LogUniform",
    "Metric",
    "Rows",
    "Run",
    "Sweep",
    "Writer",
    "dump",
    "init",
    "load",
    "newest",
    "read_metrics",
    "read_records",
    "run",
]


# What a training script does not need, and torch, is imported on first use.
_LATER = {
    "Choice": "space",
    "DistributedOptimizer": "distributed",
    "Experiment": "experiment",
    "Float": "space",
    "Int": "space",
    "LogUniform": "space",
    "Sweep": "sweep",
    "run": "sweep",
}


def __getattr__(name: str) -> Any:
    if name in _LATER:
        return getattr(importlib.import_module("." + _LATER[name], __name__), name)
    raise AttributeError(f"module 'slurmdl' has no attribute {name!r}")
