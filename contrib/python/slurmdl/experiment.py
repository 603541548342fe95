# SPDX-License-Identifier: Apache-2.0
"""Look at an experiment from a notebook or a script, also while it runs.

    exp = slurmdl.Experiment("digits")          # or its folder
    exp.trials()                                # a DataFrame, one row a trial
    exp.metrics()                               # a DataFrame, one row a logged value
    exp.best()["hyperparameters"]
    exp.plot.curves("loss")
    optuna.visualization.plot_contour(exp.study())

The program dl reads the experiment, also one of another user, and neither runs its code nor unpickles anything.
"""

import html
import math
import os
import sys
import time
from typing import Any, Dict, List, Optional

from . import frames, optional, program
from .arrays import Path

_ROWS_SHOWN = 10
_PARAMETERS_SHOWN = 12


def _number(value: Any) -> float:
    """JSON has no NaN and no infinity: both become null, like unknown values."""
    return math.nan if value is None else float(value)


def _short(value: Any) -> str:
    if value is None:
        return ""
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    return text if len(text) <= 60 else text[:57] + "..."


class Experiment:
    """An experiment: its folder, or its name below 'dir' (default: DL_DIR, else the working directory)."""

    def __init__(self, path: Path, dir: Optional[Path] = None) -> None:
        self._options = ["--dir=" + os.fspath(dir)] if dir is not None else []
        self._name = os.fspath(path)
        self.dir: str = self.read(trials=1)["dir"]
        self._name, self._options = self.dir, []

    def __repr__(self) -> str:
        return f"<slurmdl.{type(self).__name__} {program.printable(self.dir)}>"

    # ---- what dl reports

    def call(self, command: str, *options: str, **how: Any) -> Any:
        """Run a command of dl on this experiment: (status, standard output)."""
        return program.call(command, *self._options, *options, "--", self._name, **how)

    def read(self, trials: Optional[int] = None) -> Dict[str, Any]:
        """`dl show --json`: the experiment as it is now, its space, and its trials (the best 'trials' of them)."""
        some = [f"--trials={trials}"] if trials is not None else []
        shown: Dict[str, Any] = program.call_json("show", "--json", *some, *self._options, "--", self._name)
        return shown

    @property
    def state(self) -> str:
        """running, paused, stopped, killed, completed, partial or failed."""
        return str(self.read(trials=1)["state"])

    def conditions(self, trial: int = 1) -> List[Dict[str, Any]]:
        """The conditions of a trial in the order of their times; dl-show(1) explains them.  Each is a dictionary with
        type (Created, Running, Restarting, Suspended, Succeeded or Failed), status (whether it is true now), time
        (seconds since 1970), reason and perhaps message."""
        found: List[Dict[str, Any]] = [
            c for t in self.read()["trials"] if t["trial"] == trial for c in t["conditions"]
        ]
        return found

    def _trial(self, trial: int) -> Dict[str, Any]:
        shown: Dict[str, Any] = program.call_json("show", "--json", *self._options, "--", self._name, str(trial))
        return shown

    def healing(self, trial: int = 1) -> List[Dict[str, Any]]:
        """What the workers noticed about the ranks and nodes of a trial, and what they did about it (dl-trainer(7),
        HEALING), in the order of time.  Each is a dictionary with attempt, time (seconds since 1970) and text."""
        events: List[Dict[str, Any]] = self._trial(trial)["healing"]
        return events

    def no_progress(self, trial: int = 1) -> Optional[Dict[str, Any]]:
        """If an open trial has made no progress for two minutes, a dictionary with since (seconds since 1970) and why;
        otherwise None."""
        found: Optional[Dict[str, Any]] = self._trial(trial)["no_progress"]
        return found

    def trials(self) -> Any:
        """A DataFrame with a row for each trial, in order, and a column for each hyperparameter (hp.NAME if another
        column has the same name).  Metrics that were logged but not optimised are metric.NAME, with their newest
        values."""
        return frames.trials_frame(self.read())

    def metrics(self, trial: Optional[int] = None) -> Any:
        """A DataFrame with a row for each value that the trials (or one trial) have logged so far, without superseded
        ones: trial, attempt, step, time (seconds since 1970), epoch, name and value."""
        return frames.metrics_frame(self.dir, trial)

    def best(self) -> Optional[Dict[str, Any]]:
        """The best trial: a dictionary with trial, metric, best, hyperparameters, dir and so on; None before the first
        result.  With repeats it describes the best point: 'best' is the mean, with deviation and n; the trial is the
        one closest to the mean, and 'metric' is its own value. slurmdl.load(best["dir"]) reads its newest checkpoint.
        """
        shown = self.read()
        found = [t for t in shown["trials"] if t["trial"] == shown["best_trial"]]
        if not found:
            return None
        best: Dict[str, Any] = found[0]
        best["best"] = shown["best"]
        for name in ("metric", "best"):
            best[name] = _number(best.get(name))
        best["dir"] = os.path.join(self.dir, "trials", "%04d" % best["trial"])
        return best

    def study(self) -> Any:
        """An optuna Study in memory with the trials of the experiment: for optuna.visualization and optuna-dashboard.
        """
        from .study import study_of

        return study_of(self)

    @property
    def plot(self) -> Any:
        """Charts with matplotlib: plot.curves(), history(), scatter(parameter), parallel()."""
        from .plot import Plots

        return Plots(self)

    # ---- progress

    def _repr_html_(self) -> str:
        return _page(self.read(trials=_ROWS_SHOWN))

    def watch(self, seconds: float = 2.0) -> None:
        """Show the experiment, in a notebook or on a terminal, until it has ended or was paused."""
        show = _display()
        while True:
            start = time.monotonic()
            shown = self.read(trials=_ROWS_SHOWN)
            show(shown)
            if shown["state"] != "running":
                return
            # do not read a large experiment all the time
            time.sleep(max(seconds, 4 * (time.monotonic() - start)))


