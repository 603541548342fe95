# SPDX-License-Identifier: Apache-2.0
"""Determined's Core API: a script that contains `import determined as det` runs under `dl run` without changes.

    entrypoint = "python3 -m slurmdl.det train.py"        # or, in the script: import slurmdl.det as det

Metrics, checkpoints and stop requests are those of slurmdl.init(), so that all commands of dl see them.  What has no
counterpart raises an error of one line.
"""

import importlib.abc
import importlib.machinery
import os
import sys
from typing import Any, Optional, Sequence

from . import core, util
from .core import InvalidHP
from .info import ClusterInfo, TrialInfo, get_cluster_info

__all__ = ["ClusterInfo", "InvalidHP", "LOG_FORMAT", "TrialInfo", "core", "get_cluster_info", "util"]

LOG_FORMAT = "%(levelname)s: [%(process)s] %(name)s: %(message)s"
SHIM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "shim")

# What Determined has besides the Core API, and what to use instead.
_INSTEAD = {
    "pytorch": "slurmdl.torch, or PyTorch with the Core API",
    "keras": "slurmdl.keras",
    "lightning": "slurmdl.lightning",
    "transformers": "slurmdl.transformers",
    "horovod": "slurmdl.hvd",
    "experimental": "slurmdl.run and slurmdl.Experiment",
    "tensorboard": "dl tensorboard",
}


def not_offered(name: str) -> str:
    part = name.split(".")[0]
    instead = _INSTEAD.get(part, "dl or the package slurmdl")
    return f"determined.{name} is not offered by slurmdl.det, which has the Core API: use {instead}"


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    raise AttributeError(not_offered(name))


class _Finder(importlib.abc.MetaPathFinder):
    """determined.launch is in the shim; other modules of Determined raise an error that says so."""

    def find_spec(self, name: str, path: Optional[Sequence[str]], target: Any = None) -> Any:
        if not name.startswith("determined."):
            return None
        folder = [os.path.join(SHIM, *name.split(".")[:-1])]
        found = importlib.machinery.PathFinder.find_spec(name, folder)
        if found is None:
            raise ModuleNotFoundError(not_offered(name[len("determined.") :]), name=name)
        return found


def stand_in() -> None:
    """Make `import determined` import this module, here and in child processes."""
    this = sys.modules[__name__]
    sys.modules.update({"determined": this, "determined.core": core, "determined.util": util})
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())
    paths = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if SHIM not in paths:
        os.environ["PYTHONPATH"] = os.pathsep.join([SHIM, *filter(None, paths)])
