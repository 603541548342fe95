# SPDX-License-Identifier: Apache-2.0
"""exported.py FORMAT FOLDER EXPERIMENT: read an export with the tool itself and compare.  Prints "same: N rows"."""

import collections
import glob
import json
import math
import os
import struct
import sys
from typing import Any, Callable, Iterator, Tuple

import slurmdl

Key = Tuple[int, str, int, str]


def key(trial: int, name: str, step: int, value: float) -> Key:
    return trial, name, step, "%.6g" % value


def truth(experiment: str, kept: Callable[[float], float] = float) -> Iterator[Key]:
    for folder in sorted(glob.glob(f"{experiment}/trials/*")):
        for row in slurmdl.read_metrics(folder):
            yield key(int(os.path.basename(folder)), str(row["name"]), int(row["step"]), kept(float(row["value"])))


def tensorboard(folder: str, name: str) -> Iterator[Key]:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    for path in sorted(glob.glob(f"{folder}/{name}/*")):
        events = EventAccumulator(path, size_guidance={"scalars": 0})
        events.Reload()
        assert any("session_start" in tag for tag in events.summary_metadata), path
        for tag in events.Tags()["scalars"]:
            for event in events.Scalars(tag):
                yield key(int(os.path.basename(path)), tag, event.step, event.value)


def records(path: str) -> Iterator[Any]:
    """Read the records of a wandb file, which has the format of LevelDB's log."""
    from wandb.proto import wandb_internal_pb2

    data = open(path, "rb").read()
    assert data[:4] == b":W&B", data[:7]
    at, whole = 7, b""
    while at + 7 <= len(data):
        if 32768 - at % 32768 < 7:
            at += 32768 - at % 32768
            continue
        _, size, kind = struct.unpack_from("<IHB", data, at)
        whole += data[at + 7 : at + 7 + size]
        at += 7 + size
        if kind in (1, 4):  # a whole record, or its last part
            record = wandb_internal_pb2.Record()
            record.ParseFromString(whole)
            whole = b""
            yield record


def wandb(folder: str, name: str) -> Iterator[Key]:
    ids = set()
    for path in sorted(glob.glob(f"{folder}/wandb/offline-run-*/run-*.wandb")):
        ended = False
        for record in records(path):
            if record.WhichOneof("record_type") == "run":
                assert record.run.run_id not in ids and record.run.project == name
                ids.add(record.run.run_id)
                trial = int(record.run.display_name)
                config = {item.key: json.loads(item.value_json) for item in record.run.config.update}
                assert "lr" in config, config
            ended |= record.WhichOneof("record_type") == "exit"
            if record.WhichOneof("record_type") != "history":
                continue
            items = {item.key or "/".join(item.nested_key): json.loads(item.value_json) for item in record.history.item}
            for name_, value in items.items():
                if not name_.startswith("_"):
                    yield key(trial, name_, items["_step"], float(value))
        assert ended, path


def mlflow(folder: str, name: str) -> Iterator[Key]:
    import mlflow as tool

    tool.set_tracking_uri(f"sqlite:///{os.path.abspath(folder)}/mlflow.db")
    client = tool.tracking.MlflowClient()
    of = client.get_experiment_by_name(name)
    runs = client.search_runs([of.experiment_id], max_results=1000)
    numbers = [run.data.tags["slurmdl.trial"] for run in runs]
    assert len(set(numbers)) == len(numbers), numbers
    for run in runs:
        assert "lr" in run.data.params and run.info.status == "FINISHED", run
        for name_ in run.data.metrics:
            for metric in client.get_metric_history(run.info.run_id, name_):
                yield key(int(run.data.tags["slurmdl.trial"]), name_, metric.step, metric.value)


def optuna(folder: str, name: str) -> Iterator[Key]:
    import optuna as tool

    study = tool.load_study(study_name=name, storage=f"sqlite:///{os.path.abspath(folder)}/optuna.db")
    numbers = [trial.user_attrs["slurmdl.trial"] for trial in study.trials]
    assert len(set(numbers)) == len(numbers), numbers
    assert math.isfinite(study.best_value)
    for trial in study.trials:
        assert "lr" in trial.params and trial.state.is_finished(), trial
        for step, value in trial.intermediate_values.items():
            yield key(trial.user_attrs["slurmdl.trial"], "loss", step, value)


def parquet(folder: str, name: str) -> Iterator[Key]:
    import pandas

    trials = pandas.read_parquet(f"{folder}/{name}.trials.parquet")
    assert "hp.lr" in trials and trials["trial"].is_unique, trials
    for row in pandas.read_parquet(f"{folder}/{name}.metrics.parquet").itertuples():
        yield key(row.trial, row.name, row.step, row.value)


def main(format: str, folder: str, experiment: str) -> None:
    wanted = list(truth(experiment))
    name = os.path.basename(os.path.realpath(experiment))
    if format == "optuna":
        wanted = [row for row in wanted if row[1] == "loss"]
    if format == "tensorboard":  # TensorBoard stores 32-bit floats
        wanted = list(truth(experiment, lambda value: struct.unpack("f", struct.pack("f", value))[0]))
    if format == "mlflow":
        from slurmdl.export.mlflow import name_of

        wanted = [(trial, name_of(metric), step, value) for trial, metric, step, value in wanted]
    got = collections.Counter(globals()[format](folder, name))
    missing, more = collections.Counter(wanted) - got, got - collections.Counter(wanted)
    print(f"same: {len(wanted)} rows" if wanted and not missing and not more else "differs")
    for what, rows in (("missing", missing), ("more", more)):
        for row, n in list(rows.items())[:5]:
            print(what, n, row)


main(*sys.argv[1:])
