# SPDX-License-Identifier: Apache-2.0
"""Copy state and Python objects from one rank to all."""

from typing import Any, List, Optional

import torch

from .. import distributed as _distributed
from .world import ProcessSet, global_process_set, trusted, world


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
    """Ranks may differ in which state they have; 'model' is not needed."""
    if isinstance(optimizer, torch.optim.LBFGS):
        raise ValueError("cannot broadcast torch.optim.LBFGS state")
    _distributed.broadcast_state(optimizer, process_set.root(root_rank), process_set.comm, trust=trusted())


def broadcast_object(
    obj: Any,
    root_rank: int = 0,
    name: Optional[str] = None,
    process_set: ProcessSet = global_process_set,
    *,
    trust: Optional[bool] = None,
) -> Any:
    """Numbers, texts, lists, dicts, arrays, tensors.  With trust=True on all ranks, here or in hvd.init(), anything
    that can be pickled, and with cloudpickle the script's functions and classes."""
    return process_set.comm.broadcast_object(obj, process_set.root(root_rank), trust=trusted(trust))


def allgather_object(obj: Any, name: Optional[str] = None, *, trust: Optional[bool] = None) -> List[Any]:
    """The objects of all ranks."""
    return world().allgather_object(obj, trust=trusted(trust))
