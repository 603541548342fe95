# SPDX-License-Identifier: Apache-2.0
"""An experiment as an optuna Study in memory, for optuna's charts and dashboard."""

import datetime
import json
import math
import warnings
from typing import Any, Dict, List, Optional, Tuple

from . import optional

# States of dl show; a trial that was not trained to the end counts as pruned.
_STATES = {
    "completed": "COMPLETE",
    "stopped early": "PRUNED",
    "paused": "PRUNED",
    "failed": "FAIL",
    "rejected": "FAIL",
    "open": "RUNNING",
}
_ATTRIBUTES = ("state", "length", "best", "best_length", "attempts", "seconds", "host", "gpus", "why")
_OF_REPEATS = ("point", "repeat", "n", "deviation")


class Parameter:
    """A searched parameter: its distribution, and its values in optuna's form."""

    def __init__(self, optuna: Any, entry: Dict[str, Any]) -> None:
        self.name = str(entry["name"])
        kinds = optuna.distributions
        self.texts = False
        self.is_choice = entry["type"] == "categorical"
        if self.is_choice:
            choices = entry["choices"]
            self.texts = not _are_plain(choices)
            self.distribution = kinds.CategoricalDistribution([self.value(c) for c in choices])
            return
        kind = kinds.IntDistribution if entry["type"] == "int" else kinds.FloatDistribution
        log = bool(entry.get("log"))
        step = entry.get("step")
        extra = {"step": int(step) if entry["type"] == "int" else step} if step and not log else {}
        self.distribution = kind(entry["low"], entry["high"], log=log, **extra)

    def value(self, value: Any) -> Any:
        if self.is_choice:
            return json.dumps(value) if self.texts else value
        # the end of a logarithmic range is a rounded power
        low, high = self.distribution.low, self.distribution.high
        near = min(max(value, low), high)
        return near if math.isclose(near, value, rel_tol=1e-9) else value

    def has(self, value: Any) -> bool:
        if self.is_choice:
            return value in self.distribution.choices
        try:
            return bool(self.distribution._contains(self.distribution.to_internal_repr(value)))
        except (TypeError, ValueError):
            return False


def _are_plain(choices: List[Any]) -> bool:
    """Whether optuna accepts the values and distinguishes them: in Python, 1 equals True."""
    plain = all(c is None or isinstance(c, (bool, int, float, str)) for c in choices)
    return plain and len(set(choices)) == len(choices)


def _values(trial: Dict[str, Any], metrics: List[str], point: Optional[Dict[str, Any]]) -> List[float]:
    """With repeats, the means over the trials of the point."""
    if point is not None:
        return [math.nan if point["mean"][name] is None else float(point["mean"][name]) for name in metrics]
    names = ["metric"] if len(metrics) == 1 else ["metric." + name.replace("/", "_") for name in metrics]
    return [math.nan if trial.get(name) is None else float(trial[name]) for name in names]


def _point(trial: Dict[str, Any], parameters: List[Parameter]) -> Tuple[Dict[str, Any], ...]:
    """Parameters, their distributions, and all other hyperparameters, which are constants."""
    params: Dict[str, Any] = {}
    distributions: Dict[str, Any] = {}
    rest = {"hp." + name: value for name, value in trial["hyperparameters"].items() if value is not None}
    for p in parameters:
        given = trial["hyperparameters"].get(p.name)
        if given is None:
            continue
        value = p.value(given)
        if p.has(value):
            params[p.name], distributions[p.name] = value, p.distribution
            del rest["hp." + p.name]
    return params, distributions, rest


def _time(seconds: Any) -> Any:
    return None if seconds is None else datetime.datetime.fromtimestamp(float(seconds))


def _trial(
    optuna: Any,
    trial: Dict[str, Any],
    metrics: List[str],
    parameters: List[Parameter],
    reported: Dict[int, float],
    point: Optional[Dict[str, Any]],
) -> Any:
    states = optuna.trial.TrialState
    state = states[_STATES.get(trial["state"], "RUNNING")]
    values = _values(trial, metrics, point)
    known = not any(math.isnan(v) for v in values)
    if state == states.COMPLETE and not known:
        state = states.FAIL
    if state == states.COMPLETE and point is not None and not point["compared"]:
        state = states.PRUNED
    params, distributions, rest = _point(trial, parameters)
    attributes = {name: trial[name] for name in _ATTRIBUTES + _OF_REPEATS if trial.get(name) is not None}
    has_values = known and state in (states.COMPLETE, states.PRUNED)
    result = optuna.trial.create_trial(
        state=state,
        values=values if has_values else None,
        params=params,
        distributions=distributions,
        user_attrs={**attributes, **rest},
        intermediate_values=reported,
    )
    result.datetime_start = _time(trial.get("begin_time")) or result.datetime_start
    if state.is_finished():
        result.datetime_complete = _time(trial.get("end_time")) or result.datetime_start
    return result


def _reported(experiment: Any, metric: str) -> Dict[int, Dict[int, float]]:
    """The values of the metric by trial and step."""
    frame = experiment.metrics()
    rows = frame[frame["name"] == metric]
    steps: Dict[int, Dict[int, float]] = {}
    for trial, step, value in zip(rows["trial"].tolist(), rows["step"].tolist(), rows["value"].tolist()):
        steps.setdefault(trial, {})[step] = value
    return steps


def name_metrics(study: Any, names: List[str]) -> None:
    """Called once; optuna has names since 3.2, and warns that they are experimental."""
    if getattr(study, "metric_names", names) is None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            study.set_metric_names(names)


def study_of(experiment: Any) -> Any:
    optuna = optional.need("optuna", "study()")
    shown = experiment.read()
    metrics = [m["name"] for m in shown["metrics"]]
    directions = ["minimize" if m["smaller_is_better"] else "maximize" for m in shown["metrics"]]
    parameters = [Parameter(optuna, entry) for entry in shown["space"]]
    # optuna has intermediate values for one objective only
    reported = _reported(experiment, metrics[0]) if len(metrics) == 1 else {}
    verbosity = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        study = optuna.create_study(study_name=shown["experiment"], directions=directions)
    finally:
        optuna.logging.set_verbosity(verbosity)
    trials = sorted(shown["trials"], key=lambda t: int(t["trial"]))
    points = {p["point"]: p for p in shown.get("points", [])}
    study.add_trials(
        _trial(optuna, t, metrics, parameters, reported.get(t["trial"], {}), points.get(t.get("point"))) for t in trials
    )
    for name in ("dir", "state", "searcher"):
        study.set_user_attr(name, shown[name])
    name_metrics(study, metrics)
    return study
