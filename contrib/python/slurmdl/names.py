# SPDX-License-Identifier: Apache-2.0
"""Names of datasets for what is nested."""

import hashlib
import re
from typing import Set, Tuple

_MAX = 127


class Names:
    """Names of the datasets of a checkpoint: each is another one, and none is a folder of another."""

    def __init__(self) -> None:
        self._datasets: Set[str] = set()
        self._folders: Set[str] = set()

    def _is_taken(self, name: str, is_folder: bool) -> bool:
        return name in self._datasets or (not is_folder and name in self._folders)

    def _free(self, name: str, is_folder: bool) -> str:
        base, n = name, 1
        while self._is_taken(name, is_folder):
            n += 1
            name = f"{base}~{n}"
        return name

    def add(self, path: Tuple[str, ...]) -> str:
        """A name that a checkpoint takes: the parts of the path with slashes, with ~2 behind one that is taken."""
        whole = "/".join(p for p in re.split("/+", "/".join(path)) if p) or "value"
        *folders, last = re.sub(r"(^|/)\.+", r"\1_", whole).split("/")
        folder = ""
        for part in folders:
            folder = self._free(folder + part, True) + "/"
        name = folder + last
        if len(name.encode()) > _MAX - 4:
            name = name[:80].encode()[:90].decode(errors="ignore") + "~" + hashlib.sha256(name.encode()).hexdigest()[:24]
        name = self._free(name, False)
        self._datasets.add(name)
        self._folders.update(name[:i] for i, c in enumerate(name) if c == "/")
        return name
