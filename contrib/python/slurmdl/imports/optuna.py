# SPDX-License-Identifier: Apache-2.0
"""Spaces of Optuna: distributions by name, each as written by optuna.distributions.distribution_to_json()."""

import re
from typing import Any, Dict, List, Optional, Tuple

from . import ranges, target
from .document import Node
from .table import Import, Table, changed, left, none, used

_PLACES = ("distributions", "params", "search_space", "space", "parameters")

# fmt: off
TABLE = Table(
    "optuna",
    "Optuna space",
    [
        used("study_name name", "name"),
        used("direction directions", "searcher.smaller_is_better"),
        used("metric metric_name metric_names", "searcher.metric"),
        used("n_trials", "searcher.max_trials"),
        used("n_jobs", "resources.workers"),
        none("storage load_if_exists", "results are in the experiment's folder"),
        none("timeout.unit", "always seconds"),
        used("timeout", "searcher.max_hours"),
        used("sampler sampler.name", "searcher.name", "TPE, Random, Grid, CmaEs, GP, QMC, NSGAII"),
        used("sampler.seed seed", "reproducibility.experiment_seed"),
        left("sampler.**", "a setting of Optuna's implementation"),
        changed("pruner pruner.name", "searcher.name", "the searcher prunes at its rungs; see SEARCHERS"),
        left("pruner.**", "a setting of Optuna's implementation"),
        used("*.name *.attributes.* *.attributes", "hyperparameters", "FloatDistribution, IntDistribution, CategoricalDistribution and those of Optuna 1 and 2"),
        *[used(f"{p}.*.name {p}.*.attributes.* {p}.*.attributes", "hyperparameters", "the same") for p in _PLACES],
    ],
)
# fmt: on

_SAMPLERS = {
    "tpe": "tpe",
    "random": "random",
    "grid": "grid",
    "bruteforce": "grid",
    "cmaes": "cmaes",
    "gp": "gp",
    "qmc": "sobol",
    "nsgaii": "nsga2",
}
_PRUNERS = {"median": "median", "successivehalving": "asha", "hyperband": "hyperband", "nop": "", "none": ""}
_DIRECTIONS = {
    f"{before}{word}": word.lower() == "minimize" for before in ("", "StudyDirection.") for word in ("minimize", "maximize", "MINIMIZE", "MAXIMIZE")
}
# (whether a distribution has integers, whether it is logarithmic; None: see its key log)
_KINDS: Dict[str, Tuple[bool, Optional[bool]]] = {
    "FloatDistribution": (False, None),
    "IntDistribution": (True, None),
    "UniformDistribution": (False, False),
    "LogUniformDistribution": (False, True),
    "DiscreteUniformDistribution": (False, False),
    "IntUniformDistribution": (True, False),
    "IntLogUniformDistribution": (True, True),
}


def _distributions(node: Node) -> Dict[str, Node]:
    for place in _PLACES:
        if node.has(place):
            return _distributions(node.get(place) or node)
    return {name: d for name, d in node.items() if d.string("name").endswith("Distribution") and d.has("attributes")}


def knows(node: Node) -> bool:
    return bool(_distributions(node))


def _range(one: Import, node: Node) -> Dict[str, Any]:
    kind = one.word(node, "name", known={**_KINDS, "CategoricalDistribution": None})
    if node.string("name") == "CategoricalDistribution":
        one.take(node, "name")
        return ranges.choice(one.values(node, "attributes", "choices"))
    if kind is None:
        raise ValueError("unknown distribution")
    keys = node.get("attributes") or node
    whole, log = kind
    if log is None:
        log = one.truth(keys, "log") is True
    low, high = (one.whole(keys, name) if whole else one.real(keys, name) for name in ("low", "high"))
    if low is None or high is None:
        raise ValueError("low and high are missing")
    step = one.real(keys, "q" if keys.has("q") else "step", above=0)
    if log and step not in (None, 1):
        raise ValueError("a logarithmic range has no step")
    if whole:
        return ranges.integer(low, high, log=log, step=None if log else step)
    return ranges.real(low, high, log=log, step=None if log or step is None else float(step))


def _parameter(one: Import, node: Node) -> Optional[Dict[str, Any]]:
    try:
        return _range(one, node)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        one.open(node, f"not a valid {node.string('name')}: {error}")
        return None


def _word(text: str, ending: str) -> str:
    return re.sub(rf"[\s_-]|{ending}$", "", text, flags=re.I).lower()


def put_searcher(one: Import, node: Optional[Node], sampler: str, pruner: Optional[Node], default: str) -> None:
    """Set the searcher for a sampler and a pruner of Optuna, given by the names of their classes."""
    name = _SAMPLERS.get(_word(sampler, "sampler")) if sampler else default
    one.set_searcher(name, node)
    given = one.text(pruner)
    if not given:
        return
    stop = _PRUNERS.get(_word(given, "pruner"))
    if stop is None:
        one.open(pruner, f"unknown pruner '{given}': must be one of median, successivehalving, hyperband")
    elif stop:
        one.set("searcher.name", stop)
        one.set("searcher.sampler", name if name != "grid" else None)
        one.guess("searcher.max_length", 100, "the file has no length of a full training")


def _named(node: Node, name: str) -> Optional[Node]:
    """The node with the name of a sampler or pruner."""
    return node.get(name, "name") or (node.get(name) if node.string(name) else None)


def convert(node: Node, name: str, program: str = "") -> List[Import]:
    one = Import(TABLE, node, name, program)
    named = next((node.get(key) for key in ("study_name", "name") if node.string(key)), None)
    one.set_name(named, name)
    given = _distributions(node)
    names = one.names(given)
    found = {names[key]: _parameter(one, d) for key, d in given.items()}
    one.set("hyperparameters", ranges.nest({k: v for k, v in found.items() if v}))
    key = next((key for key in ("metric_names", "metric", "metric_name") if node.has(key)), "")
    metrics = one.texts(node, key) if key else None
    if metrics:
        one.set("searcher.metric", metrics if len(metrics) > 1 else metrics[0], "the metric that the program logs")
    else:
        one.guess("searcher.metric", "value", "the file has no metric: use the one that the program logs")
    directions = node.get("directions") or node.get("direction")
    several = directions is not None and isinstance(directions.value, list)
    nodes = [] if directions is None else directions.value if several else [directions]
    smaller = tuple(one.must(one.word, Node(d.file, d.line, {"direction": d}), "direction", known=_DIRECTIONS) for d in nodes)
    one.take(directions)
    one.set("searcher.smaller_is_better", smaller if len(smaller) > 1 else smaller[0] if smaller else True)
    sampler = _named(node, "sampler")
    put_searcher(one, sampler, one.text(sampler), _named(node, "pruner"), "nsga2" if len(smaller) > 1 else "tpe")
    trials = one.whole(node, "n_trials", least=1)
    if one.keys.get("searcher.name") != "grid":
        one.set("searcher.max_trials", trials)
        if trials is None:
            one.guess("searcher.max_trials", 100, "the file has none")
    elif trials is not None:
        one.changed(node.get("n_trials"), "a grid tries all its points")
    one.set("resources.workers", one.whole(node, "n_jobs", least=1))
    seconds = one.real(node, "timeout", above=0)
    one.set("searcher.max_hours", None if seconds is None else seconds / 3600)
    seeds = [one.whole(node, *path, least=0) for path in (("seed",), ("sampler", "seed"))]
    one.set("reproducibility.experiment_seed", next((n for n in seeds if n is not None), None))
    target.put_program(one, {key: names[key] for key in given if found[names[key]]}, program)
    return [one]
