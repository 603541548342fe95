# SPDX-License-Identifier: Apache-2.0
"""Horovod's names for PyTorch: a script runs by changing its import.

    import slurmdl.hvd as hvd          # was: import horovod.torch as hvd

Differences: nothing but `srun` starts the ranks; Adasum is not there; a process set is made by all ranks at the same
place, as with Horovod's dynamic process sets.  hvd.elastic is slurmdl.elastic, for `dl elastic python3 script.py`.
"""

import itertools
import warnings
from typing import Any, Dict, Iterable, List, Optional, Sequence, Tuple

import torch

from . import comm as _comm
from . import distributed as _distributed
from . import elastic  # noqa: F401
from ._slurmdl import Error as HorovodInternalError  # noqa: F401

# ---- words


class ReduceOp:
    """What is done with the values of all ranks."""

    def __init__(self, word: str) -> None:
        self.word = word

    def __repr__(self) -> str:
        return f"hvd.{self.word.capitalize()}"


Average, Sum, Min, Max, Product = (ReduceOp(w) for w in ("average", "sum", "min", "max", "product"))
Adasum = ReduceOp("adasum")


class Compression:
    """none, fp16; and ours: bf16, and topk(share) with error feedback."""

    none = ("none", 0.01)
    fp16 = ("f16", 0.01)
    bf16 = ("bf16", 0.01)

    @staticmethod
    def topk(keep: float = 0.01) -> Tuple[str, float]:
        return ("top_k", keep)


# ---- the world


def init(comm: Any = None, process_sets: Any = None, **options: Any) -> None:
    """Meet the other ranks.  'process_sets': a list of ProcessSet."""
    if comm is not None and not isinstance(comm, _comm.Comm):
        raise TypeError("hvd.init(comm): ranks are chosen with process sets")
    _comm.init(**options)
    global_process_set._open()
    for one in process_sets if isinstance(process_sets, (list, tuple)) else []:
        add_process_set(one)


def _world() -> _comm.Comm:
    world = _comm.current()
    if world is None:
        raise ValueError("Horovod has not been initialized; use hvd.init().")
    return world


def is_initialized() -> bool:
    return _comm.current() is not None


def shutdown() -> None:
    world = _comm.current()
    if world is not None:
        for one in list(_sets.values()):
            one._close()
        world.close()


def rank() -> int:
    return _world().rank


def size() -> int:
    return _world().size


def local_rank() -> int:
    return _world().local_rank


def local_size() -> int:
    return _world().local_size


def cross_rank() -> int:
    return _world().node


def cross_size() -> int:
    return _world().nodes


def is_homogeneous() -> bool:
    return len(set(_world().allgather_object(_world().local_size))) == 1


def _false(*_: Any, **__: Any) -> bool:
    return False


def mpi_built(*_: Any, **__: Any) -> bool:
    return _comm.current() is not None and _world().backend == "mpi"


mpi_enabled = mpi_built
mpi_threads_supported = gloo_built = gloo_enabled = ddl_built = ccl_built = rocm_built = _false


def nccl_built(*_: Any, **__: Any) -> int:
    return int(_comm.current() is not None and _world().backend == "nccl")


def cuda_built(*_: Any, **__: Any) -> bool:
    return bool(torch.cuda.is_available())


def start_timeline(path: str, mark_cycles: bool = False) -> None:
    _world().timeline(path)


def stop_timeline() -> None:
    _world().timeline(None)


# ---- process sets


class ProcessSet:
    """Some of the ranks."""

    process_set_id: Optional[int] = None
    _part: Optional[_comm.Comm] = None

    def __init__(self, ranks: Optional[Iterable[int]] = None) -> None:
        self.ranks = sorted(ranks) if ranks is not None else None

    def _open(self) -> None:
        self._part = _world() if self.ranks is None else _world().split(0 if rank() in self.ranks else -1, rank())

    def _close(self) -> None:
        if self._part is not None and self.ranks is not None:
            self._part.close()
        self._part = None

    def included(self) -> bool:
        return self.ranks is None or rank() in self.ranks

    def rank(self) -> int:
        return _of(self).rank

    def size(self) -> int:
        return size() if self.ranks is None else len(self.ranks)

    def __repr__(self) -> str:
        return f"ProcessSet({self.ranks})"


