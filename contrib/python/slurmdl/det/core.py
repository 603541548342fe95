# SPDX-License-Identifier: Apache-2.0
"""Determined's core.init() and its context, based on the run of this process."""

import enum
import logging
import os
import pathlib
import sys
from types import TracebackType
from typing import Any, Dict, Iterator, Optional, Type

from ..experiment import Experiment
from ..files import read_records
from ..runs import Run
from ..runs import init as open_run
from .checkpoint import CheckpointContext, DownloadMode
from .distributed import DistributedContext, alone
from .info import get_cluster_info

__all__ = [
    "CheckpointContext",
    "Context",
    "DistributedContext",
    "DownloadMode",
    "EarlyExitReason",
    "PreemptContext",
    "PreemptMode",
    "ProfilerContext",
    "SearcherContext",
    "SearcherMode",
    "SearcherOperation",
    "TensorboardMode",
    "TrainContext",
    "Unit",
    "init",
]

logger = logging.getLogger("determined.core")

# Exit statuses of a trainer: dl-trainer(7).
_REJECT, _AGAIN = 65, 75


class InvalidHP(Exception):
    """Raised by a script whose hyperparameters are invalid together."""


class EarlyExitReason(enum.Enum):
    INVALID_HP = "EXITED_REASON_INVALID_HP"
    USER_REQUESTED_STOP = "EXITED_REASON_USER_REQUESTED_STOP"


class PreemptMode(enum.Enum):
    WorkersAskChief = "WORKERS_ASK_CHIEF"
    ChiefOnly = "CHIEF_ONLY"
    WorkersAskMaster = "WORKERS_ASK_MASTER"


class SearcherMode(enum.Enum):
    WorkersAskChief = "WORKERS_ASK_CHIEF"
    ChiefOnly = "CHIEF_ONLY"


class TensorboardMode(enum.Enum):
    AUTO = "AUTO"
    MANUAL = "MANUAL"


class Unit(enum.Enum):
    EPOCHS = "EPOCHS"
    RECORDS = "RECORDS"
    BATCHES = "BATCHES"


class TrainContext:
    """Metrics and reports of the trial; calls of ranks other than 0 do nothing.

    A validation metric keeps its name, so that searcher.metric stays valid; a training metric NAME becomes
    training/NAME, and one of another group GROUP/NAME.
    """

    def __init__(self, run: Run) -> None:
        self._run = run
        self._step = 0
        self.newest: Dict[str, Any] = {}
        self.rejects = False

    def report_training_metrics(self, steps_completed: int, metrics: Dict[str, Any], batch_metrics: Any = None) -> None:
        self.report_metrics("training", steps_completed, metrics)

    def report_validation_metrics(self, steps_completed: int, metrics: Dict[str, Any]) -> None:
        self.report_metrics("validation", steps_completed, metrics)

    def report_metrics(self, group: str, steps_completed: int, metrics: Dict[str, Any]) -> None:
        if "." in group:
            raise ValueError(f"metric group {group!r} must not contain '.'")
        self._step = int(steps_completed)
        for key, value in metrics.items():
            if value is None:
                raise RuntimeError(f"metric '{key}' is None: report a number")
            self._report(key if group == "validation" else f"{group}/{key}", value)

    def _report(self, name: str, value: Any) -> None:
        try:
            if isinstance(value, str):
                self._run.text(name, value, self._step)
            elif isinstance(value, (list, tuple)) or getattr(value, "shape", None):
                self._run.vector(name, value, self._step)
            else:
                self._run.log(name, float(value), self._step)
                self.newest[name] = (self._step, float(value))
        except (TypeError, ValueError) as error:
            logger.warning("metric %s is not reported: %s", name, error)

    def report_progress(self, progress: float) -> None:
        if not 0 <= progress <= 1:
            raise ValueError(f"Progress should be between 0 and 1, not {progress}")
        self._run.log("progress", float(progress), self._step)

    def set_status(self, status: str) -> None:
        self._run.event("status", text=str(status))

    def set_metadata(self, metadata: Dict[str, Any]) -> Dict[str, Any]:
        self._run.event("metadata", **metadata)
        return metadata

    def get_metadata(self) -> Optional[Dict[str, Any]]:
        """What set_metadata() has set last, in any attempt."""
        self._run.flush()
        records = read_records(self._run.trial_dir)
        found = [r["value"] for r in records if (r["kind"], r["name"]) == ("event", "metadata")]
        return found[-1] if found else None

    def report_early_exit(self, reason: EarlyExitReason) -> None:
        """With INVALID_HP the process exits with status 65 when the context ends: the point is rejected."""
        reason = EarlyExitReason(reason)
        self._run.event("early exit", reason=reason.name)
        self.rejects |= reason == EarlyExitReason.INVALID_HP

    def get_experiment_best_validation(self) -> Optional[float]:
        """The best result of a segment, of any trial so far, by searcher.metric."""
        folder = os.environ.get("DL_EXPERIMENT_DIR")
        best = Experiment(folder).best() if folder else None
        return best["best"] if best else None

    def get_tensorboard_path(self) -> pathlib.Path:
        """A folder of the attempt, for a SummaryWriter."""
        path = pathlib.Path(self._run.dir) / "tensorboard"
        path.mkdir(exist_ok=True)
        return path

    def upload_tensorboard_files(self, *args: Any, **options: Any) -> None:
        """Does nothing: the files stay where they are."""


