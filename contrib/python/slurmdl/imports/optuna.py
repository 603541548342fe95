# SPDX-License-Identifier: Apache-2.0
"""Spaces of Optuna: distributions by name, as optuna.distributions.distribution_to_json() writes each of them."""

import re
from typing import Any, Dict, List, Optional

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
        none("storage load_if_exists", "the experiment's folder"),
        none("timeout.unit", "seconds"),
        used("timeout", "searcher.max_hours"),
        used("sampler sampler.name", "searcher.name", "TPE, Random, Grid, CmaEs, GP, QMC, NSGAII"),
        used("sampler.seed seed", "reproducibility.experiment_seed"),
        left("sampler.**", "a setting of Optuna's own implementation"),
        changed("pruner pruner.name", "searcher.name", "the searcher decides at its rungs; see SEARCHERS"),
        left("pruner.**", "a setting of Optuna's own implementation"),
        used("*.name *.attributes.* *.attributes", "hyperparameters", "Float-, Int-, CategoricalDistribution and those of Optuna 1 and 2; suggest_float and so on"),
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
_PRUNERS = {"median": "median", "successivehalving": "asha", "hyperband": "hyperband"}


def _distributions(node: Node) -> Dict[str, Node]:
    for place in _PLACES:
        if node.has(place):
            return _distributions(node.get(place) or node)
    return {name: d for name, d in node.items() if d.string("name").endswith("Distribution") and d.has("attributes")}


def knows(node: Node) -> bool:
    return bool(_distributions(node))


def _parameter(one: Import, node: Node) -> Optional[Dict[str, Any]]:
    kind, keys = node.string("name"), node.plain("attributes")
    try:
        if kind == "CategoricalDistribution":
            return ranges.choice(keys["choices"])
        log = keys.get("log") is True or "Log" in kind
        step = keys.get("step", keys.get("q"))
        if kind.startswith("Int"):
            return ranges.integer(keys["low"], keys["high"], log=log, step=None if log else step)
        return ranges.real(keys["low"], keys["high"], log=log, step=None if log or step is None else float(step))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        one.open(node, f"no {kind}: {error}")
        return None


def _word(text: str, ending: str) -> str:
    return re.sub(rf"[\s_-]|{ending}$", "", text, flags=re.I).lower()


def put_searcher(one: Import, sampler: str, pruner: str, default: str) -> None:
    """The searcher for a sampler and a pruner of Optuna's, by their classes' names."""
    name = _SAMPLERS.get(_word(sampler, "sampler"), default)
    one.set("searcher.name", name)
    stop = _PRUNERS.get(_word(pruner, "pruner"))
    if stop:
        one.set("searcher.name", stop)
        one.set("searcher.sampler", name if name != "grid" else None)
        one.set("searcher.max_length", 100, "the file does not name the length of a full training")


def convert(node: Node, name: str, program: str = "") -> List[Import]:
    one = Import(TABLE, node, name, program)
    own = node.string("study_name") or node.string("name") or name
    one.set_name(own, "study")
    given = _distributions(node)
    names = ranges.names_of(list(given))
    found = {names[key]: _parameter(one, d) for key, d in given.items()}
    one.set("hyperparameters", ranges.nest({k: v for k, v in found.items() if v}))
    metrics = node.plain("metric_names") or node.plain("metric") or node.plain("metric_name") or "value"
    one.set("searcher.metric", tuple(metrics) if isinstance(metrics, list) else str(metrics), "what the program logs")
    directions = node.plain("directions") or [node.plain("direction", default="minimize")]
    smaller = tuple(str(d).lower() != "maximize" for d in directions)
    one.set("searcher.smaller_is_better", smaller if len(smaller) > 1 else smaller[0])
    sampler = node.string("sampler") or node.string("sampler", "name")
    put_searcher(
        one, sampler, node.string("pruner") or node.string("pruner", "name"), "nsga2" if len(smaller) > 1 else "tpe"
    )
    if sampler and _word(sampler, "sampler") not in _SAMPLERS:
        one.open(node.get("sampler"), "there is no such sampler")
    trials, seconds = node.plain("n_trials"), node.plain("timeout")
    if one.keys["searcher.name"] != "grid":
        one.set(
            "searcher.max_trials", trials if isinstance(trials, int) else 100, "" if trials else "the file names none"
        )
    one.set("resources.workers", node.integer("n_jobs", least=1))
    one.set("searcher.max_hours", seconds / 3600 if isinstance(seconds, (int, float)) else None)
    seed = node.integer("sampler", "seed") if node.plain("seed") is None else node.integer("seed")
    one.set("reproducibility.experiment_seed", seed)
    target.put_program(one, {key: names[key] for key in given if found[names[key]]}, program)
    return [one]
