# SPDX-License-Identifier: Apache-2.0
# mypy: disable-error-code="import-untyped,import-not-found"
"""Offline runs of Weights & Biases: `wandb sync wandb/offline-run-*` uploads them."""

import glob
import hashlib
import json
import math
import os
import shutil
import tempfile
import time
from typing import Any, Dict, List, Tuple

# nothing may leave this machine
os.environ.update(WANDB_MODE="offline", WANDB_SILENT="true", WANDB_ERROR_REPORTING="false")

import wandb  # noqa

from .records import Experiment, Row, Trial, Writer, plain  # noqa


class Wandb(Writer):
    """Each run is written completely and then replaces an older file: the library of W&B writes such files but cannot
    read them."""

    def __init__(self, experiment: Experiment) -> None:
        super().__init__(experiment)
        self._written: Dict[int, int] = {}  # rows
        for folder in glob.glob(".wandb-*"):  # of a program that was killed
            shutil.rmtree(folder, ignore_errors=True)
        self._settings = wandb.Settings(
            mode="offline",
            console="off",
            silent=True,
            disable_git=True,
            disable_code=True,
            x_disable_stats=True,
            x_disable_meta=True,
            x_disable_machine_info=True,
        )

    def _id(self, trial: Trial) -> str:
        return hashlib.sha256(self.experiment.id.encode()).hexdigest()[:12] + f"-{trial.number:04d}"

    def _paths(self, trial: Trial) -> Tuple[str, str]:
        """The file of the run, and a note of what it contains."""
        there = glob.glob(f"wandb/offline-run-*-{self._id(trial)}")
        begun = time.strftime("%Y%m%d_%H%M%S", time.gmtime(trial.begin or 0))
        folder = there[0] if there else f"wandb/offline-run-{begun}-{self._id(trial)}"
        return os.path.join(folder, f"run-{self._id(trial)}.wandb"), os.path.join(folder, "slurmdl.json")

    def _log(self, run: Any, rows: List[Row]) -> None:
        """W&B has one value per metric and step, and requires steps in order."""
        steps: Dict[int, Dict[str, Any]] = {}
        for row in rows:
            values = steps.setdefault(row.step, {})
            values[row.name] = row.value
            values["_timestamp"] = row.time
        for step in sorted(steps):
            run.log(steps[step], step=max(step, 0))

    def _write(self, trial: Trial, rows: List[Row], folder: str) -> None:
        run = wandb.init(
            dir=folder,
            id=self._id(trial),
            project=self.experiment.name,
            name=f"{trial.number:04d}",
            group=self.experiment.name,
            config={name: plain(value) for name, value in trial.hparams.items()},
            notes=self.experiment.description or None,
            settings=self._settings,
            reinit="finish_previous",
        )
        self._log(run, rows)
        for name, value in trial.about(self.experiment).items():
            run.summary[name] = value
        for name, number in zip(self.experiment.metrics, trial.values):
            run.summary["slurmdl.value." + name] = number if math.isfinite(number) else str(number)
        run.finish(exit_code=int(trial.state in ("failed", "rejected")))

    def _replace(self, trial: Trial, rows: List[Row], file: str) -> None:
        os.makedirs(os.path.dirname(file), exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".wandb-", dir=".") as folder:
            self._write(trial, rows, os.path.abspath(folder))
            for where, _, names in os.walk(folder):
                for name in names:
                    if name == os.path.basename(file):
                        with open(os.path.join(where, name), "rb+") as new:
                            os.fsync(new.fileno())
                        os.replace(os.path.join(where, name), file)
                        return
        raise OSError(f"wandb wrote no {os.path.basename(file)}")

    def put(self, trial: Trial, rows: List[Row]) -> None:
        written = self._written.get(trial.number, 0)
        # rewritten only once it has grown by half: in total at most three times the last
        if not trial.final and trial.state == "open" and len(rows) < written * 1.5 + 1:
            return
        file, note = self._paths(trial)
        state = json.dumps({**trial.about(self.experiment), "rows": len(rows)}, sort_keys=True)
        if not (os.path.exists(file) and self._note(note) == state):
            self._replace(trial, rows, file)
            with open(note, "w", encoding="utf-8") as f:
                f.write(state)
        self._written[trial.number] = len(rows)

    def _note(self, path: str) -> str:
        try:
            with open(path, encoding="utf-8") as f:
                return f.read()
        except OSError:
            return ""
