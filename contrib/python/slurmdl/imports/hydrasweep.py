# SPDX-License-Identifier: Apache-2.0
"""Sweeps of Hydra: params or search_space of hydra.sweeper, for Hydra's own, Optuna's and Ax's sweeper.

With hydra/sweeper=slurmdl (contrib/python/README.md), a Hydra program runs its sweeps on dl directly.  The experiment
files that this module writes do not need Hydra where they are started.
"""

import math
import os
import re
from decimal import Decimal
from typing import Any, Dict, List, Tuple

from . import ranges, target
from .document import BadInput, Node, comes_with, text_of
from .optuna import put_searcher
from .table import INTERPOLATION, MAPPED, NONE, Import, Table, copied, itself, left, none, under, used

# fmt: off
_SWEEPER = [
    used("params.** search_space.**", "hyperparameters", "choice, range (OptunaSweeper includes its end, others do not), interval, int(), tag(log, ...), a,b,c; type, low, high, log, step, choices"),
    used("direction ax_config.experiment.minimize", "searcher.smaller_is_better"),
    used("ax_config.params.**", "hyperparameters", "the same, for Ax"),
    used("n_trials max_trials ax_config.max_trials", "searcher.max_trials"),
    used("n_jobs max_batch_size", "resources.workers"),
    used("study_name", "name"),
    used("sampler._target_ sampler", "searcher.name"),
    used("sampler.seed seed ax_config.experiment.seed", "reproducibility.experiment_seed"),
    left("sampler.**", "a setting of Optuna's implementation"),
    none("_target_ storage max_failure_rate", "dl does the search"),
    left("custom_search_space", "Python code for Optuna: use searcher custom"),
    left("**", "a setting of the sweeper's implementation"),
]

TABLE = Table(
    "hydra",
    "Hydra sweep",
    [
        *under("hydra.sweeper", _SWEEPER),
        used("hydra.job.name", "name"),
        used("hydra.launcher.cpus_per_task", "resources.cpus_per_trial", "for the submitit launcher"),
        used("hydra.launcher.gpus_per_node", "resources.gpus_per_node"),
        used("hydra.launcher.nodes", "resources.nodes_per_trial"),
        used("hydra.launcher.tasks_per_node", "resources.ranks_per_node"),
        used("hydra.launcher.mem_gb", "resources.memory"),
        copied("hydra.launcher.partition", "resources.partition"),
        copied("hydra.launcher.account", "resources.account"),
        copied("hydra.launcher.qos", "resources.qos"),
        used("hydra.launcher.timeout_min", "resources.time"),
        used("hydra.launcher.array_parallelism", "resources.workers"),
        none("hydra.launcher._target_ hydra.launcher.submitit_folder hydra.launcher.name", "dl run submits the job"),
        left("hydra.launcher.**", "resources.sbatch_args"),
        none("hydra.mode hydra.sweep.** hydra.run.** hydra.output_subdir hydra.verbose", "each trial runs in its attempt's folder"),
        used("hydra.job.env_set.*", "environment"),
        left("hydra.**", "Hydra reads it in each trial from the program's configuration"),
        none("defaults defaults.**", "Hydra reads it in each trial; hydra/sweeper and its sampler set searcher.name"),
        *_SWEEPER,
    ],
    foreign=INTERPOLATION,
)
# fmt: on

MAX_OVERRIDE = 10_000
_CALL = re.compile(r"\s*(\w+)\s*\((.*)\)\s*", re.S)
BASIC, OPTUNA, AX = "basic", "optuna", "ax"


def knows(node: Node) -> bool:
    return (
        node.has("hydra", "sweeper")
        or "hydra_plugins" in node.string("_target_")
        or "override hydra/sweeper" in str(node.plain("defaults"))
    )


# ---- overrides


def _split(text: str) -> List[str]:
    """Split the arguments of a call at commas outside brackets and quotes."""
    parts, depth, quote, start = [], 0, "", 0
    i = 0
    while i < len(text):
        c = text[i]
        if c == "\\":
            i += 1
        elif quote:
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
        i += 1
    if quote or depth:
        raise ValueError(f"{quote or 'a bracket'} is not closed")
    return [p for p in [*parts, text[start:].strip()] if p]


