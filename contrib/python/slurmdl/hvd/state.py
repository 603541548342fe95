# SPDX-License-Identifier: Apache-2.0
"""State and Python objects from one rank to all."""

import pickle
from typing import Any, List, Optional

import torch

from .. import distributed as _distributed
from .world import ProcessSet, global_process_set, world


def _dump(obj: Any) -> bytes:
    try:
        import cloudpickle  # type: ignore[import-not-found, import-untyped, unused-ignore]
    except ImportError:
        return pickle.dumps(obj, protocol=4)
    data: bytes = cloudpickle.dumps(obj)
    return data


def broadcast_parameters(params: Any, root_rank: int = 0, process_set: ProcessSet = global_process_set) -> None:
    """'params': a state_dict(), or parameters with or without names."""
    if isinstance(params, dict):
        named = sorted(params.items())
    else:
        try:
            named = [p if isinstance(p, tuple) else (f"{i}", p) for i, p in enumerate(params)]
        except TypeError:
            raise ValueError(f"invalid params of type: {type(params)}") from None
    _distributed.broadcast_tensors(named, process_set.root(root_rank), process_set.comm)


def broadcast_optimizer_state(
    optimizer: Any, root_rank: int = 0, model: Any = None, process_set: ProcessSet = global_process_set
) -> None:
    """The state may differ in what it has; 'model' is not needed."""
    if isinstance(optimizer, torch.optim.LBFGS):
        raise ValueError("cannot broadcast torch.optim.LBFGS state")
    _distributed.broadcast_state(optimizer, process_set.root(root_rank), process_set.comm)


def broadcast_object(
    obj: Any, root_rank: int = 0, name: Optional[str] = None, process_set: ProcessSet = global_process_set
) -> Any:
    """Functions and classes of the script, too, where cloudpickle is installed."""
    comm, root = process_set.comm, process_set.root(root_rank)
    data = comm.broadcast_object(_dump(obj) if comm.rank == root else None, root)
    return obj if comm.rank == root else pickle.loads(data)


def allgather_object(obj: Any, name: Optional[str] = None) -> List[Any]:
    return [pickle.loads(data) for data in world().allgather_object(_dump(obj))]
