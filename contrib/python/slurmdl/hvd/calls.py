# SPDX-License-Identifier: Apache-2.0
"""Handles of calls in flight, and names for calls without one."""

import errno
import itertools
from typing import Any, Callable, Dict, List, Optional, Sequence

from .. import _slurmdl
from .world import ProcessSet, global_process_set, world


class Later:
    """A handle, and the function to apply to its result."""

    def __init__(self, handle: Any, finish: Callable[[Any], Any]) -> None:
        self.handle, self.finish = handle, finish

    @property
    def ready(self) -> bool:
        return bool(self.handle.ready)

    def wait(self) -> Any:
        return self.finish(self.handle.wait())


class Several:
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


def give(handle: Any) -> int:
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


def name_of(name: Optional[str], kind: str, process_set: ProcessSet) -> str:
    """Calls without a name are matched by their order among those of the set."""
    if name is not None:
        return f"{kind}.{name}"
    comm = process_set.comm
    comm._names += 1
    return f"{kind}.noname.{comm._names}"


def submitting(call: Callable[..., Any], name: str, *args: Any, **options: Any) -> Any:
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
