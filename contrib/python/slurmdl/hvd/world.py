# SPDX-License-Identifier: Apache-2.0
"""The world: init(), ranks and sizes, process sets."""

import itertools
import os
import sys
from typing import Any, Dict, Iterable, List, Optional, Sequence, Union

import torch

from .. import comm as _comm
from .. import elastic as _elastic

# (Horovod's, ours): used if ours is not set
_VARIABLES = (
    ("HOROVOD_FUSION_THRESHOLD", "DL_FUSION_BYTES"),
    ("HOROVOD_CYCLE_TIME", "DL_CYCLE_MS"),
    ("HOROVOD_STALL_CHECK_TIME_SECONDS", "DL_STALL_SECONDS"),
    ("HOROVOD_STALL_SHUTDOWN_TIME_SECONDS", "DL_STALL_ABORT"),
    ("HOROVOD_TIMELINE", "DL_TIMELINE"),
    ("HOROVOD_TIMELINE_MARK_CYCLES", "DL_TIMELINE_CYCLES"),
)
_taken: Dict[str, str] = {}  # variables of ours that init() has set


def _take_variables() -> None:
    given = {ours: os.environ.get(theirs, "") for theirs, ours in _VARIABLES}
    if os.environ.get("HOROVOD_STALL_CHECK_DISABLE", "0") != "0":
        given["DL_STALL_SECONDS"] = "0"
    for ours, value in given.items():
        # variables set by an earlier init() are not the user's
        if ours in _taken and os.environ.get(ours) == _taken.pop(ours):
            del os.environ[ours]
        # DYNAMIC: allows start_timeline(), which is always allowed here
        if value and value != "DYNAMIC" and ours not in os.environ:
            os.environ[ours] = _taken[ours] = value


_trust = False


def trusted(trust: Optional[bool] = None) -> bool:
    """Whether objects may be pickled: as the call says, else as init() was told."""
    return _trust if trust is None else trust


def init(comm: Any = None, process_sets: Any = None, *, trust: bool = False, **options: Any) -> None:
    """Connect to the other ranks.

    'process_sets': a list of ProcessSet, or "dynamic".  A set with the same ranks as an existing one, as when a script
    and a library both call this, is that set.  If one cannot be added, none is.  With trust=True, broadcast_object()
    and allgather_object() accept any object: objects are pickled, which runs code of the ranks that send them.
    """
    global _trust
    if comm and not isinstance(comm, _comm.Comm):
        raise NotImplementedError("hvd.init(comm): all ranks of the step are there; some of them are a process set")
    _trust = trust
    _take_variables()
    try:
        _comm.init(**options)
    except _elastic.NotNeeded as why:
        print(f"slurmdl: {why}", file=sys.stderr, flush=True)
        sys.exit(0)
    if isinstance(process_sets, (list, tuple)):
        _init_sets(process_sets)


def _init_sets(given: Sequence[Any]) -> None:
    sets: List[ProcessSet] = [s if isinstance(s, ProcessSet) else ProcessSet(s) for s in given]
    mine = [s.ranks or [] for s in sets]
    # ranks that behave differently here would wait for each other
    for r, theirs in enumerate(world().allgather_object(mine)):
        if theirs != mine:
            raise ValueError(f"hvd.init(process_sets): rank {rank()} gives {mine}, rank {r} {theirs}")
    for i, one in enumerate(sets):
        one.check()
        if one.ranks == global_process_set.ranks or any(one.ranks == s.ranks for s in sets[:i]):
            raise ValueError(f"Horovod could not be initialized because process_sets entry number {i} is a duplicate: {one}")
    for one in sets:
        there = next((s for s in _sets.values() if s.ranks == one.ranks), None)
        if there is None:
            add_process_set(one)
        else:
            one._opened = there._opened


def world() -> _comm.Comm:
    found = _comm.current()
    if found is None:
        why = "Horovod has not been initialized; use hvd.init()."
        raise ValueError("hvd.elastic.run() has ended: there are no collectives after it" if _elastic.last else why)
    return found


def place() -> Union[_comm.Comm, _elastic.Place]:
    """This rank; after hvd.elastic.run(), what it was at the end of the training."""
    return _comm.current() or _elastic.last or world()


def is_initialized() -> bool:
    return bool(_comm.current() or _elastic.last)


def shutdown() -> None:
    global _numbers
    _elastic.last = None
    found = _comm.current()
    if found is None:
        return
    try:
        for one in list(_sets.values()):
            one._close()
    finally:
        _sets.clear()
        _numbers = itertools.count(1)
        found.close()


def rank() -> int:
    return place().rank


def size() -> int:
    return place().size


def local_rank() -> int:
    return place().local_rank


def local_size() -> int:
    return place().local_size


def cross_rank() -> int:
    return place().node


