# SPDX-License-Identifier: Apache-2.0
"""Spaces of Ray Tune in JSON or YAML: {"grid_search": [...]}, {"loguniform": [1e-4, 0.1]} or "tune.loguniform(1e-4, 0.1)"."""

import ast
import math
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
    used("tune_config.num_samples num_samples", "searcher.max_trials", "multiplied by the number of points of grid_search"),
    used("tune_config.max_concurrent_trials max_concurrent_trials", "resources.workers"),
    used("tune_config.time_budget_s time_budget_s", "searcher.max_hours"),
    used("scheduler scheduler.type scheduler.name", "searcher.name", "see SEARCHERS"),
    used("scheduler.max_t stop.training_iteration", "searcher.max_length"),
    used("scheduler.reduction_factor", "searcher.divisor"),
    used("scheduler.grace_period", "searcher.min_length", "for median and pbt"),
    left("scheduler.**", "a setting of Ray's implementation"),
    used("resources_per_trial.cpu resources_per_trial.CPU", "resources.cpus_per_trial"),
    used("resources_per_trial.gpu resources_per_trial.GPU", "resources.slots_per_trial"),
    left("resources_per_trial.**", "dl has no such resource"),
    left("stop.**", "the program must end by itself; searcher.goal ends the search"),
    used("max_failures run_config.failure_config.max_failures", "max_restarts"),
    left("search_alg search_alg.**", "set searcher.name: tpe, gp, cmaes"),
    none("storage_path local_dir checkpoint_freq checkpoint_at_end keep_checkpoints_num run_config.**", "checkpoints are in the experiment's folder"),
    left("run env", "the file does not contain the command of a trial: pass it with --entrypoint"),
    used("name", "name"),
]

TABLE = Table(
    "raytune",
    "Ray Tune space",
    [*_TUNE, used("**", "hyperparameters", "grid_search, choice, uniform, loguniform, randint (excludes its end), q..., randn; other values are constants")],
)
# fmt: on

_SCHEDULERS = {"asha": "stopping_asha", "asynchyperband": "stopping_asha", "hyperband": "hyperband", "hyperbandforbohb": "bohb",
               "median": "median", "medianstopping": "median", "pbt": "pbt", "populationbasedtraining": "pbt"}  # fmt: skip


def _call(text: str) -> Optional[Tuple[str, List[Any]]]:
    """Parse tune.loguniform(1e-4, 0.1) into its name and its arguments, which must be literals."""
    match = re.fullmatch(r"\s*(?:ray\.)?(?:tune\.)?(\w+)\((.*)\)\s*", text, re.S)
    if not match or match.group(1) not in _DOMAINS or len(text) > 10_000:
        return None
    try:
        values = ast.literal_eval(f"[{match.group(2)}]")
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None
    return match.group(1), list(values)


def _domain(node: Node) -> Optional[Tuple[str, List[Any]]]:
    """The kind of a range and its arguments; None if the node is not a range."""
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


# the minimum and maximum number of arguments; the last one, the base of a logarithm, has no effect
_ARGUMENTS = {
    "uniform": (2, 2), "quniform": (3, 3), "loguniform": (2, 3), "qloguniform": (3, 4), "randn": (0, 2), "qrandn": (3, 3),
    "randint": (1, 2), "qrandint": (3, 3), "lograndint": (2, 3), "qlograndint": (3, 4),
}  # fmt: skip


def _group(one: Import, node: Node, kind: str, given: List[Any]) -> Dict[str, Any]:
    if kind in ("choice", "grid_search"):
        return ranges.choice(given[0] if len(given) == 1 and isinstance(given[0], list) else given)
    if not all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in given):
        raise ValueError("its arguments are not numbers")
    least, most = _ARGUMENTS[kind]
    if not least <= len(given) <= most:
        raise ValueError(f"it has {len(given)} arguments")
    log, step = "log" in kind, given[2] if kind.startswith("q") else None
    if kind.endswith("randn"):
        mean, deviation = (given[:2] + [0.0, 1.0][len(given[:2]) :])[:2]
        one.changed(node, "a normal distribution is cut off at four deviations" + ("; values are not rounded" if step else ""))
        return ranges.real(mean - 4 * deviation, mean + 4 * deviation, mean=mean, deviation=deviation)
    if log and step not in (None, 1):
        one.changed(node, "a logarithmic range has no steps")
    if "randint" in kind:
        low, high = (0, given[0]) if len(given) == 1 else given[:2]
        return ranges.integer(low, high if step and step > 1 else high - 1, log=log, step=None if log else step)
    return ranges.real(given[0], given[1], log=log, step=None if log or step is None else float(step))


def _flat(node: Node, prefix: str = "") -> Dict[str, Node]:
    found: Dict[str, Node] = {}
    for name, value in node.items():
        if isinstance(value.value, dict) and value.value and _domain(value) is None:
            found.update(_flat(value, f"{prefix}{name}."))
        else:
            found[prefix + name] = value
    return found


