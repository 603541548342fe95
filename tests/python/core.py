# SPDX-License-Identifier: Apache-2.0
"""Metrics, hyperparameters and the attributes of a run, outside any job."""

import gc
import math
import os
import subprocess
import sys
import threading
import time
import warnings

import h5py
import numpy as np
from check import ok, raises, same

import slurmdl

# ---- a run without an experiment
run = slurmdl.init("trial")
same((run.trial, run.attempt, run.rank, run.size), (0, 1, 0, 1), "init() opens a run outside a job")
here = os.getcwd()
same((run.dir, run.trial_dir, run.length), (here + "/trial/a.1", here + "/trial", 2**63 - 1), "the run has a folder and no length limit")
ok(slurmdl.init() is run and slurmdl.init("trial") is run, "init() returns the open run")
ok("trial/a.1" in repr(run), "repr() shows the folder of a run")

# ---- scalars
loss = run.metric("training/loss")
same(loss.name, "training/loss", "metric() has a name")
ok(run.metric("training/loss") is loss, "metric() returns the same object for the same name")
for kind in (float, int, np.float32, np.float16, np.int8, np.array):
    loss.log(1, kind(2))
same(run.log("a", True, np.int64(3)), None, "log() accepts Python and numpy numbers")
run.log({"a": 1.5, "b": np.float32(2.5)}, step=4)
run.log({"a": 1.5}, 5)
run.log("c", step=6, value=math.nan)
run.log(name="c", value=-math.inf, step=-7)
run.flush()
rows = slurmdl.read_metrics(run.dir)
same(len(rows), 12, "read_metrics() reads all rows of an open run")
same(rows[rows["name"] == "training/loss"]["value"].tolist(), [2.0] * 6, "rows have their values")
same([tuple(r) for r in rows[["name", "step", "value"]][7:9]], [("a", 4, 1.5), ("b", 4, 2.5)], "rows have their names and steps")
ok(math.isnan(rows[-2]["value"]) and rows[-1]["value"] == -math.inf and rows[-1]["step"] == -7, "NaN and infinity are logged")
ok(abs(rows[0]["time"] - time.time()) < 60 and np.isnan(rows["epoch"]).all(), "rows have a time, and no epoch by default")
with h5py.File(run.dir + "/metrics.h5") as f:
    table, names = f["metrics"][1:], f["names"][:].astype(str)
same(table["value"][names[table["name"]] == "b"].tolist(), [2.5], "h5py reads the same rows")

for arguments, text in (
    (("", 1, 1), "1 to 63 bytes"),
    (("x" * 64, 1, 1), "1 to 63 bytes"),
    ((5, 1, 1), "must be a string"),
    (("x", "y", 1), "must be real number"),
    (("x", 1, 1.5), "'x': step: "),
    (("x\0y", 1, 1), "NUL"),
    (({"x": 1, "y": "z"}, 1), "'y': value: must be real number"),
    (("x", 1), "log(name, value, step)"),
    (({"x": 1},), "log(name, value, step)"),
    (({"x": [1]}, 1), "must be real number"),
    ((), "log(name, value, step)"),
    (("x", 1, 2, 3), "log(name, value, step)"),
):
    with raises((TypeError, ValueError), text, f"log{arguments} is rejected"):
        run.log(*arguments)
with raises(TypeError, "unexpected keyword argument 'stop'", "log() rejects an unknown argument"):
    run.log("x", 1, stop=3)
with raises(TypeError, "multiple values for argument 'step'", "log() rejects a duplicate argument"):
    run.log("x", 1, 2, step=3)
with raises(TypeError, "2 arguments", "Metric.log() requires a step"):
    loss.log(1)

# ---- other records
run.epoch(2)
run.log("after", 1, 10)
run.vector("v", [1, 2.5], 1)
run.vector("v", np.arange(6).reshape(2, 3), 2)
run.histogram("h", np.linspace(0, 1, 640, dtype="f4"), 3)
run.histogram("h", [3, 4], 4, edges=[0, 1, 2])
run.histogram("h", np.arange(8, dtype=">i4").reshape(2, 4).T[:, :1], 9)
run.text("t", "für 3 €", 5)
run.image("i", np.arange(24, dtype="u1").reshape(2, 4, 3), 6)
run.image("i", np.eye(3), 7)
run.image("i", np.zeros((3, 5, 2)), 8, dataformats="CHW")
run.event("note", text="half", lr=0.5)
run.event("odd", worst=float("nan"), all={"a": [np.float64("-inf"), 1.5, None]})
ring = []
ring.append(ring)
with raises(ValueError, "Circular", "event() rejects a value that contains itself"):
    run.event("odd", ring=ring)
