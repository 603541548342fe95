# SPDX-License-Identifier: Apache-2.0
"""Which pickles may be read: reading one runs any code that its author put there.

Pickles in a file are read if this user or root owns the file and nobody else may write to it, unless dl copied the data
from another user's file, which the end of the file records.  All others are read only with trust=True, and none with
weights_only=True.  For data from other ranks, see slurmdl.message.
"""

import pickle
import pwd
from typing import Any, NamedTuple, Optional, Tuple

from ._slurmdl import Error

# of an open file: (path, owner of the data, whether that is this user or root); None: this process created the data
Origin = Optional[Tuple[str, int, bool]]

# the owner if several users may have written the data
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
            raise Error(f"{path}: contains {what}, which weights_only=True rejects")
        if self.trust or self.origin is None or self.origin[2]:
            return
        whose = f"belongs to {_user(self.origin[1])}, or others may write to it"
        raise Error(f"{path}: contains {what}, which can run its author's code, and {whose}: to trust them, pass trust=True")

    def unpickle(self, data: bytes) -> Any:
        self.check("a pickled object")
        return pickle.loads(data)
