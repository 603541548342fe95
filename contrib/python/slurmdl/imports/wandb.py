# SPDX-License-Identifier: Apache-2.0
"""Sweeps of Weights & Biases: the YAML of `wandb sweep`."""

import json
import math
import os
import re
import shlex
from typing import Any, Dict, List, Optional, Tuple

from . import ranges, target
from .document import MAX_NODES, BadInput, Node, text_of
from .table import CHANGED, MAPPED, Import, Table, changed, copied, itself, left, none, used

# fmt: off
TABLE = Table(
    "wandb",
    "wandb sweep",
    [
        used("program", "entrypoint"),
        used("command command.**", "entrypoint", "${args_json_file} becomes {attempt_dir}/hparams.json; WANDB_SWEEP_PARAM_PATH sets wandb.config"),
        used("name", "name"),
        copied("description", "description"),
        changed("method", "searcher.name", "bayes becomes gp, with expected improvement"),
        copied("metric.name", "searcher.metric"),
        used("metric.goal", "searcher.smaller_is_better"),
        copied("metric.target", "searcher.goal"),
        left("metric.impute metric.impute_while_running", "a failed trial has no value"),
        used("run_cap", "searcher.max_trials"),
        used("parameters.**", "hyperparameters", "value, values, min, max, distribution, mu, sigma, q, nested parameters; booleans become the strings True and False, as in wandb; with ${args_no_boolean_flags}, --NAME or nothing"),
        changed("early_terminate.type", "searcher.name", "stopping_asha with the sampler of the method, in one bracket; wandb counts logged values"),
        used("early_terminate.max_iter early_terminate.min_iter", "searcher.max_length"),
        used("early_terminate.eta", "searcher.divisor"),
        used("early_terminate.s", "searcher.max_rungs"),
        left("early_terminate.**", "rungs compare only the metric"),
        none("project entity settings.** controller.**", "for wandb's server"),
        left("job image_uri queue resource resource_args.**", "the file does not contain the command of a trial: pass it with --entrypoint"),
        used("scheduler.num_workers", "resources.workers"),
        none("scheduler.job scheduler.resource scheduler.settings.verbose_logging", "for wandb launch: dl does the search"),
        left("scheduler.**", "a searcher of another library: set searcher.name, or import its space"),
        none("launch.** enabled", "for wandb's server"),
    ],
)
# fmt: on

_METHODS = {"grid": "grid", "random": "random", "bayes": "gp"}
_GOALS = {"minimize": True, "maximize": False}
# the keys of each distribution
_ENDS, _BELL, _STEPS = ("min", "max"), ("mu", "sigma"), ("q",)
_DISTRIBUTIONS = {
    "uniform": _ENDS, "int_uniform": _ENDS, "q_uniform": _ENDS + _STEPS,
    "log_uniform": _ENDS, "log_uniform_values": _ENDS, "inv_log_uniform": _ENDS, "inv_log_uniform_values": _ENDS,
    "q_log_uniform": _ENDS + _STEPS, "q_log_uniform_values": _ENDS + _STEPS,
    "normal": _BELL, "q_normal": _BELL + _STEPS, "log_normal": _BELL, "q_log_normal": _BELL + _STEPS,
    "categorical": (), "categorical_w_probabilities": (), "constant": (),
}  # fmt: skip


def knows(node: Node) -> bool:
    words = ("program", "method", "command", "job", "metric", "early_terminate", "run_cap")
    return isinstance(getattr(node.get("parameters"), "value", None), dict) and any(map(node.has, words))


# ---- the space


def _stepped(low: float, high: float, q: Any) -> Dict[str, Any]:
    """A range of multiples of q, to which wandb rounds: integers if q is an integer."""
    first, last = round(low / q), round(high / q)
    if isinstance(q, int):
        return ranges.integer(first * q, last * q, step=q)
    if first == last:
        return ranges.constant(first * q)
    return ranges.real(round(first * q, 12), round(last * q, 12), step=float(q))


def _in_steps(one: Import, node: Node, group: Dict[str, Any], q: Any) -> Dict[str, Any]:
    """A logarithmic or normal distribution that wandb rounds to multiples of q."""
    if group["type"] == "const":
        return group
    if not isinstance(q, int):
        one.changed(node, "values are not rounded to multiples of q")
        return group
    low, high = round(group["minval" if "minval" in group else "min"]), round(group["maxval" if "maxval" in group else "max"])
    log = group["type"] == "loguniform"
    if q > 1:
        one.changed(node, "the values are integers, but not only multiples of q")
    if log and "deviation" in group:
        one.changed(node, "an integer has a logarithmic range or a deviation, not both")
    bell = {name: group[name] for name in ("mean", "deviation") if name in group and not log}
    return ranges.integer(max(low, 1) if log else low, high, log=log, **bell)


