# SPDX-License-Identifier: Apache-2.0
"""Hydra: `python app.py --multirun hydra/sweeper=slurmdl lr='tag(log, interval(1e-4, 0.1))'` is an experiment of dl.

Each trial runs the program again, with its values as overrides, in a worker that dl has started; Hydra's launcher has
no part in it.  What the program's function returns, a number or a dictionary of numbers by metric, is the result.

The ranges are those of Hydra's grammar: choice(a, b), range(1, 10) (without its end), interval(0, 1) (of real numbers;
int(interval(1, 9)) of integers), each with tag(log, ...) but choice; on the command line or in hydra.sweeper.params.
"""

import logging
import os
import re
import sys
from typing import Any, Dict, List, Tuple

from hydra._internal.utils import get_args_parser  # type: ignore[import-not-found, unused-ignore]
from hydra.core.override_parser.overrides_parser import OverridesParser  # type: ignore[import-not-found, unused-ignore]
from hydra.experimental.callback import Callback  # type: ignore[import-not-found, unused-ignore]
from omegaconf import OmegaConf  # type: ignore[import-not-found, unused-ignore]

from ._slurmdl import Error
from .imports.ranges import nest
from .runs import init
from .sweep import Sweep, run
from .trial import log_result

log = logging.getLogger(__name__)

# Overrides that concern the sweep, not a trial.
_OF_SWEEP = re.compile(r"[+~]*hydra(/sweeper|/launcher|\.sweeper|\.launcher|\.sweep|\.mode|\.run)\b")


class LogResult(Callback):  # type: ignore[misc, unused-ignore]
    """A Hydra callback in the trial: log the result of the program's function."""

    def on_job_end(self, config: Any, job_return: Any, **more: Any) -> None:
        if job_return.status.name == "COMPLETED":
            with init() as trial:
                log_result(trial, job_return.return_value)


# ---- ranges


def _number(value: Any) -> Any:
    """Numbers and booleans as such, everything else as None."""
    return value if isinstance(value, (bool, int, float)) else None


def _choices(override: Any) -> List[Any]:
    texts = list(override.sweep_string_iterator())
    # glob(*) only has names
    values = getattr(override.value(), "list", texts)
    return [text if _number(value) is None else value for value, text in zip(values, texts)]


def _between(low: Any, high: Any, is_log: bool) -> Dict[str, Any]:
    if isinstance(low, int) and isinstance(high, int):
        return {"type": "int", "minval": low, "maxval": high, **({"base": 10.0} if is_log else {})}
    if is_log:
        return {"type": "loguniform", "min": float(low), "max": float(high)}
    return {"type": "float", "minval": float(low), "maxval": float(high)}


def _last(sweep: Any) -> Any:
    """The last value of a range, whose end is excluded."""
    steps = (sweep.stop - sweep.start) / sweep.step
    count = int(steps) if steps == int(steps) else int(steps) + 1
    if count < 1:
        raise Error(f"range({sweep.start}, {sweep.stop}, {sweep.step}) is empty")
    return sweep.start + (count - 1) * sweep.step


def parameter_of(override: Any) -> Dict[str, Any]:
    """The group of dl-experiment(5) for an override with a range."""
    sweep = override.value()
    if override.is_choice_sweep():
        return {"type": "categorical", "vals": _choices(override)}
    is_log = "log" in sweep.tags
    if override.is_interval_sweep():
        return _between(sweep.start, sweep.end, is_log)
    if not override.is_range_sweep():
        raise Error(f"{override.input_line}: use choice, range or interval")
    group = _between(sweep.start, _last(sweep), is_log)
    if not is_log and (group["type"] == "float" or sweep.step != 1):
        group["step"] = sweep.step
    return group


# ---- the experiment


def _names(keys: List[str]) -> Dict[str, str]:
    """The hyperparameter for each key: optimizer.lr keeps its name unless optimizer is a hyperparameter, too."""
    plain = {key: re.sub(r"[^\w.]", "_", key.lstrip("+~"), flags=re.A) for key in keys}
    nested = any(b.startswith(a + ".") for a in plain.values() for b in plain.values())
    names = {key: re.sub(r"\.", "_", name) if nested else name for key, name in plain.items()}
    if len(set(names.values())) < len(names):
        raise Error(f"these overrides would get the same name in dl: {', '.join(keys)}")
    return names


def _program() -> List[str]:
    """The command that started this program, without its arguments."""
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    if spec is not None:
        name = spec.name[: -len(".__main__")] if spec.name.endswith(".__main__") else spec.name
        return [sys.executable, "-m", name]
    return [sys.executable, os.path.abspath(sys.argv[0])]


