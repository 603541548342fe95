# SPDX-License-Identifier: Apache-2.0
"""dl export --format=tensorboard|wandb|mlflow|optuna|parquet: an experiment in the file formats of other tools.

dl writes the experiment to standard input (launcher/model/export_tool.c documents the lines), even while it runs; a
module for each tool passes it to the tool's own library.  What the tool's files already contain is read first and not
written again, so that a program that was killed at any point can simply be started again.
"""

import importlib
import json
import os
import signal
import sys
from typing import IO, Any, Dict, List, Tuple

from ..program import FAILED, IO_ERROR, NOT_FOUND, OK, complain
from .records import Experiment, Row, Trial, Writer

# the class of each format, in the module of the same name, and what to install with pip
FORMATS: Dict[str, Tuple[str, str]] = {
    "tensorboard": ("TensorBoard", "tensorboard"),
    "wandb": ("Wandb", "wandb"),
    "mlflow": ("MLflow", "mlflow"),
    "optuna": ("Optuna", "optuna"),
    "parquet": ("Parquet", "pyarrow"),
}


class _Reader:
    """Reads the lines of dl, and passes each trial with all its rows to the writer."""

    def __init__(self, format: str) -> None:
        self.format, self.writer, self.names = format, None, {}  # type: str, Any, Dict[int, str]
        self.trial: Any = None
        self.rows: List[Row] = []
        self.ended = False

    def _open(self, experiment: Experiment) -> Writer:
        module = importlib.import_module("." + self.format, __name__)
        writer: Writer = getattr(module, FORMATS[self.format][0])(experiment)
        return writer

    def _hand_over(self) -> None:
        if self.trial is not None:
            self.writer.put(self.trial, self.rows)
        self.trial, self.rows = None, []

    def _object(self, line: Dict[str, Any]) -> None:
        if "trial" not in line and "metric" in line:
            self.names[line["metric"]] = line["name"]
            return
        self._hand_over()
        if "experiment" in line:
            self.writer = self._open(Experiment(line["experiment"]))
        elif "trial" in line:
            self.trial = Trial(line)
        elif "flush" in line:
            self.writer.flush()
        elif "end" in line:
            self.ended = True

    def read(self, lines: IO[str]) -> None:
        for text in lines:
            if not text.endswith("\n"):
                break
            line = json.loads(text)
            if isinstance(line, dict):
                self._object(line)
            else:
                self.rows.append(Row(self.names[line[1]], *line[2:]))
        self.writer.close()


def main(format: str, folder: str) -> int:
    """Export standard input to 'folder'.  Returns an exit status of dl(1)."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # this program ends after dl, with all that it received
    os.umask(os.umask(0o077) | 0o022)
    os.chdir(folder)
    reader = _Reader(format)
    try:
        with open(0, encoding="utf-8", closefd=False) as lines:
            reader.read(lines)
    except ImportError as error:
        package = FORMATS[format][1]
        complain(f"--format={format} needs {package} ({error}): {sys.executable} -m pip install {package}")
        return NOT_FOUND
    except Exception as error:
        complain(f"{folder}: cannot export: {type(error).__name__}: {error}")
        return IO_ERROR
    if not reader.ended:
        complain(f"{folder}: dl ended before the export was complete; run it again for the rest")
        return FAILED
    return OK
