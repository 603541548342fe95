# SPDX-License-Identifier: Apache-2.0
"""Spaces of Ray Tune in JSON or YAML: {"grid_search": [...]}, {"loguniform": [1e-4, 0.1]} or "tune.loguniform(1e-4, 0.1)"."""

import ast
import re
from typing import Any, Dict, List, Optional, Tuple

from . import ranges, target
from .document import Node
from .table import Import, Table, left, none, used

_DOMAINS = "uniform quniform loguniform qloguniform randn qrandn randint qrandint lograndint qlograndint choice grid_search".split()
_PLACES = ("param_space", "config", "space")
# fmt: off
_TUNE = [
    used("tune_config.metric metric", "searcher.metric"),
    used("tune_config.mode mode", "searcher.smaller_is_better"),
    used("tune_config.num_samples num_samples", "searcher.max_trials", "times the points of grid_search"),
    used("tune_config.max_concurrent_trials max_concurrent_trials", "resources.workers"),
    used("tune_config.time_budget_s time_budget_s", "searcher.max_hours"),
    used("scheduler scheduler.type scheduler.name", "searcher.name", "see SEARCHERS"),
    used("scheduler.max_t stop.training_iteration", "searcher.max_length"),
    used("scheduler.reduction_factor", "searcher.divisor"),
    used("scheduler.grace_period", "searcher.min_length", "of median and pbt"),
    left("scheduler.**", "a setting of Ray's own implementation"),
    used("resources_per_trial.cpu resources_per_trial.CPU", "resources.cpus_per_trial"),
    used("resources_per_trial.gpu resources_per_trial.GPU", "resources.slots_per_trial"),
    left("resources_per_trial.**", "no such resource"),
    left("stop.**", "the program ends by itself, or searcher.goal ends the search"),
    used("max_failures run_config.failure_config.max_failures", "max_restarts"),
    left("search_alg search_alg.**", "searcher.name: tpe, gp, cmaes"),
    none("storage_path local_dir checkpoint_freq checkpoint_at_end keep_checkpoints_num run_config.**", "checkpoints are in the experiment's folder"),
    left("run env", "the command of a trial is not in the file: name it with --entrypoint"),
    used("name", "name"),
]

TABLE = Table(
    "raytune",
    "Ray Tune space",
    [*_TUNE, used("**", "hyperparameters", "grid_search, choice, uniform, loguniform, randint (without its end), q..., randn; what is no range is a constant")],
)
# fmt: on

_SCHEDULERS = {"asha": "stopping_asha", "asynchyperband": "stopping_asha", "hyperband": "hyperband", "hyperbandforbohb": "bohb",
               "median": "median", "medianstopping": "median", "pbt": "pbt", "populationbasedtraining": "pbt"}  # fmt: skip


def _call(text: str) -> Optional[Tuple[str, List[Any]]]:
    """tune.loguniform(1e-4, 0.1) as a name and its arguments, which are literals."""
    match = re.fullmatch(r"\s*(?:ray\.)?(?:tune\.)?(\w+)\((.*)\)\s*", text, re.S)
    if not match or match.group(1) not in _DOMAINS or len(text) > 10_000:
        return None
    try:
        values = ast.literal_eval(f"[{match.group(2)}]")
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None
    return match.group(1), list(values)


def _domain(node: Node) -> Optional[Tuple[str, List[Any]]]:
    """The kind of a range and its arguments; None: no range."""
    if isinstance(node.value, str):
        return _call(node.text)
    entries = node.items() if isinstance(node.value, dict) else []
    if len(entries) == 1 and entries[0][0] in _DOMAINS:
        values = entries[0][1].plain()
        return entries[0][0], values if isinstance(values, list) else [values]
    return None


def _has_domain(node: Node) -> bool:
    return _domain(node) is not None or (isinstance(node.value, dict) and any(_has_domain(n) for _, n in node.items()))


def knows(node: Node) -> bool:
    return not node.has("apiVersion") and _has_domain(node)


def _group(kind: str, given: List[Any]) -> Dict[str, Any]:
    if kind in ("choice", "grid_search"):
        return ranges.choice(given[0] if len(given) == 1 and isinstance(given[0], list) else given)
    numbers = [float(v) for v in given]
    step = numbers[2] if kind.startswith("q") and len(numbers) > 2 else None
    if kind.endswith("randn"):
        mean, deviation = (numbers + [0.0, 1.0])[:2] if len(numbers) > 1 else (0.0, 1.0)
        return ranges.real(mean - 4 * deviation, mean + 4 * deviation, mean=mean, deviation=deviation)
    if "randint" in kind:
        low, high = (0, int(numbers[0])) if len(numbers) == 1 else (int(numbers[0]), int(numbers[1]))
        log = "log" in kind
        return ranges.integer(
            low, high - (0 if step and step > 1 else 1), log=log, step=None if log or not step else int(step)
        )
    return ranges.real(numbers[0], numbers[1], log="log" in kind, step=None if "log" in kind else step)


def _flat(node: Node, prefix: str = "") -> Dict[str, Node]:
    found: Dict[str, Node] = {}
    for name, value in node.items():
        if isinstance(value.value, dict) and value.value and _domain(value) is None:
            found.update(_flat(value, f"{prefix}{name}."))
        else:
            found[prefix + name] = value
    return found


