# SPDX-License-Identifier: Apache-2.0
"""Data-parallel training with PyTorch over a slurmdl communicator.

    import slurmdl.distributed

    world = slurmdl.comm.init()
    slurmdl.distributed.broadcast_state(model)
    optimizer = slurmdl.DistributedOptimizer(optimizer, model.named_parameters())
    loss.backward()                # sends each gradient as soon as it is computed
    optimizer.step()               # waits for all of them

or, if the model is wrapped in torch's DistributedDataParallel, let its buckets use the communicator:

    ddp.register_comm_hook(slurmdl.distributed.HookState(), slurmdl.distributed.hook)
"""

import contextlib
import functools
import queue
import threading
import warnings
import weakref
from collections import Counter, OrderedDict
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Sequence, Tuple

import torch

from .comm import Comm, Handle, init
from .message import about_tensor, is_plain_tensor, new_tensor

# ---- state from one rank to all


class _Tensors:
    """The tensors of a value, which are sent separately."""

    def __init__(self) -> None:
        self.tensors: List[Any] = []

    def put(self, path: Tuple[str, ...], x: Any) -> Optional[Dict[str, Any]]:
        if not is_plain_tensor(x):
            return None
        self.tensors.append(x)
        return about_tensor(x)

    def get(self, about: Dict[str, Any]) -> Any:
        self.tensors.append(new_tensor(about))
        return self.tensors[-1]


def _plain(x: Any) -> Any:
    """Convert other kinds of dicts to dict: load_state_dict() accepts any."""
    if isinstance(x, dict) and type(x) not in (Counter, OrderedDict):
        return {k: _plain(v) for k, v in x.items()}
    return type(x)(map(_plain, x)) if type(x) in (list, tuple) else x


def broadcast_value(value: Any, root: int = 0, comm: Optional[Comm] = None, *, trust: bool = False) -> Any:
    """Rank root's dicts, lists, tensors and numbers; tensors are sent as raw memory.  Other objects are pickled if all
    ranks pass trust=True (Comm.broadcast_object())."""
    world = comm or init()
    here = _Tensors()
    found = world.broadcast_with(_plain(value), root, trust, here.put, here.get)
    for t in here.tensors:
        plain = t.detach().contiguous()
        world.broadcast_(plain, root)
    return value if world.rank == root else found


def broadcast_state(part: Any, root: int = 0, comm: Optional[Comm] = None, *, trust: bool = False) -> None:
    """Copy the state of rank root's model, optimizer or scheduler to all ranks: anything with a state_dict()."""
    world = comm or init()
    state = broadcast_value(part.state_dict() if world.rank == root else None, root, world, trust=trust)
    if world.rank != root:
        part.load_state_dict(state)


def broadcast_tensors(named: Iterable[Tuple[str, Any]], root: int = 0, comm: Optional[Comm] = None) -> None:
    """Copy rank root's tensors to all ranks, which must have the same names and shapes."""
    world = comm or init()
    waiting = []
    for name, t in named:
        if not isinstance(t, torch.Tensor):
            continue
        whole = t.data if t.is_contiguous() else t.data.contiguous()
        waiting.append((world.submit_broadcast(f"broadcast/{name}", whole, root), t, whole))
    for handle, t, whole in waiting:
        handle.wait()
        if whole.data_ptr() != t.data_ptr():
            t.data.copy_(whole)


# ---- gradients


class _Sparse:
    """A sparse gradient: the rows of all ranks, concatenated."""

    def __init__(self, comm: Comm, name: str, p: Any, scale: float) -> None:
        g = p.grad.coalesce()
        self.p, self.scale = p, scale
        # the same name as a dense gradient: ranks that disagree are reported
        self.indices = comm.submit_allgather(name, g.indices().t().contiguous())
        self.values = comm.submit_allgather(f"{name}/values", g.values())

    def wait(self) -> None:
        indices, values = self.indices.wait(), self.values.wait() * self.scale
        p = self.p
        p.grad = torch.sparse_coo_tensor(indices.t(), values, p.shape, dtype=p.dtype, device=p.device).coalesce()


