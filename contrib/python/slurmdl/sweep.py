# SPDX-License-Identifier: Apache-2.0
"""Start a sweep from a script or a notebook: from a file, a dictionary with its keys, or a function.

    def train(lr: LogUniform(1e-4, 1e-1), width: Int(16, 256)):
        ...
        return loss

    sweep = slurmdl.run(train, max_trials=50, workers=4)
    sweep.wait().best()

The program dl does the work: `dl run` creates the experiment and its Slurm job.
"""

import atexit
import difflib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from typing import Any, Callable, Dict, List, Mapping, Optional, Set, Union

from . import optional, program
from ._slurmdl import Error
from .arrays import Path
from .experiment import Experiment, _is_notebook, status_line
from .source import NAME, variables_of
from .space import space_of

# Arguments of run() that are keys of a group in the file.
_SEARCHER = ("metric", "smaller_is_better", "max_trials", "max_length")
_RESOURCES = ("workers",)
# Statuses of dl wait: ended or paused, and timed out.
_ENDED = (0, 1, 4, 11, 12)
_TIME_OUT = 10
_POLL = 2.0


# ---- the file


def _plain(value: Any) -> Any:
    """Types that JSON does not have: numpy numbers, paths, an experiment (searcher.warm_start)."""
    if isinstance(value, Experiment):
        return value.dir
    if hasattr(value, "item"):
        return value.item()
    if hasattr(value, "__fspath__"):
        return os.fspath(value)
    raise Error(f"{value!r}: the configuration may contain only numbers, strings, lists and dictionaries")


def text_of(config: Mapping[str, Any]) -> str:
    """The configuration as YAML that is also JSON: one key per line."""
    try:
        text = json.dumps(config, indent=1, ensure_ascii=False, allow_nan=False, default=_plain)
    except ValueError as error:
        raise Error(f"the configuration: {error}") from None
    # YAML does not allow lone surrogates, and treats some characters that JSON allows as line ends
    return re.sub(r"[^\x20-\x7e\n]", lambda m: f"\\U{ord(m.group()):08x}", text) + "\n"


def _merge(config: Dict[str, Any], group: str, keys: Mapping[str, Any]) -> None:
    given = {name: value for name, value in keys.items() if value is not None}
    if given:
        config[group] = {**config.get(group, {}), **given}


def _of_function(function: Callable[..., Any], config: Dict[str, Any]) -> None:
    """The keys that run a function."""
    config.setdefault("name", re.sub(r"[^\w.-]", "_", function.__name__, flags=re.A))
    config["entrypoint"] = [sys.executable, "-m", "slurmdl.trial"]
    config["hyperparameters"] = {**space_of(function), **config.get("hyperparameters", {})}
    config["environment"] = {**config.get("environment", {}), **variables_of(function)}
    config["searcher"] = {"metric": "result", **config.get("searcher", {})}


def _explained(message: str, path: str, text: str) -> str:
    """dl names a line of the file, which no longer exists: show the line itself."""
    lines = text.splitlines()

    def line(match: "re.Match[str]") -> str:
        number = int(match.group(1))
        content = lines[number - 1].strip(" ,{[") if 0 < number <= len(lines) else f"line {number}"
        return f"{content[:60].rstrip(': ')}: "

    def unknown(match: "re.Match[str]") -> str:
        meant = difflib.get_close_matches(match.group(1), ("local", "dir", *_SEARCHER, *_RESOURCES), 1)
        return f"unknown key '{match.group(1)}'; did you mean '{meant[0]}'?" if meant else match.group()

    message = re.sub(r"\buse --local\b", "use local=True", message)
    message = re.sub(r"unknown key '(\w+)'; .*", unknown, message)
    return re.sub(re.escape(path) + r":(\d+): ", line, message).replace(path, "the configuration")


# ---- a sweep


class Sweep(Experiment):
    """An experiment started by this process."""

    def __init__(self, dir: str, process: Optional["subprocess.Popen[str]"], log: Any) -> None:
        super().__init__(dir)
        self._process, self._log = process, log
        if process is not None:
            _local.add(self)

    def wait(self, timeout: Optional[float] = None, progress: Optional[bool] = None) -> "Sweep":
        """Wait until the sweep has ended or was paused, and return it.

        slurmdl.Error says why it failed, or was paused because all attempts fail in the same way.  Raises TimeoutError
        after 'timeout' seconds; the sweep continues, as it does if the call is interrupted.  'progress': show a tqdm
        bar; default: on a terminal and in a notebook, if tqdm is installed.
        """
        end = None if timeout is None else time.monotonic() + timeout
        bar = _Bar(progress)
        try:
            while True:
                left = _POLL if end is None else min(_POLL, end - time.monotonic())
                status, _ = self.call("wait", f"--timeout={max(1, round(left))}", good=(*_ENDED, _TIME_OUT))
                bar.update(self)
                if status != _TIME_OUT:
                    break
                self._check_process()
                if end is not None and time.monotonic() >= end:
                    raise TimeoutError(f"{self.dir} is still running")
        finally:
            bar.close()
        self._end_process()
        self._check_end(status)
        return self

    def _check_end(self, status: int) -> None:
        if status not in (1, 11):
            return
        failed = [t for t in self.read()["trials"] if t["why"]]
        why = failed[0]["why"] if failed else "the metric was never a finite number"
        what = "failed" if status == 1 else "was paused because all attempts fail in the same way"
        raise Error(f"{self.dir} {what}: {why}")

    def _check_process(self) -> None:
        """A local sweep needs the process that started it."""
        if self._process is not None and self._process.poll() is not None and self.state == "running":
            self._log.seek(0)
            why = program.message_of(self._log.read()[-2000:], ["resume"], self._process.returncode)
            raise Error(f"{self.dir}: its workers have ended: {why}")

    def _end_process(self) -> None:
        if self._process is not None:
            self._process.wait()
            self._log.close()
            self._process = None
            _local.discard(self)

    def cancel(self, now: bool = False) -> None:
        """End the sweep: trials save a checkpoint; with 'now' they are killed.  `dl continue` resumes it."""
        self.call("kill" if now else "stop")
        self._end_process()

    def _leave(self) -> None:
        """When this process exits, local workers end, as after Ctrl-C in `dl run --local`."""
        if self._process is not None and self._process.poll() is None:
            what = "its local workers end with this process; run 'dl resume --local' to continue"
            print(f"slurmdl: {program.printable(self.dir)}: {what}", file=sys.stderr)
            self._process.send_signal(signal.SIGINT)
            self._process.wait()