class PreemptContext:
    def __init__(self, run: Run, dist: DistributedContext, mode: PreemptMode) -> None:
        self._run, self._dist, self._mode = run, dist, PreemptMode(mode)
        self.acknowledged = False

    def should_preempt(self, auto_ack: bool = True) -> bool:
        """Whether a pause, a preemption or the end of the allocation requires this trial to save and exit."""
        if self._mode == PreemptMode.ChiefOnly and self._dist.rank != 0:
            raise RuntimeError(f"preempt_mode=ChiefOnly, but should_preempt() was called from rank={self._dist.rank}")
        asked = self._run.should_stop()
        if self._mode == PreemptMode.WorkersAskChief:
            asked = self._dist.broadcast(asked)
        if asked and auto_ack:
            self.acknowledge_preemption_signal()
        return bool(asked)

    def acknowledge_preemption_signal(self) -> None:
        """The process then exits with status 75 when the context ends: the trial is incomplete and resumes later."""
        self.acknowledged = True

    acknowledge = acknowledge_preemption_signal


class SearcherOperation:
    """The segment of this process: train to 'length', which counts from the trial's beginning."""

    def __init__(self, length: int, train: TrainContext, dist: DistributedContext) -> None:
        self.length = length
        self._train, self._dist = train, dist
        self.completed = False

    def _chief(self, call: str) -> None:
        if self._dist.rank != 0:
            raise RuntimeError(f"you must only call op.{call}() from the chief worker")

    def report_progress(self, length: float) -> None:
        self._chief("report_progress")
        if self.completed and length != self.length:
            raise RuntimeError("you must not call op.report_progress() after op.report_completed()")
        self._train.report_progress(min(1.0, max(0.0, length / self.length)))

    def report_completed(self, searcher_metric: Any) -> None:
        """Logs the value as searcher.metric, unless report_validation_metrics() has just done so."""
        self._chief("report_completed")
        if self.completed:
            raise RuntimeError("you may only call op.report_completed() once")
        self.completed = True
        name = os.environ.get("DL_METRIC", "searcher_metric")
        if self._train.newest.get(name, (0, None))[1] != float(searcher_metric):
            self._train.report_validation_metrics(self.length, {name: searcher_metric})


class SearcherContext:
    def __init__(self, run: Run, train: TrainContext, dist: DistributedContext) -> None:
        self._run, self._train, self._dist = run, train, dist

    def operations(
        self, searcher_mode: SearcherMode = SearcherMode.WorkersAskChief, auto_ack: bool = True
    ) -> Iterator[SearcherOperation]:
        """Yields one operation: a trial that the searcher promotes is started again, and resumes from
        latest_checkpoint."""
        asks = SearcherMode(searcher_mode) == SearcherMode.WorkersAskChief
        if self._dist.rank != 0 and not asks:
            raise RuntimeError("you cannot call searcher.operations(searcher_mode=ChiefOnly) from a non-chief worker")
        length = self._dist.broadcast(self._run.length) if asks else self._run.length
        op = SearcherOperation(length, self._train, self._dist)
        yield op
        if self._dist.rank == 0 and not op.completed:
            raise RuntimeError("you must call op.report_completed() on each operation")
        if asks:
            self._dist.barrier()

    def acknowledge_out_of_ops(self) -> None:
        pass

    def get_configured_units(self) -> Optional[Unit]:
        """The unit is defined by the script."""
        return None


class ProfilerContext:
    """Does nothing: `srun --dl-monitor` measures the resource usage of the ranks."""

    def on(self, sampling_interval: int = 1, samples_per_report: int = 10) -> None:
        logger.info("profiler.on() does nothing here: use srun --dl-monitor and dl monitor")

    def off(self) -> None:
        pass


class Context:
    """The result of init(); use it in a `with` statement."""

    def __init__(self, distributed: DistributedContext, preempt_mode: PreemptMode) -> None:
        self._run = open_run()
        self.distributed = distributed
        self.train = TrainContext(self._run)
        self.checkpoint = CheckpointContext(self._run, distributed)
        self.preempt = PreemptContext(self._run, distributed, preempt_mode)
        self.searcher = SearcherContext(self._run, self.train, distributed)
        self.profiler = ProfilerContext()
        self.info = get_cluster_info()

    def alert(self, title: Optional[str] = None, description: Optional[str] = None, level: str = "info") -> None:
        self._run.event("alert", title=title, text=description, level=level)

    def __getattr__(self, name: str) -> Any:
        if name == "experimental":
            raise AttributeError("core_context.experimental is not offered by slurmdl.det: use dl model and dl ckpt")
        raise AttributeError(f"the context has no attribute {name!r}")

    def __enter__(self) -> "Context":
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        if isinstance(error, InvalidHP):
            logger.info("InvalidHP: %s", error)
            self.train.report_early_exit(EarlyExitReason.INVALID_HP)
        self.close()
        if self.train.rejects and (error is None or isinstance(error, InvalidHP)):
            sys.exit(_REJECT)
        if error is None and self.preempt.acknowledged and "DL_TRIAL" in os.environ:
            sys.exit(_AGAIN)

    def start(self) -> None:
        pass

    def close(self, *args: Any) -> None:
        self.distributed.close()
        self._run.close()


def init(
    *,
    distributed: Optional[DistributedContext] = None,
    checkpoint_storage: Any = None,
    preempt_mode: PreemptMode = PreemptMode.WorkersAskChief,
    tensorboard_mode: TensorboardMode = TensorboardMode.AUTO,
) -> Context:
    """Open the run of this process, as slurmdl.init() does.  Checkpoints are stored in the trial's folder, regardless
    of 'checkpoint_storage', and `dl tensorboard` shows logged metrics."""
    if checkpoint_storage is not None:
        logger.warning("checkpoint_storage is ignored: checkpoints are in the trial's folder (checkpoint_policy)")
    if distributed is None and int(os.environ.get("WORLD_SIZE") or 1) > 1:
        raise ValueError("you must provide a valid DistributedContext for a multi-slot task")
    return Context(distributed or alone(), preempt_mode)