class _Dense:
    """'finish' converts what was sent to the gradient."""

    def __init__(self, handle: Handle, p: Any, sent: Any, finish: Optional[Callable[[Any], Any]]) -> None:
        self.handle, self.p, self.sent, self.finish = handle, p, sent, finish

    def wait(self) -> None:
        self.handle.wait()
        result = self.finish(self.sent) if self.finish else self.sent
        if result.is_sparse:
            self.p.grad = result
        elif result.data_ptr() != self.p.grad.data_ptr():
            self.p.grad.copy_(result)


class _Own:
    """The gradient of a single rank: neither copied nor waited for."""

    def wait(self) -> None:
        pass


def _after_gradient(p: Any, f: Callable[[Any], None]) -> Any:
    """Call f(p) once p.grad has its value; returns what the caller must keep alive."""
    if hasattr(p, "register_post_accumulate_grad_hook"):
        return p.register_post_accumulate_grad_hook(f)
    node = p.expand_as(p).grad_fn.next_functions[0][0]
    node.register_hook(lambda *_: f(p))
    return node


class _Distributed:
    """The methods that a distributed optimizer adds to the optimizer's own: see DistributedOptimizer()."""

    param_groups: List[Dict[str, Any]]
    _dl: "_Gradients"

    @property
    def _parameter_names(self) -> Dict[Any, str]:
        return dict(self._dl.names)

    def synchronize(self) -> None:
        """Wait for the gradients; step() does so, too."""
        self._dl.wait()
        self._dl.synchronized = True

    def set_backward_passes_per_step(self, passes: int) -> None:
        self._dl.passes = passes
        self._dl.reset()

    def add_param_group(self, *args: Any, **options: Any) -> None:
        """Call it on all ranks, in the same order."""
        super().add_param_group(*args, **options)  # type: ignore[misc]
        self._dl.add(self.param_groups[-1]["params"])

    def load_state_dict(self, *args: Any, **options: Any) -> None:
        self._dl.reset()
        super().load_state_dict(*args, **options)  # type: ignore[misc]

    @contextlib.contextmanager
    def skip_synchronize(self) -> Iterator[None]:
        """Do not wait inside step(): after synchronize(), to clip or unscale gradients."""
        self._dl.skip = True
        try:
            yield
        finally:
            self._dl.skip = False

    def step(self, closure: Optional[Callable[[], Any]] = None) -> Any:
        def after_backward() -> Any:
            assert closure is not None
            loss = closure()
            self._dl.wait()
            return loss

        if self._dl.synchronized and not self._dl.skip:
            warnings.warn(
                "optimizer.step() called without optimizer.skip_synchronize() context after optimizer.synchronize():"
                " gradients are reduced once more",
                stacklevel=2,
            )
        if closure is None and not self._dl.skip:
            self._dl.wait()
        self._dl.synchronized = False
        return super().step(after_backward if closure is not None else None)  # type: ignore[misc]

    def zero_grad(self, *args: Any, **options: Any) -> None:
        if self._dl.sent:
            raise RuntimeError("zero_grad() between backward() and step() or synchronize(): gradients are still being sent")
        super().zero_grad(*args, **options)  # type: ignore[misc]


