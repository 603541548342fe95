# SPDX-License-Identifier: Apache-2.0
"""Keras: a callback that logs, saves and restores the model with its optimizer, and stops.

callback = slurmdl.keras.Callback(run)
model.fit(x, y, epochs=run.length, initial_epoch=callback.restore(model), callbacks=[callback])
"""

import contextlib
from typing import Any, Dict, Iterator, List, Optional, Tuple

import keras  # type: ignore[import-not-found, import-untyped, unused-ignore]
import numpy

from .runs import Run, init


def _variables(model: Any) -> List[Tuple[str, Any]]:
    """The variables of the model and the optimizer, named by their order: Keras numbers layer names as it creates them,
    so that they differ between processes."""
    result: List[Tuple[str, Any]] = []
    for group, owner in (("model", model), ("optimizer", model.optimizer)):
        for i, variable in enumerate(owner.variables if owner is not None else ()):
            result.append((f"{group}/{i:04}", variable))
    return result


class Callback(keras.callbacks.Callback):  # type: ignore[misc, unused-ignore]
    """Logs every epoch ("training/..", "validation/.."), saves every n-th one, ends the training when a stop is
    requested.  Steps are epochs."""

    def __init__(self, run: Optional[Run] = None, every_n_epochs: int = 1) -> None:
        super().__init__()
        self._run = run if run is not None else init()
        self._every = every_n_epochs

    def restore(self, model: Any) -> int:
        """Restore the compiled and built model from the trial's newest checkpoint.  Returns the number of completed
        epochs, 0 if there is no checkpoint."""
        if model.optimizer is not None and not model.optimizer.built:
            model.optimizer.build(model.trainable_variables)
        arrays = [(name, v, numpy.array(v)) for name, v in _variables(model)]
        with self._protected([(name, a) for name, _, a in arrays]):
            step = self._run.restore()
        for _, v, a in arrays if step is not None else ():
            v.assign(a)
        return step or 0

    @contextlib.contextmanager
    def _protected(self, arrays: List[Tuple[str, Any]]) -> Iterator[None]:
        for name, a in arrays:
            self._run.protect(name, a)
        try:
            yield
        finally:
            for name, _ in arrays:
                self._run.unprotect(name)

    def _save(self, epoch: int) -> None:
        with self._protected([(name, numpy.array(v)) for name, v in _variables(self.model)]):
            self._run.save(epoch)

    def on_train_batch_end(self, batch: int, logs: Optional[Dict[str, Any]] = None) -> None:
        if self._run.should_stop():
            self.model.stop_training = True

    def on_epoch_end(self, epoch: int, logs: Optional[Dict[str, Any]] = None) -> None:
        self._run.epoch(epoch + 1)
        for name, value in (logs or {}).items():
            grouped = "validation/" + name[4:] if name.startswith("val_") else "training/" + name
            self._run.log(grouped, float(value), epoch + 1)
        # an interrupted epoch is trained again
        if not self._run.should_stop() and (epoch + 1) % self._every == 0:
            self._save(epoch + 1)
