# SPDX-License-Identifier: Apache-2.0
"""Read metrics and checkpoints, and write checkpoints, without a run."""

import json
import os
import re
from typing import Any, Dict, List, Mapping, Optional, Tuple

from . import _slurmdl
from ._slurmdl import Error
from .arrays import Path, empty, memory_of, naming

PACKED = [
    ("step", "i8"),
    ("time", "f8"),
    ("value", "f8"),
    ("epoch", "f8"),
    ("attempt", "i4"),
    ("name", "u4"),
    ("superseded", "u4"),
    ("reserved", "u4"),
]
_KINDS = {1: "vector", 2: "histogram", 3: "text", 4: "image", 5: "event"}


def _is_trial(path: str) -> bool:
    return os.path.isdir(path) and any(re.fullmatch(r"a\.\d+", name) for name in os.listdir(path))


class Rows:
    """Scalars, oldest first: rows["step"], ["value"], ["time"] (seconds since 1970), ["epoch"] (NaN: none), ["attempt"]
    and ["superseded"] are numpy arrays, and so is ["name"], whose texts are created on first use.  'names' lists the
    different names, and 'index' gives for each row the index of its name: rows.of("loss") selects the rows of one name
    without comparing texts.

    rows[mask] and rows[10:20] select rows; numpy.asarray(rows) and iteration return a structured array and its records,
    frame() a pandas DataFrame.
    """

    def __init__(self, packed: Any, names: List[str]) -> None:
        self._packed, self.names, self._texts = packed, names, None

    def __len__(self) -> int:
        return len(self._packed)

    @property
    def index(self) -> Any:
        return self._packed["name"]

    def of(self, name: str) -> "Rows":
        which = self.names.index(name) if name in self.names else len(self.names)
        rows: Rows = self[self.index == which]
        return rows

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, int):
            return Rows(self._packed[[key]], self.names).array()[0]
        if isinstance(key, list) and key and isinstance(key[0], str):
            return self.array()[key]
        if not isinstance(key, str):
            return Rows(self._packed[key], self.names)
        if key == "superseded":
            return self._packed[key] != 0
        return self._name() if key == "name" else self._packed[key]

    def _name(self) -> Any:
        import numpy

        if self._texts is None:
            self._texts = numpy.array(self.names or [""], dtype=str)[self.index]
        return self._texts

    def array(self) -> Any:
        """A structured numpy array with all fields."""
        import numpy

        kinds: Any = [("name", self._name().dtype), *PACKED[:4], ("attempt", "i4"), ("superseded", "?")]
        rows = numpy.empty(len(self), dtype=kinds)
        for field in rows.dtype.names or ():
            rows[field] = self[field]
        return rows

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        a = self.array()
        return a if dtype is None else a.astype(dtype)

    def __iter__(self) -> Any:
        return iter(self.array())

    def frame(self) -> Any:
        """A pandas DataFrame; the names are a categorical column."""
        import pandas  # type: ignore[import-untyped, import-not-found, unused-ignore]

        columns: Dict[str, Any] = {
            "name": pandas.Categorical.from_codes(self.index.astype("i4"), categories=self.names)
        }
        for field in ("step", "time", "value", "epoch", "attempt", "superseded"):
            columns[field] = self[field]
        return pandas.DataFrame(columns)


def _most_rows(path: str) -> int:
    """An upper bound of the number of rows: as if each file contained nothing else."""
    files = [path]
    if os.path.isdir(path):
        files = [os.path.join(d, n) for d, _, names in os.walk(path) for n in names if n.startswith("metrics")]
    found = [os.stat(f) for f in files if os.path.exists(f)]
    # a file may claim any size, but only its blocks exist
    return sum(min(s.st_size, 512 * s.st_blocks) for s in found) // 32 + 4096