class _Gradients:
    """The gradients in flight."""

    def __init__(
        self,
        comm: Optional[Comm],
        named: Sequence[Tuple[str, Any]],
        passes: int,
        dense: bool,
        groups: Iterable[Sequence[Any]],
        compressor: Any,
        alone: bool,
        **how: Any,
    ) -> None:
        self.alone = alone
        self.plain = compressor is None and how["compression"] == "none" and how["prescale"] * how["postscale"] == 1
        self._comm, self.passes, self.dense, self.how = comm, passes, dense, how
        self.compressor = compressor
        self.names = {p: name for name, p in named if p.requires_grad}
        # parameters without a gradient here are not waited for
        groups = [[p for p in group if p in self.names] for group in groups]
        self.groups: Dict[Any, Dict[str, Any]] = {
            p: {"group": f"gradients/{i}", "members": len(group)} for i, group in enumerate(groups) for p in group
        }
        self.sparse: Dict[Any, int] = {}  # parameters with sparse gradients, and the number of sparse dimensions
        self.synchronized = False
        self.left = {p: passes for p in self.names}
        self.sent: Dict[Any, Any] = {}
        self.skip = False
        self._lock = threading.Lock()
        self._hooks = [_after_gradient(p, self._ready) for p in self.names]
        _all.add(self)

    @property
    def comm(self) -> Comm:
        """In elastic training: of the current world."""
        return self._comm or init()

    def add(self, parameters: Iterable[Any]) -> None:
        """Add parameters, in this order."""
        for p in parameters if not self.alone else ():
            if p.requires_grad and p not in self.names:
                self.names[p] = f"added/{len(self.names)}"
                self.left[p] = self.passes
                self._hooks.append(_after_gradient(p, self._ready))

    def reset(self) -> None:
        """Forget gradients in flight: the world has changed."""
        with self._lock:
            self.sent.clear()
            self.left = {p: self.passes for p in self.names}

    def _ready(self, p: Any) -> None:
        with self._lock:
            if self.left[p] <= 0:
                raise RuntimeError(
                    f"{self.names[p]}: more backward passes than backward_passes_per_step ({self.passes}) before step()"
                )
            self.left[p] -= 1
            if self.left[p] == 0:
                self.sent[p] = self._send(p)

    def _send(self, p: Any) -> Any:
        if self.plain and not p.grad.is_sparse and self.comm.size == 1:
            return _Own()
        name = f"gradient/{self.names[p]}"
        if p.grad.is_sparse and not self.dense:
            if p in self.groups:
                name = self.names[p]
                raise ValueError(f"{name}: its gradient is sparse: leave it out of groups, or sparse_as_dense=True")
            if p in self.sparse and p.grad._nnz() == 0:
                p.grad = self._nothing(p)  # the zero_grad() of PyTorch 1 changes the dimensions
            self.sparse[p] = p.grad.sparse_dim()
            average = self.comm.size if self.how["op"] == "average" else 1
            return _Sparse(self.comm, name, p, self.how["prescale"] * self.how["postscale"] / average)
        sent, finish = self._as_it_travels(p.grad.detach())
        return _Dense(self.comm.submit(name, sent, **self.how, **self.groups.get(p, {})), p, sent, finish)

    def _as_it_travels(self, gradient: Any) -> Tuple[Any, Optional[Callable[[Any], Any]]]:
        """What is sent, and how to convert it back to a gradient."""
        if gradient.is_sparse:
            return gradient.to_dense(), lambda x: x.to_sparse()
        if self.compressor is None:
            return gradient.contiguous(), None
        narrow, context = self.compressor.compress(gradient)
        return narrow.contiguous(), lambda x: self.compressor.decompress(x, context)

    def _nothing(self, p: Any) -> Any:
        if p not in self.sparse:
            return torch.zeros_like(p)
        n = self.sparse[p]
        indices = torch.zeros((n, 0), dtype=torch.int64, device=p.device)
        return torch.sparse_coo_tensor(indices, p.new_empty((0, *p.shape[n:])), p.shape)

    def wait(self) -> None:
        with self._lock:
            # a parameter without a gradient in this pass may have one on other ranks
            for p in self.names:
                if p not in self.sent:
                    if p.grad is None:
                        p.grad = self._nothing(p)
                    self.sent[p] = self._send(p)
            try:
                for one in self.sent.values():
                    one.wait()
            finally:
                self.sent.clear()
                self.left = {p: self.passes for p in self.names}
        self.comm.tell()


_all: "weakref.WeakSet[_Gradients]" = weakref.WeakSet()


def reset() -> None:
    """The world has changed (slurmdl.elastic): drop gradients that were in flight."""
    for gradients in list(_all):
        gradients.reset()


def named(optimizer: Any, named_parameters: Optional[Iterable[Tuple[str, Any]]]) -> List[Tuple[str, Any]]:
    """The optimizer's parameters, each with a unique name."""
    own = [p for group in optimizer.param_groups for p in group["params"]]
    if named_parameters is None:
        return [(f"{i}", p) for i, p in enumerate(own)]
    names = {p: name for name, p in named_parameters}
    if len(set(names.values())) < len(names):
        raise ValueError("named_parameters has two parameters of the same name")
    missing = sum(p not in names for p in own)
    if missing:
        raise ValueError(f"named_parameters lacks {missing} of the optimizer's parameters")
    return [(names[p], p) for p in own]


