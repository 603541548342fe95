# SPDX-License-Identifier: Apache-2.0
"""Sweeps of Weights & Biases: the YAML of `wandb sweep`."""

import math
import re
from typing import Any, Dict, List, Optional

from . import ranges, target
from .document import MAX_NODES, Node
from .table import CHANGED, Import, Table, changed, copied, left, none, used

# fmt: off
TABLE = Table(
    "wandb",
    "wandb sweep",
    [
        used("program", "entrypoint"),
        used("command command.**", "entrypoint", "${args_json_file} is {attempt_dir}/hparams.json"),
        used("name", "name"),
        copied("description", "description"),
        changed("method", "searcher.name", "bayes is gp, with expected improvement"),
        copied("metric.name", "searcher.metric"),
        used("metric.goal", "searcher.smaller_is_better"),
        copied("metric.target", "searcher.goal"),
        used("run_cap", "searcher.max_trials"),
        used("parameters.**", "hyperparameters", "value, values, min, max, distribution, mu, sigma, q, nested parameters; truths are the texts True and False, as wandb passes them"),
        changed("early_terminate.type", "searcher.name", "stopping_asha, whose sampler is the method's: one bracket; wandb counts logged values"),
        used("early_terminate.max_iter early_terminate.min_iter", "searcher.max_length"),
        used("early_terminate.eta", "searcher.divisor"),
        used("early_terminate.s", "searcher.max_rungs"),
        left("early_terminate.**", "rungs decide by the metric alone"),
        none("project entity settings.** controller.**", "of wandb's server"),
        left("job image_uri queue resource resource_args.**", "the command of a trial is not in the file: name it with --entrypoint"),
        used("scheduler.num_workers", "resources.workers"),
        none("scheduler.job scheduler.resource scheduler.settings.verbose_logging", "of wandb's launch: dl searches by itself"),
        left("scheduler.**", "a searcher of another library: write searcher.name, or dl import its space"),
        none("launch.** enabled", "of wandb's server"),
    ],
)
# fmt: on

_METHODS = {"grid": "grid", "random": "random", "bayes": "gp"}


def knows(node: Node) -> bool:
    words = ("program", "method", "command", "job", "metric", "early_terminate", "run_cap")
    return isinstance(getattr(node.get("parameters"), "value", None), dict) and any(map(node.has, words))


# ---- the space


def _rounded(group: Dict[str, Any], step: Any) -> Dict[str, Any]:
    """A float in steps, as an integer where all of them are."""
    if step and all(float(group[k]).is_integer() for k in ("minval", "maxval")) and float(step).is_integer():
        return ranges.integer(group["minval"], group["maxval"], step=int(step))
    return {**group, **({"step": float(step)} if step else {})}


def _numbers(keys: Dict[str, Any]) -> Dict[str, Any]:
    made: Dict[str, Any] = {}
    for name in ("min", "max", "mu", "sigma", "q"):
        if name in keys:
            made[name] = float(ranges.number(keys[name]))
    return made


def _distribution(one: Import, node: Node, kind: str, keys: Dict[str, Any]) -> Dict[str, Any]:
    n = _numbers(keys)
    low, high = n.get("min"), n.get("max")
    mean, sigma = n.get("mu", 0.0), n.get("sigma", 1.0)
    log, quantised = "log" in kind, kind.startswith("q_")
    if kind.endswith("normal"):
        # wandb's has no ends: four deviations to each side
        low, high = mean - 4 * sigma, mean + 4 * sigma
        one.changed(node, "a normal distribution ends at four deviations")
        if log:
            low, high, mean = math.exp(low), math.exp(high), math.exp(mean)
            return ranges.real(low, high, log=True, mean=mean, deviation=sigma / math.log(10))
        return ranges.real(low, high, mean=mean, deviation=sigma)
    if low is None or high is None:
        low, high = (0.0, 1.0) if low is None and high is None else (low or 0.0, high or 1.0)
    if log:
        if not kind.endswith("values"):
            low, high = math.exp(low), math.exp(high)
        if quantised:
            one.changed(node, "a logarithmic range has no steps")
        if kind.startswith("inv"):
            one.changed(node, "the range is logarithmic, not that of 1 / x")
            low, high = min(1 / low, 1 / high), max(1 / low, 1 / high)
        return ranges.real(low, high, log=True)
    if kind == "int_uniform":
        return ranges.integer(low, high)
    return _rounded(ranges.real(low, high), n.get("q", 1.0) if quantised else None)


def _parameter(one: Import, node: Node) -> Optional[Dict[str, Any]]:
    keys: Dict[str, Any] = node.plain() if isinstance(node.value, dict) else {"value": node.plain()}
    try:
        if "probabilities" in keys:
            one.changed(node.get("probabilities"), "all values are as likely as each other")
        if "values" in keys:
            return ranges.choice([ranges.truths(v) for v in keys["values"]])
        if "value" in keys:
            return ranges.constant("None" if keys["value"] is None else ranges.truths(keys["value"]))
        both = isinstance(keys.get("min"), int) and isinstance(keys.get("max"), int)
        kind = str(keys.get("distribution") or "") or (
            "int_uniform" if both else "normal" if "mu" in keys else "uniform"
        )
        if kind in ("beta", "q_beta"):
            raise ValueError("there is no beta distribution")
        return _distribution(one, node, kind, keys)
    except (TypeError, ValueError, ZeroDivisionError, OverflowError) as error:
        one.open(node, f"no range: {error}")
        return None


