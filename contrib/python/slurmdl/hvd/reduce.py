# SPDX-License-Identifier: Apache-2.0
"""All-reduce: by name, in place or not, for groups and for sparse tensors."""

from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

import torch

from .adasum import adasum, check
from .calls import Later, Several, give, name_of, submitting, synchronize
from .compression import Compression, own_of
from .gather import allgather_async
from .world import ProcessSet, global_process_set


class ReduceOp:
    """How the values of all ranks are combined."""

    def __init__(self, word: str) -> None:
        self.word = word

    def __repr__(self) -> str:
        return f"hvd.{self.word.capitalize()}"


Average, Sum, Min, Max, Product = (ReduceOp(w) for w in ("average", "sum", "min", "max", "product"))
Adasum = ReduceOp("adasum")


def _chosen(op: Optional[ReduceOp], average: Optional[bool]) -> ReduceOp:
    if op is not None and average is not None:
        raise ValueError("The op parameter supersedes average. Please provide only one of them.")
    return op or (Sum if average is False else Average)


class How:
    """How tensors are reduced."""

    def __init__(
        self,
        op: ReduceOp = Average,
        prescale: float = 1.0,
        postscale: float = 1.0,
        process_set: ProcessSet = global_process_set,
        compression: Any = Compression.none,
    ) -> None:
        self.op, self.prescale, self.postscale, self.set = op, prescale, postscale, process_set
        self.compression = Compression.none if own_of(compression) else compression


def scaled(x: Any, factor: float) -> Any:
    """Short types in F32, integers in F64 and truncated, as Horovod does it."""
    if factor == 1:
        return x
    if x.dtype in (torch.float16, torch.bfloat16):
        return (x.float() * factor).to(x.dtype)
    return x * factor if x.is_floating_point() or x.is_complex() else (x.double() * factor).to(x.dtype)


def parts_of(how: How, x: Any) -> Tuple[str, Any, float]:
    """The library's operation, what is passed to it, and a factor for its result: averages of integers, which it does
    not have, are computed here, and factors, which are rounded as by Horovod."""
    word, after = how.op.word, how.postscale
    if word == "average" and not (x.is_floating_point() or x.is_complex()):
        word, after = "sum", after / how.set.comm.size
    return word, scaled(x, how.prescale), after


def _adasum(tensor: Any, name: str, how: How) -> Later:
    if how.set is not global_process_set:
        raise NotImplementedError("Adasum does not support non-global process sets yet.")
    check(how.set.comm.size)
    given = scaled(tensor.detach().reshape(1, -1), how.prescale)
    handle = submitting(how.set.comm.submit_allgather, name, given)
    return Later(handle, lambda rows: scaled(adasum(rows), how.postscale).reshape(tensor.shape))


def _submit(tensor: Any, name: str, how: How, out: Any, group: Optional[str], members: int) -> Any:
    word, sent, after = parts_of(how, tensor.detach().contiguous())
    into = sent if out is tensor else torch.empty_like(sent)
    handle = submitting(
        how.set.comm.submit, name, sent, word, out=into, compression=how.compression.word,
        group=group, members=members,
    )  # fmt: skip
    return Later(handle, lambda result: scaled(result, after))


def start(
    tensor: Any, name: Optional[str], how: How, in_place: bool, group: Optional[str] = None, members: int = 0
) -> Later:
    """Start a reduction.  Returns a handle of the reduced tensor: 'tensor' itself or a new one."""
    full = name_of(name, "allreduce", how.set)

    def finish(result: Any) -> Any:
        if not in_place:
            return result
        if result.data_ptr() != tensor.data_ptr():
            tensor.detach().copy_(result)
        return tensor

    if how.op is Adasum:
        return Later(_adasum(tensor, full, how), finish)
    return Later(_submit(tensor, full, how, tensor if in_place else None, group, members), finish)


def start_group(tensors: Sequence[Any], name: Optional[str], how: How, in_place: bool) -> Several:
    base = name_of(name, "group", how.set)
    return Several([start(t, f"{base}.{i}", how, in_place, base, len(tensors)) for i, t in enumerate(tensors)])


# ---- one tensor