def _escaped(text: str) -> str:
    """A string as Hydra's own sweeper writes it into an override: with escapes instead of quotes."""
    return re.sub(r"([\\()\[\]{}:=, \t])", r"\\\1", text)


def _value(text: str, quotes: bool = False) -> Any:
    """A value of an override.  choice() removes quotes; with 'quotes' they stay, as in a,b,c and in a single value."""
    words = {"true": True, "false": False, "null": "null"}
    if text.lower() in words:
        return words[text.lower()]
    if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"":
        return text if quotes else _escaped(text[1:-1].replace("\\" + text[0], text[0]))
    return ranges.number(text)


def _arguments(text: str, names: str) -> List[str]:
    """The arguments of a call in the order of 'names'; some may be given by name."""
    wanted = names.split()
    found: Dict[str, str] = {}
    for i, part in enumerate(_split(text)):
        name, mark, value = part.partition("=")
        if not mark:
            name, value = wanted[i] if i < len(wanted) else part, part
        if name.strip() not in wanted or name.strip() in found:
            raise ValueError(f"'{part[:40]}' is not one of the arguments ({', '.join(wanted)})")
        found[name.strip()] = value.strip()
    return [found.get(name, "") for name in wanted]


def _number(text: str) -> Any:
    value = ranges.number(text)
    if isinstance(value, str):
        raise ValueError(f"'{text[:40]}' is not a number")
    return value


class Sweep:
    """An override with a range, as a sweeper reads it."""

    def __init__(self, sweeper: str) -> None:
        self.sweeper = sweeper
        self.log, self.cast = False, ""
        self.meant = False  # an interval with integer ends: integers for the sweeper, floats in Hydra's grammar

    def group(self, text: str) -> Any:
        """The group for the value of an override; a value without a range is a constant."""
        if "${" in text:
            raise ValueError("contains an interpolation: write the value")
        match = _CALL.fullmatch(text)
        if match is None:
            parts = _split(text)
            return ranges.choice([_value(p, True) for p in parts]) if len(parts) > 1 else _value(text.strip(), True)
        name, inside = match.groups()
        if name == "tag":
            *tags, inner = _split(inside)
            self.log = self.log or "log" in tags
            return self.group(inner)
        if name in ("int", "float"):
            self.cast = name
            return self.group(inside)
        if name in ("shuffle", "sort"):
            parts = [p for p in _split(inside) if not re.match(r"(list|reverse)\s*=", p)]
            return self.group(",".join(parts))
        if name == "choice":
            return ranges.choice([self.casted(_value(p)) for p in _split(inside)])
        if name == "interval":
            return self.interval(*map(_number, _arguments(inside, "start end")))
        if name == "range":
            start, stop, step = _arguments(inside, "start stop step")
            if not stop:
                start, stop = "0", start
            return self.range(_number(start), _number(stop), _number(step or "1"))
        raise ValueError(f"unknown function {name}(): use choice, range or interval")

    def casted(self, value: Any) -> Any:
        return {"int": int, "float": float}[self.cast](value) if self.cast and not isinstance(value, bool) else value

    def interval(self, low: Any, high: Any) -> Dict[str, Any]:
        if self.sweeper == BASIC:
            raise ValueError("Hydra's own sweeper has no interval()")
        self.meant = not self.cast and isinstance(low, int) and isinstance(high, int)
        if self.cast == "int" or self.meant:
            return ranges.integer(int(low), int(high), log=self.log)
        return ranges.real(float(low), float(high), log=self.log)

    def range(self, begin: Any, end: Any, step: Any) -> Dict[str, Any]:
        """Optuna's sweeper includes the end; Hydra's own and Ax's do not."""
        if not step:
            raise ValueError("the step is 0")
        gap = Decimal(str(end)) - Decimal(str(begin))
        count = gap / Decimal(str(step))
        whole = int(count) + 1 if self.sweeper == OPTUNA or count % 1 else int(count)
        last = Decimal(str(begin)) + (whole - 1) * Decimal(str(step))
        if whole < 1:
            raise ValueError(f"{begin} to {end} in steps of {step} has no values")
        low, high, by = sorted((Decimal(str(begin)), last)) + [abs(Decimal(str(step)))]
        if self.cast == "int" or (not self.cast and all(isinstance(v, int) for v in (begin, end, step))):
            if by % 1 or low % 1:
                raise ValueError("int() of a range whose values are not integers")
            return ranges.integer(int(low), int(high), step=int(by) if whole > 1 else None)
        return ranges.real(float(low), float(high), step=float(by) if whole > 1 else None)


