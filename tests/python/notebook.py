# SPDX-License-Identifier: Apache-2.0
"""slurmdl.Experiment, slurmdl.run() and study(), as a notebook uses them.  dl must be in PATH."""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import io
import json
import math
import os
import pathlib
import shutil
import subprocess
import sys
import time

import searched
import slurmdl
from check import ok, raises, same, skip
from slurmdl import Choice, Float, Int, LogUniform
from slurmdl.source import FOLDER, NAME, SOURCE, function_of, variables_of
from slurmdl.space import space_of
from slurmdl.sweep import text_of
from slurmdl.trial import log_result

LONG = 600
FAST = {"worker": {"heartbeat": 1}, "reproducibility": {"experiment_seed": 1}}
SCALE = {"sgd": 1.0, "ädäm 😀": 2.0}
HERE = pathlib.Path("here")
unwanted = object()


def has(*modules):
    return all(importlib.util.find_spec(m) for m in modules)


def command(text, **more):
    """Return the configuration of a sweep over a shell command."""
    return {
        "name": "command",
        "entrypoint": ["/bin/sh", "-c", text],
        "searcher": {"name": "random", "metric": "loss", "max_trials": 3},
        "metrics": {"pattern": "^{step} loss {loss}$"},
        "hyperparameters": {"x": {"type": "float", "minval": 0, "maxval": 1}},
        **FAST,
        **more,
    }


# ---- functions


def twice(f):
    @functools.wraps(f)
    def inner(*a, **k):
        return 2 * f(*a, **k)

    return inner


class Net:
    depth = 3

    def cost(self):
        return self.depth + searched.LIMIT


@twice
def sent(x: Float(0, 1), *, mode: ["a", "b"] = "a", n: "Int(1, 3, log=True)" = 2):
    unwanted = Net().cost() + SCALE["ädäm 😀"]
    return unwanted + x + len(HERE.name) + math.floor(n)


def around(k):
    def inner(x: Float(0, 1)):
        return x + k

    return inner


def refers_to_an_object(x: Float(0, 1)):
    return unwanted


def functions():
    same(
        space_of(sent),
        {
            "x": {"type": "float", "minval": 0.0, "maxval": 1.0},
            "mode": {"type": "categorical", "vals": ["a", "b"], "default": "a"},
            "n": {"type": "int", "minval": 1, "maxval": 3, "base": 10.0, "default": 2},
        },
        "the signature defines the search space",
    )
    code = "import json, os, sys; from slurmdl.source import function_of; f = function_of(os.environ); print(f(x=0.5))"
    for function, wanted, name in (
        (sent, "33.0", "with what it refers to"),
        (around(7), "7.5", "of another function"),
        (searched.of_module, "", "of a module"),
    ):
        given = variables_of(function)
        if name == "of a module":
            same(given, {NAME: "searched:of_module", FOLDER: os.path.dirname(searched.__file__)}, "a function of a module is passed by name")
            ok(function_of(given) is function, "a function of a module is found by name")
            continue
        out = subprocess.run([sys.executable, "-c", code], env={**os.environ, **given}, stdout=subprocess.PIPE, timeout=LONG)
        same(out.stdout.decode().strip(), wanted, f"a function {name} is sent as source")
    ok("unwanted" not in variables_of(sent)[SOURCE].split("def sent")[0], "names that are local to a function are not sent")
    for function, why in (
        (refers_to_an_object, "'unwanted' (object) cannot be sent as source"),
        (lambda x=Float(0, 1): x, "no parameter has a space"),
        (lambda x: x, "'x' has no space and no default"),
        (print, ""),
    ):
        with raises(slurmdl.Error, why, f"rejected: {why or 'a built-in function'}"):
            slurmdl.run(function, local=True, max_trials=1)
    with raises(slurmdl.Error, "returned loss, acc: run(function, metric='loss') says", "a function that returns several numbers needs metric="):
        log_result(None, {"loss": 1, "acc": 2})
    with raises(slurmdl.Error, "failed: the metric was never a finite number", "a metric that is never finite fails the sweep"):
        slurmdl.run(never, local=True, max_trials=1, **FAST).wait(LONG)
    ok(not [n for n in os.listdir(".") if n.startswith(".slurmdl")], "no temporary files remain")
    same(text_of({"a": 'ä😀"\u2028\n'}), '{\n "a": "\\U000000e4\\U0001f600\\"\\U00002028\\n"\n}\n', "text_of() escapes strings for YAML")


