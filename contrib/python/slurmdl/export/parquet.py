# SPDX-License-Identifier: Apache-2.0
# mypy: disable-error-code="import-untyped,import-not-found"
"""Two tables, EXPERIMENT.trials.parquet and EXPERIMENT.metrics.parquet, each rewritten whenever there is something new.
"""

import json
import os
from typing import Any, Dict, List

import pyarrow
import pyarrow.parquet

from .records import Experiment, Row, Trial, Writer


def _column(values: List[Any]) -> Any:
    """Choices may be numbers in some trials and texts in others: then all become texts."""
    try:
        return pyarrow.array(values)
    except (pyarrow.ArrowInvalid, pyarrow.ArrowTypeError):
        return pyarrow.array([v if v is None or isinstance(v, str) else json.dumps(v) for v in values])


def _replace(path: str, table: Any) -> None:
    new = f"{path}.new"
    with open(new, "wb") as file:
        pyarrow.parquet.write_table(table, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(new, path)


class Parquet(Writer):
    def __init__(self, experiment: Experiment) -> None:
        super().__init__(experiment)
        self._trials: Dict[int, Trial] = {}
        self._rows: Dict[int, Any] = {}
        self._news = True

    def put(self, trial: Trial, rows: List[Row]) -> None:
        fields: Any = list(zip(*rows)) or [[]] * 5
        names, attempts, steps, times, values = fields
        self._rows[trial.number] = pyarrow.table(
            {
                "trial": pyarrow.array([trial.number] * len(rows), "int64"),
                "attempt": pyarrow.array(attempts, "int32"),
                "name": pyarrow.array(names, "string"),
                "step": pyarrow.array(steps, "int64"),
                "time": pyarrow.array(times, "float64"),
                "value": pyarrow.array(values, "float64"),
            }
        )
        self._trials[trial.number] = trial
        self._news = True

    def _table(self) -> Any:
        trials = [self._trials[n] for n in sorted(self._trials)]
        columns: Dict[str, Any] = {"trial": [t.number for t in trials]}
        for name in ("state", "length", "attempts", "seconds", "begin", "end", "host", "why"):
            columns[name] = [getattr(t, name) for t in trials]
        for i, name in enumerate(self.experiment.metrics):
            columns["metric." + name] = pyarrow.array([t.values[i] if t.values else None for t in trials], "float64")
        if any(t.own for t in trials):
            for name in ("point", "repeat", "n"):
                columns[name] = [getattr(t, name) for t in trials]
            for i, name in enumerate(self.experiment.metrics):
                for what in ("deviations", "own"):
                    parts = [getattr(t, what) for t in trials]
                    columns[f"{what.rstrip('s')}.{name}"] = pyarrow.array([p[i] if p else None for p in parts], "float64")
        for name in sorted({name for t in trials for name in t.hparams}):
            columns["hp." + name] = [t.hparams.get(name) for t in trials]
        return pyarrow.table({name: _column(c) if isinstance(c, list) else c for name, c in columns.items()})

    def flush(self) -> None:
        if not self._news:
            return
        rows = [self._rows[n] for n in sorted(self._rows)]
        if rows:
            _replace(f"{self.experiment.name}.metrics.parquet", pyarrow.concat_tables(rows))
        _replace(f"{self.experiment.name}.trials.parquet", self._table())
        self._news = False