_TYPES = itself("categorical choice fixed int float range")


def _mapping(one: Import, node: Node) -> Any:
    """An entry of search_space or params for Optuna or Ax."""
    kind = one.word(node, "type", known=_TYPES)
    if kind is None:
        raise ValueError("unknown type")
    if kind in ("categorical", "choice"):
        values = one.values(node, "choices" if node.has("choices") else "values")
        return ranges.choice(["null" if v is None else v for v in values])
    if kind == "fixed":
        if not node.has("value"):
            raise ValueError("value is missing")
        return one.take(node, "value").plain()  # type: ignore[union-attr]
    if node.has("bounds"):
        ends = one.take(node, "bounds").plain()  # type: ignore[union-attr]
        low, high = ends if isinstance(ends, list) and len(ends) == 2 else (None, None)
    else:
        low, high = one.real(node, "low"), one.real(node, "high")
    if not all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in (low, high)):
        raise ValueError("the ends are not numbers")
    log = one.truth(node, "log") is True or one.truth(node, "log_scale") is True
    numbers = one.word(node, "value_type", known={"int": "int", "float": "float"})
    whole = kind == "int" or numbers == "int" or (kind == "range" and not numbers and type(low) is int and type(high) is int)
    step = one.real(node, "step") if node.has("step") else None
    if log and step not in (None, 1):
        one.changed(node.get("step"), "a logarithmic range has no steps")
        step = None
    step = None if log else step
    if whole:
        if step is not None and step != int(step):
            raise ValueError(f"{step} is not a step between integers")
        return ranges.integer(low, high, log=log, step=None if step is None else int(step))
    return ranges.real(low, high, log=log, step=None if step is None else float(step))  # type: ignore[arg-type]


def _parameter(one: Import, node: Node, sweeper: str) -> Any:
    try:
        if isinstance(node.value, dict):
            return _mapping(one, node)
        if len(node.text) > MAX_OVERRIDE:
            raise ValueError(f"more than {MAX_OVERRIDE} characters")
        if isinstance(node.value, list):
            raise ValueError("a list: use choice(...)")
        sweep = Sweep(sweeper)
        value = sweep.group(node.text) if isinstance(node.value, str) else "null" if node.value is None else node.value
        one.take(node)
        if sweep.meant:
            one.changed(node, "integers, as in OptunaSweeper for integer ends; Hydra 1.3 samples floats: for these, write 1.0")
        return value
    except (KeyError, IndexError, TypeError, ValueError, ArithmeticError, AttributeError) as error:
        one.open(node, f"not a valid range: {error}")
        return None


# ---- the experiment


def _sweeper(node: Node) -> Node:
    return node.get("hydra", "sweeper") or node


def _parameters(one: Import, sweeper: Node, kind: str) -> Dict[str, Any]:
    found: Dict[str, Any] = {}
    given: Dict[str, Node] = {}
    for place in ("search_space", "params"):
        for name, node in sweeper.items(place) or sweeper.items("ax_config", place):
            if name in given:
                one.open(given[name], "params also has this parameter and takes precedence")
            given[name] = node
    for name, node in given.items():
        value = _parameter(one, node, kind)
        if value is not None:
            found[name] = value
    return found


