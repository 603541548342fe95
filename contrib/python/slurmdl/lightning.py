# SPDX-License-Identifier: Apache-2.0
"""Lightning: a logger, checkpoints in our format, and a callback that saves and stops.

run = slurmdl.init()
trainer = Trainer(logger=slurmdl.lightning.Logger(run), plugins=[slurmdl.lightning.CheckpointIO()],
                  callbacks=[slurmdl.lightning.Callback(run)], max_epochs=run.length)
trainer.fit(model, ckpt_path=slurmdl.lightning.last(run))
"""

# mypy: disable-error-code="import-not-found,misc"
import os
from argparse import Namespace
from typing import Any, Dict, Mapping, Optional, Union

try:
    import lightning.pytorch as pl
    from lightning.fabric.plugins.io.checkpoint_io import CheckpointIO as _CheckpointIO
    from lightning.pytorch.loggers.logger import Logger as _Logger
except ImportError:
    import pytorch_lightning as pl  # type: ignore[no-redef, unused-ignore]
    from lightning_fabric.plugins.io.checkpoint_io import (  # type: ignore[assignment, unused-ignore]
        CheckpointIO as _CheckpointIO,
    )
    from pytorch_lightning.loggers.logger import Logger as _Logger  # type: ignore[assignment, unused-ignore]

from . import _slurmdl
from . import torch as _torch
from .files import newest
from .runs import Run


class Logger(_Logger):
    """Logs scalars to the run, and hyperparameters as an event."""

    def __init__(self, run: Run) -> None:
        super().__init__()
        self._run = run

    @property
    def name(self) -> str:
        return self._run.experiment or "slurmdl"

    @property
    def version(self) -> Union[int, str]:
        return f"{self._run.trial}.{self._run.attempt}"

    @property
    def save_dir(self) -> str:
        return self._run.dir

    @property
    def experiment(self) -> Run:
        return self._run

    def log_metrics(self, metrics: Mapping[str, float], step: Optional[int] = None) -> None:
        values = dict(metrics)
        epoch = values.pop("epoch", None)
        if epoch is not None:
            self._run.epoch(epoch)
        self._run.log(values, step if step is not None else 0)

    def log_hyperparams(self, params: Union[Dict[str, Any], Namespace], *args: Any, **options: Any) -> None:
        self._run.event("hyperparameters", **(vars(params) if isinstance(params, Namespace) else dict(params)))

    def save(self) -> None:
        self._run.flush()

    def finalize(self, status: str) -> None:
        if not self._run.closed:
            self._run.event("finished", status=status)
            self._run.flush()


class CheckpointIO(_CheckpointIO):
    """Lightning checkpoints in our file format: complete or absent, and verified when they are read.  Pickles in
    another user's checkpoint are read only with trust=True, and none with Lightning's weights_only=True.
    """

    def __init__(self, trust: bool = False) -> None:
        super().__init__()
        self._trust = trust

    def save_checkpoint(self, checkpoint: Dict[str, Any], path: Any, storage_options: Any = None) -> None:
        os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
        step = checkpoint.pop("slurmdl_step", checkpoint.get("global_step", 0))
        checkpoint = {**checkpoint, "slurmdl_rng": _torch.random_state()}
        _torch.save(checkpoint, path, step)

    def load_checkpoint(self, path: Any, map_location: Any = None, weights_only: Any = None) -> Dict[str, Any]:
        where = map_location if isinstance(map_location, str) else None
        checkpoint: Dict[str, Any] = _torch.load(path, where, weights_only=bool(weights_only), trust=self._trust)
        state = checkpoint.pop("slurmdl_rng", None)
        if state is not None:
            _torch.set_random_state(state)
        return checkpoint

    def remove_checkpoint(self, path: Any) -> None:
        if os.path.exists(path):
            _slurmdl.remove_checkpoint(os.path.abspath(path))


class Callback(pl.Callback):
    """Saves a checkpoint of the run after every n-th epoch and before a stop; ends the training when a stop is
    requested.  The two newest checkpoints of this attempt stay.  The trainer must use our CheckpointIO."""

    def __init__(self, run: Run, every_n_epochs: int = 1, keep: int = 2) -> None:
        self._run, self._every, self._keep = run, every_n_epochs, keep

    def _save(self, trainer: Any, step: int) -> None:
        folder = os.path.join(self._run.dir, "ckpt")
        self._run.flush()
        trainer.save_checkpoint(os.path.join(folder, f"{step:08d}.h5"))
        if self._run.rank == 0:
            have = sorted(n for n in os.listdir(folder) if n.endswith(".h5"))
            for name in have[: -self._keep]:
                _slurmdl.remove_checkpoint(os.path.join(folder, name))

    def on_save_checkpoint(self, trainer: Any, pl_module: Any, checkpoint: Dict[str, Any]) -> None:
        # count a completed epoch: Lightning's number is that of the current epoch
        checkpoint["slurmdl_step"] = trainer.current_epoch + 1

    def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        if trainer.strategy.broadcast(self._run.should_stop()):
            trainer.should_stop = True

    def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        epoch = trainer.current_epoch + 1
        if epoch % self._every == 0 or trainer.should_stop or epoch == trainer.max_epochs:
            self._save(trainer, epoch)


def last(run: Run) -> Optional[str]:
    """Path of the trial's newest checkpoint that verifies, for Trainer.fit(ckpt_path=...)."""
    found = newest(run.trial_dir, run.length)
    return found[0] if found else None