# ---- display


def status_line(shown: Dict[str, Any]) -> str:
    """One line: state, completed part, and the best value."""
    line = f"{shown['experiment']}: {shown['state']}, {100 * _number(shown['done']):.0f} %"
    if shown["best_trial"] is not None:
        line += f", best {shown['metrics'][0]['name']} {_number(shown['best']):.6g} "
        point = shown.get("best_point")
        line += f"(trial {shown['best_trial']})" if point is None else f"(mean of {shown['best_n']}, point {point})"
    return program.printable(line)


def _rows(shown: Dict[str, Any]) -> List[List[str]]:
    names = list(dict.fromkeys(name for t in shown["trials"] for name in t["hyperparameters"]))
    names = names[:_PARAMETERS_SHOWN]
    known = ["trial", "state", "length", "best"]
    known += ["point", "mean", "deviation", "n"] if "best_point" in shown else []
    rows = [[*known, *names]]
    for t in shown["trials"][:_ROWS_SHOWN]:
        values = [t["hyperparameters"].get(name) for name in names]
        rows.append([_short(v) for v in (*(t[name] for name in known), *values)])
    return rows


def _page(shown: Dict[str, Any]) -> str:
    """Everything is escaped: names and values may come from other users."""
    head, *rows = _rows(shown)
    cells = "".join(f"<th>{html.escape(text)}</th>" for text in head)
    lines = [f"<tr>{cells}</tr>"]
    for row in rows:
        lines.append("<tr>" + "".join(f"<td>{html.escape(text)}</td>" for text in row) + "</tr>")
    return f"<p><b>{html.escape(status_line(shown))}</b></p><table>{''.join(lines)}</table>"


def _is_notebook() -> bool:
    shell = sys.modules.get("IPython")
    shell = shell.get_ipython() if shell is not None else None
    return shell is not None and type(shell).__name__ != "TerminalInteractiveShell"


def _display() -> Any:
    if not _is_notebook():
        return _Lines()
    handle = optional.need("IPython.display", "watch()").display(None, display_id=True)
    page = optional.need("IPython.display", "watch()").HTML
    return lambda shown: handle.update(page(_page(shown)))


class _Lines:
    """On a terminal or in a pipe: print a line when something has changed."""

    def __init__(self) -> None:
        self.last = ""

    def __call__(self, shown: Dict[str, Any]) -> None:
        line = status_line(shown)
        if line != self.last:
            print(line, flush=True)
        self.last = line
