# SPDX-License-Identifier: Apache-2.0
"""Collect what a script writes to TensorBoard or prints, without changes to the script.

    python -m slurmdl script.py ARGUMENTS
    DL_CAPTURE=1 python script.py           # where the script calls slurmdl.init()

The SummaryWriter of torch.utils.tensorboard and tensorboardX, and tf.summary, are hooked when they are imported, and
printed text is parsed line by line.  The script's files and output stay the same: its own calls run first, and errors
of this module never reach the script; the first one is printed on standard error.

From a printed line, exactly this is logged:

* A step: the word epoch, step, iter, iteration or global_step (in any case) and a number, as in "epoch 3", "Epoch:
  3/10", "step=100", "[Epoch 3]", "iteration 100:".  If a line has several, the epoch is logged as the epoch, and the
  other one is the step.
* Metrics, if this line or an earlier one has a step.  NAME=NUMBER and NAME: NUMBER, where NAME is one word (letters,
  digits, _ / . -) that begins with a letter, with or without quotes; and NAME NUMBER if the last part of NAME is in
  _KNOWN ("loss 0.123", "val_acc 0.9").  NUMBER is 1, -1.5, .5, 1e-3, nan or inf.  A % sign may follow and is ignored;
  a letter, digit, ":" or "/" may not, because times, sizes and fractions are not metrics.
* Lines longer than 1,000 characters are ignored.
"""

from __future__ import annotations

import atexit
import functools
import importlib.abc
import importlib.util
import re
import sys
import threading
from typing import TYPE_CHECKING, Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Set

from .arrays import host

if TYPE_CHECKING:  # runs imports this module
    from .runs import Run

_run: Optional[Run] = None
_steps: Dict[str, int] = {}
_busy = threading.local()
_told = False


def _step(tag: str, step: Any) -> int:
    """The step of a call; if the call has none, the number of the call."""
    if step is None:
        _steps[tag] = _steps.get(tag, -1) + 1
        return _steps[tag]
    return int(step)


def _quietly(record: Callable[..., None], *args: Any, **options: Any) -> None:
    """Log to the run without raising errors; ignore what this module itself prints."""
    global _told
    if _run is None or _run.closed or getattr(_busy, "now", False):
        return
    _busy.now = True
    try:
        record(_run, *args, **options)
    except Exception as error:
        if not _told:
            _told = True
            print(f"slurmdl: cannot collect what the script logs: {error}", file=sys.stderr)
    finally:
        _busy.now = False


def _watch(owner: Any, name: str, record: Callable[..., None]) -> None:
    """Wrap owner.name: call the original, then 'record'."""
    original = getattr(owner, name, None)
    if original is None or hasattr(original, "_slurmdl"):
        return

    @functools.wraps(original)
    def both(*args: Any, **options: Any) -> Any:
        result = original(*args, **options)
        _quietly(record, *args, **options)
        return result

    both._slurmdl = True  # type: ignore[attr-defined]
    setattr(owner, name, both)


# ---- SummaryWriter


def _scalar(run: Run, self: Any, tag: str, scalar_value: Any, global_step: Any = None, *a: Any, **k: Any) -> None:
    run.log(tag, float(scalar_value), _step(tag, global_step))


def _scalars(
    run: Run, self: Any, main_tag: str, tag_scalar_dict: Dict[str, Any], global_step: Any = None, *a: Any, **k: Any
) -> None:
    step = _step(main_tag, global_step)
    for name, value in tag_scalar_dict.items():
        run.log(f"{main_tag}/{name}", float(value), step)


def _histogram(run: Run, self: Any, tag: str, values: Any, global_step: Any = None, *a: Any, **k: Any) -> None:
    run.histogram(tag, values, _step(tag, global_step))


def _text(run: Run, self: Any, tag: str, text_string: str, global_step: Any = None, *a: Any, **k: Any) -> None:
    run.text(tag, text_string, _step(tag, global_step))


