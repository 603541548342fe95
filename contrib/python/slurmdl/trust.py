# SPDX-License-Identifier: Apache-2.0
"""Whose pickles may be read: unpickling runs what the writer has put there.

Allowed are pickles in a file that this user or root owns and nobody else may write to, unless dl copied it from another
user's (its end says so); all others only if the caller passes trust=True, and none with weights_only=True.  For data
from other ranks see slurmdl.message.
"""

import pickle
import pwd
from typing import Any, NamedTuple, Optional, Tuple

from ._slurmdl import Error

# (path, owner of the data, whether that is this user) of an open file; None: this process has made the data itself
Origin = Optional[Tuple[str, int, bool]]


# an owner with this number: the writer is unknown
_OTHERS = 0xFFFFFFFF


def _user(uid: int) -> str:
    if uid == _OTHERS:
        return "others"
    try:
        return f"user {pwd.getpwuid(uid).pw_name} ({uid})"
    except KeyError:
        return f"user {uid}"


class Reader(NamedTuple):
    """What may be done with the pickles of a file."""

    origin: Origin
    trust: bool = False
    weights_only: bool = False

    def check(self, what: str) -> None:
        """Raise slurmdl.Error if the file's pickles must not be read; 'what' names such an object."""
        path = self.origin[0] if self.origin else "the checkpoint"
        if self.weights_only:
            raise Error(f"{path}: has {what}, which weights_only=True does not read")
        if self.trust or self.origin is None or self.origin[2]:
            return
        whose = f"belongs to {_user(self.origin[1])}, or others may write to it"
        raise Error(f"{path}: has {what}, which runs code of who wrote it, and {whose}: trust=True if you trust them")

    def unpickle(self, data: bytes) -> Any:
        self.check("a pickled object")
        return pickle.loads(data)