def _space(one: Import, node: Node) -> Tuple[Dict[str, Any], Dict[str, Any], Dict[str, Node]]:
    """(all parameters, those of grid_search, the nodes of all)."""
    place = next((node.get(p) for p in _PLACES if isinstance(getattr(node.get(p), "value", None), dict)), None)
    own = {name for row in _TUNE for path in row.path.split() for name in [path.split(".")[0]]}
    given = (
        _flat(place)
        if place is not None
        else {k: v for k, v in _flat(node).items() if k.split(".")[0] not in own or _domain(v)}
    )
    found: Dict[str, Any] = {}
    grids: Dict[str, Any] = {}
    for p in _PLACES:
        if place is not None and node.get(p) is not place:
            one.open(node.get(p), "the space is read from another place in the file")
    for key, value in given.items():
        domain = _domain(value)
        try:
            if isinstance(value.value, str) and not domain and re.match(r"[\w.]+\s*\(|lambda\b", value.text):
                raise ValueError("unknown range")
            one.take(value)
            found[key] = _group(one, value, *domain) if domain else value.plain()
        except (IndexError, TypeError, ValueError) as error:
            one.open(value, f"not a valid {domain[0] if domain else 'value'}: {error}")
        if found.get(key) is None:
            found.pop(key, None)
        if domain and domain[0] == "grid_search" and key in found:
            grids[key] = found[key]
    return found, grids, given


def convert(node: Node, name: str, program: str = "") -> List[Import]:
    if len(node.items()) == 1 and not _domain(node.items()[0][1]) and node.items()[0][1].has("config"):
        name, inner = node.items()[0]  # the YAML of Ray's experiments has the keys under a name
        node = inner
    one = Import(TABLE, node, name, program)
    one.set_name(node.get("name"), name)
    found, grids, nodes = _space(one, node)
    names = one.names({key: nodes[key] for key in found})
    one.set("hyperparameters", ranges.nest({names[key]: group for key, group in found.items()}))

    def at(key: str) -> Tuple[str, ...]:
        """The path of a setting."""
        places = (("tune_config", key), ("run_config", "failure_config", key), (key,))
        return next((place for place in places if node.has(*place)), (key,))

    metric = one.text(node, *at("metric"))
    one.set("searcher.metric", metric or None)
    if not metric:
        one.guess("searcher.metric", "loss", "the file has none")
    smaller = one.must(one.word, node, *at("mode"), known={"min": True, "max": False})
    one.set("searcher.smaller_is_better", smaller)
    if smaller is None:
        one.guess("searcher.smaller_is_better", True, "the file has no mode")
    samples = one.whole(node, *at("num_samples"), least=1)
    domains = {k: g for k, g in found.items() if isinstance(g, dict) and g.get("type") not in (None, "const")}
    if domains and len(grids) == len(domains):
        one.set("searcher.name", "grid")
        if samples not in (None, 1):
            one.changed(node.get(*at("num_samples")), "each point of the grid is tried once; for more, use searcher.repeats")
    else:
        one.set("searcher.name", "random")
        points = ranges.sizes(grids)[1]
        one.set("searcher.max_trials", max(samples or 1, 1) * points)
        if samples is None and points == 1:
            one.guess("searcher.max_trials", 1, "the file has no num_samples, whose default is 1")
        if grids:
            one.say(node.line, "grid_search with random ranges: all parameters are drawn at random, with the same number of trials")
    _scheduler(one, node)
    one.set("resources.workers", one.whole(node, *at("max_concurrent_trials"), least=1))
    seconds = one.real(node, *at("time_budget_s"), above=0)
    one.set("searcher.max_hours", None if seconds is None else seconds / 3600)
    one.set("max_restarts", one.whole(node, *at("max_failures"), least=0))
    for theirs, ours in (("cpu", "cpus_per_trial"), ("gpu", "slots_per_trial")):
        for key in (theirs, theirs.upper()):
            count = one.real(node, "resources_per_trial", key, above=-1e-9)
            if count is not None and count > 0:
                one.set(f"resources.{ours}", math.ceil(count))
            if count is not None and count != int(count):
                one.changed(node.get("resources_per_trial", key), f"a trial gets {math.ceil(count)}; in Ray, several trials share one")
    target.put_program(one, {key: names[key] for key in found}, program)
    return [one]


def _scheduler(one: Import, node: Node) -> None:
    given = node.get("scheduler")
    if given is None:
        return
    named = next((given.get(key) for key in ("type", "name") if given.has(key)), given)
    theirs = one.text(named)
    ours = _SCHEDULERS.get(re.sub(r"[\s_-]|scheduler$|rule$", "", theirs, flags=re.I).lower())
    if ours is None or one.keys["searcher.name"] == "grid":
        one.open(given, "dl has no such scheduler, or the search is a grid, which trains every point to the end")
        return
    one.set("searcher.name", ours)
    most = one.whole(given, "max_t", least=2) or one.whole(node, "stop", "training_iteration", least=2)
    one.set("searcher.max_length", most)
    if most is None:
        one.guess("searcher.max_length", 100, "the file has no length of a full training")
    factor = one.real(given, "reduction_factor", above=1)
    if ours in ("stopping_asha", "hyperband", "bohb"):
        one.set("searcher.divisor", None if factor is None else float(factor))
    elif factor is not None:
        one.open(given.get("reduction_factor"), f"{ours} does not have this setting")
    if ours in ("median", "pbt"):
        one.set("searcher.min_length", one.whole(given, "grace_period", least=1))
    elif given.has("grace_period"):
        one.open(given.get("grace_period"), "the first rung is max_length / divisor ^ (max_rungs - 1)")
    if ours in ("hyperband", "bohb", "pbt"):
        one.keys.pop("searcher.max_trials", None)
        one.changed(node.get("tune_config", "num_samples") or node.get("num_samples"), f"{ours} chooses the number of trials itself")