def never(x: Float(0, 1)):
    return math.nan


# ---- sweeps


def train(run, lr: LogUniform(1e-4, 1e-1), opt: Choice("sgd", "ädäm 😀"), width: Int(16, 256) = 64, extra=1):
    for step in range(1, run.length + 1):
        run.log("loss", SCALE[opt] * abs(math.log10(lr)) + width / 1000 + extra / step, step)


def sweeps():
    sweep = slurmdl.run(train, metric="loss", searcher="asha", max_trials=6, max_length=4, workers=2, local=True, **FAST)
    same(sweep.wait(LONG).state, "completed", "run() of a function")
    best = sweep.best()
    same(sorted(best["hyperparameters"]), ["lr", "opt", "width"], "best() has the hyperparameters")
    ok(best["metric"] > 1 and best["length"] >= 1, "best() has the metric")
    same(len(slurmdl.read_metrics(os.path.join(best["dir"]))) >= best["length"], True, "best() has the folder")
    ok("def train" in open(sweep.dir + "/experiment.conf").read(), "experiment.conf has the source of the function")
    os.mkdir("below")
    other = slurmdl.run(searched.of_module, max_trials=2, local=True, dir="below", **FAST).wait(LONG, progress=False)
    same((other.state, os.path.basename(other.dir)), ("completed", "of_module-0001"), "run() of a function of a module")
    made = slurmdl.run(command('echo "1 loss $DL_HP_x"'), local=True).wait(LONG)
    same(made.best()["metric"], made.best()["hyperparameters"]["x"], "run() of a dictionary")
    with open("by-file.yaml", "w") as f:
        f.write(text_of(command('echo "1 loss $DL_HP_x"', name="by-file")))
    same(slurmdl.run("by-file.yaml", local=True).wait(LONG).state, "completed", "run() of a file")
    same(slurmdl.Experiment("by-file").dir, os.path.abspath("by-file-0001"), "Experiment() finds an experiment by name")
    same([n for n in os.listdir(".") if n.startswith(".slurmdl-")], [], "no temporary settings files remain")
    more = command('echo "1 loss 0"', searcher={"metric": "loss", "max_trials": 1, "warm_start": made})
    log = slurmdl.run(more, local=True, dir="below").wait(LONG).dir + "/log/000000/00000001"
    ok('"known"' in open(log).read(), "searcher.warm_start accepts an Experiment")


def ends():
    with raises(slurmdl.Error, "same way: exit status 3: oops", "wait() reports why all attempts failed"):
        slurmdl.run(command("echo oops; exit 3"), local=True).wait(LONG)
    sweep = slurmdl.run(command("sleep 1000"), local=True)
    with raises(TimeoutError, "still running", "wait(timeout=)"):
        sweep.wait(timeout=1)
    sweep.cancel(now=True)
    same(sweep.state, "killed", "cancel() kills a sweep")
    script = "import slurmdl, json, sys; print(slurmdl.run(json.loads(sys.argv[1]), local=True).dir)"
    config = json.dumps(command("while [ ! -e go ]; do sleep 0.1; done; echo '1 loss 1'"))
    out = subprocess.run([sys.executable, "-c", script, config], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=LONG)
    sweep = slurmdl.Experiment(out.stdout.decode().strip())
    ok(b"local workers end with this process" in out.stderr, "run() warns that local workers exit with the process")
    same(sweep.call("wait", "--timeout=1", good=(8, 10))[0] in (8, 10), True, "a sweep survives the process that started it")


