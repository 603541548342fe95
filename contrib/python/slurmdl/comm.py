# SPDX-License-Identifier: Apache-2.0
"""Communication between the ranks of a job: collectives on arrays and tensors, and named tensors in the background.

    import slurmdl.comm

    world = slurmdl.comm.init()                       # under srun, with or without --dl; alone: one rank
    world.broadcast_(weights, root=0)
    mean = world.allreduce(gradient, op="average")
    handle = world.submit("layer1.weight", gradient, op="average")
    ...
    handle.wait()

Arrays are numpy arrays, torch tensors (CPU, CUDA) or anything with a buffer; results are of the same kind.  Every wait
is bounded: slurmdl.Error names the rank and host that did not answer or is gone.
"""

import atexit
import math
import os
import sys
import threading
import time
import warnings
import weakref
from types import TracebackType
from typing import Any, List, NamedTuple, Optional, Sequence, Tuple, Type

from . import _slurmdl, _slurmdl_comm, message
from .arrays import Memory, empty, is_tensor, memory_of, number_of
from .structure import Get, Put

OPS = {"sum": 0, "average": 1, "min": 2, "max": 3, "product": 4}
COMPRESSIONS = {"none": 0, "f16": 1, "bf16": 2}
_ALLREDUCE, _ALLGATHER, _BROADCAST, _REDUCE_SCATTER = range(4)
_ZERO_WIDTH = -1  # of a row: rows are counted, not elements

_open_comms: "weakref.WeakSet[Comm]" = weakref.WeakSet()


def _contiguous(x: Any) -> Any:
    """x, or a contiguous copy."""
    if is_tensor(x):
        return x.detach().contiguous()
    if hasattr(x, "__array__") or isinstance(x, (int, float, list, tuple)):
        import numpy

        return numpy.asarray(x, order="C")
    return x


def _shape(shape: Tuple[int, ...]) -> Tuple[int, ...]:
    """The part of a shape that the ranks compare: at most 8 dimensions; the last one is the product of the rest."""
    return shape if len(shape) <= 8 else (*shape[:7], math.prod(shape[7:]))


def _rows(m: Memory) -> int:
    if not m.shape:
        raise ValueError("an array without dimensions has no rows: use reshape(1)")
    return m.shape[0]


def _like(x: Any, code: str, shape: Tuple[int, ...]) -> Any:
    """A new array of this shape, of the same kind as x."""
    return x.new_empty(shape) if is_tensor(x) else empty(code, shape)


def _of_bytes(x: Any, code: str, shape: Tuple[int, ...], data: bytes) -> Any:
    """A new array like x with these bytes."""
    result = _like(x, code, shape)
    if math.prod(shape) == 0:
        return result
    if is_tensor(x):
        import torch

        flat = torch.frombuffer(bytearray(data), dtype=x.dtype)
        return result.copy_(flat.reshape(shape))
    import numpy

    return numpy.frombuffer(data, result.dtype).reshape(shape).copy()


def _settle(x: Any) -> None:
    """Wait for the work that the CUDA device still has to do for this tensor."""
    if is_tensor(x) and x.device.type == "cuda":
        sys.modules["torch"].cuda.current_stream(x.device).synchronize()


def _stream(x: Any) -> int:
    """The CUDA stream that computes this tensor; 0: the default one, or host memory."""
    if is_tensor(x) and x.device.type == "cuda":
        return int(sys.modules["torch"].cuda.current_stream(x.device).cuda_stream)
    return 0


