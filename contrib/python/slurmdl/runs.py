# SPDX-License-Identifier: Apache-2.0
"""A run: what a training script opens, logs to, saves to and restores from."""

import array
import atexit
import json
import math
import os
import random
import sys
import warnings
import weakref
from types import TracebackType
from typing import Any, Dict, Optional, Sequence, Tuple, Type

from . import _slurmdl
from .arrays import Path, host, is_tensor, memory_of, naming
from .capture import start as start_capture
from .hparams import HParams

_NO_END = 2**63 - 1

_open_runs: "weakref.WeakSet[Run]" = weakref.WeakSet()


def _doubles(values: Any) -> Any:
    if is_tensor(values) or hasattr(values, "__array__"):
        import numpy

        a = host(values)
        if a.dtype.kind == "c":
            raise TypeError(f"an array of {a.dtype} has no real numbers: log its real, imag or abs()")
        return numpy.ascontiguousarray(a, dtype="f8").reshape(-1)
    return array.array("d", values)


def _plain(values: Any) -> Any:
    """A contiguous array in native byte order."""
    import numpy

    a = numpy.ascontiguousarray(values).reshape(-1)
    a = a if a.dtype.isnative else a.astype(a.dtype.newbyteorder("="))
    return a.astype("f8") if a.dtype.char in "gO" else a


class Run(_slurmdl.Run):
    """A run of this process; slurmdl.init() opens it.

    Under `dl run` it is the attempt of a trial that a worker started.  Elsewhere it is a new attempt in the folder
    'dir'.  With several ranks only rank 0 writes metrics; the calls of the others do nothing.  Logging never waits for
    the disk and never fails: losses are counted (lost) and reported once, as a warning. log() and should_stop() may be
    called from any thread.  A child of fork(), such as a worker of a DataLoader, cannot use the run.
    """

    def __new__(cls, dir: Optional[Path] = None) -> "Run":
        self = super().__new__(cls, os.fspath(dir) if dir is not None else None)
        self._pid = os.getpid()
        self._asked = dir
        self._hp = None
        self._warned = False
        _open_runs.add(self)
        return self

    _pid: int
    _asked: Any
    _hp: Optional[HParams]
    _warned: bool

    def __enter__(self) -> "Run":
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return "<slurmdl.Run, closed>" if self.closed else f"<slurmdl.Run {self.dir}>"

    # ---- properties

    @property
    def length(self) -> int:
        """Length to train to.  Without a worker and DL_LENGTH it is unlimited, and a warning is printed once."""
        length = super().length
        if length == _NO_END and not self._warned:
            self._warned = True
            warnings.warn("slurmdl: run.length is unlimited: set it, for example DL_LENGTH=3 python3 ...", stacklevel=2)
        return length

    @property
    def hp(self) -> HParams:
        """The hyperparameters: run.hp["lr"], run.hp.optimizer.lr, run.hp.get("lr", 0.1)."""
        if self._hp is None:
            self._hp = HParams.of_environment()
        return self._hp

    @property
    def trial_dir(self) -> str:
        """Folder of the trial, shared by all its attempts."""
        head, tail = os.path.split(self.dir)
        return (head or ".") if tail.startswith("a.") else self.dir

    def seed_all(self, per_rank: bool = False) -> int:
        """Seed random, and numpy and torch if they are imported, with the trial's seed; with 'per_rank' with a
        different one on each rank.  Returns the seed."""
        seed = (self.seed + (self.rank if per_rank else 0)) % 2**32
        random.seed(seed)
        if "numpy" in sys.modules:
            sys.modules["numpy"].random.seed(seed)
        if "torch" in sys.modules:
            sys.modules["torch"].manual_seed(seed)
        return seed

    # ---- metrics

    def epoch(self, epoch: float) -> None:
        """Set the epoch of what is logged from now on."""
        self.log_epoch(epoch)

    def vector(self, name: str, values: Any, step: int) -> None:
        """Log numbers that belong together: an array, a tensor or a sequence."""
        self.log_vector(name, step, _doubles(values))

    def histogram(self, name: str, values: Any, step: int, edges: Optional[Sequence[float]] = None) -> None:
        """Log the distribution of 'values' in 64 bins; with 'edges', 'values' are counts, one fewer than edges."""
        if edges is not None:
            self.log_histogram(name, step, _doubles(edges), array.array("Q", [int(n) for n in values]))
            return
        if is_tensor(values):
            values = values.detach().cpu().resolve_conj().resolve_neg().contiguous().reshape(-1)
        elif hasattr(values, "__array__"):
            values = _plain(values)
        else:
            values = _doubles(values)
        memory = memory_of(values)
        self.log_samples(name, step, memory.type, memory.where, math.prod(memory.shape))

    def text(self, name: str, text: str, step: int) -> None:
        """Log a text."""
        self.log_text(name, step, text)

    def image(self, name: str, image: Any, step: int, dataformats: str = "HWC") -> None:
        """Log an image: an array of bytes, or of floats from 0 to 1, or a PIL image; grey, with alpha, RGB or RGBA."""
        width, height, channels, pixels = _pixels(image, dataformats)
        self.log_image(name, step, width, height, channels, pixels)

    def event(self, kind: str, **fields: Any) -> None:
        """Log an event: run.event("note", text="lr halved", lr=0.01)."""
        self.log_event(kind, _json(fields))

    # ---- checkpoints

    def protect(self, name: str, array: Any) -> None:
        """Add this array or tensor to the checkpoint: saving reads it, and restoring overwrites it.  It may be a tensor
        on a CUDA device."""
        with naming(name):
            memory = memory_of(array)
            self.protect_memory(name, memory.type, memory.shape, memory.where, memory.owner)

    def protect_shard(self, name: str, array: Any, shape: Tuple[int, ...], offset: Tuple[int, ...]) -> None:
        """Add this array, this rank's slab at 'offset' of a tensor of 'shape'; saving is then collective."""
        with naming(name):
            memory = memory_of(array)
            self.protect_slab(name, memory.type, tuple(shape), tuple(offset), memory.shape, memory.where, memory.owner)

    def unprotect(self, name: Optional[str] = None) -> None:
        """Remove a name from later checkpoints; without a name, everything including states."""
        self.forget(name)
        of_torch: Dict[str, Any] = self.__dict__.get("_torch_protected", {})
        if name is None:
            of_torch.clear()
        else:
            of_torch.pop(name, None)

    def restore(self, pattern: Optional[str] = None, path: Optional[Path] = None) -> Optional[int]:
        """Fill the protected memory from the trial's newest checkpoint that verifies.  Returns its step, or None if
        there is no checkpoint; raises Error if all checkpoints are damaged.  'pattern' selects names (*, ?), 'path' a
        file."""
        return self.restore_memory(pattern, os.fspath(path) if path is not None else None)