def slurm():
    """A sweep as a Slurm job, with fake sbatch and other commands."""
    os.mkdir("bin")
    for name in ("sbatch", "squeue", "scancel", "sacct", "scontrol"):
        with open("bin/" + name, "w") as f:
            f.write(f'#!/bin/sh\necho "{name} $*" >>{os.path.abspath("calls")}\n' + ("echo 77\n" if name == "sbatch" else ""))
        os.chmod("bin/" + name, 0o755)
    path = os.environ["PATH"]
    with raises(slurmdl.Error, "use local=True", "run() suggests local=True without Slurm"):
        os.environ["PATH"] = os.path.dirname(shutil.which("dl"))
        slurmdl.run(command("true"))
    os.environ["PATH"] = os.path.abspath("bin") + os.pathsep + path
    sweep = slurmdl.run(command("true", name="by-slurm"), workers=3)
    same((os.path.basename(sweep.dir), sweep.state), ("by-slurm-0001", "running"), "run() submits a Slurm job")
    sweep.cancel(now=True)
    same(sweep.state, "killed", "cancel() cancels a Slurm job")
    calls = open("calls").read()
    ok("sbatch" in calls and "--array" in calls and "scancel" in calls, "sbatch --array and scancel were called")
    os.environ["PATH"] = path


def errors():
    for keys, why in (
        ({"max_trails": 3}, "unknown key 'max_trails'; did you mean 'max_trials'?"),
        ({"locale": True}, "unknown key 'locale'; did you mean 'local'?"),
        ({"max_trials": -3}, '"max_trials": -3: '),
        ({"searcher": "ashe", "max_trials": 3}, 'did you mean "asha"?'),
        ({"max_trials": 3, "x": float("nan")}, "the configuration: "),
        ({"max_trials": 3, "x": print}, "only numbers, strings, lists and dictionaries"),
        ({"max_trials": 3, "dir": "/nonexistent"}, "/nonexistent"),
    ):
        with raises(slurmdl.Error, why, f"run() reports an error of dl: {why}"):
            slurmdl.run(searched.of_module, local=True, **keys)
    with raises(slurmdl.Error, "belong in it", "run() rejects keys together with a file"):
        slurmdl.run("by-file.yaml", max_trials=3)
    with raises(slurmdl.Error, "not int", "run() rejects a number"):
        slurmdl.run(3)
    with raises(slurmdl.Error, "no experiment 'nowhere'", "Experiment() rejects an unknown name"):
        slurmdl.Experiment("nowhere")
    os.environ["DL_FUNCTION"] = "module:train"
    with raises(slurmdl.Error, "put it under if __name__ == '__main__':", "run() rejects a module that starts its own sweep again"):
        slurmdl.run(searched.of_module)
    del os.environ["DL_FUNCTION"]
    path = os.environ.pop("PATH")
    with raises(slurmdl.Error, "there is no program 'dl' in PATH", "Experiment() reports that dl is missing"):
        slurmdl.Experiment("command")
    os.environ["PATH"] = path
    for module, call in (("pandas", "trials"), ("pandas", "metrics"), ("optuna", "study")):
        if not has(module):
            with raises(slurmdl.Error, f"needs {module}: pip install {module}", f"{call}() reports that {module} is missing"):
                getattr(slurmdl.Experiment("train"), call)()


def looks():
    for_eyes = command('echo "1 loss inf"', name="eyes", searcher={"name": "grid", "metric": "loss"})
    for_eyes["hyperparameters"] = {"c": {"type": "categorical", "vals": ["<script>&\"'", "\u202e\x1b[31m"]}}
    try:
        exp = slurmdl.run(for_eyes, local=True).wait(LONG)
    except slurmdl.Error as error:
        exp = slurmdl.Experiment("eyes")
        print("#", error)
    page = exp._repr_html_()
    ok("<script" not in page and "&lt;script&gt;&amp;&quot;&#x27;" in page, "_repr_html_() escapes HTML")
    ok(len(page) < 4000, "_repr_html_() is small")
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exp.watch()
    same(out.getvalue().count("\n"), 1, "watch() returns when the sweep has ended")
    ok("\x1b" not in out.getvalue() + page.split("\u202e")[0], "control characters are removed")
    same({t["metric"] for t in exp.read()["trials"]}, {None}, "dl show --json prints infinity as null")
    same(repr(exp), f"<slurmdl.{type(exp).__name__} {exp.dir}>", "repr()")
    same([c["type"] for c in exp.conditions(1) if c["status"]], ["Created", "Succeeded"], "conditions()")
    same((exp.healing(1), exp.no_progress(1)), ([], None), "healing() and no_progress() are empty for a completed trial")
    with open(os.path.join(exp.dir, "trials", "0001", "a.1", "healing"), "w") as f:
        f.write("1700000000 node n2 does not answer; 2 ranks there\n1700000001 n2 is left out\n")
    same(
        exp.healing(1),
        [
            {"attempt": 1, "time": 1700000000.0, "text": "node n2 does not answer; 2 ranks there"},
            {"attempt": 1, "time": 1700000001.0, "text": "n2 is left out"},
        ],
        "healing() returns the events",
    )


