# SPDX-License-Identifier: Apache-2.0
"""All-to-all and reduce-scatter."""

from typing import Any, List, Optional, Sequence, Tuple

import torch

from .. import _slurmdl
from ..arrays import TYPES, memory_of
from .calls import Later, Several, give, name_of, submitting
from .compression import Compression
from .gather import start_allgather
from .reduce import Adasum, Average, How, ReduceOp, Sum, parts_of, scaled, through
from .world import ProcessSet, global_process_set

# ---- all-to-all


def _rows_for(tensor: Any, splits: Any, ranks: int) -> List[int]:
    if tensor.dim() == 0:
        raise ValueError("a tensor without dimensions cannot be split: tensor.reshape(1)")
    n = tensor.shape[0]
    if splits is None:
        if n % ranks:
            raise ValueError(f"alltoall: {n} rows cannot be split evenly over {ranks} ranks, and there are no splits")
        return [n // ranks] * ranks
    if isinstance(splits, torch.Tensor) and (splits.is_floating_point() or splits.is_complex()):
        raise ValueError("alltoall: splits have to be integers")
    rows = [int(r) for r in splits]
    if len(rows) != ranks or min(rows) < 0 or sum(rows) > n:
        raise ValueError(f"alltoall: splits have to be {ranks} numbers whose sum is at most {n}")
    return rows


class _Alltoall:
    """Sizes are known once all ranks have called it; the data are sent while it is waited for, in the same order on all
    ranks."""

    def __init__(self, tensor: Any, splits: Any, name: Optional[str], process_set: ProcessSet) -> None:
        self.comm = process_set.comm
        self.rows = _rows_for(tensor, splits, self.comm.size)
        self.tensor = tensor.detach()[: sum(self.rows)]
        self.splits = splits
        kind = list(TYPES).index(next(k for k, v in TYPES.items() if v == memory_of(self.tensor.contiguous()).type))
        about = torch.tensor([[kind, *tensor.shape[1:]]])
        self.asked = start_allgather(about, name_of(name, "alltoall", process_set), process_set)

    @property
    def ready(self) -> bool:
        return bool(self.asked.ready)

    def wait(self) -> Tuple[Any, Any]:
        every = self.asked.wait()
        if not (every == every[0]).all():
            differs = next(r for r in range(1, len(every)) if not (every[r] == every[0]).all())
            raise _slurmdl.Error(f"alltoall: ranks 0 and {differs} give tensors of different types or shapes")
        out, came = self.comm.alltoall(self.tensor, self.rows)
        like = self.splits if isinstance(self.splits, torch.Tensor) else torch.empty(0, dtype=torch.int32)
        return out, torch.tensor(came, dtype=like.dtype, device=like.device)


def alltoall_async(
    tensor: Any, splits: Any = None, name: Optional[str] = None, process_set: ProcessSet = global_process_set
) -> int:
    return give(_Alltoall(tensor, splits, name, process_set))


class _AlltoallFunction(torch.autograd.Function):  # type: ignore[misc, unused-ignore]
    """The gradient returns to where the rows came from."""

    @staticmethod
    def forward(ctx: Any, tensor: Any, splits: Any, name: Optional[str], process_set: ProcessSet) -> Any:
        out, came = _Alltoall(tensor, splits, name, process_set).wait()
        ctx.came, ctx.set, ctx.left = came, process_set, tensor.shape[0]
        ctx.mark_non_differentiable(came)
        return out, came

    @staticmethod
    def backward(ctx: Any, gradient: Any, _: Any) -> Any:
        back, _sizes = _Alltoall(gradient, ctx.came, None, ctx.set).wait()
        if len(back) < ctx.left:
            back = torch.cat([back, back.new_zeros((ctx.left - len(back), *back.shape[1:]))])
        return back, None, None, None


def alltoall(
    tensor: Any, splits: Any = None, name: Optional[str] = None, process_set: ProcessSet = global_process_set
) -> Any:
    """Rank r gets splits[r] rows; with 'splits', also returns how many rows came from each rank."""
    out, came = _AlltoallFunction.apply(tensor, splits, name, process_set)
    return out if splits is None else (out, came)


# ---- reduce-scatter


def _start(tensor: Any, name: Optional[str], how: How) -> Later:
    if how.op is Adasum:
        raise NotImplementedError("reducescatter: Adasum is not there, use hvd.Average or hvd.Sum")
    if tensor.dim() == 0:
        raise ValueError("a tensor without dimensions cannot be scattered: tensor.reshape(1)")
    word, sent, after = parts_of(how, tensor.detach().contiguous())
    handle = submitting(how.set.comm.submit_reduce_scatter, name_of(name, "reducescatter", how.set), sent, word)
    return Later(handle, lambda result: scaled(result, after))


def _start_group(tensors: Sequence[Any], name: Optional[str], how: How) -> Several:
    base = name_of(name, "group", how.set)
    return Several([_start(t, f"{base}.{i}", how) for i, t in enumerate(tensors)])


def reducescatter_async(
    tensor: Any,
    name: Optional[str] = None,
    op: ReduceOp = Average,
    process_set: ProcessSet = global_process_set,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> int:
    return give(_start(tensor, name, How(op, prescale_factor, postscale_factor, process_set)))


def grouped_reducescatter_async(
    tensors: Sequence[Any],
    name: Optional[str] = None,
    op: ReduceOp = Average,
    process_set: ProcessSet = global_process_set,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> int:
    return give(_start_group(tensors, name, How(op, prescale_factor, postscale_factor, process_set)))


class _Reducescatter(torch.autograd.Function):  # type: ignore[misc, unused-ignore]
    """Concatenate the gradients of all ranks; for a sum multiplied by their number, as Horovod does."""

    @staticmethod
    def forward(ctx: Any, name: Optional[str], how: How, *tensors: Any) -> Any:
        ctx.how = how
        if len(tensors) == 1:
            return _start(tensors[0], name, how).wait()
        return tuple(_start_group(tensors, name, how).wait())

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        how = ctx.how
        factor = how.prescale * how.postscale * (how.set.comm.size if how.op is Sum else 1)
        handles = [start_allgather(scaled(g, factor), None, how.set) for g in gradients]
        return (None, None, *[h.wait() for h in handles])


class _Around:
    """The library only compresses all-reduces: compress before, and decompress after."""

    def __init__(self, compression: Any) -> None:
        self.compress, self.decompress = compression.compress, compression.decompress


def reducescatter(
    tensor: Any,
    name: Optional[str] = None,
    compression: Any = Compression.none,
    op: ReduceOp = Average,
    process_set: ProcessSet = global_process_set,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> Any:
    """This rank's rows of the reduced tensor; if they cannot be equally many, the first ranks get one more."""
    how = How(op, prescale_factor, postscale_factor, process_set)
    return through(_Around(compression), [tensor], lambda t: [_Reducescatter.apply(name, how, t)])[0]


def grouped_reducescatter(
    tensors: Sequence[Any],
    name: Optional[str] = None,
    compression: Any = Compression.none,
    op: ReduceOp = Average,
    process_set: ProcessSet = global_process_set,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> List[Any]:
    if len(tensors) == 1:
        one = None if name is None else f"{name}.0"
        how = (compression, op, process_set, prescale_factor, postscale_factor)
        return [reducescatter(tensors[0], one, *how)]
    group = How(op, prescale_factor, postscale_factor, process_set)
    return through(_Around(compression), tensors, lambda *given: _Reducescatter.apply(name, group, *given))
