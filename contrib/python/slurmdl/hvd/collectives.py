# SPDX-License-Identifier: Apache-2.0
"""Horovod's collectives on tensors, and the broadcasts of state and objects.

Adasum adds gradients adaptively: it averages gradients of the same direction and sums orthogonal ones.  S. Maleki et
al., Scaling Distributed Training with Adaptive Summation, 2020 (arXiv:2006.02924).
"""

import errno
import itertools
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

import torch

from .. import _slurmdl
from .. import distributed as _distributed
from ..arrays import TYPES, memory_of
from .compression import Compression, own_of
from .world import ProcessSet, global_process_set, rank, trusted, world

# ---- handles of calls in flight, and names for calls without one


class _Later:
    """A handle, and the function to apply to its result."""

    def __init__(self, handle: Any, finish: Callable[[Any], Any]) -> None:
        self.handle, self.finish = handle, finish

    @property
    def ready(self) -> bool:
        return bool(self.handle.ready)

    def wait(self) -> Any:
        return self.finish(self.handle.wait())


class _Several:
    """The handles of a group."""

    def __init__(self, handles: Sequence[Any]) -> None:
        self.handles = list(handles)

    @property
    def ready(self) -> bool:
        return all(h.ready for h in self.handles)

    def wait(self) -> List[Any]:
        return [h.wait() for h in self.handles]


_waiting: Dict[int, Any] = {}
_tickets = itertools.count(1)


def _give(handle: Any) -> int:
    """A number for which the script can wait."""
    number = next(_tickets)
    _waiting[number] = handle
    return number


def poll(handle: int) -> bool:
    """Whether synchronize() would return at once."""
    return bool(_waiting[handle].ready) if handle in _waiting else True


def synchronize(handle: int) -> Any:
    """Wait for the result and return it; None for a handle that was waited for already."""
    return _waiting.pop(handle).wait() if handle in _waiting else None


def _name_of(name: Optional[str], kind: str, process_set: ProcessSet) -> str:
    """Calls without a name are matched by their order among those of the set."""
    if name is not None:
        return f"{kind}.{name}"
    comm = process_set.comm
    comm._names += 1
    return f"{kind}.noname.{comm._names}"


def _submitting(call: Callable[..., Any], name: str, *args: Any, **options: Any) -> Any:
    """call(name, ...); raises ValueError for a name in flight, as Horovod does."""
    try:
        return call(name, *args, **options)
    except _slurmdl.Error as error:
        if getattr(error, "errno", 0) == errno.EEXIST:
            raise ValueError(f"Duplicate tensor name {name}: it is still being processed") from error
        raise


def join(device: int = -1) -> int:
    """This rank has no more data.  Returns the last rank to join."""
    return world().join()


def barrier(process_set: ProcessSet = global_process_set) -> None:
    process_set.comm.barrier()


# ---- all-gather


def _average_gradient(tensor: Any, process_set: ProcessSet) -> Any:
    """The average of the gradients of all ranks."""
    sent = tensor.detach().clone().contiguous()
    _submitting(process_set.comm.submit, _name_of(None, "gradient", process_set), sent, "average").wait()
    return sent


def _rows_of(tensor: Any) -> int:
    if tensor.dim() == 0:
        raise ValueError("a tensor without dimensions cannot be gathered: tensor.reshape(1)")
    return int(tensor.shape[0])


def _start_allgather(tensor: Any, name: Optional[str], process_set: ProcessSet) -> Any:
    _rows_of(tensor)
    return _submitting(process_set.comm.submit_allgather, _name_of(name, "allgather", process_set), tensor.detach())


def allgather_async(tensor: Any, name: Optional[str] = None, process_set: ProcessSet = global_process_set) -> int:
    return _give(_start_allgather(tensor, name, process_set))


def _start_allgathers(tensors: Sequence[Any], name: Optional[str], process_set: ProcessSet) -> _Several:
    base = _name_of(name, "group", process_set)
    return _Several([_start_allgather(t, f"{base}.{i}", process_set) for i, t in enumerate(tensors)])


def grouped_allgather_async(
    tensors: Sequence[Any], name: Optional[str] = None, process_set: ProcessSet = global_process_set
) -> int:
    return _give(_start_allgathers(tensors, name, process_set))


class _Allgather(torch.autograd.Function):  # type: ignore[misc, unused-ignore]
    """The gradient is this rank's rows of the average, as with Horovod."""

    @staticmethod
    def forward(ctx: Any, name: Optional[str], process_set: ProcessSet, *tensors: Any) -> Any:
        ctx.rows, ctx.set = [_rows_of(t) for t in tensors], process_set
        if len(tensors) == 1:
            return _start_allgather(tensors[0], name, process_set).wait()
        return tuple(_start_allgathers(tensors, name, process_set).wait())

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        every = _start_allgather(torch.tensor([ctx.rows]), None, ctx.set).wait()
        begins = every[: ctx.set.rank()].sum(0).tolist()
        means = [_average_gradient(g, ctx.set) for g in gradients]
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