# Sweeps whose workers are children of this process, until they have ended.
_local: Set[Sweep] = set()


def _leave_all() -> None:
    for sweep in list(_local):
        sweep._leave()


atexit.register(_leave_all)


class _Bar:
    """The completed part of the sweep, as a tqdm bar."""

    def __init__(self, progress: Optional[bool]) -> None:
        self.bar: Any = None
        if progress is None and not (_is_notebook() or sys.stderr.isatty()):
            return
        if progress is False:
            return
        tqdm = optional.need("tqdm.auto", "progress") if progress else optional.find("tqdm.auto")
        if tqdm is not None:
            self.bar = tqdm.tqdm(total=100, unit="%", bar_format="{desc} |{bar}| {elapsed}")

    def update(self, sweep: Sweep) -> None:
        if self.bar is not None:
            shown = sweep.read(trials=1)
            self.bar.set_description_str(status_line(shown))
            self.bar.n = round(100 * float(shown["done"] or 0))
            self.bar.refresh()

    def close(self) -> None:
        if self.bar is not None:
            self.bar.close()


# ---- run


def _environment() -> Dict[str, str]:
    """`dl show --provenance` names what the user has started, not the file that was generated for it."""
    words = getattr(sys, "orig_argv", [sys.executable, *sys.argv])
    return {**os.environ, "DL_STARTED_BY": json.dumps(["slurmdl.run() in a notebook"] if _is_notebook() else words)}


def _start(file: str, local: bool, options: List[str]) -> Sweep:
    env = _environment()
    if not local:
        return Sweep(program.call("run", "--detach", *options, "--", file, env=env)[1].strip(), None, None)
    # the first call checks the file for this machine
    workers = [o for o in options if o.startswith("--workers")]
    dir = program.call("run", "--local", "--no-workers", *options, "--", file, env=env)[1].strip()
    log = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")
    process = program.popen(["resume", "--local", *workers, "--", dir], stdout=subprocess.DEVNULL, stderr=log)
    return Sweep(dir, process, log)


def _config(what: Any, keys: Mapping[str, Any]) -> Dict[str, Any]:
    given = {name: value for name, value in keys.items() if value is not None}
    config = {**what, **given} if isinstance(what, Mapping) else dict(given)
    if isinstance(config.get("searcher"), str):
        config["searcher"] = {"name": config["searcher"]}
    _merge(config, "searcher", {name: config.pop(name, None) for name in _SEARCHER})
    _merge(config, "resources", {name: config.pop(name, None) for name in _RESOURCES})
    if callable(what):
        _of_function(what, config)
    return config


def _file() -> Any:
    """Trials run in the folder of the file, so that the file must be here while dl reads it."""
    try:
        return tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=os.getcwd(), prefix=".slurmdl-", suffix=".yaml")
    except OSError as error:
        raise Error(f"{os.getcwd()}: run() must be able to write to this folder: {error.strerror}") from None


def run(
    what: Union[Path, Mapping[str, Any], Callable[..., Any]],
    *,
    local: bool = False,
    dir: Optional[Path] = None,
    **keys: Any,
) -> Sweep:
    """Start a sweep and return at once.

    'what': an experiment file, a dictionary with its keys (dl-experiment(5)), or a function whose parameters are
    annotated with their ranges (Float, LogUniform, Int, Choice); its result is minimised.  A parameter 'run' receives
    the slurmdl.Run of the trial: its length, checkpoints and stop requests.

    'local': use processes of this machine, which end with this process, instead of a Slurm job.  'dir': folder for the
    experiment (default: DL_DIR, else the working directory).  All other arguments are keys of the file: name, searcher
    (a group or its name), resources and so on, as well as metric, smaller_is_better, max_trials, max_length of
    `searcher` and workers of `resources`.
    """
    if NAME in os.environ:
        raise Error("run() was called while a trial imported its module: put it under if __name__ == '__main__':")
    options = ["--dir=" + os.fspath(dir)] if dir is not None else []
    if isinstance(what, (str, os.PathLike)):
        if keys:
            raise Error(f"{os.fspath(what)} is a file: {', '.join(keys)} belong in it")
        return _start(os.fspath(what), local, options)
    if not isinstance(what, Mapping) and not callable(what):
        raise Error(f"run() needs a file, a dictionary or a function, not {type(what).__name__}")
    text = text_of(_config(what, keys))
    with _file() as f:
        f.write(text)
        f.flush()
        try:
            return _start(f.name, local, options)
        except Error as error:
            raise Error(_explained(str(error), f.name, text)) from None
