# SPDX-License-Identifier: Apache-2.0
"""Whose pickles are read: to unpickle is to run what the writer has put there.

Those of a file that this user or root owns and that nobody else may write to, and which is no copy that dl has made of
another user's (it says so at its end); all others where the caller says
trust=True, and none with weights_only=True.  What comes from other ranks is in the words of slurmdl.message.
"""

import pickle
import pwd
from typing import Any, NamedTuple, Optional, Tuple

from ._slurmdl import Error

# (path, whose data, whether they are one's own) of an open file; None: this process has made the data itself
Origin = Optional[Tuple[str, int, bool]]


# an owner of this number: who may have written it is not known
_OTHERS = 0xFFFFFFFF


def _user(uid: int) -> str:
    if uid == _OTHERS:
        return "others"
    try:
        return f"user {pwd.getpwuid(uid).pw_name} ({uid})"
    except KeyError:
        return f"user {uid}"


class Reader(NamedTuple):
    """What may be made of the pickles of a file."""

    origin: Origin
    trust: bool = False
    weights_only: bool = False

    def check(self, what: str) -> None:
        """slurmdl.Error if the file's pickles are not to be read; 'what' is such a thing."""
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
