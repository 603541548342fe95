# SPDX-License-Identifier: Apache-2.0
"""Training that continues when ranks are lost or join, from the memory of the ranks that remain.

    import slurmdl.comm, slurmdl.elastic

    state = slurmdl.elastic.TorchState(model=model, optimizer=optimizer, epoch=0, batch=0)

    @slurmdl.elastic.run
    def train(state):
        while state.epoch < epochs:
            for state.batch in range(state.batch, batches):
                ...
                if state.batch % 10 == 9:
                    state.commit()
            state.epoch, state.batch = state.epoch + 1, 0
            state.commit()

    train(state)

started by `dl elastic python3 train.py` in a batch script.  The names are those of horovod.torch.elastic.  run() calls
the function again in each new world, with the state as it was at the last commit.  Numpy programs, and those with
memory that is spread over ranks, use Elastic itself.  `python3 train.py` by hand tries the script with one rank, and
RANK, WORLD_SIZE and MASTER_ADDR with more.
"""

import errno
import functools
import os
import sys
from types import TracebackType
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple, Type

from . import _slurmdl, _slurmdl_comm, comm, message
from .arrays import Path, memory_of

# a call of the communicator failed because a rank was lost
_LOST = {errno.ECONNRESET, errno.ENOTCONN, errno.ETIMEDOUT, errno.EPIPE, errno.ECONNREFUSED, errno.ECONNABORTED}


class HostsUpdatedInterrupt(Exception):
    """Ranks join or leave: form a new world."""


class NotNeeded(Exception):
    """This rank is not needed any more: the world is smaller, or the training has ended."""


class Elastic(_slurmdl_comm.Elastic):
    """A world that can lose ranks and accept new ones: see slurmdl_elastic_open().

    'dir' is a folder that all ranks see; 'min' and 'max' are numbers of ranks.  Defaults come from `dl elastic`.
    Started by hand, alone or with RANK, WORLD_SIZE and MASTER_ADDR, it needs none of them, and no rank may be lost.
    """

    formed: Optional[comm.Comm] = None  # what form() has returned last

    def __new__(
        cls, dir: Optional[Path] = None, min: int = 0, max: int = 0, settle: float = 0.0, timeout: float = 0.0
    ) -> "Elastic":
        where = os.fspath(dir) if dir is not None else None
        return super().__new__(cls, dir=where, min=min, max=max, settle=settle, timeout=timeout)

    def __enter__(self) -> "Elastic":
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        self.close()

    def form(self) -> comm.Comm:
        """Form a new world with the live ranks; slurmdl.comm.init() then returns its communicator, too.  May raise
        NotNeeded."""
        try:
            world: comm.Comm = self.form_world(comm.Comm)
        except _slurmdl.Error as error:
            if error.errno == errno.ECANCELED:
                raise NotNeeded(str(error)) from None
            raise
        world._own()
        comm.adopt(world)
        self.formed = world
        return world

    def protect(self, name: str, array: Any) -> None:
        """Add this array or tensor to the state; it is the same on all ranks."""
        memory = memory_of(array)
        self.protect_memory(name, memory.type, memory.shape, memory.where, memory.owner)

    def protect_shard(self, name: str, array: Any, shape: Tuple[int, ...], offset: Tuple[int, ...]) -> None:
        """Add this array, this rank's slab at 'offset' of a tensor of 'shape', to the state."""
        memory = memory_of(array)
        self.protect_slab(name, memory.type, tuple(shape), tuple(offset), memory.shape, memory.where, memory.owner)


# ---- one world of this process, for the functions below

_elastic: Optional[Elastic] = None


class Place(NamedTuple):
    """What a communicator says about this rank."""

    rank: int
    size: int
    local_rank: int
    local_size: int
    node: int
    nodes: int


last: Optional[Place] = None  # in the world in which run() has ended


def current() -> Elastic:
    """The elastic world of this process."""
    global _elastic
    if _elastic is None:
        _elastic = Elastic()
    return _elastic


def world() -> comm.Comm:
    """Its communicator, formed on first use."""
    elastic, found = current(), comm.current()
    return found if found is not None and found is elastic.formed else elastic.form()


def close() -> None:
    """Close it; all ranks call this."""
    global _elastic
    if _elastic is not None:
        mine, _elastic = _elastic, None
        mine.close()


# ---- state

_STATE = "slurmdl.elastic"