def _flags() -> List[str]:
    """Hydra's own options that name the configuration."""
    given, _ = get_args_parser().parse_known_args(sys.argv[1:])
    flags = []
    for name in ("config_name", "config_path", "config_dir"):
        if getattr(given, name, None):
            flags += ["--" + name.replace("_", "-"), getattr(given, name)]
    return flags


def _shield(lines: List[str]) -> Tuple[List[str], Dict[str, Any]]:
    """(words, constants): in the command, {name} means a hyperparameter; a word that contains one becomes a constant.
    """
    constants = {f"override_{i}": line for i, line in enumerate(lines) if re.search(r"\{[A-Za-z_][\w.-]*\}", line)}
    words = ["{override_%d}" % i if f"override_{i}" in constants else line for i, line in enumerate(lines)]
    return words, constants


def _entrypoint(fixed: List[str], names: Dict[str, str]) -> List[str]:
    searched = [key + "={" + name + "}" for key, name in names.items()]
    own = [
        "hydra.mode=RUN",
        "hydra.run.dir='{attempt_dir}'",
        "++hydra.callbacks.slurmdl._target_=slurmdl.hydra.LogResult",
    ]
    return [*_program(), *_flags(), *fixed, *searched, *own]


def _split(context: Any, lines: List[str]) -> Tuple[List[str], Dict[str, Any]]:
    """(overrides for all trials, overrides with a range by key)."""
    parser = OverridesParser.create(config_loader=context.config_loader)
    fixed: List[str] = []
    searched: Dict[str, Any] = {}
    for override in parser.parse_overrides(lines):
        if override.is_sweep_override():
            searched[override.get_key_element()] = override
        else:
            fixed.append(str(override.input_line))
    return fixed, searched


def _plain(value: Any) -> Any:
    """Convert Hydra's dictionaries and lists to Python's."""
    return OmegaConf.to_container(value, resolve=True) if OmegaConf.is_config(value) else value


def config_of(context: Any, config: Any, settings: Dict[str, Any], arguments: List[str]) -> Dict[str, Any]:
    """The keys of the experiment file."""
    of_hydra = [line for line in config.hydra.overrides.hydra if not _OF_SWEEP.match(line)]
    params = [f"{key}={value}" for key, value in settings["params"].items()]
    given = [line.split("=", 1)[0] for line in arguments]
    fixed, searched = _split(context, [p for p in params if p.split("=", 1)[0] not in given] + arguments)
    if not searched:
        raise Error("no override has a range: use choice(...), range(...) or interval(...)")
    names = _names(list(searched))
    words, constants = _shield(of_hydra + fixed)
    keys: Dict[str, Any] = _plain(settings["keys"])
    return {
        "name": re.sub(r"[^\w.-]", "_", str(config.hydra.job.name), flags=re.A),
        **keys,
        "entrypoint": _entrypoint(words, names),
        "hyperparameters": {**nest({names[key]: parameter_of(o) for key, o in searched.items()}), **constants},
        "searcher": {**keys.get("searcher", {}), "name": settings["searcher"]},
        # the last line has the reason of a failure
        "environment": {"HYDRA_FULL_ERROR": "1", **keys.get("environment", {})},
    }


def _log_failures(trials: List[Dict[str, Any]]) -> None:
    failed = [trial for trial in trials if trial["state"] == "failed"]
    if failed:
        log.warning("slurmdl: %d of %d trials failed: %s", len(failed), len(trials), failed[0]["why"])


def _write_best(folder: str, started: Sweep) -> Any:
    """Write optimization_results.yaml, as Hydra's other sweepers do."""
    best = started.best()
    if best is None:
        return None
    found = {"name": "slurmdl", "experiment": started.dir, "best_evaluated_params": best["hyperparameters"]}
    found["best_evaluated_result"] = best["best"]
    OmegaConf.save(OmegaConf.create(found), os.path.join(folder, "optimization_results.yaml"))
    log.info("slurmdl: best result %s: %s", best["best"], best["hyperparameters"])
    return best["best"]


def sweep(context: Any, config: Any, settings: Dict[str, Any], arguments: List[str]) -> Any:
    """Run the experiment to its end.  Returns the best result."""
    folder = os.path.abspath(str(config.hydra.sweep.dir))
    what = config_of(context, config, settings, arguments)
    os.makedirs(folder, exist_ok=True)
    names = ("metric", "smaller_is_better", "max_trials", "max_length", "workers")
    given = {name: _plain(settings[name]) for name in names}
    started = run(what, local=settings["local"], dir=folder, **given)
    log.info("slurmdl: %s", started.dir)
    started.wait()
    _log_failures(started.read()["trials"])
    return _write_best(folder, started)