def _start_broadcast(tensor: Any, root: int, name: Optional[str], process_set: ProcessSet, in_place: bool) -> _Later:
    given = tensor.detach()
    sent = given.contiguous() if in_place else given.clone(memory_format=torch.contiguous_format)
    full = _name_of(name, "broadcast", process_set)
    handle = _submitting(process_set.comm.submit_broadcast, full, sent, process_set.root(root))

    def finish(result: Any) -> Any:
        if not in_place:
            return result
        if result.data_ptr() != given.data_ptr():
            given.copy_(result)
        return tensor

    return _Later(handle, finish)


def broadcast_async_(
    tensor: Any, root_rank: int, name: Optional[str] = None, process_set: ProcessSet = global_process_set
) -> int:
    return _give(_start_broadcast(tensor, root_rank, name, process_set, True))


def broadcast_async(
    tensor: Any, root_rank: int, name: Optional[str] = None, process_set: ProcessSet = global_process_set
) -> int:
    return _give(_start_broadcast(tensor, root_rank, name, process_set, False))


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
        mean = _average_gradient(gradient, ctx.set)
        return (mean if rank() == ctx.root else torch.zeros_like(mean)), None, None, None


def broadcast(
    tensor: Any, root_rank: int, name: Optional[str] = None, process_set: ProcessSet = global_process_set
) -> Any:
    return _Broadcast.apply(tensor, root_rank, name, process_set)


# ---- how values are reduced


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


def _scaled(x: Any, factor: float) -> Any:
    """Multiply by a factor as Horovod does: short types in F32; integers in F64, then truncated."""
    if factor == 1:
        return x
    if x.dtype in (torch.float16, torch.bfloat16):
        return (x.float() * factor).to(x.dtype)
    return x * factor if x.is_floating_point() or x.is_complex() else (x.double() * factor).to(x.dtype)


def _prepared(how: How, x: Any) -> Tuple[str, Any, float]:
    """(operation of the library, tensor to pass to it, factor for its result).  Averages of integers, which the library
    lacks, and factors, which must be rounded as in Horovod, are computed here."""
    word, after = how.op.word, how.postscale
    if word == "average" and not (x.is_floating_point() or x.is_complex()):
        word, after = "sum", after / how.set.comm.size
    return word, _scaled(x, how.prescale), after


def _adasum_pair(a: Any, b: Any) -> Any:
    both, aa, bb = torch.dot(a, b), torch.dot(a, a), torch.dot(b, b)
    # a zero gradient contributes nothing
    u = 1 - both / (2 * aa) if aa > 0 else torch.ones_like(aa)
    v = 1 - both / (2 * bb) if bb > 0 else torch.ones_like(bb)
    return u * a + v * b


def _adasum_of(rows: Any) -> Any:
    """Combine the rows of a matrix, a power of two of them, in pairs of neighbours; in double precision."""
    left: Sequence[Any] = rows.double().unbind(0)
    while len(left) > 1:
        pairs: List[Any] = [_adasum_pair(a, b) for a, b in zip(left[::2], left[1::2])]
        left = pairs
    return left[0].to(rows.dtype)


def _check_adasum(ranks: int) -> None:
    if ranks & (ranks - 1):
        raise NotImplementedError(f"Adasum of {ranks} ranks: their number must be a power of two")


def _adasum(tensor: Any, name: str, how: How) -> _Later:
    if how.set is not global_process_set:
        raise NotImplementedError("Adasum does not support non-global process sets yet.")
    _check_adasum(how.set.comm.size)
    given = _scaled(tensor.detach().reshape(1, -1), how.prescale)
    handle = _submitting(how.set.comm.submit_allgather, name, given)
    return _Later(handle, lambda rows: _scaled(_adasum_of(rows), how.postscale).reshape(tensor.shape))


def _submit(tensor: Any, name: str, how: How, out: Any, group: Optional[str], members: int) -> Any:
    word, sent, after = _prepared(how, tensor.detach().contiguous())
    into = sent if out is tensor else torch.empty_like(sent)
    handle = _submitting(
        how.set.comm.submit, name, sent, word, out=into, compression=how.compression.word,
        group=group, members=members,
    )  # fmt: skip
    return _Later(handle, lambda result: _scaled(result, after))


def start_allreduce(
    tensor: Any, name: Optional[str], how: How, in_place: bool, group: Optional[str] = None, members: int = 0
) -> _Later:
    """Start a reduction.  Returns a handle of the reduced tensor: 'tensor' itself or a new one."""
    full = _name_of(name, "allreduce", how.set)

    def finish(result: Any) -> Any:
        if not in_place:
            return result
        if result.data_ptr() != tensor.data_ptr():
            tensor.detach().copy_(result)
        return tensor

    if how.op is Adasum:
        return _Later(_adasum(tensor, full, how), finish)
    return _Later(_submit(tensor, full, how, tensor if in_place else None, group, members), finish)


