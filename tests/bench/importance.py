#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compare the parameter importance in dl report with Optuna's fANOVA and the true share.

    python3 tests/bench/importance.py [TRIALS]      # default: 200 random trials of each problem

Needs dl in PATH, the package slurmdl, pandas and optuna with scikit-learn. The problems are the examples of Optuna's
manual (plot_param_importances, plot_contour) and test functions of sensitivity analysis.
"""

import json
import os
import re
import subprocess
import sys
import tempfile

import optuna
import slurmdl

PI = 3.141592653589793
# name, parameters, awk expression, true share of each parameter alone
PROBLEMS = (
    ("optuna-importances", {"x": (int, 0, 2), "y": (float, -1, 1), "z": (float, 0, 1.5)}, "x^2 + y^3 - z^4", (0.595, 0.029, 0.375)),
    ("optuna-contour", {"x": (float, -100, 100), "y": (float, -1, 1)}, "x^2 + y", (1, 0)),
    ("ishigami", {v: (float, -PI, PI) for v in "xyz"}, "sin(x) + 7 * sin(y)^2 + 0.1 * z^4 * sin(x)", (0.314, 0.442, 0)),
    ("sobol-g", {v: (float, 0, 1) for v in "abcd"},
     "(f(4*a-2)) * ((f(4*b-2)+1)/2) * ((f(4*c-2)+4.5)/5.5) * ((f(4*d-2)+9)/10)", (0.716, 0.179, 0.024, 0.007)),
    ("branin", {"x": (float, -5, 10), "y": (float, 0, 15)},
     "(y - 5.1/(4*P^2)*x^2 + 5/P*x - 6)^2 + 10*(1 - 1/(8*P))*cos(x) + 10", (0.136, 0.252)),
)
CONF = """name = "{name}"; entrypoint = ["./value"];
metrics = {{ pattern = "^{{step}} value {{value}}$"; }};
searcher = {{ name = "random"; metric = "value"; max_trials = {trials}; max_length = 1; }};
hyperparameters = {{ {space} }};
resources = {{ workers = 2; }}; reproducibility = {{ experiment_seed = 1; }}; max_restarts = 0; code = {{ freeze = false; }};
"""


def sweep(name, space, expression, trials):
    values = " ".join(f"-v {p}=$DL_HP_{p}" for p in space)
    with open("value", "w") as f:
        f.write(f"#!/bin/sh\necho 1 value $(awk {values} -v P={PI} 'function f(t) {{ return t < 0 ? -t : t }} BEGIN {{ print {expression} }}')\n")
    os.chmod("value", 0o755)
    lines = (f'{p} = {{ type = "{"int" if kind is int else "float"}"; minval = {low}; maxval = {high}; }};' for p, (kind, low, high) in space.items())
    with open(name + ".conf", "w") as f:
        f.write(CONF.format(name=name, trials=trials, space=" ".join(lines)))
    subprocess.run(["dl", "run", "--local", name + ".conf"], check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["dl", "report", name, "-o", "page.html"], check=True, stdout=subprocess.DEVNULL)
    with open("page.html", encoding="utf-8") as f:
        page = json.loads(re.search(r'<script id="data"[^>]*>(.*?)</script>', f.read(), re.S).group(1))
    ours = {p["name"]: p["share"] for p in page["params"]}
    study = slurmdl.Experiment(name).study()
    theirs = optuna.importance.get_param_importances(study, evaluator=optuna.importance.FanovaImportanceEvaluator(seed=1))
    return ours, theirs


def main(trials=200):
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    print("| problem | dl report | Optuna's fANOVA | true | same order |\n| --- | --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for name, space, expression, true in PROBLEMS:
            ours, theirs = sweep(name, space, expression, trials)
            order = [sorted(of, key=of.get, reverse=True) for of in (ours, theirs)]
            cells = [", ".join(f"{p} {of[p]:.2f}" for p in space) for of in (ours, theirs)]
            known = ", ".join(f"{p} {v:.2f}" for p, v in zip(space, true))
            print(f"| {name} | {cells[0]} | {cells[1]} | {known} | {'yes' if order[0] == order[1] else 'no'} |", flush=True)
        os.chdir("/")


if __name__ == "__main__":
    main(*(int(text) for text in sys.argv[1:]))
