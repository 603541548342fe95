# SPDX-License-Identifier: Apache-2.0
"""Dataset names for nested objects."""

import hashlib
import re
from typing import Dict, Set, Tuple

_MAX = 127

# what would make a part of a name empty, or start it with a dot
_ODD = re.compile(r"(^|/)(\.|/|$)")


class Names:
    """Dataset names of a checkpoint: all are different, and none is a folder of another."""

    def __init__(self) -> None:
        self._found: Dict[str, str] = {}  # folders as requested, and as they are
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

    def _folder(self, asked: str) -> str:
        """A folder, with its slash; a folder that has a dataset keeps its name."""
        folder = self._found.get(asked, "")
        if asked and folder[:-1] not in self._folders:
            above, slash, last = asked[:-1].rpartition("/")
            folder = self._found[asked] = self._free(self._folder(above + slash) + last, True) + "/"
        return folder

    def add(self, path: Tuple[str, ...]) -> str:
        """A name that a checkpoint accepts: the parts of the path joined by slashes, with ~2 appended if it is taken.
        """
        whole = "/".join(path)
        if _ODD.search(whole):
            whole = "/".join(p for p in whole.split("/") if p) or "value"
            whole = re.sub(r"(^|/)\.+", r"\1_", whole)
        above, slash, last = whole.rpartition("/")
        name = self._folder(above + slash) + last
        # a character has at most four bytes
        if 4 * len(name) > _MAX - 4 and len(name.encode()) > _MAX - 4:
            name = name[:80].encode()[:90].decode(errors="ignore") + "~" + hashlib.sha256(name.encode()).hexdigest()[:24]
        name = self._free(name, False)
        self._datasets.add(name)
        folder = name.rpartition("/")[0]
        while folder and folder not in self._folders:
            self._folders.add(folder)
            folder = folder.rpartition("/")[0]
        return name
