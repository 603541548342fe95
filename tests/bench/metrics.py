#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Cost of logging one scalar: libslurmdl from C beside tensorboard, wandb offline and mlflow's file store.

usage: metrics.py BENCH [ROUNDS]     BENCH: tests/bench/metrics of the build folder (make tests/bench/metrics)

Loggers that this Python cannot import are left out.  In each round all of them
run one after the other, each in a process and a folder of its own, so that
all see the same machine; the table has the median, least and largest of the rounds.
"""
import importlib.util
import json
import math
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

TAGS = [f"training/metric_{i}" for i in range(10)]
VALUES = [math.sin(i * 1e-3) + 1.0 for i in range(1000)]


def each(n, log):
    """Microseconds that the loop is held up by each of n calls."""
    begin = time.perf_counter()
    for i in range(n):
        log(TAGS[i % 10], VALUES[i % 1000], i // 10)
    return (time.perf_counter() - begin) / n * 1e6


def tensorboard(folder, n):
    """What torch.utils.tensorboard.SummaryWriter.add_scalar does."""
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import Summary
    from tensorboard.summary.writer.event_file_writer import EventFileWriter
    writer = EventFileWriter(folder)

    def log(tag, value, step):
        summary = Summary(value=[Summary.Value(tag=tag, simple_value=value)])
        writer.add_event(Event(wall_time=time.time(), step=step, summary=summary))
    spent = each(n, log)
    writer.close()
    return spent


def wandb(folder, n):
    """Ten scalars a call, its best case."""
    os.environ.update(WANDB_MODE="offline", WANDB_DIR=folder, WANDB_SILENT="true", WANDB_CACHE_DIR=folder,
                      WANDB_CONFIG_DIR=folder, WANDB_DATA_DIR=folder)
    import wandb as module
    run = module.init(project="p", dir=folder, settings=module.Settings(x_disable_stats=True, silent=True))
    begin = time.perf_counter()
    for step in range(n // 10):
        run.log({tag: VALUES[(step * 10 + k) % 1000] for k, tag in enumerate(TAGS)}, step=step)
    spent = (time.perf_counter() - begin) / n * 1e6
    run.finish()
    return spent


def mlflow(folder, n):
    os.environ.update(MLFLOW_ALLOW_FILE_STORE="true", MLFLOW_DISABLE_TELEMETRY="true", DO_NOT_TRACK="true")
    import logging
    import mlflow as module
    logging.disable(logging.WARNING)
    module.set_tracking_uri("file://" + folder)
    module.set_experiment("x")
    with module.start_run():
        return each(n, lambda tag, value, step: module.log_metric(tag, value, step=step))


LOGGERS = {"tensorboard": (tensorboard, 50000), "wandb": (wandb, 20000), "mlflow": (mlflow, 2000)}


def in_folder(command):
    folder = tempfile.mkdtemp(prefix="dl-bench.")
    try:
        p = subprocess.run([*command, folder], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, timeout=300)
        return json.loads(p.stdout.splitlines()[-1]) if p.returncode == 0 else None
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def round_of(bench, found):
    for k, v in (in_folder([bench]) or sys.exit(f"{bench} failed")).items():
        found.setdefault(k, []).append(v)
    for name in LOGGERS:
        if importlib.util.find_spec(name):
            us = in_folder([sys.executable, __file__, "--one", name])
            if us is not None:
                found.setdefault(f"{name}_us", []).append(us)


def main():
    if sys.argv[1] == "--one":
        log, n = LOGGERS[sys.argv[2]]
        print(json.dumps(log(sys.argv[3], n)))
        return
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    found = {}
    for _ in range(rounds):
        round_of(sys.argv[1], found)
    print(f"{'median of ' + str(rounds):24s} {'median':>9s} {'least':>9s} {'largest':>9s}   load {os.getloadavg()[0]:.1f}")
    for k, v in found.items():
        print(f"{k:24s} {statistics.median(v):9.1f} {min(v):9.1f} {max(v):9.1f}")


if __name__ == "__main__":
    main()
