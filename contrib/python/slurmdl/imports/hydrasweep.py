# SPDX-License-Identifier: Apache-2.0
"""Configurations of Hydra that sweep: hydra.sweeper with params or search_space, of the basic, Optuna's or Ax's sweeper.

A program of Hydra's runs its sweeps on dl as it is with hydra/sweeper=slurmdl (contrib/python/README.md); what is made
here is an experiment file that needs no Hydra where it is started.
"""

import os
import re
from typing import Any, Dict, List, Tuple

from . import ranges, target
from .document import BadInput, Node, comes_with, text_of
from .optuna import put_searcher
from .table import NONE, Import, Table, copied, left, none, under, used

# fmt: off
_SWEEPER = [
    used("params.** search_space.**", "hyperparameters", "choice, range (without its end), interval, int(), tag(log, ...), a,b,c; type, low, high, log, step, choices"),
    used("direction", "searcher.smaller_is_better"),
    used("n_trials max_trials ax_config.max_trials", "searcher.max_trials"),
    used("n_jobs max_batch_size", "resources.workers"),
    used("study_name", "name"),
    used("sampler._target_ sampler", "searcher.name"),
    used("sampler.seed seed ax_config.experiment.seed", "reproducibility.experiment_seed"),
    left("sampler.**", "a setting of Optuna's own implementation"),
    none("_target_ storage max_failure_rate", "dl searches by itself"),
    left("custom_search_space", "a program of Optuna's: searcher custom"),
    left("**", "a setting of the sweeper's own"),
]

TABLE = Table(
    "hydra",
    "Hydra sweep",
    [
        *under("hydra.sweeper", _SWEEPER),
        used("hydra.job.name", "name"),
        used("hydra.launcher.cpus_per_task", "resources.cpus_per_trial", "of the submitit launcher"),
        used("hydra.launcher.gpus_per_node", "resources.gpus_per_node"),
        used("hydra.launcher.nodes", "resources.nodes_per_trial"),
        used("hydra.launcher.tasks_per_node", "resources.ranks_per_node"),
        used("hydra.launcher.mem_gb", "resources.memory"),
        copied("hydra.launcher.partition", "resources.partition"),
        copied("hydra.launcher.account", "resources.account"),
        copied("hydra.launcher.qos", "resources.qos"),
        used("hydra.launcher.timeout_min", "resources.time"),
        used("hydra.launcher.array_parallelism", "resources.workers"),
        none("hydra.launcher._target_ hydra.launcher.submitit_folder hydra.launcher.name", "dl run submits"),
        left("hydra.launcher.**", "resources.sbatch_args"),
        none("hydra.mode hydra.sweep.** hydra.run.** hydra.output_subdir hydra.verbose", "each trial runs in its attempt's folder"),
        used("hydra.job.env_set.*", "environment"),
        left("hydra.**", "Hydra reads it in each trial from the program's own configuration"),
        none("defaults defaults.**", "Hydra reads it in each trial"),
        *_SWEEPER,
    ],
)
# fmt: on

MAX_OVERRIDE = 10_000
_CALL = re.compile(r"\s*(\w+)\s*\((.*)\)\s*", re.S)


def knows(node: Node) -> bool:
    return (
        node.has("hydra", "sweeper")
        or "hydra_plugins" in node.string("_target_")
        or "override hydra/sweeper" in str(node.plain("defaults"))
    )


# ---- overrides


def _split(text: str) -> List[str]:
    """The arguments of a call, at commas outside of brackets and quotes."""
    parts, depth, quote, start = [], 0, "", 0
    for i, c in enumerate(text):
        if quote:
            quote = "" if c == quote else quote
        elif c in "'\"":
            quote = c
        elif c in "([{":
            depth += 1
        elif c in ")]}":
            depth -= 1
        elif c == "," and depth == 0:
            parts.append(text[start:i].strip())
            start = i + 1
    return [p for p in [*parts, text[start:].strip()] if p]