def _distribution(one: Import, node: Node, kind: str, n: Dict[str, Any]) -> Dict[str, Any]:
    log, q = "log" in kind, n.get("q", 1) if kind.startswith("q_") else None
    if kind.endswith("normal"):
        # in wandb it is unbounded
        mean, sigma = n.get("mu", 0.0), n.get("sigma", 1.0)
        low, high = mean - 4 * sigma, mean + 4 * sigma
        one.changed(node, "a normal distribution is cut off at four deviations")
        if log:
            low, high, mean = math.exp(low), math.exp(high), math.exp(mean)
            group = ranges.real(low, high, log=True, mean=mean, deviation=sigma / math.log(10))
        else:
            group = ranges.real(low, high, mean=mean, deviation=sigma)
        return group if q is None else _in_steps(one, node, group, q)
    if "min" not in n or "max" not in n:
        raise ValueError("min and max are missing")
    low, high = n["min"], n["max"]
    if log and not kind.endswith("values"):
        low, high = math.exp(low), math.exp(high)
        low, high = (1 / high, 1 / low) if kind.startswith("inv") else (low, high)
    if log:  # 1 / x has the same distribution
        group = ranges.real(low, high, log=True)
        return group if q is None else _in_steps(one, node, group, q)
    if kind == "int_uniform":
        return ranges.integer(low, high)
    return ranges.real(low, high) if q is None else _stepped(low, high, q)


def _kind(one: Import, node: Node) -> str:
    """The distribution; if it is not named, the other keys show it."""
    known = itself(" ".join([*_DISTRIBUTIONS, "beta", "q_beta"]))
    if node.has("distribution"):
        kind = one.word(node, "distribution", known=known)
        if kind is None or kind.endswith("beta"):
            raise ValueError("dl has no beta distribution" if kind else "unknown distribution")
        return kind
    if node.has("mu") or node.has("sigma"):
        return "normal"
    both = all(type(node.plain(name)) is int for name in _ENDS)
    return "int_uniform" if both else "uniform"


def _values(one: Import, node: Node) -> Optional[List[Any]]:
    """The values of a choice or a constant; None for a range."""
    if "values" in node.value:
        if node.has("probabilities"):
            one.take(node, "probabilities")
            one.changed(node.get("probabilities"), "all values are equally likely")
        return one.values(node, "values")
    return [one.take(node, "value").plain()] if "value" in node.value else None  # type: ignore[union-attr]


def _range(one: Import, node: Node) -> Dict[str, Any]:
    kind = _kind(one, node)
    n: Dict[str, Any] = {}
    for name in _DISTRIBUTIONS[kind]:
        if node.has(name):
            n[name] = one.need(node, name)
    return _distribution(one, node, kind, n)


class Parameter:
    """A parameter with its values or its range."""

    def __init__(self, key: str, ours: str, node: Node) -> None:
        self.key, self.ours, self.node = key, ours, node
        self.values: Optional[List[Any]] = None
        self.group: Optional[Dict[str, Any]] = None
        self.flag = False  # a boolean becomes an argument or nothing

    def read(self, one: Import) -> None:
        try:
            if not isinstance(self.node.value, dict):
                raise ValueError("a parameter must have value, values, or min and max")
            self.values = _values(one, self.node)
            if self.values is None:
                self.group = _range(one, self.node)
                return
            if self.node.has("distribution"):
                _kind(one, self.node)
            self.group = ranges.choice([ranges.truths(v) for v in self.values])
            if any(isinstance(v, str) and v in ("True", "False", "None") for v in self.values):
                one.changed(self.node, "a string that reads like a boolean or None: wandb.config has that value")
        except (KeyError, TypeError, ValueError, ZeroDivisionError, OverflowError) as error:
            one.open(self.node, f"not a valid range: {error}")

    def is_truth(self) -> bool:
        return any(isinstance(v, bool) for v in self.values or [])

    def make_flag(self) -> None:
        """Pass --NAME for true and nothing for false: ${args_no_boolean_flags}."""
        words = {True: f"--{self.key}", False: ranges.NULL}
        self.flag = True
        self.group = ranges.choice([words[v] if isinstance(v, bool) else f"--{self.key}={v}" for v in self.values or []])


def _flat(one: Import, node: Node, prefix: str = "") -> Dict[str, Node]:
    """Parameters by name; names in groups have dots."""
    found = {}
    for name, parameter in node.items("parameters"):
        if parameter.has("parameters"):
            found.update(_flat(one, parameter, f"{prefix}{name}."))
        else:
            found[prefix + name] = parameter
    return found


