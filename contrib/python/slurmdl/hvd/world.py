# SPDX-License-Identifier: Apache-2.0
"""Who there is: init(), ranks and sizes, process sets."""

import itertools
import os
import sys
from typing import Any, Dict, Iterable, List, Optional, Union

import torch

from .. import comm as _comm
from .. import elastic as _elastic

# (Horovod's, ours): taken over where ours is not set
VARIABLES = (
    ("HOROVOD_FUSION_THRESHOLD", "DL_FUSION_BYTES"),
    ("HOROVOD_CYCLE_TIME", "DL_CYCLE_MS"),
    ("HOROVOD_STALL_CHECK_TIME_SECONDS", "DL_STALL_SECONDS"),
    ("HOROVOD_STALL_SHUTDOWN_TIME_SECONDS", "DL_STALL_ABORT"),
    ("HOROVOD_TIMELINE", "DL_TIMELINE"),
)


def _take_variables() -> None:
    if os.environ.get("HOROVOD_STALL_CHECK_DISABLE", "0") != "0":
        os.environ.setdefault("DL_STALL_SECONDS", "0")
    for theirs, ours in VARIABLES:
        value = os.environ.get(theirs)
        # DYNAMIC: start_timeline() may be called, as it always may here
        if value and value != "DYNAMIC":
            os.environ.setdefault(ours, value)


_trust = False


def trusted(trust: Optional[bool] = None) -> bool:
    """Whether objects may be pickled: what a call says, else what init() was told."""
    return _trust if trust is None else trust


def init(comm: Any = None, process_sets: Any = None, *, trust: bool = False, **options: Any) -> None:
    """Meet the other ranks.  'process_sets': a list of ProcessSet, or "dynamic".  With trust=True the objects of
    broadcast_object() and allgather_object() may be anything: they are pickled, and run code of the ranks that send
    them.
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
    for one in process_sets if isinstance(process_sets, (list, tuple)) else []:
        if not (isinstance(one, ProcessSet) and one.process_set_id in _sets):
            add_process_set(one)


def world() -> _comm.Comm:
    found = _comm.current()
    if found is None:
        why = "Horovod has not been initialized; use hvd.init()."
        raise ValueError("hvd.elastic.run() has ended: there are no collectives after it" if _elastic.last else why)
    return found


def place() -> Union[_comm.Comm, _elastic.Place]:
    """Who this rank is; after hvd.elastic.run(), who it was at the end of the training."""
    return _comm.current() or _elastic.last or world()


def is_initialized() -> bool:
    return bool(_comm.current() or _elastic.last)


def shutdown() -> None:
    _elastic.last = None
    found = _comm.current()
    if found is None:
        return
    for one in list(_sets.values()):
        one._close()
    _sets.clear()
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
    """Whether each node has as many ranks; all ranks call it."""
    return len(set(world().allgather_object(world().local_size))) == 1


def _false() -> bool:
    return False


def mpi_built() -> bool:
    return _comm.current() is not None and world().backend == "mpi"


mpi_enabled = mpi_built
mpi_threads_supported = gloo_built = gloo_enabled = ddl_built = ccl_built = rocm_built = _false


def nccl_built() -> int:
    return int(_comm.current() is not None and world().backend == "nccl")


def cuda_built() -> bool:
    return bool(torch.cuda.is_available())


def start_timeline(file_path: str, mark_cycles: bool = False) -> None:
    world().timeline(file_path)


def stop_timeline() -> None:
    world().timeline(None)


class ProcessSet:
    """Some of the ranks."""

    process_set_id: Optional[int] = None
    mpi_comm = None
    _part: Optional[_comm.Comm] = None

    def __init__(self, ranks_or_comm: Iterable[int]) -> None:
        try:
            self._ranks: Optional[List[int]] = sorted(int(r) for r in ranks_or_comm)
        except (TypeError, ValueError):
            raise ValueError("ProcessSet should be initialized with a list of process ranks") from None

    @property
    def ranks(self) -> Optional[List[int]]:
        return self._ranks

    def _open(self) -> None:
        ranks = self.ranks or []
        if not ranks or ranks[0] < 0 or ranks[-1] >= size() or len(set(ranks)) < len(ranks):
            raise ValueError(f"{self}: the ranks are {', '.join(map(str, range(size())))}, each at most once")
        self._part = world().split(0 if rank() in ranks else -1, rank())

    def _close(self) -> None:
        if self._part is not None and not self._part.closed:
            self._part.close()
        self._part = self.process_set_id = None

    @property
    def comm(self) -> _comm.Comm:
        """Its communicator, to which this rank has to belong."""
        if self._part is None:
            raise ValueError(f"rank {rank()} is not in {self}, or it was not added: hvd.add_process_set()")
        return self._part

    def included(self) -> bool:
        return rank() in (self.ranks or [])

    def rank(self) -> int:
        return self.comm.rank

    def size(self) -> Optional[int]:
        return len(self.ranks or []) if self.process_set_id is not None else None

    def root(self, rank: int) -> int:
        """A rank of the world, as Horovod's roots are, as one of the set."""
        ranks = self.ranks or []
        if rank not in ranks:
            raise ValueError(f"rank {rank} is not in {self}")
        return ranks.index(rank)

    def __repr__(self) -> str:
        return f"ProcessSet(process_set_id={self.process_set_id}, ranks={self.ranks})"


class _All(ProcessSet):
    """The world, whichever it is at the moment."""

    process_set_id = 0

    def __init__(self) -> None:
        pass

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
    """All ranks call it, whether they are in the set or not."""
    one: ProcessSet = process_set if isinstance(process_set, ProcessSet) else ProcessSet(process_set)
    if any(s.ranks == one.ranks for s in [global_process_set, *_sets.values()]):
        raise ValueError(f"Attempted to add a duplicate process set: {one}")
    one._open()
    one.process_set_id = next(_numbers)
    _sets[one.process_set_id] = one
    return one


def remove_process_set(process_set: ProcessSet) -> bool:
    if process_set.process_set_id not in _sets:
        return False
    del _sets[process_set.process_set_id]
    process_set._close()
    return True