def allreduce_async(
    tensor: Any,
    average: Optional[bool] = None,
    name: Optional[str] = None,
    op: Optional[ReduceOp] = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> int:
    how = How(_chosen(op, average), prescale_factor, postscale_factor, process_set)
    return give(start(tensor, name, how, False))


def allreduce_async_(
    tensor: Any,
    average: Optional[bool] = None,
    name: Optional[str] = None,
    op: Optional[ReduceOp] = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> int:
    how = How(_chosen(op, average), prescale_factor, postscale_factor, process_set)
    return give(start(tensor, name, how, True))


def allreduce_(
    tensor: Any,
    average: Optional[bool] = None,
    name: Optional[str] = None,
    op: Optional[ReduceOp] = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> Any:
    return synchronize(allreduce_async_(tensor, average, name, op, prescale_factor, postscale_factor, process_set))


class _Allreduce(torch.autograd.Function):  # type: ignore[misc, unused-ignore]
    """The gradient of an all-reduce is the all-reduce of the gradients; 'group': of several tensors."""

    @staticmethod
    def forward(ctx: Any, name: Optional[str], how: How, group: bool, *tensors: Any) -> Any:
        ctx.how, ctx.group = how, group
        if group:
            return tuple(start_group(tensors, name, how, False).wait())
        return start(tensors[0], name, how, False).wait()

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        plain = How(ctx.how.op, ctx.how.prescale, ctx.how.postscale, ctx.how.set)
        if ctx.group:
            return (None, None, None, *start_group(gradients, None, plain, False).wait())
        return None, None, None, start(gradients[0], None, plain, False).wait()


def through(compression: Any, tensors: Sequence[Any], call: Callable[..., Sequence[Any]]) -> List[Any]:
    """call(*tensors), inside the script's own compression if it has one."""
    own = own_of(compression)
    if own is None:
        return list(call(*tensors))
    narrow, contexts = zip(*[own.compress(t) for t in tensors])
    return [own.decompress(t, context) for t, context in zip(call(*narrow), contexts)]


def allreduce(
    tensor: Any,
    average: Optional[bool] = None,
    name: Optional[str] = None,
    compression: Any = Compression.none,
    op: Optional[ReduceOp] = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> Any:
    """Returns a new tensor, with a gradient."""
    how = How(_chosen(op, average), prescale_factor, postscale_factor, process_set, compression)
    return through(compression, [tensor], lambda t: [_Allreduce.apply(name, how, False, t)])[0]


# ---- groups: all tensors are reduced or none


def grouped_allreduce_async(
    tensors: Sequence[Any],
    average: Optional[bool] = None,
    name: Optional[str] = None,
    op: Optional[ReduceOp] = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> int:
    how = How(_chosen(op, average), prescale_factor, postscale_factor, process_set)
    return give(start_group(tensors, name, how, False))


def grouped_allreduce_async_(
    tensors: Sequence[Any],
    average: Optional[bool] = None,
    name: Optional[str] = None,
    op: Optional[ReduceOp] = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> int:
    how = How(_chosen(op, average), prescale_factor, postscale_factor, process_set)
    return give(start_group(tensors, name, how, True))


def grouped_allreduce_(
    tensors: Sequence[Any],
    average: Optional[bool] = None,
    name: Optional[str] = None,
    op: Optional[ReduceOp] = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> Any:
    how = How(_chosen(op, average), prescale_factor, postscale_factor, process_set)
    return start_group(tensors, name, how, True).wait()


def grouped_allreduce(
    tensors: Sequence[Any],
    average: Optional[bool] = None,
    name: Optional[str] = None,
    compression: Any = Compression.none,
    op: Optional[ReduceOp] = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> List[Any]:
    how = How(_chosen(op, average), prescale_factor, postscale_factor, process_set, compression)
    return through(compression, tensors, lambda *given: _Allreduce.apply(name, how, True, *given))


# ---- sparse tensors


def sparse_allreduce_async(
    tensor: Any, name: str, op: ReduceOp, process_set: ProcessSet = global_process_set
) -> Callable[[], Any]:
    """Concatenate the rows of all ranks; call the result: hvd.sparse_allreduce_async(...)()."""
    t = tensor.coalesce()
    indices = allgather_async(t.indices().t().contiguous(), f"{name}.indices", process_set)
    values = allgather_async(t.values(), f"{name}.values", process_set)

    def handle() -> Any:
        v, i = synchronize(values), synchronize(indices)
        v = v / process_set.comm.size if op is Average else v
        made: Dict[str, Any] = {"dtype": t.dtype, "device": t.device}
        return torch.sparse_coo_tensor(i.t(), v, t.shape, **made).coalesce()

    return handle