# ---- the command


# how each macro passes a parameter: the prefix of its name, and whether name and value are two words
_MACROS = {
    "args": ("--", False),
    "args_no_boolean_flags": ("--", False),
    "args_no_hyphens": ("", False),
    "args_no_equals": ("--", True),
    "args_append_hydra": ("+", False),
    "args_override_hydra": ("++", False),
}


def _words(one: Import, node: Node, parameters: List[Parameter]) -> Tuple[List[str], bool]:
    """The words of the command, and whether they pass the parameters."""
    given = node.get("command")
    words = ["${env}", "${interpreter}", "${program}", "${args}"]
    if given is not None and isinstance(given.value, str):
        words = one.text(given).split()
        one.changed(given, "a single string, which is split at spaces")
    elif given is not None:
        words = list(one.texts(given) or words)
    program = one.text(node, "program")
    made: List[str] = []
    handed = False
    for word in words:
        name = word[2:-1] if word.startswith("${") and word.endswith("}") else ""
        if name == "program" or (not name and word == program):
            made += [program] if program else []
            if not program:
                one.changed(given, "${program}: the file has no program")
        elif name == "interpreter":
            made += ["python"] if program.endswith(".py") else []
        elif name in _MACROS:
            handed = True
            made += _arguments(one, name, parameters)
        elif name == "args_json_file":
            handed = True
            made.append(target.place("attempt_dir") + "/hparams.json")
        elif name in ("args_json", "args_dict"):
            one.open(given, f"{word}: the training script finds them in {{attempt_dir}}/hparams.json (dl-trainer(7))")
        elif name.startswith("envvar:") or not name:
            made.append(re.sub(r"\$\{envvar:(\w+)\}", r"$(\1)", word))
        elif name != "env":
            one.open(given, f"{word} is not a macro of wandb")
        if len(made) > MAX_NODES:
            raise ValueError(f"the command has more than {MAX_NODES} words")
    return made, handed


def _arguments(one: Import, macro: str, parameters: List[Parameter]) -> List[str]:
    """The words that a macro becomes."""
    mark, apart = _MACROS[macro]
    made = []
    for parameter in parameters:
        place = target.place(parameter.ours)
        if macro == "args_no_boolean_flags" and parameter.is_truth():
            parameter.make_flag()
            vals = (parameter.group or {}).get("vals")
            if vals:
                made.append(target.optional(parameter.ours))
            elif parameter.group and parameter.group["val"] != ranges.NULL:
                made.append(place)
        elif apart:
            made += [mark + parameter.key, place]
        else:
            made.append(f"{mark}{parameter.key}={place}")
        if "." in parameter.key:
            one.changed(parameter.node, f"becomes the argument {mark}{parameter.key}; wandb passes the group as one dictionary")
    return made


# a program for the trial: converts the file of hyperparameters to the one from which wandb.config is read
_CONFIG = """import json, os

def text(v):
    if isinstance(v, dict):
        return "{" + ", ".join(json.dumps(k) + ": " + text(x) for k, x in v.items()) + "}"
    if isinstance(v, list):
        return "[ " + ", ".join(map(text, v)) + " ]"
    return "%.16e" % v if isinstance(v, float) else WORDS.get(v) or json.dumps(v) if isinstance(v, str) else json.dumps(v)

WORDS = {"True": "true", "False": "false", "None": "null"}
hp = json.load(open(os.environ["DL_HPARAMS"]))
"""


def _config(parameters: List[Parameter]) -> str:
    """A command that writes the file WANDB_SWEEP_PARAM_PATH."""
    names: Dict[str, str] = {}
    for p in parameters:
        names.setdefault(p.ours.partition(".")[0], p.key.partition(".")[0] if "." in p.ours else p.key)
    flags = [p.ours for p in parameters if p.flag]
    text = _CONFIG
    if flags:
        text += f"hp.update((name, hp[name] is not None) for name in {json.dumps(flags)})\n"
    items = f"(name, hp[ours]) for ours, name in {json.dumps(names)}.items()"
    text += f'print(text(dict((name, dict(value=v)) for name, v in ({items}))), file=open(os.environ["WANDB_SWEEP_PARAM_PATH"], "w"))'
    return "python3 -c " + shlex.quote(text)


def _reads_config(node: Node) -> bool:
    """Whether the program reads wandb.config, as far as known: true if it does not exist."""
    path = os.path.join(os.path.dirname(node.file), node.string("program"))
    try:
        return ".config" in text_of(path)
    except BadInput:
        return True


