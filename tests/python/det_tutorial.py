# SPDX-License-Identifier: Apache-2.0
# follows Determined's documentation: the Core API tutorial with a search, whose script sets its own length
import logging
import os

import determined as det

BATCHES = 16


def main(context, latest, trial_id, increment_by):
    x, begin = 0, 0
    if latest is not None:
        with context.checkpoint.restore_path(latest) as path:
            x, begin, saved_by = (int(n) for n in (path / "state").read_text().split(","))
            begin = begin if saved_by == trial_id else 0
    for batch in range(begin, BATCHES):
        x += increment_by
        done = batch + 1
        logging.info(f"x is now {x}")
        if done % 2 == 0:
            context.train.report_training_metrics(steps_completed=done, metrics={"x": x})
            context.train.report_progress(done / BATCHES)
            context.train.report_validation_metrics(steps_completed=done, metrics={"x": x, "batches": done})
            with context.checkpoint.store_path({"steps_completed": done}) as (path, storage_id):
                (path / "state").write_text(f"{x},{done},{trial_id}")
            if context.preempt.should_preempt():
                return


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format=det.LOG_FORMAT)
    logging.info(os.environ["GREETING"])
    info = det.get_cluster_info()
    assert info is not None, "this runs under a searcher only"
    with det.core.init() as core_context:
        main(core_context, info.latest_checkpoint, info.trial.trial_id, info.trial.hparams["increment_by"])
