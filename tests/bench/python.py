#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a logged scalar costs a training loop in Python, beside TensorBoard, wandb (offline) and MLflow, in one run.

    pip install ./contrib/python tensorboard tensorboardX torch wandb mlflow    # what is absent is left out
    python tests/bench/python.py [ROUNDS]

Each logger logs 10 names in turn; the time is that of the loop with its calls, the best and the median of ROUNDS
(default 9) rounds, in which the loggers take turns.  The peers' own start and end are not counted.
"""

import os
import shutil
import statistics
import sys
import tempfile
import time

NAMES = [f"training/metric{i}" for i in range(10)]


def loop(log, n):
    """Seconds a scalar of log(name, value, step)."""
    names = NAMES
    start = time.perf_counter()
    for step in range(n // 10):
        for name in names:
            log(name, 0.5, step)
    return (time.perf_counter() - start) / n


def nothing(name, value, step):
    pass


def ours(folder):
    import slurmdl

    run = slurmdl.Run(os.path.join(folder, "slurmdl"))
    metrics = {name: run.metric(name).log for name in NAMES}

    def by_metric(n):
        logs = list(metrics.values())
        start = time.perf_counter()
        for step in range(n // 10):
            for log in logs:
                log(step, 0.5)
        return (time.perf_counter() - start) / n

    def by_dict(n):
        values = {name: 0.5 for name in NAMES}
        start = time.perf_counter()
        for step in range(n // 10):
            run.log(values, step)
        return (time.perf_counter() - start) / n

    def stop(n):
        should_stop = run.should_stop
        start = time.perf_counter()
        for _ in range(n):
            should_stop()
        return (time.perf_counter() - start) / n

    yield "slurmdl metric.log(step, value)", by_metric, 100000
    yield "slurmdl run.log(name, value, step)", lambda n: loop(run.log, n), 100000
    yield "slurmdl run.log({10 names}, step)", by_dict, 100000
    yield "slurmdl run.should_stop()", stop, 100000


def tensorboard(folder):
    from torch.utils.tensorboard import SummaryWriter

    writer = SummaryWriter(os.path.join(folder, "tensorboard"))
    yield "tensorboard add_scalar", lambda n: loop(writer.add_scalar, n), 3000


def tensorboardx(folder):
    from tensorboardX import SummaryWriter

    writer = SummaryWriter(os.path.join(folder, "tensorboardX"))
    yield "tensorboardX add_scalar", lambda n: loop(writer.add_scalar, n), 3000


def wandb(folder):
    os.environ.update(WANDB_MODE="offline", WANDB_SILENT="true", WANDB_DIR=folder)
    import wandb as module

    run = module.init(project="bench", mode="offline", dir=folder)

    def by_dict(n):
        values = {name: 0.5 for name in NAMES}
        start = time.perf_counter()
        for _ in range(n // 10):
            run.log(values)
        return (time.perf_counter() - start) / n

    yield "wandb offline, 10 a log()", by_dict, 3000


def mlflow(folder):
    os.environ["MLFLOW_ALLOW_FILE_STORE"] = "true"
    import mlflow as module

    module.set_tracking_uri("file://" + os.path.join(folder, "mlruns"))
    module.set_experiment("bench")
    module.start_run()
    yield "mlflow file store, log_metric", lambda n: loop(lambda k, v, s: module.log_metric(k, v, step=s), n), 300


def loggers(folder):
    for make in (ours, tensorboard, tensorboardx, wandb, mlflow):
        try:
            yield from make(folder)
        except ImportError as error:
            print(f"# {make.__name__}: left out ({error})")


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 9
    folder = tempfile.mkdtemp(prefix="dl-bench.")
    try:
        rows = [(name, f, n, []) for name, f, n in loggers(folder)]
        empty = []
        for _ in range(rounds):
            empty.append(loop(nothing, 100000))
            for _, f, n, times in rows:
                times.append(f(n))
                time.sleep(0.3)
        print(f"# the loop with an empty function of Python: {min(empty) * 1e6:.3f} us a call")
        print(f"{'logger':40} {'best us':>9} {'median us':>10}")
        for name, _, _, times in rows:
            print(f"{name:40} {min(times) * 1e6:9.3f} {statistics.median(times) * 1e6:10.3f}")
        sys.stdout.flush()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        # some peers' threads never end
        os._exit(0)


if __name__ == "__main__":
    main()