def _finite(x: Any) -> Any:
    if isinstance(x, float) and not math.isfinite(x):
        return str(float(x))
    if isinstance(x, dict):
        return {_finite(k): _finite(v) for k, v in x.items()}
    return [_finite(v) for v in x] if isinstance(x, (list, tuple)) else x


def _json(fields: Dict[str, Any]) -> str:
    """What JSON cannot represent, including NaN and infinities, becomes a string."""
    try:
        return json.dumps(fields, default=str, allow_nan=False)
    except ValueError:
        # raised for objects that contain themselves
        json.dumps(fields, default=str)
    return json.dumps(_finite(fields), default=str, allow_nan=False)


def _pixels(image: Any, dataformats: str) -> Tuple[int, int, int, bytes]:
    import numpy

    if hasattr(image, "mode") and hasattr(image, "convert"):
        image = image if image.mode in ("L", "LA", "RGB", "RGBA") else image.convert("RGB")
        dataformats = "HWC"
    a = host(image)
    if a.ndim == 2:
        a = a[:, :, None]
    elif sorted(dataformats) == ["C", "H", "W"] and a.ndim == 3:
        a = a.transpose([dataformats.index(c) for c in "HWC"])
    else:
        raise ValueError(f"an image must have 2 or 3 dimensions ({dataformats}), not {a.ndim}")
    if a.dtype.kind == "b":
        a = a * numpy.uint8(255)
    elif a.dtype.kind == "f":
        a = (numpy.nan_to_num(a).clip(0, 1) * 255).round().astype("u1")
    if a.dtype != numpy.uint8:
        raise TypeError(f"an image must consist of bytes or of floats from 0 to 1, not of {a.dtype}")
    if not 1 <= a.shape[2] <= 4:
        raise ValueError(
            f"an image must have 1 to 4 channels, not {a.shape[2]}: dataformats={dataformats!r}, shape {host(image).shape}"
        )
    return a.shape[1], a.shape[0], a.shape[2], numpy.ascontiguousarray(a).tobytes()


def _close_all() -> None:
    for run in list(_open_runs):
        try:
            run.close_at_exit()
        except _slurmdl.Error as error:
            print(f"slurmdl: {error}", file=sys.stderr)


atexit.register(_close_all)


def current() -> Optional[Run]:
    """The open run of this process."""
    for run in list(_open_runs):
        if not run.closed and run._pid == os.getpid():
            return run
    return None


def init(dir: Optional[Path] = None, capture: Optional[bool] = None) -> Run:
    """Open the run of this process, or return the open one.

    'dir': folder of the trial if no worker set one (default: DL_RUN_DIR, else "slurmdl"); it is created, with a folder
    a.K for this attempt.  'capture': also collect what the script writes to TensorBoard and prints (slurmdl.capture);
    default: whether the variable DL_CAPTURE is 1.  The run is closed by run.close(), at the end of a `with` block, or
    when the interpreter exits.
    """
    run = current()
    if run is None or (dir is not None and dir != run._asked):
        run = Run(dir)
    if capture if capture is not None else os.environ.get("DL_CAPTURE", "0") not in ("", "0"):
        start_capture(run)
    return run
