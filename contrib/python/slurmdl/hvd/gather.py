# SPDX-License-Identifier: Apache-2.0
"""All-gather and broadcast, by name."""

from typing import Any, List, Optional, Sequence

import torch

from .calls import Later, Several, give, name_of, submitting, synchronize
from .world import ProcessSet, global_process_set, rank


def average(tensor: Any, process_set: ProcessSet) -> Any:
    """Average gradients."""
    sent = tensor.detach().clone().contiguous()
    submitting(process_set.comm.submit, name_of(None, "gradient", process_set), sent, "average").wait()
    return sent


def _rows(tensor: Any) -> int:
    if tensor.dim() == 0:
        raise ValueError("a tensor without dimensions cannot be gathered: tensor.reshape(1)")
    return int(tensor.shape[0])


def start_allgather(tensor: Any, name: Optional[str], process_set: ProcessSet) -> Any:
    _rows(tensor)
    return submitting(process_set.comm.submit_allgather, name_of(name, "allgather", process_set), tensor.detach())


def allgather_async(tensor: Any, name: Optional[str] = None, process_set: ProcessSet = global_process_set) -> int:
    return give(start_allgather(tensor, name, process_set))


def _start_group(tensors: Sequence[Any], name: Optional[str], process_set: ProcessSet) -> Several:
    base = name_of(name, "group", process_set)
    return Several([start_allgather(t, f"{base}.{i}", process_set) for i, t in enumerate(tensors)])


def grouped_allgather_async(
    tensors: Sequence[Any], name: Optional[str] = None, process_set: ProcessSet = global_process_set
) -> int:
    return give(_start_group(tensors, name, process_set))


class _Allgather(torch.autograd.Function):  # type: ignore[misc, unused-ignore]
    """The gradient is this rank's rows of the average, as with Horovod."""

    @staticmethod
    def forward(ctx: Any, name: Optional[str], process_set: ProcessSet, *tensors: Any) -> Any:
        ctx.rows, ctx.set = [_rows(t) for t in tensors], process_set
        if len(tensors) == 1:
            return start_allgather(tensors[0], name, process_set).wait()
        return tuple(_start_group(tensors, name, process_set).wait())

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        every = start_allgather(torch.tensor([ctx.rows]), None, ctx.set).wait()
        begins = every[: ctx.set.rank()].sum(0).tolist()
        means = [average(g, ctx.set) for g in gradients]
        return (None, None, *[m.narrow(0, b, n) for m, b, n in zip(means, begins, ctx.rows)])


def allgather(tensor: Any, name: Optional[str] = None, process_set: ProcessSet = global_process_set) -> Any:
    """Concatenate the tensors of all ranks along the first dimension, in which they may differ."""
    return _Allgather.apply(name, process_set, tensor)


def grouped_allgather(
    tensors: Sequence[Any], name: Optional[str] = None, process_set: ProcessSet = global_process_set
) -> List[Any]:
    if len(tensors) == 1:
        return [allgather(tensors[0], None if name is None else f"{name}.0", process_set)]
    return list(_Allgather.apply(name, process_set, *tensors))


# ---- broadcast; roots are ranks of the world


def _start_broadcast(tensor: Any, root: int, name: Optional[str], process_set: ProcessSet, in_place: bool) -> Later:
    given = tensor.detach()
    sent = given.contiguous() if in_place else given.clone(memory_format=torch.contiguous_format)
    full = name_of(name, "broadcast", process_set)
    handle = submitting(process_set.comm.submit_broadcast, full, sent, process_set.root(root))

    def finish(result: Any) -> Any:
        if not in_place:
            return result
        if result.data_ptr() != given.data_ptr():
            given.copy_(result)
        return tensor

    return Later(handle, finish)


def broadcast_async_(
    tensor: Any, root_rank: int, name: Optional[str] = None, process_set: ProcessSet = global_process_set
) -> int:
    return give(_start_broadcast(tensor, root_rank, name, process_set, True))


def broadcast_async(
    tensor: Any, root_rank: int, name: Optional[str] = None, process_set: ProcessSet = global_process_set
) -> int:
    return give(_start_broadcast(tensor, root_rank, name, process_set, False))


def broadcast_(
    tensor: Any, root_rank: int, name: Optional[str] = None, process_set: ProcessSet = global_process_set
) -> Any:
    return synchronize(broadcast_async_(tensor, root_rank, name, process_set))


class _Broadcast(torch.autograd.Function):  # type: ignore[misc, unused-ignore]
    """The gradient is the average, on the root."""

    @staticmethod
    def forward(ctx: Any, tensor: Any, root: int, name: Optional[str], process_set: ProcessSet) -> Any:
        ctx.root, ctx.set = root, process_set
        return _start_broadcast(tensor, root, name, process_set, False).wait()

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        mean = average(gradient, ctx.set)
        return (mean if rank() == ctx.root else torch.zeros_like(mean)), None, None, None


def broadcast(
    tensor: Any, root_rank: int, name: Optional[str] = None, process_set: ProcessSet = global_process_set
) -> Any:
    return _Broadcast.apply(tensor, root_rank, name, process_set)