def read_metrics(path: Path, superseded: bool = False, frame: bool = False) -> Any:
    """The scalars of a metrics file, an attempt's folder or a trial's folder, as Rows, or as a pandas DataFrame with
    'frame'.  Files may be read while they are written.  For a trial, rows that a later attempt has logged again, or
    that lie after the step it was restored to, are left out unless 'superseded' is given.
    """
    import numpy

    path = os.fspath(path)
    how = 2 if _is_trial(path) else int(os.path.isdir(path))
    room, read = _most_rows(path), None
    while read is None:
        # memory that is never written to takes no space
        try:
            packed = numpy.empty(room, dtype=PACKED)
        except (MemoryError, ValueError):
            raise Error(f"{path}: not enough memory for its rows") from None
        read = _slurmdl.read_rows(path, how, packed.view("u1"))
        room *= 2
    count, old, names = read
    packed = packed[:count]
    rows = Rows(packed if superseded or not old else packed[packed["superseded"] == 0], names)
    return rows.frame() if frame else rows


def read_records(path: Path) -> List[Dict[str, Any]]:
    """The records other than scalars of a metrics file, an attempt's folder or a trial's folder, oldest first:
    dictionaries with kind ("vector", "histogram", "text", "image", "event"), name, step, time and value.  The value is
    an array (for an image: height, width, channels), a text, a dictionary for an event, or a histogram with edges,
    counts, min, max, mean, sd, n, nan and infinite.
    """
    path = os.fspath(path)
    if _is_trial(path):
        attempts = sorted((n for n in os.listdir(path) if re.fullmatch(r"a\.\d+", n)), key=lambda n: int(n[2:]))
        return [record for name in attempts for record in read_records(os.path.join(path, name))]
    return [
        {"kind": _KINDS[kind], "name": name, "step": step, "time": time, "value": _content(kind, content)}
        for kind, name, step, time, content in _slurmdl.read_records(path, os.path.isdir(path))
        if kind in _KINDS
    ]


def _content(kind: int, content: Any) -> Any:
    import numpy

    if kind == 1:
        return numpy.frombuffer(content, "f8")
    if kind == 2:
        names = ("edges", "counts", "min", "max", "mean", "sd", "n", "nan", "infinite")
        result = dict(zip(names, content))
        result["edges"] = numpy.frombuffer(content[0], "f8")
        result["counts"] = numpy.frombuffer(content[1], "u8")
        return result
    if kind == 4:
        width, height, channels, pixels = content
        return numpy.frombuffer(pixels, "u1").reshape(height, width, channels)
    if kind == 5:
        try:
            return json.loads(content)
        except ValueError:
            return {"text": content}
    return content


# ---- checkpoints


def newest(path: Path, max_step: int = 2**63 - 1) -> Optional[Tuple[str, int]]:
    """Path and step of the newest checkpoint that verifies in a trial's folder; None if there is none."""
    return _slurmdl.find_checkpoint(os.fspath(path), max_step, 0)


def checkpoint_of(path: Path) -> str:
    """The path itself, or the newest checkpoint in a trial's folder."""
    path = os.fspath(path)
    if not os.path.isdir(path):
        return path
    found = newest(path)
    if found is None:
        raise FileNotFoundError(f"{path}: there is no checkpoint that verifies")
    return found[0]


def load(path: Path, states: bool = False) -> Dict[str, Any]:
    """The verified tensors of a checkpoint, or of the newest one in a trial's folder, as numpy arrays by name.  With
    'states' also the states (Run.state()), as bytes under "state/NAME"."""
    file = _slurmdl.Checkpoint(checkpoint_of(path))
    result: Dict[str, Any] = {}
    for name, code, shape, state in file.tensors():
        if state and not states:
            continue
        a = empty(code, shape)
        if a.nbytes:
            file.read(name, memory_of(a).where)
        result[name] = a.tobytes() if state else a
    return result


def dump(path: Path, arrays: Mapping[str, Any], step: int = 0) -> None:
    """Write arrays and host tensors as a checkpoint, one by one.  The name 'path' appears, or is replaced, once the
    whole file is on stable storage."""
    file = _slurmdl.Writer(os.fspath(path), step)
    try:
        for name, a in arrays.items():
            with naming(name):
                memory = memory_of(a)
                file.add(name, memory.type, memory.shape, memory.where, False)
    except BaseException:
        file.abort()
        raise
    file.commit()