def cross_size() -> int:
    return place().nodes


def is_homogeneous() -> bool:
    """Whether all nodes have the same number of ranks; all ranks call it."""
    return len(set(world().allgather_object(world().local_size))) == 1


def _false() -> bool:
    return False


def mpi_built() -> bool:
    return _comm.current() is not None and world().backend == "mpi"


def gloo_built() -> bool:
    """Our own communicator takes the place of Gloo, and is always available."""
    return True


def gloo_enabled() -> bool:
    return not mpi_built()


mpi_enabled = mpi_built
mpi_threads_supported = ddl_built = ccl_built = rocm_built = _false


def nccl_built() -> int:
    return int(_comm.current() is not None and world().backend == "nccl")


def cuda_built() -> bool:
    return bool(torch.cuda.is_available())


def start_timeline(file_path: str, mark_cycles: bool = False) -> None:
    """Rank 0 writes it, as with Horovod; if 'file_path' has %r, which becomes the rank, every rank writes one."""
    world().timeline(file_path, mark_cycles)


def stop_timeline() -> None:
    world().timeline(None)


class _Opened:
    """A set that was added; several objects may refer to it."""

    def __init__(self, number: int, part: Optional[_comm.Comm]) -> None:
        self.number: Optional[int] = number
        self.part = part

    def close(self) -> None:
        if self.part is not None and not self.part.closed:
            self.part.close()
        self.part = self.number = None


class ProcessSet:
    """Some of the ranks."""

    mpi_comm = None
    _opened: Optional[_Opened] = None

    @property
    def process_set_id(self) -> Optional[int]:
        return self._opened.number if self._opened is not None else None

    def __init__(self, ranks_or_comm: Iterable[int]) -> None:
        try:
            self._ranks: Optional[List[int]] = sorted(int(r) for r in ranks_or_comm)
        except (TypeError, ValueError):
            raise ValueError("ProcessSet should be initialized with a list of process ranks") from None

    @property
    def ranks(self) -> Optional[List[int]]:
        return self._ranks

    def check(self) -> None:
        """Check that the set is valid."""
        ranks = self.ranks or []
        if not ranks or ranks[0] < 0 or ranks[-1] >= size() or len(set(ranks)) < len(ranks):
            raise ValueError(f"{self}: the ranks are {', '.join(map(str, range(size())))}, each at most once")

    def _open(self) -> None:
        self.check()
        part = world().split(0 if rank() in (self.ranks or []) else -1, rank())
        self._opened = _Opened(next(_numbers), part)

    def _close(self) -> None:
        if self._opened is not None:
            self._opened.close()
        self._opened = None

    @property
    def comm(self) -> _comm.Comm:
        """Its communicator; this rank must belong to it."""
        if self._opened is None or self._opened.part is None:
            raise ValueError(f"rank {rank()} is not in {self}, or it was not added: hvd.add_process_set()")
        return self._opened.part

    def included(self) -> bool:
        return rank() in (self.ranks or [])

    def rank(self) -> int:
        return self.comm.rank

    def size(self) -> Optional[int]:
        return len(self.ranks or []) if self.process_set_id is not None else None

    def root(self, rank: int) -> int:
        """Convert a rank of the world, as in Horovod's roots, to one of the set."""
        ranks = self.ranks or []
        if rank not in ranks:
            raise ValueError(f"rank {rank} is not in {self}")
        return ranks.index(rank)

    def __repr__(self) -> str:
        return f"ProcessSet(process_set_id={self.process_set_id}, ranks={self.ranks})"


class _All(ProcessSet):
    """The current world."""

    def __init__(self) -> None:
        pass

    @property
    def process_set_id(self) -> Optional[int]:
        return 0

    @property
    def ranks(self) -> Optional[List[int]]:
        return list(range(size())) if is_initialized() else None

    @property
    def comm(self) -> _comm.Comm:
        return world()

    def size(self) -> Optional[int]:
        return world().size

    def included(self) -> bool:
        return True


global_process_set: ProcessSet = _All()
_sets: Dict[int, ProcessSet] = {}
_numbers = itertools.count(1)


def add_process_set(process_set: Any) -> ProcessSet:
    """All ranks call it, whether they belong to the set or not."""
    one: ProcessSet = process_set if isinstance(process_set, ProcessSet) else ProcessSet(process_set)
    if any(s.ranks == one.ranks for s in [global_process_set, *_sets.values()]):
        raise ValueError(f"Attempted to add a duplicate process set: {one}")
    one._open()
    _sets[one.process_set_id or 0] = one
    return one


def remove_process_set(process_set: ProcessSet) -> bool:
    if process_set.process_set_id not in _sets:
        return False
    del _sets[process_set.process_set_id or 0]
    process_set._close()
    return True