def _image(
    run: Run,
    self: Any,
    tag: str,
    img_tensor: Any,
    global_step: Any = None,
    walltime: Any = None,
    dataformats: str = "CHW",
    **k: Any,
) -> None:
    run.image(tag, img_tensor, _step(tag, global_step), dataformats=dataformats)


def _hparams(run: Run, self: Any, hparam_dict: Any, metric_dict: Any = None, *a: Any, **k: Any) -> None:
    run.event("hyperparameters", **dict(hparam_dict))


def _watch_writer(module: Any) -> None:
    for name, record in (
        ("add_scalar", _scalar),
        ("add_scalars", _scalars),
        ("add_histogram", _histogram),
        ("add_text", _text),
        ("add_image", _image),
        ("add_hparams", _hparams),
    ):
        _watch(module.SummaryWriter, name, record)


# ---- tf.summary


def _tf_step(step: Any, tag: str) -> int:
    if step is None:
        step = sys.modules["tensorflow"].summary.experimental.get_step()
    return _step(tag, step)


def _tf_scalar(run: Run, name: str, data: Any, step: Any = None, *a: Any, **k: Any) -> None:
    run.log(name, float(data), _tf_step(step, name))


def _tf_histogram(run: Run, name: str, data: Any, step: Any = None, *a: Any, **k: Any) -> None:
    run.histogram(name, host(data), _tf_step(step, name))


def _tf_text(run: Run, name: str, data: Any, step: Any = None, *a: Any, **k: Any) -> None:
    text = data.numpy() if hasattr(data, "numpy") else data
    run.text(name, text.decode() if isinstance(text, bytes) else str(text), _tf_step(step, name))


def _tf_image(run: Run, name: str, data: Any, step: Any = None, *a: Any, **k: Any) -> None:
    run.image(name, host(data)[0], _tf_step(step, name))


def _watch_tensorflow(module: Any) -> None:
    for name, record in (
        ("scalar", _tf_scalar),
        ("histogram", _tf_histogram),
        ("text", _tf_text),
        ("image", _tf_image),
    ):
        _watch(module.summary, name, record)


# ---- modules, as they are imported

_WATCHED: Dict[str, Callable[[Any], None]] = {
    "torch.utils.tensorboard.writer": _watch_writer,
    "tensorboardX.writer": _watch_writer,
    "tensorflow": _watch_tensorflow,
}


class _Loader(importlib.abc.Loader):
    """The module's own loader, followed by our hook."""

    def __init__(self, loader: Any, look: Callable[[Any], None]) -> None:
        self._loader, self._look = loader, look

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def create_module(self, spec: Any) -> Any:
        return self._loader.create_module(spec)

    def exec_module(self, module: Any) -> None:
        # code that asks for the module's loader gets the original
        module.__loader__ = self._loader
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        try:
            self._look(sys.modules.get(module.__name__, module))
        except Exception:
            pass


class _Finder(importlib.abc.MetaPathFinder):
    """Finds a hooked module with the other finders."""

    def __init__(self) -> None:
        self._finding: Set[str] = set()

    def find_spec(self, name: str, path: Optional[Sequence[str]], target: Any = None) -> Any:
        if name not in _WATCHED or name in self._finding:
            return None
        self._finding.add(name)
        try:
            spec = importlib.util.find_spec(name) if path is None else _find(name, path, target)
        finally:
            self._finding.discard(name)
        if spec is None or spec.loader is None or not hasattr(spec.loader, "exec_module"):
            return None
        spec.loader = _Loader(spec.loader, _WATCHED[name])
        return spec


def _find(name: str, path: Sequence[str], target: Any) -> Any:
    for finder in sys.meta_path:
        if isinstance(finder, _Finder) or not hasattr(finder, "find_spec"):
            continue
        spec = finder.find_spec(name, path, target)
        if spec is not None:
            return spec
    return None


# ---- standard output

