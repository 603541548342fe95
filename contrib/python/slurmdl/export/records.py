# SPDX-License-Identifier: Apache-2.0
"""The experiment as dl reports it, and base classes for writing it into the files of a tool."""

import json
import math
import os
from typing import Any, Callable, Dict, Iterable, Iterator, List, NamedTuple, Optional, Tuple


class Row(NamedTuple):
    """A value that a trial has logged."""

    name: str
    attempt: int
    step: int
    time: float  # s since 1970
    value: float


def flat(hparams: Any, prefix: str = "") -> Iterator[Tuple[str, Any]]:
    """Hyperparameters by path: "optimizer.lr"."""
    for name, value in (hparams or {}).items():
        if isinstance(value, dict):
            yield from flat(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value


def plain(value: Any) -> Any:
    """A number, a boolean or a text; anything else as JSON."""
    return value if isinstance(value, (bool, int, float, str)) else json.dumps(value)


def database(path: str, make: Callable[[str], Any]) -> str:
    """The URL of an SQLite database; the tables of a new one are created before it gets its name."""
    if not os.path.exists(path):
        new = f".{path}.new"
        for name in (new, new + "-journal"):
            if os.path.exists(name):
                os.unlink(name)
        make(f"sqlite:///{new}")
        os.rename(new, path)
    return f"sqlite:///{path}"


class Experiment:
    """The `dl show --json` of an experiment, as dl sends it: nothing here starts dl."""

    def __init__(self, line: Dict[str, Any]) -> None:
        self.dir: str = line["dir"]
        self.name: str = os.path.basename(self.dir) or self.dir
        self.id: str = line["id"] or line["digest"]
        self.digest: str = line["digest"]
        self.description: str = line["description"] or ""
        self.metrics: List[str] = [m["name"] for m in line["metrics"]]
        self.smaller: List[bool] = [m["smaller_is_better"] for m in line["metrics"]]
        self.space: List[Dict[str, Any]] = line["space"]


class Trial:
    def __init__(self, line: Dict[str, Any]) -> None:
        self.number: int = line["trial"]
        self.state: str = line["state"]  # "completed", "stopped early", ... as dl show has it
        self.final: bool = line["final"]  # it changes only if the experiment is continued
        self.length: int = line["length"]
        self.attempts: int = line["attempts"]
        # of the experiment's metrics; with repeats the means of the point; none without a result
        self.values: List[float] = line["values"]
        self.deviations: List[float] = line.get("deviations", [])  # with repeats, and ...
        self.own: List[float] = line.get("own", [])  # ... what this trial gave
        self.point, self.repeat, self.n = (line.get(name) for name in ("point", "repeat", "n"))
        self.compared: bool = line.get("compared", True)  # false: a point of which repeats are missing
        # s since 1970, s; JSON has no NaN
        self.begin, self.end, self.seconds = (
            math.nan if line[name] is None else line[name] for name in ("begin_time", "end_time", "seconds")
        )
        self.host: Optional[str] = line["host"]
        self.why: Optional[str] = line["why"]
        self.hparams: Dict[str, Any] = dict(flat(line["hyperparameters"]))

    def about(self, experiment: Experiment) -> Dict[str, str]:
        """Everything else that is known about it, as strings."""
        known = {
            "experiment": experiment.name,
            "experiment_id": experiment.id,
            "folder": f"{experiment.dir}/trials/{self.number:04d}",
            "trial": self.number,
            "state": self.state,
            "length": self.length,
            "attempts": self.attempts,
            "host": self.host,
            "why": self.why,
            "point": self.point,
            "repeat": self.repeat,
            "n": self.n,
        }
        for name, mean, deviation, own in zip(experiment.metrics, self.values, self.deviations, self.own):
            known.update({f"mean.{name}": mean, f"deviation.{name}": deviation, f"own.{name}": own})
        return {"slurmdl." + name: str(value) for name, value in known.items() if value is not None}


Seen = Dict[str, Dict[int, int]]  # number of values of a metric at each step


def count(seen: Seen, name: str, step: int) -> int:
    """Count one more.  Returns the new number."""
    steps = seen.setdefault(name, {})
    steps[step] = steps.get(step, 0) + 1
    return steps[step]


def unseen(rows: Iterable[Row], seen: Seen) -> List[Row]:
    """The rows that 'seen' lacks: of a metric at a step, the first exported value stays."""
    now: Seen = {}
    return [row for row in rows if count(now, row.name, row.step) > seen.get(row.name, {}).get(row.step, 0)]


class Writer:
    """Writes one experiment into the working directory."""

    def __init__(self, experiment: Experiment) -> None:
        self.experiment = experiment

    def put(self, trial: Trial, rows: List[Row]) -> None:
        """Write a new or changed trial with all its rows."""
        raise NotImplementedError

    def flush(self) -> None:
        """Called after all current trials were put."""

    def close(self) -> None:
        """Called at the end."""


class Appending(Writer):
    """Base class for files that the tool appends to: their content is read first."""

    def __init__(self, experiment: Experiment) -> None:
        super().__init__(experiment)
        self._seen: Dict[int, Seen] = {}

    def read(self, trial: Trial) -> Seen:
        """Read what the tool's files contain of a trial."""
        raise NotImplementedError

    def write(self, trial: Trial, rows: List[Row]) -> None:
        """Write the trial, whose state may have changed, and rows that are missing, to stable storage."""
        raise NotImplementedError

    def put(self, trial: Trial, rows: List[Row]) -> None:
        seen = self._seen.pop(trial.number, None)
        if seen is None:
            seen = self.read(trial)
        new = unseen(rows, seen)
        self.write(trial, new)
        for row in new:
            count(seen, row.name, row.step)
        if not trial.final:
            self._seen[trial.number] = seen