def _space(one: Import, node: Node) -> Tuple[Dict[str, Any], Dict[str, Any]]:
    """All parameters, and those of grid_search."""
    place = next((node.get(p) for p in _PLACES if isinstance(getattr(node.get(p), "value", None), dict)), None)
    own = {name for row in _TUNE for path in row.path.split() for name in [path.split(".")[0]]}
    given = (
        _flat(place)
        if place is not None
        else {k: v for k, v in _flat(node).items() if k.split(".")[0] not in own or _domain(v)}
    )
    found: Dict[str, Any] = {}
    grids: Dict[str, Any] = {}
    for key, value in given.items():
        domain = _domain(value)
        try:
            found[key] = _group(*domain) if domain else value.plain()
        except (IndexError, TypeError, ValueError) as error:
            one.open(value, f"no {domain[0] if domain else 'value'}: {error}")
        if found.get(key) is None:
            found.pop(key, None)
        if isinstance(value.value, str) and not domain and re.match(r"(ray\.)?tune\.|lambda", value.text):
            one.open(value, "no range that is known")
            found.pop(key)
        if domain and domain[0] == "grid_search" and key in found:
            grids[key] = found[key]
    return found, grids


def convert(node: Node, name: str, program: str = "") -> List[Import]:
    if len(node.items()) == 1 and not _domain(node.items()[0][1]) and node.items()[0][1].has("config"):
        name, inner = node.items()[0]  # the YAML of experiments: a name, then its keys
        node = inner
    one = Import(TABLE, node, name, program)
    one.set_name(node.string("name") or name, "tune")
    found, grids = _space(one, node)
    names = ranges.names_of(list(found))
    one.set("hyperparameters", ranges.nest({names[key]: group for key, group in found.items()}))

    def setting(key: str) -> Any:
        places = (("tune_config",), ("run_config", "failure_config"), ())
        return next((v for v in (node.plain(*place, key) for place in places) if v is not None), None)

    one.set("searcher.metric", setting("metric") or "loss", "" if setting("metric") else "the file names none")
    one.set("searcher.smaller_is_better", setting("mode") != "max")
    samples = setting("num_samples") if isinstance(setting("num_samples"), int) else 0
    domains = {k: g for k, g in found.items() if isinstance(g, dict) and g.get("type") not in (None, "const")}
    if domains and len(grids) == len(domains):
        one.set("searcher.name", "grid")
    else:
        one.set("searcher.name", "random")
        points = ranges.sizes(grids)[1]
        one.set(
            "searcher.max_trials",
            max(samples, 1) * points,
            "" if samples else "the file names none" if points == 1 else "",
        )
        if grids:
            one.say(node.line, "grid_search beside random ranges: all are drawn at random, as many trials in all")
    _scheduler(one, node)
    at_once, seconds, failures = (setting(k) for k in ("max_concurrent_trials", "time_budget_s", "max_failures"))
    one.set("resources.workers", at_once if isinstance(at_once, int) and at_once > 0 else None)
    one.set("searcher.max_hours", seconds / 3600 if isinstance(seconds, (int, float)) else None)
    one.set("max_restarts", failures if isinstance(failures, int) and failures >= 0 else None)
    for theirs, ours in (("cpu", "cpus_per_trial"), ("gpu", "slots_per_trial")):
        count = node.plain("resources_per_trial", theirs, default=node.plain("resources_per_trial", theirs.upper()))
        if isinstance(count, (int, float)) and count > 0:
            one.set(
                f"resources.{ours}",
                int(-(-count // 1)),
                "" if count == int(count) else f"{count} there: several trials share one",
            )
    target.put_program(one, {key: names[key] for key in found}, program)
    return [one]


def _scheduler(one: Import, node: Node) -> None:
    given = node.get("scheduler")
    if given is None:
        return
    theirs = node.string("scheduler") or node.string("scheduler", "type") or node.string("scheduler", "name")
    ours = _SCHEDULERS.get(re.sub(r"[\s_-]|scheduler$|rule$", "", theirs, flags=re.I).lower())
    if ours is None or one.keys["searcher.name"] == "grid":
        one.open(given, "no such scheduler, or a grid, which trains every point to its end")
        return
    one.set("searcher.name", ours)
    most = node.plain("scheduler", "max_t", default=node.plain("stop", "training_iteration", default=100))
    one.set("searcher.max_length", most if isinstance(most, int) and most > 1 else 100)
    factor = node.plain("scheduler", "reduction_factor")
    if ours in ("stopping_asha", "hyperband", "bohb"):
        one.set("searcher.divisor", float(factor) if isinstance(factor, (int, float)) and factor > 1 else None)
    if ours in ("median", "pbt"):
        one.set("searcher.min_length", node.integer("scheduler", "grace_period", least=1))
    elif node.plain("scheduler", "grace_period") is not None:
        one.open(node.get("scheduler", "grace_period"), "the first rung is max_length / divisor ^ (max_rungs - 1)")
    if ours in ("hyperband", "bohb", "pbt"):
        one.keys.pop("searcher.max_trials", None)