run.flush()
same(slurmdl.read_metrics(run.dir)[-1]["epoch"], 2.0, "rows carry the epoch")
found = {(r["name"], r["step"]): r for r in slurmdl.read_records(run.dir)}
same(found["v", 1]["value"].tolist(), [1, 2.5], "vector() logs a list")
same(found["v", 2]["value"].tolist(), [0, 1, 2, 3, 4, 5], "vector() logs an array of any shape")
h = found["h", 3]["value"]
ok(len(h["counts"]) == 64 and set(h["counts"].tolist()) == {10} and abs(h["mean"] - 0.5) < 1e-6, "histogram() of samples")
same(found["h", 9]["value"]["max"], 3.0, "histogram() of a strided big-endian array")
same(slurmdl.read_records(run.trial_dir)[0]["name"], "v", "read_records() reads the records of a trial")
same(
    (found["h", 4]["value"]["counts"].tolist(), found["h", 4]["value"]["edges"].tolist()),
    ([3, 4], [0, 1, 2]),
    "histogram() of counts",
)
same(found["t", 5]["value"], "für 3 €", "text()")
same(found["i", 6]["value"].tolist(), np.arange(24).reshape(2, 4, 3).tolist(), "image() of bytes")
same(found["i", 7]["value"][:, :, 0].tolist(), (np.eye(3) * 255).tolist(), "image() of floats")
same(found["i", 8]["value"].shape, (5, 2, 3), "image() with channels first")
event = [r for r in slurmdl.read_records(run.dir) if r["kind"] == "event" and r["name"] == "note"]
same(event[0]["value"], {"text": "half", "lr": 0.5}, "event()")
odd = next(r["value"] for r in found.values() if r["name"] == "odd")
same(odd, {"worst": "nan", "all": {"a": ["-inf", 1.5, None]}}, "event() turns NaN and infinity into strings")
with raises(ValueError, "2 or 3 dimensions", "image() rejects one dimension"):
    run.image("i", np.zeros(3), 1)
with raises(TypeError, "bytes or of floats", "image() rejects integers"):
    run.image("i", np.zeros((2, 2), int), 1)
with raises(ValueError, "'h': must be a histogram", "histogram() rejects edges out of order"):
    run.histogram("h", [1, 2], 1, edges=[3, 2, 1])
with raises(ValueError, "4 channels, not 5", "image() rejects more than 4 channels"):
    run.image("i", np.zeros((3, 2, 5)), 1)
with raises(TypeError, "real", "vector() rejects complex numbers"):
    run.vector("v", np.ones(2, "c8"), 1)

# ---- threads and forked children
threads = [threading.Thread(target=lambda: [run.log(f"thread{t}", i, i) for i in range(2000)]) for t in range(4)]
for t in threads:
    t.start()
for t in threads:
    t.join()
run.flush()
rows = slurmdl.read_metrics(run.dir)
same(sum(n.startswith("thread") for n in rows["name"]), 8000, "threads log concurrently")
before = len(rows)
child = os.fork()
if child == 0:
    status = 1
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        loss.log(1, 1)
        run.log({"new": 1}, 1)
        run.epoch(9)
        try:
            run.flush()
        except RuntimeError as error:
            status = len(said) != 1 or "forked" not in str(said[0].message) or "forked" not in str(error)
    run.close()
    del run, loss
    gc.collect()
    os._exit(status)
same(os.waitpid(child, 0)[1], 0, "a forked child logs nothing and warns once")
loss.log(1, 1)
run.flush()
same(len(slurmdl.read_metrics(run.dir)), before + 1, "the parent keeps logging after fork()")

# ---- stopping
same(run.should_stop(), False, "should_stop() is false by default")
run.request_stop()
same((run.should_stop(), run.stop_here(1)), (True, True), "request_stop() makes should_stop() and stop_here() true")
same(run.lost, 0, "no values were lost")

# ---- closing
run.close()
run.close()
ok(run.closed and "closed" in repr(run), "close() may be called twice")
for call in (
    lambda: loss.log(1, 1),
    lambda: run.log("a", 1, 1),
    run.should_stop,
    lambda: run.save(1),
    run.flush,
    lambda: run.dir,
):
    with raises(ValueError, "the run is closed", "a closed run rejects calls"):
        call()
with slurmdl.init("trial") as second:
    same(second.attempt, 2, "init() starts another attempt after close()")
    second.log("a", 9, 4)