# ---- pandas, optuna, matplotlib


def frames():
    if not has("pandas"):
        return skip("frames", "no pandas")
    exp = slurmdl.Experiment("train")
    trials = exp.trials()
    same(list(trials["trial"]), [1, 2, 3, 4, 5, 6], "trials() is sorted by trial")
    same([str(trials[c].dtype) for c in ("metric", "lr", "width", "length")], ["float64", "float64", "int64", "int64"], "trials() has typed columns")
    ok(set(trials["opt"]) <= set(SCALE) and all(isinstance(v, str) for v in trials["opt"]), "trials() has categories as strings")
    metrics = exp.metrics()
    same(list(metrics.columns), ["trial", "attempt", "step", "time", "epoch", "name", "value"], "metrics() has the columns")
    same([type(n) for n in metrics["name"].unique()], [str], "metrics() has names as strings")
    same(len(metrics[metrics["trial"] == 2]), len(exp.metrics(trial=2)), "metrics(trial=) selects a trial")
    same(metrics.groupby("trial")["step"].apply(lambda s: s.is_monotonic_increasing).all(), True, "metrics() has no value twice")
    with raises(slurmdl.Error, "there is no trial 99", "metrics() rejects an unknown trial"):
        exp.metrics(trial=99)
    ok(math.isnan(list(slurmdl.Experiment("eyes").trials()["metric"])[0]), "trials() shows infinity as NaN")
    logged()
    planted()
    running()


def logged():
    conf = command("dl log loss=1 accuracy=0.5 loss/validation=nan", name="logged", searcher={"name": "single", "metric": "loss"})
    trials = slurmdl.run(conf, local=True).wait(LONG).trials()
    same((trials["metric.accuracy"][0], str(trials["metric.accuracy"].dtype)), (0.5, "float64"), "trials() has metrics that are not optimized")
    ok(math.isnan(trials["metric.loss_validation"][0]), "trials() shows a NaN metric as NaN")


def planted():
    """Files that another member of the group may create in the experiment."""
    exp = slurmdl.Experiment("by-file")
    n = len(exp.metrics())
    os.symlink(os.path.abspath("train-0001/trials/0001"), exp.dir + "/trials/0099")
    os.mkdir(exp.dir + "/trials/0098")
    os.mkdir(exp.dir + "/trials/0098/a.1")
    os.mkfifo(exp.dir + "/trials/0098/a.1/metrics.h5")
    os.symlink("/", exp.dir + "/trials/0097")
    import warnings

    with warnings.catch_warnings(record=True):
        warnings.simplefilter("always")
        same(len(exp.metrics()), n, "metrics() ignores symbolic links and pipes")


def running():
    new = subprocess.run(["dl", "run", "--no-workers", "by-file.yaml"], stdout=subprocess.PIPE, timeout=LONG, check=True)
    exp = slurmdl.Experiment(new.stdout.decode().strip())
    same((len(exp.trials()), len(exp.metrics()), exp.best()), (0, 0, None), "an experiment without trials has no results")
    ok("running" in exp._repr_html_(), "_repr_html_() of an experiment without trials")
    with raises(slurmdl.Error, "there is no result yet", "plot.history() without a result"):
        exp.plot.history()
    sweep = slurmdl.run(command("echo '1 loss 5'; while [ ! -e go ]; do sleep 0.1; done"), local=True, workers=1)
    end = time.monotonic() + LONG
    while len(sweep.metrics()) == 0 and time.monotonic() < end:
        time.sleep(0.2)
    same((list(sweep.metrics()["value"]), sweep.state), ([5.0], "running"), "metrics() of a running trial")
    same((sweep.best(), list(sweep.trials()["state"])), (None, ["open"]), "trials() of a running trial")
    open("go", "w").close()
    same(sweep.wait(LONG).state, "completed", "the running trial completes")


