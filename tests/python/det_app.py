# SPDX-License-Identifier: Apache-2.0
# follows Determined's documentation: metrics, a checkpoint in a folder, preemption, and the searcher's length
import logging
import sys
import time

import determined as det

assert det.util.json_encode({"a": 1}) == '{"a": 1}'


def main(context, latest, trial, hparams):
    batches, x = 0, 0.0
    if latest is not None:
        with context.checkpoint.restore_path(latest) as path:
            batches, x = [float(n) for n in (path / "state").read_text().split()]
            batches = int(batches)
        print(f"from {batches} of {latest}", flush=True)
    for op in context.searcher.operations():
        while batches < op.length * 10:
            batches += 1
            x += hparams["step"]
            time.sleep(PAUSE)
            if batches % 5 == 0:
                context.train.report_training_metrics(steps_completed=batches, metrics={"x": x, "n": [1, 2]})
                context.train.report_validation_metrics(batches, {"x": x})
                op.report_progress(batches / 10)
                with context.checkpoint.store_path({"steps_completed": batches}) as (path, storage_id):
                    (path / "sub").mkdir()
                    (path / "sub" / "empty").touch()
                    (path / "state").write_text(f"{batches} {x}")
                print(f"batches {batches}", flush=True)
                if context.preempt.should_preempt():
                    return
        op.report_completed(x)


if __name__ == "__main__":
    PAUSE = float(sys.argv[1])
    logging.basicConfig(level=logging.INFO, format=det.LOG_FORMAT)
    info = det.get_cluster_info()
    assert info is not None and info.trial.trial_seed > 0
    with det.core.init() as core_context:
        main(core_context, info.latest_checkpoint, info.trial.trial_id, info.trial.hparams)
