# SPDX-License-Identifier: Apache-2.0
# mypy: disable-error-code="import-untyped,import-not-found"
"""A study with the experiment's name in optuna.db: optuna.load_study(), optuna-dashboard sqlite:///optuna.db."""

import math
from datetime import datetime
from typing import Any, Dict, List

import optuna
from optuna.trial import TrialState

from ..study import Parameter, name_metrics
from .records import Experiment, Row, Trial, Writer, database

STATES = {
    "completed": TrialState.COMPLETE,
    "failed": TrialState.FAIL,
    "rejected": TrialState.FAIL,
    "stopped early": TrialState.PRUNED,
}


class Optuna(Writer):
    """The state of a trial and its values are written in one transaction: Optuna allows no changes later."""

    def __init__(self, experiment: Experiment) -> None:
        super().__init__(experiment)
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        self._study = optuna.create_study(
            storage=database("optuna.db", optuna.storages.RDBStorage),
            study_name=experiment.name,
            directions=["minimize" if smaller else "maximize" for smaller in experiment.smaller],
            load_if_exists=True,
        )
        if len(experiment.metrics) > 1:
            name_metrics(self._study, experiment.metrics)
        self._space = {of["name"]: Parameter(optuna, of) for of in experiment.space}
        self._there = {t.user_attrs.get("slurmdl.trial"): t for t in self._study.get_trials(deepcopy=False)}

    def _state(self, trial: Trial) -> Any:
        if not trial.final:
            return TrialState.RUNNING
        state = STATES.get(trial.state, TrialState.FAIL)
        if state != TrialState.FAIL and (not trial.values or any(math.isnan(v) for v in trial.values)):
            return TrialState.FAIL
        # with repeats a value is the mean of a point; means of fewer repeats are not compared
        return state if trial.compared or state != TrialState.COMPLETE else TrialState.PRUNED

    def _steps(self, rows: List[Row]) -> Dict[int, float]:
        if len(self.experiment.metrics) > 1:
            return {}
        return {row.step: row.value for row in rows if row.name == self.experiment.metrics[0] and row.step >= 0}

    def _add(self, trial: Trial, steps: Dict[int, float]) -> Any:
        state = self._state(trial)
        # a point given by the user may lie outside the space
        values = {n: self._space[n].value(v) for n, v in trial.hparams.items() if n in self._space and v is not None}
        params = {n: v for n, v in values.items() if self._space[n].has(v)}
        others = {f"hp.{n}": v for n, v in trial.hparams.items() if n not in params}
        self._study.add_trial(
            optuna.trial.FrozenTrial(
                number=-1,
                trial_id=-1,
                state=state,
                value=None,
                values=trial.values if state == TrialState.COMPLETE else None,
                datetime_start=datetime.fromtimestamp(trial.begin or 0),
                datetime_complete=datetime.fromtimestamp(trial.end or trial.begin or 0) if trial.final else None,
                params=params,
                distributions={n: self._space[n].distribution for n in params},
                user_attrs={**trial.about(self.experiment), **others, "slurmdl.trial": trial.number},
                system_attrs={},
                intermediate_values=steps,
            )
        )
        return self._study.get_trials(deepcopy=False)[-1]

    def _go_on(self, trial: Trial, frozen: Any, steps: Dict[int, float]) -> Any:
        live = optuna.trial.Trial(self._study, frozen._trial_id)
        for step, value in steps.items():
            if step not in frozen.intermediate_values:
                live.report(value, step)
        state = self._state(trial)
        if state != TrialState.RUNNING:
            self._study.tell(frozen.number, trial.values if state == TrialState.COMPLETE else None, state)
        return self._study._storage.get_trial(frozen._trial_id)

    def put(self, trial: Trial, rows: List[Row]) -> None:
        frozen = self._there.get(trial.number)
        if frozen is None:
            self._there[trial.number] = self._add(trial, self._steps(rows))
        elif not frozen.state.is_finished():
            self._there[trial.number] = self._go_on(trial, frozen, self._steps(rows))