def plots():
    if not has("pandas", "matplotlib"):
        return skip("plot", "no pandas or no matplotlib")
    import matplotlib

    matplotlib.use("Agg")
    plot = slurmdl.Experiment("train").plot
    for name, call in (
        ("curves", plot.curves),
        ("history", plot.history),
        ("scatter", lambda: plot.scatter("lr")),
        ("scatter of texts", lambda: plot.scatter("opt")),
        ("parallel", plot.parallel),
    ):
        axes = call()
        axes.figure.savefig(name + ".png")
        ok(axes.lines and os.path.getsize(name + ".png") > 1000, f"plot: {name}")
    same(plot.history().get_ylabel(), "loss", "plot.history() labels its axis")
    with raises(slurmdl.Error, "no hyperparameter 'x'", "plot.scatter() rejects an unknown hyperparameter"):
        plot.scatter("x")
    with raises(slurmdl.Error, "no trial has logged 'nothing'", "plot.curves() rejects an unknown metric"):
        plot.curves("nothing")


def studies():
    if not has("pandas", "optuna"):
        return skip("study", "no pandas or no optuna")
    import optuna

    exp = slurmdl.Experiment("train")
    study = exp.study()
    same(len(study.trials), 6, "study() has every trial")
    done = [t for t in study.trials if t.state.name == "COMPLETE"]
    same({t.user_attrs["length"] for t in done}, {4}, "study(): fully trained trials are COMPLETE")
    ok({t.state.name for t in study.trials} <= {"COMPLETE", "PRUNED"}, "study(): other trials are PRUNED")
    best = exp.trials().set_index("trial").loc[study.best_trial.number + 1]
    same((study.best_value, study.best_params["lr"]), (best["metric"], best["lr"]), "study() has the best value and parameters")
    ok(all(t.intermediate_values for t in study.trials), "study() has intermediate values")
    kinds = {name: type(d).__name__ for name, d in study.best_trial.distributions.items()}
    wanted = {"lr": "FloatDistribution", "opt": "CategoricalDistribution", "width": "IntDistribution"}
    same(kinds, wanted, "study() has the distributions")
    two = slurmdl.run(searched.two, metric=["loss/a", "gain"], smaller_is_better=[True, False], max_trials=12, local=True, **FAST)
    front = two.wait(LONG).study()
    same([d.name for d in front.directions], ["MINIMIZE", "MAXIMIZE"], "study() has the direction of each metric")
    same(len(front.trials[3].values), 2, "study() has the value of each metric")
    if not has("plotly"):
        return skip("optuna.visualization", "no plotly")
    charts = optuna.visualization
    names = "contour edf intermediate_values optimization_history parallel_coordinate rank slice terminator_improvement timeline"
    for name in names.split():
        if name == "terminator_improvement":
            continue
        ok(getattr(charts, "plot_" + name)(study).data, f"optuna.visualization.plot_{name}")
    ok(charts.plot_pareto_front(front).data, "optuna.visualization.plot_pareto_front")
    if has("sklearn"):
        full = slurmdl.run(searched.of_module, max_trials=12, local=True, **FAST).wait(LONG).study()
        ok(charts.plot_param_importances(full).data, "optuna.visualization.plot_param_importances")
    if not has("optuna_dashboard"):
        return skip("optuna-dashboard", "it is not installed")
    dashboard(study)


def dashboard(study):
    from optuna_dashboard import wsgi

    app = wsgi(study._storage)
    answer = {}
    environ = {"REQUEST_METHOD": "GET", "PATH_INFO": "/api/studies/0", "QUERY_STRING": "after=0", "SERVER_NAME": "x"}
    environ.update({"SERVER_PORT": "1", "wsgi.url_scheme": "http", "wsgi.input": io.BytesIO(), "wsgi.errors": sys.stderr})
    body = b"".join(app(environ, lambda status, *more: answer.update(status=status)))
    same((answer["status"], len(json.loads(body)["trials"])), ("200 OK", 6), "optuna-dashboard shows the trials")


if __name__ == "__main__":
    functions()
    sweeps()
    ends()
    slurm()
    looks()
    errors()
    frames()
    plots()
    studies()