global_process_set = ProcessSet()
global_process_set.process_set_id = 0
_sets: Dict[int, ProcessSet] = {}
_numbers = itertools.count(1)


def add_process_set(ranks: Any) -> ProcessSet:
    """All ranks call it, whether they are in the set or not."""
    one = ranks if isinstance(ranks, ProcessSet) else ProcessSet(ranks)
    one._open()
    one.process_set_id = next(_numbers)
    _sets[one.process_set_id] = one
    return one


def remove_process_set(one: ProcessSet) -> bool:
    if one.process_set_id not in _sets:
        return False
    del _sets[one.process_set_id]
    one._close()
    one.process_set_id = None
    return True


def _of(one: ProcessSet) -> _comm.Comm:
    if one.ranks is None:
        return _world()
    if one._part is None:
        raise ValueError(f"rank {rank()} is not in {one}, or it was not added: hvd.add_process_set()")
    return one._part


# ---- collectives, all of which are named tensors

_unnamed = itertools.count()


def _word(op: Optional[ReduceOp], average: Optional[bool]) -> str:
    if average is not None:
        op = Average if average else Sum
    op = op or Average
    if op is Adasum:
        raise NotImplementedError("Adasum is not there: use hvd.Average")
    return op.word


def _name(name: Optional[str], kind: str) -> str:
    # calls without a name are matched by their order, as in Horovod
    return f"{kind}.{name}" if name is not None else f"{kind}.noname.{next(_unnamed)}"


class _Copy:
    """A handle whose result goes into a tensor that is not contiguous."""

    def __init__(self, handle: _comm.Handle, sent: Any, to: Any) -> None:
        self.handle, self.sent, self.to = handle, sent, to

    @property
    def ready(self) -> bool:
        return self.handle.ready

    def wait(self) -> Any:
        self.handle.wait()
        return self.to.copy_(self.sent)


_waiting: Dict[int, Any] = {}
_tickets = itertools.count(1)


def _give(handle: Any) -> int:
    number = next(_tickets)
    _waiting[number] = handle
    return number


def poll(handle: int) -> bool:
    return bool(_waiting[handle].ready) if handle in _waiting else True


def synchronize(handle: int) -> Any:
    if handle not in _waiting:
        raise ValueError(f"there is no handle {handle}, or it was waited for")
    return _waiting.pop(handle).wait()


def _submit(
    tensor: Any,
    average: Optional[bool],
    name: Optional[str],
    op: Optional[ReduceOp],
    prescale: float,
    postscale: float,
    process_set: ProcessSet,
    compression: Tuple[str, float] = Compression.none,
    group: Optional[str] = None,
    members: int = 0,
) -> Any:
    sent = tensor.detach() if tensor.is_contiguous() else tensor.detach().contiguous()
    handle = _of(process_set).submit(
        _name(name, "allreduce"), sent, _word(op, average), compression=compression[0], keep=compression[1],
        prescale=prescale, postscale=postscale, group=group, members=members,
    )  # fmt: skip
    return handle if sent.data_ptr() == tensor.data_ptr() else _Copy(handle, sent, tensor.data)