def _start_allreduces(tensors: Sequence[Any], name: Optional[str], how: How, in_place: bool) -> _Several:
    base = _name_of(name, "group", how.set)
    return _Several([start_allreduce(t, f"{base}.{i}", how, in_place, base, len(tensors)) for i, t in enumerate(tensors)])


# ---- all-reduce of one tensor


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
    return _give(start_allreduce(tensor, name, how, False))


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
    return _give(start_allreduce(tensor, name, how, True))


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
            return tuple(_start_allreduces(tensors, name, how, False).wait())
        return start_allreduce(tensors[0], name, how, False).wait()

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        plain = How(ctx.how.op, ctx.how.prescale, ctx.how.postscale, ctx.how.set)
        if ctx.group:
            return (None, None, None, *_start_allreduces(gradients, None, plain, False).wait())
        return None, None, None, start_allreduce(gradients[0], None, plain, False).wait()


def _through(compression: Any, tensors: Sequence[Any], call: Callable[..., Sequence[Any]]) -> List[Any]:
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
    return _through(compression, [tensor], lambda t: [_Allreduce.apply(name, how, False, t)])[0]


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
    return _give(_start_allreduces(tensors, name, how, False))


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
    return _give(_start_allreduces(tensors, name, how, True))


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
    return _start_allreduces(tensors, name, how, True).wait()


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
    return _through(compression, tensors, lambda *given: _Allreduce.apply(name, how, True, *given))


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
        raise ValueError("alltoall: splits must be integers")
    rows = [int(r) for r in splits]
    if len(rows) != ranks or min(rows) < 0 or sum(rows) > n:
        raise ValueError(f"alltoall: splits must be {ranks} numbers whose sum is at most {n}")
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
        self.asked = _start_allgather(about, _name_of(name, "alltoall", process_set), process_set)

    @property
    def ready(self) -> bool:
        return bool(self.asked.ready)

    def wait(self) -> Tuple[Any, Any]:
        every = self.asked.wait()
        if not (every == every[0]).all():
            differs = next(r for r in range(1, len(every)) if not (every[r] == every[0]).all())
            raise _slurmdl.Error(f"alltoall: ranks 0 and {differs} passed tensors of different types or shapes")
        out, came = self.comm.alltoall(self.tensor, self.rows)
        like = self.splits if isinstance(self.splits, torch.Tensor) else torch.empty(0, dtype=torch.int32)
        return out, torch.tensor(came, dtype=like.dtype, device=like.device)


def alltoall_async(
    tensor: Any, splits: Any = None, name: Optional[str] = None, process_set: ProcessSet = global_process_set
) -> int:
    return _give(_Alltoall(tensor, splits, name, process_set))


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


def _start_reducescatter(tensor: Any, name: Optional[str], how: How) -> _Later:
    if how.op is Adasum:
        raise NotImplementedError("reducescatter does not support Adasum: use hvd.Average or hvd.Sum")
    if tensor.dim() == 0:
        raise ValueError("a tensor without dimensions cannot be scattered: tensor.reshape(1)")
    word, sent, after = _prepared(how, tensor.detach().contiguous())
    handle = _submitting(how.set.comm.submit_reduce_scatter, _name_of(name, "reducescatter", how.set), sent, word)
    return _Later(handle, lambda result: _scaled(result, after))


def _start_reducescatters(tensors: Sequence[Any], name: Optional[str], how: How) -> _Several:
    base = _name_of(name, "group", how.set)
    return _Several([_start_reducescatter(t, f"{base}.{i}", how) for i, t in enumerate(tensors)])


def reducescatter_async(
    tensor: Any,
    name: Optional[str] = None,
    op: ReduceOp = Average,
    process_set: ProcessSet = global_process_set,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> int:
    return _give(_start_reducescatter(tensor, name, How(op, prescale_factor, postscale_factor, process_set)))


def grouped_reducescatter_async(
    tensors: Sequence[Any],
    name: Optional[str] = None,
    op: ReduceOp = Average,
    process_set: ProcessSet = global_process_set,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> int:
    return _give(_start_reducescatters(tensors, name, How(op, prescale_factor, postscale_factor, process_set)))


class _Reducescatter(torch.autograd.Function):  # type: ignore[misc, unused-ignore]
    """Concatenate the gradients of all ranks; for a sum multiplied by their number, as Horovod does."""

    @staticmethod
    def forward(ctx: Any, name: Optional[str], how: How, *tensors: Any) -> Any:
        ctx.how = how
        if len(tensors) == 1:
            return _start_reducescatter(tensors[0], name, how).wait()
        return tuple(_start_reducescatters(tensors, name, how).wait())

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        how = ctx.how
        factor = how.prescale * how.postscale * (how.set.comm.size if how.op is Sum else 1)
        handles = [_start_allgather(_scaled(g, factor), None, how.set) for g in gradients]
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
    return _through(_Around(compression), [tensor], lambda t: [_Reducescatter.apply(name, how, t)])[0]


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
    return _through(_Around(compression), tensors, lambda *given: _Reducescatter.apply(name, group, *given))


# ---- state and objects


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