same(
    [r["superseded"] for r in slurmdl.read_metrics("trial", superseded=True) if r["name"] == "a"],
    [False, True, True, False],
    "rows that were logged again are superseded",
)
rows = slurmdl.read_metrics("trial")
same(sorted(set(rows["name"])), sorted(set(rows.names[i] for i in rows.index)), "rows have names as strings and as indices")
same(rows.of("a")["value"].tolist(), rows[rows["name"] == "a"]["value"].tolist(), "of() selects rows by name")
same((len(rows.of("nothing")), len(rows[1:3]), rows[-1]["step"]), (0, 2, rows["step"][-1]), "rows can be sliced and indexed")
same(np.asarray(rows)["step"].tolist(), [r["step"].item() for r in rows], "rows convert to a structured array")
same(slurmdl.read_metrics("trial")["attempt"].max(), 2, "rows have the number of their attempt")
with raises(slurmdl.Error, "metrics.h5", "read_metrics() rejects a file that is not a metrics file"):
    open("metrics.h5", "w").write("no")
    slurmdl.read_metrics("metrics.h5")
with raises(slurmdl.Error, "sparse.h5: ", "read_metrics() rejects a file that claims to be larger than memory"):
    with open("sparse.h5", "wb") as f:
        f.truncate(1 << 43)
    slurmdl.read_metrics("sparse.h5")
try:
    import pandas  # noqa: F401
except ImportError:
    pass
else:
    same(len(slurmdl.read_metrics("trial", frame=True)), len(slurmdl.read_metrics("trial")), "read_metrics(frame=True) returns a DataFrame")
with raises(slurmdl.Error, "cannot create the folder", "Run() reports a folder that it cannot create"):
    slurmdl.Run("metrics.h5/x")

# ---- a script that forgets close()
script = "import slurmdl; slurmdl.init('forgot').log('x', 1, 1)"
same(subprocess.run([sys.executable, "-c", script]).returncode, 0, "a script may omit close()")
same(len(slurmdl.read_metrics("forgot")), 1, "metrics are saved without close()")

# ---- hyperparameters
os.environ.update(DL_HP_lr="0.1", DL_HP_layers="3", DL_HP_name="adam", DL_HP_optimizer_beta="0.9", DL_HP_flag="true")
hp = slurmdl.HParams.of_environment()
same((hp.lr, hp["layers"], hp.name, hp.flag), (0.1, 3, "adam", True), "HParams reads DL_HP_*")
same((hp["optimizer.beta"], hp.optimizer.beta, hp["optimizer"]["beta"]), (0.9,) * 3, "HParams: three ways to read a nested name")
same((hp.get("absent", 7), "lr" in hp, "absent" in hp), (7, True, False), "HParams: get() and 'in' with an absent name")
with raises(AttributeError, "no hyperparameter 'absent'", "HParams: an absent attribute"):
    hp.absent
with raises(KeyError, "a.b: dl run sets it; by hand: DL_HP_a_b=VALUE python3 ", "HParams: an absent name is reported with its variable"):
    hp["a.b"]
with open("hparams.json", "w") as f:
    f.write('{"lr": 1, "name": "1", "optimizer": {"beta": 0.5, "x": [1, 2]}}')
os.environ["DL_HPARAMS"] = "hparams.json"
hp = slurmdl.HParams.of_environment()
same(
    (hp.lr, hp.name, hp["optimizer.beta"], hp.optimizer.x), (1, "1", 0.5, [1, 2]), "HParams reads typed values from DL_HPARAMS"
)
same(hp.flat(), {"lr": 1, "name": "1", "optimizer.beta": 0.5, "optimizer.x": [1, 2]}, "HParams: flat()")
same(hp.as_dict()["optimizer"], {"beta": 0.5, "x": [1, 2]}, "HParams: as_dict()")
ok(list(hp) == ["lr", "name", "optimizer"] and len(hp) == 3, "HParams: iteration and len()")

# ---- threads and exit handlers that outlive the run
script = """
import atexit, threading, time
if late:
    atexit.register(lambda: run.log("a", 1, 3))
import slurmdl
run = slurmdl.init("end")
def work(step=0):
    while True:
        run.log("a", 1, step)
        run.log(f"b{step % 9}", 1, step)
        run.text("t", "x", step)
        run.metric("a").log(step, 1)
        step += 1
threading.Thread(target=work, daemon=True).start()
time.sleep(0.1)
atexit.register(lambda: run.log("last", 1, 1))
atexit._run_exitfuncs()
time.sleep(0.1)
"""
for late, told in ((False, 0), (True, 1)):
    end = subprocess.run([sys.executable, "-c", f"late = {late}\n{script}"], stderr=subprocess.PIPE, universal_newlines=True)
    lines = [line for line in end.stderr.splitlines() if "slurmdl" in line]
    same((end.returncode, len(lines)), (0, told), f"values logged at exit cause no error{', but a warning' * told}")
    ok("Error" not in end.stderr and ("values were dropped: the run" in end.stderr) == late, "values logged at exit cause no traceback")