class Handle:
    """A tensor in flight."""

    def __init__(self, comm: "Comm", ticket: int, array: Any, out: Any, rows: Optional[Memory] = None) -> None:
        self._comm = comm
        self._ticket: Optional[int] = ticket
        self._array = array
        self._out = out
        self._rows = rows
        self._lock = threading.Lock()

    @property
    def ready(self) -> bool:
        """Whether wait() would return at once."""
        with self._lock:
            return self._ticket is None or self._comm.done(self._ticket)

    def wait(self) -> Any:
        """Wait for the result and return it."""
        with self._lock:
            if self._ticket is not None:
                ticket, self._ticket = self._ticket, None
                if self._rows is None:
                    self._comm.wait(ticket)
                else:
                    self._out = self._gathered(ticket, self._rows)
        return self._out

    def _gathered(self, ticket: int, rows: Memory) -> Any:
        row = math.prod(rows.shape[1:])
        data, counts = self._comm.take(ticket)
        return _of_bytes(self._array, rows.type, (sum(counts) // max(row, 1),) + rows.shape[1:], data)


class Comm(_slurmdl_comm.Comm):
    """A communicator; slurmdl.comm.init() opens the one of all ranks, split() makes parts of it."""

    def __new__(cls, **options: Any) -> "Comm":
        self = super().__new__(cls, **options)
        self._own()
        return self

    _pid: int
    _names: int
    _watched: bool

    def _own(self) -> None:
        self._pid = os.getpid()
        self._names = 0
        self._watched = False
        _open_comms.add(self)

    def __enter__(self) -> "Comm":
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        if kind is not None and not self.closed:
            self.abort(f"{kind.__name__}: {error}")
        self.close()

    def __repr__(self) -> str:
        return "<slurmdl.Comm, closed>" if self.closed else f"<slurmdl.Comm, rank {self.rank} of {self.size}>"

    def split(self, color: int, key: int = 0) -> Optional["Comm"]:
        """A communicator of the ranks with the same color, ordered by key; None for a negative color."""
        part = self.split_ranks(color, key)
        if part is not None:
            part._own()
        return part

    # ---- collectives: all ranks call them in the same order

    def allreduce(self, array: Any, op: str = "sum") -> Any:
        """The sum (average, min, max, product) over all ranks, as a new array."""
        a = _contiguous(array)
        m = memory_of(a)
        out = _like(a, m.type, m.shape)
        self._allreduce(m, a, out, op)
        return out

    def allreduce_(self, array: Any, op: str = "sum") -> Any:
        """The same in place."""
        self._allreduce(memory_of(array), array, array, op)
        return array

    def _allreduce(self, m: Memory, a: Any, out: Any, op: str) -> None:
        _settle(a)
        self.allreduce_memory(m.type, math.prod(m.shape), m.where, memory_of(out).where, number_of(OPS, op, "op"))

    def reduce(self, array: Any, op: str = "sum", root: int = 0) -> Any:
        """The same, on rank 'root' only; None on the others."""
        a = _contiguous(array)
        m = memory_of(a)
        out = _like(a, m.type, m.shape) if self.rank == root else None
        _settle(a)
        where = memory_of(out).where if out is not None else None
        self.reduce_memory(m.type, math.prod(m.shape), m.where, where, number_of(OPS, op, "op"), root)
        return out

    def parts(self, n: int) -> Tuple[int, ...]:
        """How reduce_scatter() distributes n rows."""
        return tuple(n // self.size + (r < n % self.size) for r in range(self.size))

    def reduce_scatter(self, array: Any, op: str = "sum") -> Any:
        """This rank's rows of the sum over all ranks."""
        a = _contiguous(array)
        m = memory_of(a)
        rows, row = self.parts(_rows(m)), math.prod(m.shape[1:])
        out = _like(a, m.type, (rows[self.rank],) + m.shape[1:])
        _settle(a)
        counts = tuple(r * row for r in rows)
        where = memory_of(out).where
        self.reduce_scatter_memory(m.type, math.prod(m.shape), m.where, where, counts, number_of(OPS, op, "op"))
        return out

    def allgather(self, array: Any) -> Any:
        """The arrays of all ranks, concatenated along the first dimension, in which they may differ."""
        a = _contiguous(array)
        m = memory_of(a)
        rows = self._allgather_numbers(_rows(m))
        row = math.prod(m.shape[1:]) * _slurmdl.item_size(m.type)
        out = _like(a, m.type, (sum(rows),) + m.shape[1:])
        _settle(a)
        self.allgather_memory(m.where, m.shape[0] * row, memory_of(out).where, tuple(r * row for r in rows))
        return out

    def _allgather_numbers(self, n: int) -> List[int]:
        mine = n.to_bytes(8, sys.byteorder)
        every = bytearray(8 * self.size)
        self.allgather_memory(mine, 8, every, None)
        return memoryview(every).cast("Q").tolist()

    def broadcast_(self, array: Any, root: int = 0) -> Any:
        """Overwrite this array with that of rank root."""
        m = memory_of(array)
        _settle(array)
        self.broadcast_memory(m.where, math.prod(m.shape) * _slurmdl.item_size(m.type), root)
        return array

    def alltoall(self, array: Any, rows: Optional[Sequence[int]] = None) -> Tuple[Any, Tuple[int, ...]]:
        """Send rows[r] rows of the array to rank r (default: the same number to each).  Returns the received rows, and
        how many came from each rank."""
        a = _contiguous(array)
        m = memory_of(a)
        to = tuple(rows) if rows is not None else self.parts(_rows(m))
        if len(to) != self.size or sum(to) != _rows(m):
            raise ValueError(f"rows must be {self.size} numbers that add up to {m.shape[0]}")
        given = bytearray(8 * self.size)
        eight = (8,) * self.size
        self.alltoall_memory(b"".join(n.to_bytes(8, sys.byteorder) for n in to), eight, given, eight)
        came = tuple(memoryview(given).cast("Q").tolist())
        row = math.prod(m.shape[1:]) * _slurmdl.item_size(m.type)
        out = _like(a, m.type, (sum(came),) + m.shape[1:])
        _settle(a)
        where = memory_of(out).where
        self.alltoall_memory(m.where, tuple(n * row for n in to), where, tuple(n * row for n in came))
        return out, came

    # ---- Python objects: JSON values, arrays and tensors; with trust=True on all ranks anything that can be pickled

    def broadcast_object(self, obj: Any = None, root: int = 0, *, trust: bool = False) -> Any:
        """Rank root's object: numbers, texts, lists, dicts, arrays, tensors.  Other objects must be pickled, and
        reading a pickle runs code: they are sent and read only if all ranks pass trust=True, which is meant for the
        ranks of one user's step.
        """
        return self.broadcast_with(obj, root, trust)

    def broadcast_with(
        self, obj: Any, root: int, trust: bool, put: Optional[Put] = None, get: Optional[Get] = None
    ) -> Any:
        """The same; put() takes tensors out of the object, and get() returns their replacements (see
        slurmdl.structure)."""
        data = message.to_send(obj, trust, put) if self.rank == root else b""
        found = self.broadcast_bytes(data, root)
        if self.rank == root and data[:1] != message.REFUSED:
            return obj
        return message.from_bytes(found, trust, f"rank {root}", get)

    def allgather_object(self, obj: Any, *, trust: bool = False) -> List[Any]:
        """The objects of all ranks; for their kinds see broadcast_object()."""
        every = self.allgather_bytes(message.to_send(obj, trust))
        return [message.from_bytes(data, trust, f"rank {r}") for r, data in enumerate(every)]


    def broadcast_bytes(self, data: bytes = b"", root: int = 0) -> bytes:
        """Rank root's bytes, of any length."""
        length = bytearray(len(data).to_bytes(8, sys.byteorder))
        self.broadcast_memory(length, 8, root)
        buffer = bytearray(data) if self.rank == root else bytearray(int.from_bytes(length, sys.byteorder))
        self.broadcast_memory(buffer, len(buffer), root)
        return bytes(buffer)

    def allgather_bytes(self, data: bytes) -> List[bytes]:
        """The bytes of all ranks, each of any length."""
        sizes = self._allgather_numbers(len(data))
        every = bytearray(sum(sizes))
        self.allgather_memory(data, len(data), every, tuple(sizes))
        ends = [sum(sizes[: r + 1]) for r in range(self.size)]
        return [bytes(every[end - n : end]) for n, end in zip(sizes, ends)]

    # ---- named tensors: in any order on each rank, in the background

    def submit(
        self,
        name: str,
        array: Any,
        op: str = "sum",
        out: Any = None,
        compression: str = "none",
        prescale: float = 1.0,
        postscale: float = 1.0,
        group: Optional[str] = None,
        members: int = 0,
    ) -> Handle:
        """Reduce 'array' over all ranks that submit 'name', into 'out' (default: in place).  Do not use the array until
        the handle's wait() has returned.  'compression': none, f16 or bf16.
        """
        out = array if out is None else out
        how = (number_of(OPS, op, "op"), prescale, postscale, number_of(COMPRESSIONS, compression, "compression"))
        return self._submit(_ALLREDUCE, name, array, out, how, group=group, members=members)

    def submit_broadcast(self, name: str, array: Any, root: int = 0) -> Handle:
        """Overwrite this array with that of rank root."""
        return self._submit(_BROADCAST, name, array, array, root=root)

    def submit_allgather(self, name: str, array: Any) -> Handle:
        """Concatenate the arrays of all ranks along the first dimension; wait() returns the result."""
        return self._submit(_ALLGATHER, name, _contiguous(array), None)

    def submit_reduce_scatter(
        self, name: str, array: Any, op: str = "sum", prescale: float = 1.0, postscale: float = 1.0
    ) -> Handle:
        """Reduce 'array' over all ranks; wait() returns this rank's rows, distributed as by parts()."""
        a = _contiguous(array)
        m = memory_of(a)
        out = _like(a, m.type, (self.parts(_rows(m))[self.rank],) + m.shape[1:])
        how = (number_of(OPS, op, "op"), prescale, postscale, 0)
        return self._submit(_REDUCE_SCATTER, name, a, out, how)

    def _submit(
        self,
        what: int,
        name: str,
        array: Any,
        out: Any,
        how: Tuple[int, float, float, int] = (0, 1.0, 1.0, 0),
        root: int = 0,
        group: Optional[str] = None,
        members: int = 0,
    ) -> Handle:
        m = memory_of(array)
        n = math.prod(m.shape)
        row = math.prod(m.shape[1:]) if what in (_ALLGATHER, _REDUCE_SCATTER) else 0
        if what == _ALLGATHER and row == 0:
            n, row = _rows(m), _ZERO_WIDTH
        where = None if out is None else m.where if out is array else self._room(name, m, out, what)
        op, prescale, postscale, compression = how
        ticket = self.submit_memory(
            name, what, m.type, op, n, row, _shape(m.shape), root, m.where, where,
            prescale, postscale, compression, group, members, (m.owner, out), _stream(array),
        )  # fmt: skip
        self.tell()
        self._watch()
        return Handle(self, ticket, array, out, m if out is None else None)

    def _room(self, name: str, given: Memory, out: Any, what: int) -> Any:
        """Check the memory for the result, whose size the library cannot know."""
        m = memory_of(out)
        n, wanted = math.prod(m.shape), math.prod(given.shape)
        if m.type != given.type or (what != _REDUCE_SCATTER and n != wanted):
            raise ValueError(f"{name}: 'out' has {n} elements of {m.type}, 'array' {wanted} of {given.type}")
        return m.where

    def tell(self) -> None:
        """Report problems as warnings: which ranks hold up which tensors."""
        text = self.trouble()
        if text:
            warnings.warn(text, RuntimeWarning, stacklevel=3)

    def _watch(self) -> None:
        """The same while all threads wait."""
        if not self._watched:
            self._watched = True
            threading.Thread(target=_tell_always, args=(weakref.ref(self),), name="slurmdl-told", daemon=True).start()

    def timeline(self, path: Optional[str], cycles: bool = False) -> None:
        """Write the events of named tensors, in Chrome's trace format, to this file: on rank 0, or on all ranks if the
        path has %r, which becomes the rank; None ends it.  'cycles' adds an event whenever this rank asks for new
        tensors."""
        self.write_timeline(path, cycles)


def _tell_always(ref: "weakref.ref[Comm]") -> None:
    try:
        seconds = float(os.environ.get("DL_STALL_SECONDS", "60"))
    except ValueError:
        seconds = 60.0
    comm = ref()
    while seconds > 0 and comm is not None and not comm.closed:
        del comm
        time.sleep(max(seconds / 4, 0.1))
        comm = ref()
        text = comm.trouble() if comm is not None and not comm.closed else None
        if text:
            print(f"slurmdl: {text}", file=sys.stderr, flush=True)


class _World(NamedTuple):
    comm: Comm
    pid: int


_world: Optional[_World] = None


def init(
    rank: int = 0,
    size: int = 0,
    bootstrap: Optional[str] = None,
    address: Optional[str] = None,
    backend: Optional[str] = None,
    timeout: float = 0.0,
) -> Comm:
    """The communicator of all ranks of this step, opened by the first call.  Options default to the environment
    (slurmdl_comm_open()).  Under `dl elastic` it is the one of slurmdl.elastic."""
    found = current()
    if found is not None:
        return found
    if os.environ.get("DL_ELASTIC_DIR") and size == 0:
        from . import elastic

        return elastic.world()
    adopt(Comm(rank=rank, size=size, bootstrap=bootstrap, address=address, backend=backend, timeout=timeout))
    assert _world is not None
    return _world.comm


def adopt(comm: Comm) -> None:
    """Make this the communicator that init() returns."""
    global _world
    _world = _World(comm, os.getpid())


def current() -> Optional[Comm]:
    """The communicator that init() has opened in this process."""
    if _world is None or _world.pid != os.getpid() or _world.comm.closed:
        return None
    return _world.comm


def _close_all() -> None:
    mine = [c for c in list(_open_comms) if not c.closed and c._pid == os.getpid()]
    # close parts before the communicator that they belong to
    for comm in sorted(mine, key=lambda c: _world is not None and c is _world.comm):
        try:
            comm.close()
        except _slurmdl.Error as error:
            print(f"slurmdl: {error}", file=sys.stderr)


atexit.register(_close_all)