_KNOWN = (
    "loss|acc|accuracy|err|error|perplexity|ppl|bpc|bleu|rouge|auc|auroc|f1|precision|recall|iou|miou|map|dice|psnr"
    "|ssim|mae|mse|rmse|r2|score|reward|return|lr|learning_rate|grad_norm|nll|elbo|kl|wer|cer|top1|top5"
)
_NUMBER = r"[-+]?(?:(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|nan|inf|NaN|Inf|NAN|INF)"
_END = r"(?![\w:/]|\.\w)"
_STEP = re.compile(r"(?<![\w./-])(global_step|iteration|iter|step|epoch)s?\s*[:=#\[(]*\s*(\d+)(?![\w.])", re.I)
_PAIR = re.compile(rf"""(?<![\w./-])([A-Za-z][\w./-]*)['"]?\s*[=:]\s*({_NUMBER})%?{_END}""")
_WORDS = re.compile(rf"(?<![\w./-])((?:[A-Za-z][\w.-]*[_/.-])?(?:{_KNOWN}))\s+({_NUMBER})%?{_END}", re.I)
_STEPS = ("epoch", "step", "iter", "iteration", "global_step", "epochs", "steps", "iters", "iterations")
_LINE_MAX = 1000


class _Found(NamedTuple):
    step: Optional[int]
    epoch: Optional[int]
    metrics: Dict[str, float]


def parse(line: str) -> Optional[_Found]:
    """Find a step and metrics in a line; None if it has neither."""
    if len(line) > _LINE_MAX:
        return None
    step = epoch = None
    for match in _STEP.finditer(line):
        if match.group(1).lower() == "epoch":
            epoch = int(match.group(2)) if epoch is None else epoch
        else:
            step = int(match.group(2)) if step is None else step
    metrics: Dict[str, float] = {}
    for pattern in (_PAIR, _WORDS):
        for match in pattern.finditer(line):
            name = match.group(1).rstrip("./-")
            if name.lower() not in _STEPS and len(name) < 64:
                metrics.setdefault(name, float(match.group(2)))
    if step is None and epoch is None and not metrics:
        return None
    return _Found(step if step is not None else epoch, epoch, metrics)


class _Lines:
    """Splits the written text into lines, and parses them."""

    def __init__(self) -> None:
        self._line = ""
        self._step: Optional[int] = None
        self._epoch: Optional[int] = None

    def feed(self, run: Run, text: Any) -> None:
        if not isinstance(text, str):
            return
        *lines, rest = (self._line + text).replace("\r", "\n").split("\n")
        self._line = rest[: _LINE_MAX + 1]
        for line in lines:
            self._read(run, line)

    def _read(self, run: Run, line: str) -> None:
        found = parse(line)
        if found is None:
            return
        if found.step is not None:
            self._step = found.step
        if found.epoch is not None and found.epoch != self._epoch:
            self._epoch = found.epoch
            run.epoch(found.epoch)
        if self._step is not None and found.metrics:
            run.log(found.metrics, self._step)


def _watch_output() -> None:
    lines = _Lines()
    write = sys.stdout.write
    if hasattr(write, "_slurmdl"):
        return

    def both(text: Any) -> Any:
        result = write(text)
        _quietly(lines.feed, text)
        return result

    both._slurmdl = True  # type: ignore[attr-defined]
    # the last line may lack a newline; the run is closed after this
    atexit.register(_quietly, lines.feed, "\n")
    try:
        # the stream object stays the same; only its write() is replaced
        sys.stdout.write = both  # type: ignore[method-assign]
    except AttributeError:
        pass


def start(run: Run) -> None:
    """Start collecting into 'run'."""
    global _run
    _run = run
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())
    for name, look in _WATCHED.items():
        if name in sys.modules:
            look(sys.modules[name])
    _watch_output()


def stop() -> None:
    """Stop collecting."""
    global _run
    _run = None


__all__: List[str] = ["start", "stop"]
