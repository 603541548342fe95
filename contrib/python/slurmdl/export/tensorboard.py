# SPDX-License-Identifier: Apache-2.0
# mypy: disable-error-code="import-untyped,import-not-found"
"""Event files: EXPERIMENT/TRIAL/events.out.tfevents.*, with the hyperparameters of each trial for the HParams page."""

import glob
import os
import time
from typing import Any, Dict, List, Set

from tensorboard.backend.event_processing.event_file_loader import LegacyEventFileLoader
from tensorboard.compat.proto import event_pb2, summary_pb2
from tensorboard.plugins.hparams import api_pb2, metadata, plugin_data_pb2
from tensorboard.plugins.hparams.summary_v2 import hparams_pb
from tensorboard.summary.writer.record_writer import RecordWriter

from .records import Appending, Experiment, Row, Seen, Trial, count, plain

START, END = metadata.SESSION_START_INFO_TAG, metadata.SESSION_END_INFO_TAG


class TensorBoard(Appending):
    def __init__(self, experiment: Experiment) -> None:
        super().__init__(experiment)
        self._files: Dict[int, str] = {}  # written by this program, by trial
        self._tags: Dict[int, Set[str]] = {}  # START and END, if they exist

    def _folder(self, trial: Trial) -> str:
        return os.path.join(self.experiment.name, f"{trial.number:04d}")

    def _there(self, trial: Trial) -> List[str]:
        return sorted(glob.glob(os.path.join(glob.escape(self._folder(trial)), "events.out.tfevents.*")))

    def read(self, trial: Trial) -> Seen:
        seen: Seen = {}
        tags = self._tags.setdefault(trial.number, set())
        for path in self._there(trial):
            for event in LegacyEventFileLoader(path).Load():  # up to a truncated record
                for value in event.summary.value:
                    if value.HasField("simple_value"):
                        count(seen, value.tag, event.step)
                    else:
                        tags.add(value.tag)
        return seen

    def _file(self, trial: Trial) -> str:
        """A new file of this program behind the existing ones: TensorBoard reads them in the order of their names."""
        if trial.number not in self._files:
            last = max([int(path.rsplit("tfevents.", 1)[1].split(".")[0]) for path in self._there(trial)] or [0])
            os.makedirs(self._folder(trial), exist_ok=True)
            name = f"events.out.tfevents.{max(int(time.time()), last + 1):010d}.slurm-dl"
            self._files[trial.number] = os.path.join(self._folder(trial), name)
        return self._files[trial.number]

    def _hparams(self, trial: Trial) -> Any:
        values = {name: plain(value) for name, value in trial.hparams.items()}
        name = f"{self.experiment.id}/{trial.number}"
        return event_pb2.Event(
            wall_time=trial.begin or time.time(), summary=hparams_pb(values, name, trial.begin or None)
        )

    def _end(self, trial: Trial) -> Any:
        status = api_pb2.STATUS_FAILURE if trial.state in ("failed", "rejected") else api_pb2.STATUS_SUCCESS
        info = plugin_data_pb2.SessionEndInfo(status=status, end_time_secs=trial.end)
        about = metadata.create_summary_metadata(plugin_data_pb2.HParamsPluginData(session_end_info=info))
        value = summary_pb2.Summary.Value(tag=END, metadata=about, tensor=metadata.NULL_TENSOR)
        return event_pb2.Event(wall_time=trial.end or time.time(), summary=summary_pb2.Summary(value=[value]))

    def _events(self, trial: Trial, rows: List[Row]) -> List[Any]:
        tags = self._tags[trial.number]
        events = []
        if START not in tags:
            events.append(self._hparams(trial))
        for row in rows:
            value = summary_pb2.Summary.Value(tag=row.name, simple_value=row.value)
            events.append(
                event_pb2.Event(wall_time=row.time, step=row.step, summary=summary_pb2.Summary(value=[value]))
            )
        if trial.final and END not in tags:
            events.append(self._end(trial))
        tags.update({START, END} if trial.final else {START})
        return events

    def write(self, trial: Trial, rows: List[Row]) -> None:
        events = self._events(trial, rows)
        if not events:
            return
        path = self._file(trial)
        with open(path, "ab") as file:
            if file.tell() == 0:
                events.insert(0, event_pb2.Event(wall_time=time.time(), file_version="brain.Event:2"))
            writer = RecordWriter(file)
            for event in events:
                writer.write(event.SerializeToString())
            writer.flush()
            os.fsync(file.fileno())
