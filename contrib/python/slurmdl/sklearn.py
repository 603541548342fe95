# SPDX-License-Identifier: Apache-2.0
"""scikit-learn: scores, cross-validation, and training by partial_fit() that saves, resumes and stops.

    model = slurmdl.sklearn.fit(run, SGDClassifier(alpha=run.hp.alpha), X, y, validation=(Xv, yv), epochs=run.length)
    slurmdl.sklearn.cross_validate(run, RandomForestClassifier(), X, y, cv=5)

A checkpoint has the estimator as a pickle in the state "sklearn".  It is read from one's own checkpoints
(slurmdl.trust); another user's needs trust=True, and can run code.
"""

import pickle
from typing import Any, Dict, Optional, Tuple

import numpy

from . import _slurmdl
from .runs import Run
from .trust import Reader

_STATE = "sklearn"


def save(run: Run, estimator: Any, step: int) -> None:
    """Save an estimator as a checkpoint of the run."""
    run.state(_STATE, pickle.dumps(estimator, protocol=4))
    run.save(step)


def restore(run: Run, trust: bool = False) -> Optional[Tuple[Any, int]]:
    """The estimator of the trial's newest checkpoint and its step; None if there is none."""
    step = run.restore()
    if step is None:
        return None
    data = run.read_state(_STATE)
    if data is None:
        raise _slurmdl.Error(f"the newest checkpoint, of step {step}, was not saved by slurmdl.sklearn.save()")
    return Reader(run.restored_origin(), trust).unpickle(data), step


def log_scores(
    run: Run, estimator: Any, X: Any, y: Any, step: int, group: str = "validation", scoring: Any = None
) -> float:
    """Log the score of a fitted estimator as "GROUP/score", or the scores named in 'scoring'.  Returns the first."""
    if scoring is None:
        values = {"score": float(estimator.score(X, y))}
    else:
        from sklearn.metrics import get_scorer  # type: ignore[import-untyped, import-not-found, unused-ignore]

        names = [scoring] if isinstance(scoring, str) else list(scoring)
        values = {name: float(get_scorer(name)(estimator, X, y)) for name in names}
    run.log({f"{group}/{name}": v for name, v in values.items()}, step)
    return next(iter(values.values()))


def fit(
    run: Run,
    estimator: Any,
    X: Any,
    y: Any,
    validation: Optional[Tuple[Any, Any]] = None,
    epochs: int = 10,
    batch_size: int = 256,
    classes: Any = None,
    scoring: Any = None,
    save_every: int = 1,
    trust: bool = False,
) -> Any:
    """Train by partial_fit() in shuffled batches, from the trial's newest checkpoint, until 'epochs' or a stop.  Logs
    the scores and saves a checkpoint each epoch; returns the estimator.  The order of an epoch depends only on the
    trial's seed and the epoch."""
    restored = restore(run, trust)
    estimator, epoch = restored if restored else (estimator, 0)
    options: Dict[str, Any] = {}
    if hasattr(estimator, "predict_proba") or hasattr(estimator, "decision_function") or classes is not None:
        options["classes"] = numpy.unique(y) if classes is None else classes
    X, y = numpy.asarray(X), numpy.asarray(y)
    while epoch < epochs and not run.should_stop():
        epoch += 1
        order = numpy.random.default_rng([run.seed, epoch]).permutation(len(y))
        for i in range(0, len(order), batch_size):
            rows = order[i : i + batch_size]
            estimator.partial_fit(X[rows], y[rows], **options)
        run.epoch(epoch)
        log_scores(run, estimator, X, y, epoch, "training", scoring)
        if validation is not None:
            log_scores(run, estimator, *validation, step=epoch, scoring=scoring)
        if epoch % save_every == 0 or epoch == epochs or run.should_stop():
            save(run, estimator, epoch)
    return estimator


def cross_validate(run: Run, estimator: Any, X: Any, y: Any = None, step: int = 1, **options: Any) -> Dict[str, Any]:
    """sklearn.model_selection.cross_validate(), logged: "fold/NAME" for each fold, with its number as the step, then
    "validation/NAME" and "validation/NAME_sd", mean and standard deviation, at 'step'."""
    import sklearn.model_selection  # type: ignore[import-untyped, import-not-found, unused-ignore]

    result: Dict[str, Any] = sklearn.model_selection.cross_validate(estimator, X, y, **options)
    for name, values in result.items():
        if not name.startswith("test_") and not name.endswith("_time"):
            continue
        name = name[5:] if name.startswith("test_") else name
        for fold, value in enumerate(values, 1):
            run.log(f"fold/{name}", value, fold)
        run.log({f"validation/{name}": numpy.mean(values), f"validation/{name}_sd": numpy.std(values)}, step)
    return result