def _defaults(one: Import, node: Node) -> Dict[str, str]:
    """The choices in the list of defaults for Hydra's own groups: {"hydra/sweeper": "optuna"}."""
    chosen: Dict[str, str] = {}
    for _, entry in node.items("defaults"):
        for key, value in entry.items() if isinstance(entry.value, dict) else ():
            match = re.fullmatch(r"(?:override +)?/?(hydra/\w+(?:/\w+)?)(@\S*)?", key)
            if match and match.group(1).startswith(("hydra/sweeper", "hydra/launcher")):
                if value.value is not None:
                    chosen[match.group(1)] = value.text
                one.take(value)
                one.mark(value, MAPPED, "")
    return chosen


_SWEEPERS = {"basic": BASIC, "optuna": OPTUNA, "ax": AX, "slurmdl": BASIC}


def _kind(one: Import, node: Node, sweeper: Node, chosen: Dict[str, str]) -> str:
    """The sweeper: by its class, by the defaults, or by keys that only it has."""
    target_, name = sweeper.string("_target_"), chosen.get("hydra/sweeper", "")
    known = {"BasicSweeper": BASIC, "OptunaSweeper": OPTUNA, "AxSweeper": AX}
    if target_:
        kind = known.get(target_.rpartition(".")[2])
        if kind is None:
            one.refuse(sweeper.get("_target_") or sweeper, f"{target_}: unknown sweeper: must be one of {', '.join(known)}")
        if name and _SWEEPERS.get(name) != kind:
            one.open(node.get("defaults"), f"hydra/sweeper is {name}, but _target_ is {target_}, which takes precedence")
        return kind
    if name:
        if name not in _SWEEPERS:
            one.refuse(node.get("defaults") or node, f"hydra/sweeper {name}: unknown sweeper: must be one of {', '.join(_SWEEPERS)}")
        return _SWEEPERS[name]
    if sweeper.has("ax_config"):
        return AX
    return OPTUNA if any(map(sweeper.has, ("n_trials", "sampler", "study_name", "direction", "search_space"))) else BASIC


def _launcher(one: Import, node: Node) -> None:
    launcher = node.get("hydra", "launcher") or Node("", 0, {})
    for theirs, ours in (
        ("cpus_per_task", "cpus_per_trial"),
        ("gpus_per_node", "gpus_per_node"),
        ("nodes", "nodes_per_trial"),
        ("tasks_per_node", "ranks_per_node"),
        ("array_parallelism", "workers"),
    ):
        count = one.whole(launcher, theirs, least=0 if theirs == "gpus_per_node" else 1)
        alone = 1 if theirs in ("nodes", "tasks_per_node") else 0
        one.set(f"resources.{ours}", None if count is None or count <= alone else count)
    memory, minutes = one.real(launcher, "mem_gb", above=0), one.whole(launcher, "timeout_min", least=1)
    if memory is not None:
        one.set("resources.memory", f"{memory}G" if memory == int(memory) else f"{math.ceil(memory * 1024)}M")
    one.set("resources.time", None if minutes is None else str(minutes))
    for name, value in node.items("hydra", "job", "env_set"):
        if not one.variable(name, one.text(value)):
            one.open(value, "libconfig does not allow this name of a variable")


def _program(file: str) -> Tuple[str, str]:
    """(folder to run in, program): the only script with @hydra.main beside the file or one folder above."""
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


_DIRECTIONS = {"minimize": True, "maximize": False}