def _flat(node: Node, prefix: str = "") -> Dict[str, Node]:
    """Parameters by name, those of groups with dots."""
    found = {}
    for name, parameter in node.items("parameters"):
        if parameter.has("parameters"):
            found.update(_flat(parameter, f"{prefix}{name}."))
        else:
            found[prefix + name] = parameter
    return found


# ---- the command


def _words(one: Import, node: Node, names: Dict[str, str]) -> List[str]:
    given = node.get("command")
    default = ["${env}", "${interpreter}", "${program}", "${args}"]
    words = [w.text for w in given.value] if given is not None and isinstance(given.value, list) else default
    if given is not None and isinstance(given.value, str):
        words = given.text.split()
    program = node.string("program")
    arguments = {key: target.place(ours) for key, ours in names.items()}
    made: List[str] = []
    for word in words:
        name = word[2:-1] if word.startswith("${") and word.endswith("}") else ""
        if name == "program" or (not name and word == program):
            made.append(program)
        elif name == "interpreter":
            made += ["python"] if program.endswith(".py") else []
        elif name in ("args", "args_no_boolean_flags"):
            made += [f"--{key}={value}" for key, value in arguments.items()]
            if name.endswith("flags"):
                one.changed(given, "truths are passed as --NAME=True, not as flags")
        elif name == "args_no_hyphens":
            made += [f"{key}={value}" for key, value in arguments.items()]
        elif name == "args_json_file":
            made.append(target.place("attempt_dir") + "/hparams.json")
        elif name == "args_json":
            one.open(given, "${args_json}: the trainer has them in {attempt_dir}/hparams.json (dl-trainer(7))")
        elif name != "env":
            made.append(re.sub(r"\$\{envvar:(\w+)\}", r"$(\1)", word))
        if len(made) > MAX_NODES:
            raise ValueError(f"a command of more than {MAX_NODES} words")
    return made


def _command(one: Import, node: Node, names: Dict[str, str]) -> None:
    if not node.has("program") and not node.has("command"):
        target.put_program(one, names, one.program)
        return
    words = _words(one, node, names)
    target.put_entrypoint(one, words)


# ---- the searcher


def _early(one: Import, node: Node, method: str) -> None:
    early = node.get("early_terminate")
    if early is None:
        return
    least, most, eta, s = (early.plain(n) for n in ("min_iter", "max_iter", "eta", "s"))
    if early.string("type") != "hyperband" or method == "grid":
        one.open(early, "grid trains every point to its end" if method == "grid" else "there is hyperband only")
        return
    divisor = float(eta) if isinstance(eta, (int, float)) and eta > 1 else 3.0
    rungs = s + 1 if isinstance(s, int) and s > 0 else None
    if not isinstance(most, int):
        most = int((least if isinstance(least, int) and least > 0 else 1) * divisor**4)
        one.set("searcher.max_length", most, "what a full training logs: the file does not say")
    one.set("searcher.name", "stopping_asha")
    one.set("searcher.sampler", method)
    one.set("searcher.max_length", max(most, 1))
    one.set("searcher.divisor", divisor)
    one.set("searcher.max_rungs", rungs)


def _searcher(one: Import, node: Node) -> None:
    method = _METHODS.get(node.string("method"), "random")
    if node.string("method") != "bayes" and node.string("method") in _METHODS:
        one.mark(node.get("method"), "mapped", "")
    one.set("searcher.name", method)
    if not isinstance(one.keys.get("searcher.metric"), str):
        one.set("searcher.metric", "loss", "the file names none: the metric that the program logs")
    if node.has("metric"):
        one.set("searcher.smaller_is_better", node.string("metric", "goal") != "maximize")
    cap = node.plain("run_cap")
    if method != "grid":
        one.set(
            "searcher.max_trials",
            cap if isinstance(cap, int) else 100,
            "" if cap else "the file names none: wandb goes on until it is stopped",
        )
    elif cap is not None:
        one.mark(node.get("run_cap"), CHANGED, "grid trains all points; dl stop ends it")
    _early(one, node, method)
    one.set("resources.workers", node.integer("scheduler", "num_workers", least=1))


def convert(node: Node, name: str, program: str = "") -> List[Import]:
    one = Import(TABLE, node, name, program)
    one.set_name(node.string("name") or name, "sweep")
    parameters = _flat(node)
    names = ranges.names_of(list(parameters))
    found = {names[key]: _parameter(one, parameter) for key, parameter in parameters.items()}
    one.set("hyperparameters", ranges.nest({k: v for k, v in found.items() if v}))
    _searcher(one, node)
    _command(one, node, {key: ours for key, ours in names.items() if found[ours]})
    metric = one.keys["searcher.metric"]
    if not re.search(r"[\s{}]", metric):
        plain = re.sub(r"([.^$*+?()\[\]|\\])", r"\\\1", metric)
        one.set(
            "metrics.pattern",
            (f"^wandb: +{plain} {{{metric}}}",),
            "the summary that wandb prints at the end; slurmdl.log() has each value at once",
        )
    one.variable("WANDB_MODE", "offline", "nothing is sent; dl export --format=wandb has all trials")
    if node.plain("method") == "grid" and not ranges.sizes(found)[0]:
        one.say(node.line, "a grid needs count for each float: searcher grid says which")
    return [one]
