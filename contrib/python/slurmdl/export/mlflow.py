# SPDX-License-Identifier: Apache-2.0
# mypy: disable-error-code="import-untyped,import-not-found"
"""An experiment of MLflow in mlflow.db: mlflow ui --backend-store-uri sqlite:///mlflow.db."""

import logging
import os
import re
from typing import Any, Dict, List

os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")

from mlflow.entities import Metric, Param, RunTag  # noqa
from mlflow.tracking import MlflowClient  # noqa

from .records import Appending, Experiment, Row, Seen, Trial, count, database  # noqa

AT_ONCE = 1000  # limits of MLflow: metrics, 100 parameters
STATUS = {"failed": "FAILED", "rejected": "FAILED"}


def name_of(name: str) -> str:
    """A name that MLflow accepts; other characters become _xHH_."""
    text = re.sub(r"[^\w\-. /]|[^\x00-\x7f]", lambda m: f"_x{ord(m.group()):02x}_", name)
    parts = ["_x2e_" * len(p) if p in ("", ".", "..") and len(p) else p or "_" for p in text.split("/")]
    return "/".join(parts)[:250]


def milliseconds(time: float) -> int:
    return int(time * 1000)


class MLflow(Appending):
    def __init__(self, experiment: Experiment) -> None:
        super().__init__(experiment)
        for name in ("mlflow", "alembic"):
            logging.getLogger(name).setLevel(logging.ERROR)
        self._client = MlflowClient(database("mlflow.db", lambda address: MlflowClient(address).search_experiments()))
        there = self._client.get_experiment_by_name(experiment.name)
        self._id = there.experiment_id if there else self._client.create_experiment(experiment.name)
        self._runs: Dict[str, Any] = {}
        token = None
        while True:
            page = self._client.search_runs([self._id], max_results=1000, page_token=token)
            self._runs.update({str(run.data.tags.get("slurmdl.trial")): run for run in page})
            token = page.token
            if not token:
                break

    def read(self, trial: Trial) -> Seen:
        seen: Seen = {}
        run: Any = self._runs.get(str(trial.number))
        for key in run.data.metrics if run else ():
            for metric in self._client.get_metric_history(run.info.run_id, key):
                count(seen, key, metric.step)
        return seen

    def put(self, trial: Trial, rows: List[Row]) -> None:
        super().put(trial, [row._replace(name=name_of(row.name)) for row in rows])

    def _run(self, trial: Trial) -> Any:
        tags = trial.about(self.experiment)
        key = str(trial.number)
        if key not in self._runs:
            self._runs[key] = self._client.create_run(
                self._id, milliseconds(trial.begin or 0), tags, f"{self.experiment.name}/{trial.number:04d}"
            )
        return self._runs[key]

    def _params(self, trial: Trial, there: Dict[str, str]) -> List[Any]:
        params = {name_of(name): str(value)[:6000] for name, value in trial.hparams.items()}
        return [Param(name, value) for name, value in params.items() if name not in there]

    def write(self, trial: Trial, rows: List[Row]) -> None:
        run = self._run(trial)
        id = run.info.run_id
        params = self._params(trial, run.data.params)
        for i in range(0, len(params), 100):
            self._client.log_batch(id, params=params[i : i + 100])
        for i in range(0, len(rows), AT_ONCE):
            part = [Metric(r.name, r.value, milliseconds(r.time), r.step) for r in rows[i : i + AT_ONCE]]
            self._client.log_batch(id, metrics=part)
        tags = {n: v for n, v in trial.about(self.experiment).items() if run.data.tags.get(n) != v}
        self._client.log_batch(id, tags=[RunTag(name, value) for name, value in tags.items()])
        status = STATUS.get(trial.state, "FINISHED")
        if trial.final and run.info.status != status:
            self._client.set_terminated(id, status, milliseconds(trial.end or trial.begin or 0))
        self._runs[str(trial.number)] = self._client.get_run(id)