def _value(text: str) -> Any:
    words = {"true": True, "false": False, "null": "null"}
    if text.lower() in words:
        return words[text.lower()]
    value = ranges.number(text)
    return (
        text[1:-1] if isinstance(value, str) and len(text) > 1 and text[0] == text[-1] and text[0] in "'\"" else value
    )


def _arguments(text: str) -> Tuple[List[str], Dict[str, str]]:
    plain, named = [], {}
    for part in _split(text):
        name, mark, value = part.partition("=")
        if mark and re.fullmatch(r"\w+", name.strip()):
            named[name.strip()] = value.strip()
        else:
            plain.append(part)
    return plain, named


def override(text: str, log: bool = False, whole: bool = False) -> Any:
    """The group for the value of an override; what is no range is a constant."""
    match = _CALL.fullmatch(text)
    if match is None:
        parts = _split(text)
        return ranges.choice([_value(p) for p in parts]) if len(parts) > 1 else _value(text)
    name, (plain, named) = match.group(1), _arguments(match.group(2))
    if name == "tag":
        return override(plain[-1], log or "log" in plain[:-1], whole)
    if name in ("int", "float"):
        return override(plain[0], log, name == "int")
    if name in ("shuffle", "sort"):
        return override(plain[0] if len(plain) == 1 else ",".join(plain), log, whole)
    if name == "choice":
        return ranges.choice([_value(p) for p in plain])
    numbers = [ranges.number(v) for v in plain]
    if name == "interval":
        low, high = (numbers + [ranges.number(named.get(k)) for k in ("start", "end")][len(numbers) :])[:2]
        both = whole or (isinstance(low, int) and isinstance(high, int))
        return ranges.integer(int(low), int(high), log=log) if both else ranges.real(low, high, log=log)
    if name == "range":
        begin, end = (
            (0, numbers[0])
            if len(numbers) == 1
            else (numbers + [ranges.number(named.get(k)) for k in ("start", "stop")])[:2]
        )
        step = numbers[2] if len(numbers) > 2 else ranges.number(named.get("step", "1"))
        count = max(int(-(-(end - begin) // step)), 0)
        last = begin + (count - 1) * step
        if all(isinstance(v, int) for v in (begin, end, step)):
            return ranges.integer(begin, last, log=log, step=None if log else step)
        return ranges.real(begin, last, log=log, step=None if log or count < 2 else float(step))
    raise ValueError(f"there is no {name}() of a sweep: choice, range, interval")


def _mapping(keys: Dict[str, Any]) -> Any:
    """Optuna's and Ax's entries of search_space and params."""
    kind = str(keys.get("type", ""))
    if kind in ("categorical", "choice"):
        return ranges.choice(keys["choices"] if "choices" in keys else keys["values"])
    if kind == "fixed":
        return keys["value"]
    low, high = keys.get("bounds", [keys.get("low"), keys.get("high")])
    log = keys.get("log") is True or keys.get("log_scale") is True
    if kind == "int" or (kind == "range" and isinstance(low, int) and isinstance(high, int)):
        return ranges.integer(low, high, log=log, step=None if log else keys.get("step"))
    return ranges.real(low, high, log=log, step=None if log else keys.get("step"))


def _parameter(one: Import, node: Node) -> Any:
    try:
        if isinstance(node.value, dict):
            return _mapping(node.plain())
        if len(node.text) > MAX_OVERRIDE:
            raise ValueError(f"more than {MAX_OVERRIDE} characters")
        return override(node.text) if isinstance(node.value, str) else node.plain()
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
        one.open(node, f"no range: {error}")
        return None


# ---- the experiment


def _sweeper(node: Node) -> Node:
    return node.get("hydra", "sweeper") or node


def _parameters(one: Import, sweeper: Node) -> Dict[str, Any]:
    found = {}
    for place in ("params", "search_space"):
        for name, given in sweeper.items(place) or sweeper.items("ax_config", place):
            value = _parameter(one, given)
            if value is not None:
                found[name] = value
    return found


def _launcher(one: Import, node: Node) -> None:
    launcher = node.get("hydra", "launcher") or Node("", 0, {})
    for theirs, ours in (
        ("cpus_per_task", "cpus_per_trial"),
        ("gpus_per_node", "gpus_per_node"),
        ("nodes", "nodes_per_trial"),
        ("tasks_per_node", "ranks_per_node"),
        ("array_parallelism", "workers"),
    ):
        one.set(f"resources.{ours}", launcher.integer(theirs, least=2 if theirs in ("nodes", "tasks_per_node") else 1))
    memory, minutes = launcher.integer("mem_gb"), launcher.integer("timeout_min")
    one.set("resources.memory", None if memory is None else f"{memory}G")
    one.set("resources.time", None if minutes is None else str(minutes))
    for name, value in node.items("hydra", "job", "env_set"):
        if not one.variable(name, value.text):
            one.open(value, "no name of a variable that libconfig takes")


def _program(file: str) -> Tuple[str, str]:
    """(folder to run in, program): the one script with @hydra.main beside the file, or one folder up."""
    here = os.path.dirname(file) or "."
    for folder, way in ((here, ""), (os.path.join(here, ".."), "..")):
        found = []
        try:
            names = sorted(n for n in os.listdir(folder) if n.endswith(".py"))[:100]
        except OSError:
            continue
        for name in names:
            try:
                path = os.path.join(folder, name)
                if comes_with(file, path) and re.search(r"^@hydra\.main\b", text_of(path), re.M):
                    found.append(name)
            except (BadInput, OSError):
                continue
        if len(found) == 1 and re.fullmatch(r"[\w.-]+", found[0], re.A):
            return way, found[0]
    return "", ""


def convert(node: Node, name: str, program: str = "") -> List[Import]:
    one, sweeper = Import(TABLE, node, name, program), _sweeper(node)
    own = sweeper.string("study_name") or node.string("hydra", "job", "name") or name
    one.set_name(own, "sweep")
    found = _parameters(one, sweeper)
    names = ranges.names_of(list(found))
    one.set("hyperparameters", ranges.nest({names[key]: group for key, group in found.items()}))
    one.set("searcher.metric", "result", "what the program's function returns: slurmdl.hydra.LogResult logs it")
    one.variable("HYDRA_FULL_ERROR", "1")
    for key, value in node.items() if node.has("hydra") else ():
        if key not in ("hydra", "defaults"):
            one.mark(value, NONE, "the program's own configuration: Hydra reads it in each trial")
    one.set("searcher.smaller_is_better", "max" not in sweeper.string("direction").lower())
    target_ = sweeper.string("_target_")
    default = (
        "tpe"
        if "ptuna" in target_ or sweeper.has("n_trials")
        else "gp" if "ax" in target_.lower().split("_") or sweeper.has("ax_config") else "grid"
    )
    sampler = sweeper.string("sampler", "_target_").rpartition(".")[2] or sweeper.string("sampler")
    put_searcher(one, sampler, "", default)
    counts = (sweeper.integer(*path) for path in (("n_trials",), ("max_trials",), ("ax_config", "max_trials")))
    trials = next((n for n in counts if n is not None), None)
    if one.keys["searcher.name"] == "grid" and not ranges.sizes(found)[0]:
        one.set("searcher.name", "random")
    if one.keys["searcher.name"] != "grid":
        one.set("searcher.max_trials", trials or 20, "" if trials else "the file names none")
    one.set("resources.workers", sweeper.integer("n_jobs", least=1))
    seed = sweeper.integer("seed") if sweeper.plain("sampler", "seed") is None else sweeper.integer("sampler", "seed")
    one.set("reproducibility.experiment_seed", seed)
    _launcher(one, node)
    words = [key + "=" + target.place(names[key]) for key in found]
    folder, script = _program(node.file)
    start = program.split() or ["python3", script or "main.py"]
    own_words = ["hydra.mode=RUN", "hydra.run.dir=" + target.place("attempt_dir")]
    own_words.append("++hydra.callbacks.slurmdl._target_=slurmdl.hydra.LogResult")
    target.put_entrypoint(one, [*start, *words, *own_words], "" if program else folder)
    if not program and not script:
        one.say(0, "the file does not name the program: change entrypoint, or give --entrypoint")
    return [one]
