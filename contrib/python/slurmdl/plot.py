# SPDX-License-Identifier: Apache-2.0
"""Charts of an experiment with matplotlib: each returns the Axes that it has drawn on."""

from typing import Any, List, Optional, Tuple

from . import optional
from ._slurmdl import Error


def _literal(text: Any) -> str:
    """Prevent matplotlib from reading a name as a formula."""
    return str(text).replace("$", r"\$")


class Plots:
    """exp.plot: every method takes 'ax', the Axes to draw on; the default is a new figure."""

    def __init__(self, experiment: Any) -> None:
        self._experiment = experiment

    def _axes(self, ax: Any, title: str, x: str, y: str) -> Any:
        pyplot = optional.need("matplotlib.pyplot", "plot")
        if ax is None:
            ax = pyplot.subplots()[1]
        ax.set_title(_literal(title))
        ax.set_xlabel(_literal(x))
        ax.set_ylabel(_literal(y))
        return ax

    def _objective(self) -> Tuple[Any, str, bool]:
        """(trials with a result, name of the first metric, whether smaller is better)."""
        from .frames import trials_frame

        shown = self._experiment.read()
        frame = trials_frame(shown)
        if not len(frame) or not frame["best"].notna().any():
            raise Error(f"{self._experiment.dir}: there is no result yet")
        first = shown["metrics"][0]
        if "best_n" in shown:  # with repeats
            frame = frame.assign(best=frame["mean"])
        return frame[frame["best"].notna()], str(first["name"]), bool(first["smaller_is_better"])

    def _compared(self, frame: Any) -> Any:
        """The trials that can be the best: trained as long as the best one, with as many repeats of their point."""
        shown = self._experiment.read(trials=1)
        known = frame["best_length"] == shown["best_length"]
        return known & (frame["n"] == shown["best_n"]) if "best_n" in shown else known

    def _parameter(self, frame: Any, name: str) -> Any:
        for column in ("hp." + name, name):
            if column in frame:
                return frame[column]
        raise Error(f"{self._experiment.dir}: there is no hyperparameter '{name}'")

    def curves(self, metric: Optional[str] = None, trials: Optional[List[int]] = None, ax: Any = None) -> Any:
        """A line for each trial: a metric (default: the optimised one) by step."""
        rows = self._experiment.metrics()
        if metric is None:
            metric = str(self._experiment.read(trials=1)["metrics"][0]["name"])
        rows = rows[rows["name"] == metric]
        if not len(rows):
            raise Error(f"{self._experiment.dir}: no trial has logged '{metric}'")
        ax = self._axes(ax, self._experiment.dir.rsplit("/", 1)[-1], "step", metric)
        for number, curve in rows.groupby("trial"):
            if trials is None or number in trials:
                marker = "." if len(curve) == 1 else None
                ax.plot(curve["step"], curve["value"], marker=marker, linewidth=1, label=f"trial {number}")
        if len(ax.lines) <= 10:
            ax.legend(fontsize="small")
        return ax

    def history(self, ax: Any = None) -> Any:
        """The result of each trial, and the best one so far."""
        frame, metric, smaller = self._objective()
        ax = self._axes(ax, "optimisation history", "trial", metric)
        best = frame["best"].where(self._compared(frame)).ffill()
        best = best.cummin() if smaller else best.cummax()
        ax.plot(frame["trial"], frame["best"], ".", label="trial")
        ax.step(frame["trial"], best, where="post", label="best so far")
        ax.legend(fontsize="small")
        return ax

    def scatter(self, parameter: str, ax: Any = None) -> Any:
        """The result of each trial by one hyperparameter."""
        frame, metric, _ = self._objective()
        values = self._parameter(frame, parameter)
        ax = self._axes(ax, "", parameter, metric)
        known = values.notna()
        if _is_number(values):
            ax.plot(values[known], frame["best"][known], ".")
            if _is_wide(values[known]):
                ax.set_xscale("log")
        else:
            ax.plot([_literal(v) for v in values[known]], frame["best"][known], ".")
        return ax

    def parallel(self, ax: Any = None) -> Any:
        """Parallel coordinates: a line for each trial through its hyperparameters, coloured by its result."""
        numpy = optional.need("numpy", "plot")
        frame, metric, _ = self._objective()
        names = self._names(frame)
        ax = self._axes(ax, "", "", "")
        colours = _scaled(numpy, frame["best"])
        lines = numpy.array([_scaled(numpy, self._parameter(frame, name)) for name in names] + [colours]).T
        colour_map = optional.need("matplotlib", "plot").colormaps["viridis"]
        for line, colour in zip(lines, colours):
            ax.plot(line, color=colour_map(colour), linewidth=1, alpha=0.7)
        ax.set_xticks(range(len(names) + 1), [_literal(n) for n in [*names, metric]])
        ax.set_yticks([])
        return ax

    def _names(self, frame: Any) -> List[str]:
        searched = [entry["name"] for entry in self._experiment.read(trials=1)["space"]]
        return [n for n in searched if self._parameter(frame, n).notna().any()]


def _is_number(values: Any) -> bool:
    return values.dtype.kind in "iuf"


def _is_wide(values: Any) -> bool:
    return bool(len(values) and values.min() > 0 and values.max() > 100 * values.min())


def _scaled(numpy: Any, values: Any) -> Any:
    """Scaled to 0 .. 1; logarithmic if the range is wide, texts by their order."""
    if not _is_number(values):
        known = sorted({str(v) for v in values.dropna()})
        numbers = numpy.array([known.index(str(v)) if v == v and v is not None else numpy.nan for v in values], "f8")
    else:
        numbers = values.to_numpy(dtype="f8")
        numbers = numpy.log(numbers) if _is_wide(values.dropna()) else numbers
    finite = numbers[numpy.isfinite(numbers)]
    if not len(finite) or finite.max() == finite.min():
        return numpy.where(numpy.isfinite(numbers), 0.5, numpy.nan)
    return numpy.clip((numbers - finite.min()) / (finite.max() - finite.min()), 0, 1)
