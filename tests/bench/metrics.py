#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compare the cost of logging a scalar: libslurmdl (C and Python), TensorBoard, wandb offline, MLflow's file store.

usage: metrics.py BENCH [ROUNDS]     BENCH: tests/bench/metrics of the build folder (make tests/bench/metrics)

    pip install ./contrib/python tensorboard tensorboardX wandb mlflow    # missing packages are skipped

Each logger logs 10 names in turn. The time includes the loop and its calls, but not the startup and shutdown of the
logger. Each round runs all loggers one after the other, each in its own process and directory, so that other load
affects all alike. Prints the median, minimum and maximum over the rounds.
"""
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

NAMES = [f"training/metric{i}" for i in range(10)]


def timed(n, loop):
    """Return the microseconds per scalar of a loop that logs n scalars, ten per step."""
    begin = time.perf_counter()
    loop(n // 10)
    return (time.perf_counter() - begin) / n * 1e6


def by_name(log):
    def loop(steps):
        for step in range(steps):
            for name in NAMES:
                log(name, 0.5, step)
    return loop


def by_step(log):
    values = dict.fromkeys(NAMES, 0.5)

    def loop(steps):
        for step in range(steps):
            log(values, step)
    return loop


def nothing(folder):
    yield "an empty function of Python", timed(100000, by_name(lambda name, value, step: None))


def ours(folder):
    import slurmdl

    run = slurmdl.Run(folder)
    logs = [run.metric(name).log for name in NAMES]

    def by_metric(steps):
        for step in range(steps):
            for log in logs:
                log(step, 0.5)

    def stop(steps):
        for _ in range(10 * steps):
            run.should_stop()

    yield "slurmdl metric.log(step, value)", timed(100000, by_metric)
    yield "slurmdl run.log(name, value, step)", timed(100000, by_name(run.log))
    yield "slurmdl run.log({10 names}, step)", timed(100000, by_step(run.log))
    yield "slurmdl run.should_stop()", timed(100000, stop)


def tensorboard(folder):
    """Do what torch.utils.tensorboard.SummaryWriter.add_scalar does."""
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import Summary
    from tensorboard.summary.writer.event_file_writer import EventFileWriter

    writer = EventFileWriter(folder)

    def log(tag, value, step):
        summary = Summary(value=[Summary.Value(tag=tag, simple_value=value)])
        writer.add_event(Event(wall_time=time.time(), step=step, summary=summary))

    yield "tensorboard add_scalar", timed(20000, by_name(log))


def tensorboardx(folder):
    from tensorboardX import SummaryWriter

    yield "tensorboardX add_scalar", timed(20000, by_name(SummaryWriter(folder).add_scalar))


def wandb(folder):
    """Log ten scalars per call, its best case."""
    os.environ.update(WANDB_MODE="offline", WANDB_DIR=folder, WANDB_SILENT="true", WANDB_CACHE_DIR=folder,
                      WANDB_CONFIG_DIR=folder, WANDB_DATA_DIR=folder)
    import wandb as module

    run = module.init(project="p", dir=folder, settings=module.Settings(x_disable_stats=True, silent=True))
    yield "wandb offline, 10 a log()", timed(20000, by_step(lambda values, step: run.log(values, step=step)))


def mlflow(folder):
    os.environ.update(MLFLOW_ALLOW_FILE_STORE="true", MLFLOW_DISABLE_TELEMETRY="true", DO_NOT_TRACK="true")
    import logging

    import mlflow as module

    logging.disable(logging.WARNING)
    module.set_tracking_uri("file://" + folder)
    module.set_experiment("x")
    module.start_run()
    yield "mlflow file store, log_metric", timed(2000, by_name(lambda name, value, step: module.log_metric(name, value, step=step)))


LOGGERS = {f.__name__: f for f in (nothing, ours, tensorboard, tensorboardx, wandb, mlflow)}


def in_folder(command):
    folder = tempfile.mkdtemp(prefix="dl-bench.")
    try:
        p = subprocess.run([*command, folder], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=300)
        if p.returncode:
            print(f"# {' '.join(command[-1:])}: left out ({p.stderr.strip().splitlines()[-1]})")
        return json.loads(p.stdout.splitlines()[-1]) if p.returncode == 0 else {}
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def main():
    if sys.argv[1] == "--one":
        print(json.dumps(dict(LOGGERS[sys.argv[2]](sys.argv[3]))), flush=True)
        os._exit(0)  # threads of some loggers never end
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    commands = [[sys.argv[1]]] + [[sys.executable, __file__, "--one", name] for name in LOGGERS]
    found = {}
    for _ in range(rounds):
        for command in list(commands):
            times = in_folder(command)
            if not times:
                commands.remove(command)
            for k, v in times.items():
                found.setdefault(k, []).append(v)
    print(f"{'median of ' + str(rounds):36s} {'median':>9s} {'least':>9s} {'largest':>9s}   load {os.getloadavg()[0]:.1f}")
    for k, v in found.items():
        print(f"{k:36s} {statistics.median(v):9.3f} {min(v):9.3f} {max(v):9.3f}")


if __name__ == "__main__":
    main()
