#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How long slurmdl.Experiment takes for its tables, and how large they are.

    python3 tests/bench/frames.py [TRIALS [ROWS]]        # of each trial; default: 100 and 10000, a million in all

It makes an experiment in a temporary folder with dl (in PATH) and the package slurmdl, without training anything: each
trial writes its rows by slurmdl.Run.  Best and median of 5 rounds.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time

import slurmdl

CONFIG = """name: frames
entrypoint: {python} -c 'import frames; frames.write({rows})'
searcher: {{name: random, metric: loss, max_trials: {trials}}}
resources: {{workers: 2}}
environment: {{PYTHONPATH: "{path}"}}
hyperparameters: {{lr: {{type: loguniform, min: 1e-4, max: 1.0}}, opt: {{type: categorical, vals: [sgd, adam]}}}}
"""


def write(rows):
    """What a trial does."""
    with slurmdl.init() as run:
        metrics = [run.metric(name) for name in ("loss", "accuracy", "lr", "grad_norm")]
        for step in range(1, rows // 4 + 1):
            for i, metric in enumerate(metrics):
                metric.log(step, run.hp["lr"] * i + 1 / step)


def timed(what, call):
    seconds = []
    for _ in range(5):
        start = time.perf_counter()
        result = call()
        seconds.append(time.perf_counter() - start)
    n = len(getattr(result, "trials", result))
    print(f"{what:12} {min(seconds):7.3f} s (median {statistics.median(seconds):.3f}), {n:,} rows", flush=True)


def main(trials=100, rows=10000):
    here = os.path.dirname(os.path.abspath(__file__))
    path = os.pathsep.join([here, os.path.dirname(os.path.dirname(slurmdl.__file__))])
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        with open("frames.yaml", "w") as f:
            f.write(CONFIG.format(python=sys.executable, rows=rows, trials=trials, path=path))
        subprocess.run(["dl", "run", "--local", "frames.yaml"], check=True, stdout=subprocess.DEVNULL)
        exp = slurmdl.Experiment("frames")
        timed("trials()", exp.trials)
        timed("metrics()", exp.metrics)
        timed("_repr_html_", exp._repr_html_)
        os.chdir("/")


if __name__ == "__main__":
    main(*(int(text) for text in sys.argv[1:]))