def _searcher(one: Import, node: Node, sweeper: Node, kind: str, chosen: Dict[str, str], found: Dict[str, Any]) -> None:
    direction = sweeper.get("direction")
    if direction is not None and isinstance(direction.value, list):
        one.refuse(direction, "direction: several objectives, but the function of a program has one result here")
    smaller = one.must(one.word, sweeper, "direction", known=_DIRECTIONS)
    if smaller is None and kind == AX:
        smaller = one.truth(sweeper, "ax_config", "experiment", "minimize")
    one.set("searcher.smaller_is_better", smaller is not False)
    if smaller is None:
        one.guess("searcher.smaller_is_better", True, "the file has no direction")
    inside = isinstance(getattr(sweeper.get("sampler"), "value", None), dict)
    sampler = one.text(sweeper, "sampler", "_target_") if inside else one.text(sweeper, "sampler")
    sampler = sampler.rpartition(".")[2] or chosen.get("hydra/sweeper/sampler", "")
    put_searcher(one, sweeper.get("sampler", "_target_") or sweeper.get("sampler") or node.get("defaults"), sampler, None, {OPTUNA: "tpe", AX: "gp"}.get(kind, "grid"))
    paths = (("n_trials",), ("max_trials",), ("ax_config", "max_trials"))
    trials = next((n for n in [one.whole(sweeper, *path, least=1) for path in paths] if n is not None), None)
    if one.keys.get("searcher.name") == "grid" and not ranges.sizes(found)[0]:
        one.set("searcher.name", "random")
        one.say(node.line, "the grid has a range without steps: the points are random")
    if one.keys.get("searcher.name") != "grid":
        one.set("searcher.max_trials", trials)
        if trials is None:
            one.guess("searcher.max_trials", 20, "the file has none; 20 is the sweeper's own default")
    elif trials is not None and trials < ranges.sizes(found)[1]:
        one.say(node.line, f"{trials} trials of a grid: here all {ranges.sizes(found)[1]} points are tried, unless dl stop ends it")
    one.set("resources.workers", one.whole(sweeper, "n_jobs", least=1) or one.whole(sweeper, "max_batch_size", least=1))
    places = (("sampler", "seed"), ("seed",), ("ax_config", "experiment", "seed"))
    seeds = [n for n in [one.whole(sweeper, *path, least=0) for path in places] if n is not None]
    one.set("reproducibility.experiment_seed", seeds[0] if seeds else None)


def convert(node: Node, name: str, program: str = "") -> List[Import]:
    one, sweeper = Import(TABLE, node, name, program), _sweeper(node)
    one.set_name(sweeper.get("study_name") if sweeper.string("study_name") else node.get("hydra", "job", "name"), name)
    chosen = _defaults(one, node)
    kind = _kind(one, node, sweeper, chosen)
    if sweeper.has("_target_"):
        one.take(sweeper, "_target_")
    found = _parameters(one, sweeper, kind)
    if not found:
        one.refuse(sweeper, "no parameter in params or search_space could be converted: there is nothing to search")
    names = one.names({key: _given(sweeper, key) for key in found})
    one.set("hyperparameters", ranges.nest({names[key]: group for key, group in found.items()}))
    one.set("searcher.metric", "result", "the result of the program's function; slurmdl.hydra.LogResult logs it")
    one.variable("HYDRA_FULL_ERROR", "1")
    for key, value in node.items() if node.has("hydra") else ():
        if key not in ("hydra", "defaults"):
            one.mark(value, NONE, "the program's own configuration, which Hydra reads in each trial")
    _searcher(one, node, sweeper, kind, chosen, found)
    _launcher(one, node)
    words = [key + "=" + target.place(names[key]) for key in found]
    folder, script = _program(node.file)
    start = program.split() or ["python3", script or "main.py"]
    own_words = ["hydra.mode=RUN", "hydra.run.dir=" + target.place("attempt_dir")]
    own_words.append("++hydra.callbacks.slurmdl._target_=slurmdl.hydra.LogResult")
    target.put_entrypoint(one, [*start, *words, *own_words], "" if program else folder)
    if not program and not script:
        one.say(0, "the file does not name the program: edit entrypoint, or pass --entrypoint")
    return [one]


def _given(sweeper: Node, key: str) -> Node:
    """The node of a parameter, whose name may contain dots."""
    places = [sweeper.get(*place) for place in (("params",), ("search_space",), ("ax_config", "params"), ("ax_config", "search_space"))]
    return next(dict(place.items())[key] for place in places if place is not None and key in dict(place.items()))