def _command(one: Import, node: Node, parameters: List[Parameter]) -> None:
    if not node.has("program") and not node.has("command"):
        target.put_program(one, {p.key: p.ours for p in parameters}, one.program)
        return
    words, handed = _words(one, node, parameters)
    if not handed and parameters:
        one.changed(node.get("command"), "the command has no ${args}: the program gets its parameters only from wandb.config")
    target.put_entrypoint(one, words)
    if parameters and (not handed or _reads_config(node)):
        given = one.keys["entrypoint"]
        text = given if isinstance(given, str) else target.shell_words(given)
        first = "export WANDB_SWEEP_PARAM_PATH={attempt_dir}/wandb.yaml\n"
        one.set("entrypoint", target.Lines([first, _config(parameters) + " &&\n", text]), "wandb reads its config from wandb.yaml")


# ---- the searcher


def _early(one: Import, node: Node, method: Optional[str]) -> None:
    early = node.get("early_terminate")
    if early is None:
        return
    if method == "grid":
        one.open(early, "a grid trains every point to the end")
        return
    if one.word(early, "type", known={"hyperband": True}) is None:
        one.open(early, "the only type is hyperband")
        return
    least, most = one.whole(early, "min_iter", least=1), one.whole(early, "max_iter", least=1)
    eta, s = one.real(early, "eta", above=1), one.whole(early, "s", least=1)
    if least is not None and most is not None:
        one.changed(early.get("min_iter"), "max_iter decides where trials stop, as in wandb")
    divisor = float(eta or 3)
    one.set("searcher.name", "stopping_asha")
    one.set("searcher.sampler", method)
    if most is None:
        most = int((least or 1) * divisor**4)
        one.guess("searcher.max_length", most, "the file has only the first rung, not the length of a full training")
    one.set("searcher.max_length", most)
    one.set("searcher.divisor", divisor)
    one.set("searcher.max_rungs", None if s is None else s + 1)


def _searcher(one: Import, node: Node) -> None:
    method = one.word(node, "method", known=_METHODS)
    if method in ("grid", "random"):
        one.mark(node.get("method"), MAPPED, "")
    one.set_searcher(method, node.get("method"))
    if "searcher.metric" not in one.keys:
        one.guess("searcher.metric", "loss", "the file has no metric: use the one that the program logs")
    smaller = one.must(one.word, node, "metric", "goal", known=_GOALS)
    if node.has("metric"):
        one.set("searcher.smaller_is_better", smaller is not False)
        if smaller is None:
            one.guess("searcher.smaller_is_better", True, "the file has no goal: wandb minimizes")
    cap = one.whole(node, "run_cap", least=1)
    if method == "grid" and cap is not None:
        one.mark(node.get("run_cap"), CHANGED, "a grid trains all points, unless dl stop ends it")
    elif method != "grid":
        one.set("searcher.max_trials", cap)
        if cap is None:
            one.guess("searcher.max_trials", 100, "the file has none: wandb continues until it is stopped")
    _early(one, node, method)
    one.set("resources.workers", one.whole(node, "scheduler", "num_workers", least=1))


def _pattern(metric: str) -> str:
    """The pattern that finds the metric in the summary printed by wandb."""
    plain = re.sub(r"([.^$*+?()\[\]{}|\\])", r"\\\1", metric)
    if re.search(r"[\s{}]", metric):
        return rf"^wandb: +({plain}) +(-?[0-9.]+([eE][-+]?[0-9]+)?)$"
    return f"^wandb: +{plain} {{{metric}}}"


def convert(node: Node, name: str, program: str = "") -> List[Import]:
    one = Import(TABLE, node, name, program)
    one.set_name(node.get("name"), name)
    given = _flat(one, node)
    names = one.names(given)
    parameters = [Parameter(key, names[key], n) for key, n in given.items()]
    for parameter in parameters:
        parameter.read(one)
    parameters = [p for p in parameters if p.group]
    _searcher(one, node)
    one.keys["hyperparameters"] = {}
    _command(one, node, parameters)
    ours = ranges.nest({p.ours: p.group for p in parameters})
    one.set("hyperparameters", {**ours, **one.keys["hyperparameters"]})
    one.set(
        "metrics.pattern",
        (_pattern(one.keys["searcher.metric"]),),
        "matches the summary that wandb prints at the end; run.log() of slurmdl reports each value at once",
    )
    one.variable("WANDB_MODE", "offline", "sends nothing; dl export --format=wandb exports all trials")
    if one.keys.get("searcher.name") == "grid" and not ranges.sizes({p.ours: p.group for p in parameters})[0]:
        one.say(node.line, "a grid needs `count` for each float; dl run names the ones that lack it")
    return [one]