def allreduce_async_(
    tensor: Any,
    average: Optional[bool] = None,
    name: Optional[str] = None,
    op: Optional[ReduceOp] = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> int:
    return _give(_submit(tensor, average, name, op, prescale_factor, postscale_factor, process_set))


def allreduce_async(tensor: Any, *args: Any, **options: Any) -> int:
    return allreduce_async_(tensor.detach().clone(), *args, **options)


def allreduce_(tensor: Any, *args: Any, **options: Any) -> Any:
    synchronize(allreduce_async_(tensor, *args, **options))
    return tensor


class _Allreduce(torch.autograd.Function):  # type: ignore[misc, unused-ignore]
    """Horovod's all-reduce has a gradient: the all-reduce of the gradient."""

    @staticmethod
    def forward(ctx: Any, tensor: Any, how: Dict[str, Any]) -> Any:
        ctx.how = how
        out = tensor.detach().clone().contiguous()
        _submit(out, how["average"], how["name"], how["op"], how["pre"], how["post"], how["set"], how["as"]).wait()
        return out

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        how = dict(ctx.how, name=None)
        out = gradient.detach().clone().contiguous()
        _submit(out, how["average"], None, how["op"], how["pre"], how["post"], how["set"]).wait()
        return out, None


def allreduce(
    tensor: Any,
    average: Optional[bool] = None,
    name: Optional[str] = None,
    compression: Tuple[str, float] = Compression.none,
    op: Optional[ReduceOp] = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> Any:
    how: Dict[str, Any] = {"average": average, "name": name, "op": op, "set": process_set, "as": compression}
    how.update({"pre": prescale_factor, "post": postscale_factor})
    return _Allreduce.apply(tensor, how)


class _Group:
    def __init__(self, handles: Sequence[Any], tensors: Sequence[Any]) -> None:
        self.handles, self.tensors = handles, tensors

    @property
    def ready(self) -> bool:
        return all(h.ready for h in self.handles)

    def wait(self) -> List[Any]:
        for h in self.handles:
            h.wait()
        return list(self.tensors)


def grouped_allreduce_async_(
    tensors: Sequence[Any],
    average: Optional[bool] = None,
    name: Optional[str] = None,
    op: Optional[ReduceOp] = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
    compression: Tuple[str, float] = Compression.none,
) -> int:
    base = name if name is not None else f"noname.{next(_unnamed)}"
    how = (prescale_factor, postscale_factor, process_set, compression, base, len(tensors))
    return _give(_Group([_submit(t, average, f"{base}.{i}", op, *how) for i, t in enumerate(tensors)], tensors))


def grouped_allreduce_(tensors: Sequence[Any], *args: Any, **options: Any) -> Any:
    return synchronize(grouped_allreduce_async_(tensors, *args, **options))


def grouped_allreduce_async(tensors: Sequence[Any], *args: Any, **options: Any) -> int:
    return grouped_allreduce_async_([t.detach().clone() for t in tensors], *args, **options)


def grouped_allreduce(tensors: Sequence[Any], *args: Any, **options: Any) -> Any:
    return synchronize(grouped_allreduce_async(tensors, *args, **options))


def allgather_async(tensor: Any, name: Optional[str] = None, process_set: ProcessSet = global_process_set) -> int:
    return _give(_of(process_set).submit_allgather(_name(name, "allgather"), tensor.detach()))


def allgather(tensor: Any, name: Optional[str] = None, process_set: ProcessSet = global_process_set) -> Any:
    return synchronize(allgather_async(tensor, name, process_set))


def broadcast_async_(
    tensor: Any, root_rank: int, name: Optional[str] = None, process_set: ProcessSet = global_process_set
) -> int:
    part = _of(process_set)
    # Horovod's root is a rank of the world
    root = root_rank if process_set.ranks is None else process_set.ranks.index(root_rank)
    sent = tensor.detach() if tensor.is_contiguous() else tensor.detach().contiguous()
    handle: Any = part.submit_broadcast(_name(name, "broadcast"), sent, root)
    return _give(handle if sent.data_ptr() == tensor.data_ptr() else _Copy(handle, sent, tensor.data))


def broadcast_(tensor: Any, *args: Any, **options: Any) -> Any:
    synchronize(broadcast_async_(tensor, *args, **options))
    return tensor


def broadcast_async(tensor: Any, *args: Any, **options: Any) -> int:
    return broadcast_async_(tensor.detach().clone(), *args, **options)


def broadcast(tensor: Any, *args: Any, **options: Any) -> Any:
    return synchronize(broadcast_async(tensor, *args, **options))


class _Done:
    ready = True

    def __init__(self, result: Any) -> None:
        self.result = result

    def wait(self) -> Any:
        return self.result


def alltoall(
    tensor: Any,
    splits: Any = None,
    name: Optional[str] = None,
    process_set: ProcessSet = global_process_set,
) -> Any:
    """With 'splits' also the splits of what came."""
    rows = None if splits is None else [int(n) for n in splits]
    out, came = _of(process_set).alltoall(tensor, rows)
    return out if splits is None else (out, torch.tensor(came, dtype=torch.int32))


def alltoall_async(tensor: Any, *args: Any, **options: Any) -> int:
    return _give(_Done(alltoall(tensor, *args, **options)))


def reducescatter(
    tensor: Any,
    name: Optional[str] = None,
    op: ReduceOp = Average,
    process_set: ProcessSet = global_process_set,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    **_: Any,
) -> Any:
    x = tensor.detach() * prescale_factor if prescale_factor != 1.0 else tensor
    out = _of(process_set).reduce_scatter(x, _word(op, None))
    return out * postscale_factor if postscale_factor != 1.0 else out


def reducescatter_async(tensor: Any, *args: Any, **options: Any) -> int:
    return _give(_Done(reducescatter(tensor, *args, **options)))


def join(device: int = -1) -> int:
    return _world().join()


def barrier(process_set: ProcessSet = global_process_set) -> None:
    _of(process_set).barrier()


# ---- state


def broadcast_parameters(params: Any, root_rank: int = 0, process_set: ProcessSet = global_process_set) -> None:
    named = params.items() if isinstance(params, dict) else list(params)
    _distributed.broadcast_tensors(sorted(named, key=lambda n: n[0]), root_rank, _of(process_set))


def broadcast_optimizer_state(
    optimizer: Any, root_rank: int = 0, model: Any = None, process_set: ProcessSet = global_process_set
) -> None:
    if isinstance(optimizer, torch.optim.LBFGS):
        raise ValueError("cannot broadcast torch.optim.LBFGS state")
    _distributed.broadcast_state(optimizer, root_rank, _of(process_set))


def broadcast_object(
    obj: Any, root_rank: int = 0, name: Optional[str] = None, process_set: ProcessSet = global_process_set
) -> Any:
    return _of(process_set).broadcast_object(obj, root_rank)


def allgather_object(obj: Any, name: Optional[str] = None, process_set: ProcessSet = global_process_set) -> List[Any]:
    return _of(process_set).allgather_object(obj)


def DistributedOptimizer(
    optimizer: Any,
    named_parameters: Any = None,
    compression: Tuple[str, float] = Compression.none,
    backward_passes_per_step: int = 1,
    op: ReduceOp = Average,
    gradient_predivide_factor: float = 1.0,
    num_groups: int = 0,
    groups: Any = None,
    sparse_as_dense: bool = False,
    process_set: ProcessSet = global_process_set,
) -> Any:
    """As horovod.torch.DistributedOptimizer; groups are put together anyway (fusion)."""
    if gradient_predivide_factor != 1.0 and op is not Average:
        raise ValueError("gradient_predivide_factor not supported with op != Average")
    if num_groups or groups:
        warnings.warn("num_groups and groups have no effect: small tensors are fused anyway", stacklevel=2)
    if not process_set.included():
        return optimizer
    return _distributed.DistributedOptimizer(
        optimizer, named_parameters, _word(op, None), compression[0], compression[1], backward_passes_per_step,
        gradient_predivide_factor, sparse_as_dense, None if process_set.ranks is None else _of(process_set),
    )  # fmt: skip