def take_step(optimizer: Any) -> None:
    """A scheduler created earlier has wrapped step() of the other optimizer: wrap this one's instead."""
    if "step" not in vars(optimizer):
        return
    del optimizer.step
    inner, ref = optimizer.step.__func__, weakref.ref(optimizer)

    @functools.wraps(inner)
    def step(*args: Any, **options: Any) -> Any:
        own: Any = ref()
        own._opt_called = True  # attributes that torch's schedulers read
        return inner(own, *args, **options)

    step._wrapped_by_lr_sched = True  # type: ignore[attr-defined]
    optimizer.step = step


def DistributedOptimizer(
    optimizer: Any,
    named_parameters: Optional[Iterable[Tuple[str, Any]]] = None,
    op: str = "average",
    compression: str = "none",
    backward_passes_per_step: int = 1,
    predivide: float = 1.0,
    sparse_as_dense: bool = False,
    comm: Optional[Comm] = None,
    groups: Optional[Iterable[Sequence[Any]]] = None,
    compressor: Any = None,
    alone: bool = False,
) -> Any:
    """An optimizer of the same class, with the same parameters and state, that steps with the gradients of all ranks.
    Each gradient is submitted as soon as backward() has computed it, after 'backward_passes_per_step' accumulated
    passes.

    'op': average, sum; 'compression': none, f16, bf16.  'predivide' divides gradients before the sum and multiplies the
    result.  A missing gradient counts as zeros.  Sparse gradients are gathered, or reduced with 'sparse_as_dense'.
    'groups': lists of parameters whose gradients are sent together or not at all.  'compressor' has compress(gradient),
    which returns a tensor and a context, and decompress(tensor, context).  With 'alone', this rank does not take part.
    """
    if op not in ("average", "sum"):
        raise ValueError(f"op must be average or sum, not {op!r}")
    if backward_passes_per_step < 1:
        raise ValueError("backward_passes_per_step must be at least 1")
    kind = type(optimizer)
    if issubclass(kind, _Distributed):
        raise ValueError("the optimizer is already distributed")
    new: Any = type(kind.__name__, (_Distributed, kind), {"__module__": kind.__module__, "__doc__": kind.__doc__})
    self = new.__new__(new)
    # shared, so that a scheduler created for the other optimizer works for this one
    self.__dict__ = optimizer.__dict__
    take_step(self)
    how = {"op": op, "compression": compression, "prescale": 1 / predivide, "postscale": predivide}
    mine = [] if alone else named(optimizer, named_parameters)
    self._dl = _Gradients(
        comm, mine, backward_passes_per_step, sparse_as_dense, [] if alone else groups or [], compressor, alone, **how
    )
    return self


# ---- DistributedDataParallel


class HookState:
    """How hook() reduces the buckets of one model; 'name' distinguishes several models of a process."""

    def __init__(
        self, comm: Optional[Comm] = None, compression: str = "none", name: str = "ddp"
    ) -> None:
        self._comm = comm
        self.how = {"op": "average", "compression": compression}
        self.name = name
        self._queue: "queue.SimpleQueue[Any]" = queue.SimpleQueue()
        self._thread: Optional[threading.Thread] = None

    @property
    def comm(self) -> Comm:
        return self._comm or init()

    def later(self, handle: Handle, buffer: Any) -> Any:
        """A future for this buffer."""
        devices = [buffer.device] if buffer.device.type == "cuda" else None
        future: Any = torch.futures.Future(devices=devices) if devices else torch.futures.Future()
        if self._thread is None:
            self._thread = threading.Thread(target=self._complete, name="slurmdl-ddp", daemon=True)
            self._thread.start()
        self._queue.put((handle, buffer, future))
        return future

    def _complete(self) -> None:
        while True:
            handle, buffer, future = self._queue.get()
            try:
                handle.wait()
                future.set_result(buffer)
            except Exception as error:  # backward() must raise it, whatever it is
                future.set_exception(error)


def hook(state, bucket):  # type: ignore[no-untyped-def] # torch requires its own annotations, or none
    """For ddp.register_comm_hook(HookState(), hook): the communicator averages each bucket."""
    buffer = bucket.buffer()
    # buckets are rebuilt after the first step, with other sizes
    name = f"{state.name}/{bucket.index()}/{buffer.numel()}"
    return state.later(state.comm.submit(name, buffer, **state.how), buffer)