class State:
    """Attributes that all ranks share: state.epoch, state.batch; and parts that have a state_dict().  New ranks receive
    them: numbers, texts, lists, dicts, arrays and tensors, or, if all ranks pass trust=True, anything that can be
    pickled.
    """

    def __init__(self, *, trust: bool = False, **values: Any) -> None:
        self._trust = trust
        self._parts: Dict[str, Any] = {}
        self._callbacks: List[Callable[[], None]] = []
        self._step = 0
        self._committed: Optional[bytes] = None
        for name, value in values.items():
            setattr(self, name, value)

    def __setattr__(self, name: str, value: Any) -> None:
        if hasattr(value, "state_dict") and hasattr(value, "load_state_dict"):
            self._parts[name] = value
        super().__setattr__(name, value)

    def _values(self) -> Dict[str, Any]:
        return {k: v for k, v in vars(self).items() if not k.startswith("_") and k not in self._parts}

    def _pack(self) -> bytes:
        parts = {k: v.state_dict() for k, v in self._parts.items()}
        return message.to_bytes({"values": self._values(), "parts": parts}, self._trust)

    def _unpack(self, data: bytes) -> None:
        found = message.from_bytes(data, self._trust)
        for name, part in self._parts.items():
            part.load_state_dict(found["parts"][name])
        for name, value in found["values"].items():
            setattr(self, name, value)

    def register_reset_callbacks(self, callbacks: Sequence[Callable[[], None]]) -> None:
        """Call these functions after the world has changed."""
        self._callbacks.extend(callbacks)

    def on_reset(self) -> None:
        """Called after the world has changed: override it to adapt the learning rate, for example."""
        for f in self._callbacks:
            f()

    def save(self) -> None:
        """Remember the state, in this process."""
        self._committed = self._pack()

    def restore(self) -> None:
        """Go back to the state that save() or commit() remembered."""
        if self._committed is not None:
            self._unpack(self._committed)

    def commit(self) -> None:
        """Called by all ranks after the same step: if ranks are lost later, training repeats only what follows.  Raises
        HostsUpdatedInterrupt if ranks join or leave."""
        self.save()
        world()
        elastic = current()
        elastic.state(_STATE, self._committed or b"")
        self._step += 1
        if elastic.commit(self._step):
            raise HostsUpdatedInterrupt

    def check_host_updates(self) -> None:
        """For Horovod's interface; commit() checks."""

    def sync(self) -> None:
        """Copy rank 0's state to all ranks."""
        formed = world()
        self._unpack(formed.broadcast_bytes(self._pack() if formed.rank == 0 else b""))
        self.save()

    def _begin(self) -> None:
        """In a new world: load the last common commit, or rank 0's state if there is none."""
        elastic = current()
        step = elastic.restore()
        if step is None:
            self.sync()
            return
        self._step = step
        data = elastic.read_state(_STATE)
        if data is None:
            raise RuntimeError("the last commit was not made by state.commit()")
        self._committed = data
        self._unpack(data)


class ObjectState(State):
    """The same, under Horovod's name for programs without a framework."""


class TorchState(State):
    """The same with PyTorch's parts: TorchState(model=model, optimizer=optimizer, epoch=0)."""

    def __init__(self, model: Any = None, optimizer: Any = None, *, trust: bool = False, **values: Any) -> None:
        given = {k: v for k, v in (("model", model), ("optimizer", optimizer)) if v is not None}
        super().__init__(trust=trust, **given, **values)


def __getattr__(name: str) -> Any:
    """ElasticSampler is a PyTorch class, which other programs do not load."""
    if name != "ElasticSampler":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from .sampler import ElasticSampler

    return ElasticSampler


# ---- the loop over worlds


def _reset(state: State) -> None:
    if "slurmdl.distributed" in sys.modules:
        sys.modules["slurmdl.distributed"].reset()
    if "slurmdl.sampler" in sys.modules:
        for sampler in list(sys.modules["slurmdl.sampler"].samplers):
            sampler.reset()
    state.on_reset()


def _again(f: Callable[..., Any], state: State, args: Any, options: Any) -> Tuple[bool, Any]:
    """Run the function in the current world.  Returns whether it ended, and its result."""
    try:
        state._begin()
        return True, f(state, *args, **options)
    except HostsUpdatedInterrupt:
        return False, None
    except _slurmdl.Error as error:
        if error.errno not in _LOST:
            raise
        print(f"slurmdl: {error}; continuing with the remaining ranks", file=sys.stderr, flush=True)
        return False, None


def train(f: Callable[..., Any], state: State, args: Any, options: Any) -> Tuple[bool, Any]:
    """Call the function in each new world, until it returns.  Returns whether this rank was needed to the end, and the
    function's result."""
    global last
    done, result = False, None
    try:
        formed = world()
        while not done:
            done, result = _again(f, state, args, options)
            if not done:
                formed = current().form()
                _reset(state)
        last = None if formed.closed else Place(*(getattr(formed, name) for name in Place._fields))
    except NotNeeded as why:
        print(f"slurmdl: {why}", file=sys.stderr, flush=True)
    close()
    return done, result


def run(f: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a function of a State: it is called again in each new world, until it returns.  Returns None if this
    rank is no longer needed."""

    @functools.wraps(f)
    def wrapper(state: State, *args: Any, **options: Any) -> Any:
        return train(f, state, args, options)[1]

    return wrapper
