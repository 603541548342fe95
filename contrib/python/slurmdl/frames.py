# SPDX-License-Identifier: Apache-2.0
"""The tables of an experiment as pandas DataFrames."""

import json
import math
import os
import re
import warnings
from typing import Any, Dict, Iterator, List, Optional, Tuple

from . import _slurmdl, optional
from ._slurmdl import Error
from .files import PACKED

_REAL = ("metric", "best", "mean", "deviation", "seconds", "begin_time", "end_time", "value", "age", "rate")
_ROOM = 1 << 16


# ---- trials


def _cell(value: Any) -> Any:
    """Values other than scalars, such as lists, are shown as JSON."""
    return json.dumps(value) if isinstance(value, (dict, list)) else value


def _is_real(name: str) -> bool:
    return name in _REAL or name.startswith("metric.")


def _column(pandas: Any, name: str, values: List[Any]) -> Any:
    if _is_real(name):
        return pandas.Series([math.nan if v is None else float(v) for v in values], dtype="float64")
    return pandas.Series(values).infer_objects()


def trials_frame(shown: Dict[str, Any]) -> Any:
    """The trials of `dl show --json`, in the order of their numbers."""
    pandas = optional.need("pandas", "trials()")
    trials = sorted(shown["trials"], key=lambda t: int(t["trial"]))
    names = dict.fromkeys(name for t in trials for name in t if name not in ("hyperparameters", "conditions"))
    hparams = dict.fromkeys(name for t in trials for name in t["hyperparameters"])
    columns = {name: _column(pandas, name, [t.get(name) for t in trials]) for name in names}
    for name in hparams:
        column = "hp." + name if name in columns else name
        columns[column] = pandas.Series([_cell(t["hyperparameters"].get(name)) for t in trials]).infer_objects()
    return pandas.DataFrame(columns)


# ---- metrics


def _folders(dir: str, trial: Optional[int]) -> Iterator[Tuple[int, str]]:
    """(number, folder) of each trial, or of one; symbolic links are not followed."""
    found = []
    folder = os.path.join(dir, "trials")
    if os.path.isdir(folder):
        with os.scandir(folder) as entries:
            for entry in entries:
                if re.fullmatch(r"\d{4,18}", entry.name) and entry.is_dir(follow_symlinks=False):
                    found.append((int(entry.name), entry.path))
    return iter(sorted(f for f in found if trial in (None, f[0])))


class _Table:
    """Rows of many trials, concatenated in one growing array."""

    def __init__(self, numpy: Any) -> None:
        self.numpy = numpy
        self.rows = numpy.empty(_ROOM, dtype=PACKED)
        self.used = 0
        self.names: Dict[str, int] = {}
        self.trials: List[int] = []
        self.counts: List[int] = []

    def add(self, trial: int, folder: str) -> None:
        while True:
            room = self.rows[self.used :]
            read = _slurmdl.read_rows(folder, 2, room.view("u1"))
            if read is not None:
                break
            # memory that is never written to takes no space
            more = self.numpy.empty(4 * len(self.rows), dtype=PACKED)
            more[: self.used] = self.rows[: self.used]
            self.rows = more
        count, superseded, names = read
        new = room[:count]
        if superseded:
            kept = new[new["superseded"] == 0]
            count = len(kept)
            room[:count] = kept
            new = room[:count]
        if count:
            codes = [self.names.setdefault(name, len(self.names)) for name in names]
            if codes != list(range(len(codes))):
                new["name"] = self.numpy.array(codes, dtype="u4")[new["name"]]
        self.used += count
        self.trials.append(trial)
        self.counts.append(count)


def metrics_frame(dir: str, trial: Optional[int] = None) -> Any:
    """What trials have logged; of a running trial, everything that is complete."""
    pandas = optional.need("pandas", "metrics()")
    numpy = optional.need("numpy", "metrics()")
    table = _Table(numpy)
    for number, folder in _folders(dir, trial):
        try:
            table.add(number, folder)
        except Error as error:
            warnings.warn(f"slurmdl: {error}", stacklevel=3)
    if trial is not None and not any(True for _ in _folders(dir, trial)):
        raise Error(f"{dir}: there is no trial {trial}, or it has not begun")
    rows = table.rows[: table.used]
    columns = {
        "trial": numpy.repeat(numpy.array(table.trials, dtype="i8"), numpy.array(table.counts, dtype="i8")),
        "attempt": numpy.ascontiguousarray(rows["attempt"]),
        "step": numpy.ascontiguousarray(rows["step"]),
        "time": numpy.ascontiguousarray(rows["time"]),
        "epoch": numpy.ascontiguousarray(rows["epoch"]),
        "name": pandas.Categorical.from_codes(rows["name"].astype("i4"), categories=list(table.names)),
        "value": numpy.ascontiguousarray(rows["value"]),
    }
    return pandas.DataFrame(columns, copy=False)
