# SPDX-License-Identifier: Apache-2.0
"""Unmodified scripts: slurmdl collects their metrics and changes nothing else."""

import importlib.util
import os
import subprocess
import sys

import numpy as np
from check import ok, same, skip

import slurmdl
from slurmdl.capture import parse

here = os.path.dirname(os.path.abspath(__file__))


def values(folder):
    rows = slurmdl.read_metrics(folder)
    return {(r["name"], int(r["step"])): float(r["value"]) for r in rows}


# ---- parsing of lines
for line, step, metrics in (
    ("epoch 3 loss 0.123 acc: 97.1%", 3, {"loss": 0.123, "acc": 97.1}),
    ("Epoch: 3/10 | step 100 | loss=0.5, val_loss = 1e-3", 100, {"loss": 0.5, "val_loss": 1e-3}),
    ("Epoch [3/10], Step [100/600], Loss: 0.2345", 100, {"Loss": 0.2345}),
    ("Train Epoch: 1 [640/60000 (1%)]\tLoss: 2.2", 1, {"Loss": 2.2}),
    ("Epoch 5: 100%|####| 938/938 [00:05<00:00, loss=0.1]", 5, {"loss": 0.1}),
    ("{'loss': 0.5, \"eval_acc\": -1}", None, {"loss": 0.5, "eval_acc": -1.0}),
    ("iter 7 training/loss: .5", 7, {"training/loss": 0.5}),
    ("step=8 accuracy 1", 8, {"accuracy": 1.0}),
    ("global_step 9 grad_norm inf", 9, {"grad_norm": float("inf")}),
):
    found = parse(line)
    same(found and (found.step, found.metrics), (step, metrics), "parsed: " + line.replace("#", "="))
for line in (
    "time: 3.2s size=10MB",
    "12:30:01 started",
    "at http://x:80/y",
    "version 1.2.3",
    "loss of 3 packets",
    "x" * 2000,
    "ratio=3/4",
    "a-1=2b",
    "[17:03] hello",
    "progress 50%",
    "footstep 3",
    "2024-01-02 03:04:05,678 INFO",
    "",
):
    same(parse(line), None, "ignored: " + line[:40])

# ---- printed metrics
plain = [sys.executable, here + "/plain.py", "--lr", "0.1"]
alone = subprocess.run(plain, stdout=subprocess.PIPE)
env = dict(os.environ, DL_RUN_DIR="plain")
watched = subprocess.run([sys.executable, "-m", "slurmdl", *plain[1:]], stdout=subprocess.PIPE, env=env)
same((watched.returncode, watched.stdout), (alone.returncode, alone.stdout), "a script prints the same output with capture")
got = values("plain")
for key, value in (
    (("Loss", 100), 1.0),
    (("Loss", 200), 0.5),
    (("loss", 1), 0.5),
    (("acc", 1), 91.5),
    (("acc", 2), 92.5),
    (("val_loss", 2), 0.25),
    (("lr", 2), 1e-3),
):
    same(got.get(key), value, f"{key[0]} of step {key[1]} is captured")
ok(("nll", 7) in got and got["nll", 7] != got["nll", 7], "NaN is captured")
same(set(n for n, _ in got) - {"Loss", "loss", "acc", "val_loss", "lr", "nll", "epoch"}, set(), "no other metrics are captured")
env["DL_RUN_DIR"] = "module"
subprocess.run([sys.executable, "-m", "slurmdl", "-m", "plain", "--lr", "0.1"], env=env, stdout=subprocess.PIPE)
ok(("Loss", 200) in values("module"), "python -m slurmdl -m runs a module")
env.update(DL_RUN_DIR="variable", DL_CAPTURE="1")
script = "import slurmdl; slurmdl.init(); print('epoch 1 loss 0.5')"
subprocess.run([sys.executable, "-c", script], env=env, stdout=subprocess.PIPE)
same(values("variable").get(("loss", 1)), 0.5, "DL_CAPTURE=1 turns on capture in init()")
env["DL_CAPTURE"] = "0"
env["DL_RUN_DIR"] = "off"
subprocess.run([sys.executable, "-c", script], env=env, stdout=subprocess.PIPE)
same(values("off"), {}, "DL_CAPTURE=0 turns off capture")
usage = subprocess.run([sys.executable, "-m", "slurmdl"], stderr=subprocess.PIPE)
ok(usage.returncode == 1 and b"usage" in usage.stderr, "python -m slurmdl without arguments prints usage")
absent = subprocess.run([sys.executable, "-m", "slurmdl", "absent.py"], stderr=subprocess.PIPE)
same(
    (absent.returncode, absent.stderr),
    (1, b"slurmdl: absent.py: there is no such script\n"),
    "python -m slurmdl reports a missing script",
)
with open("end.py", "w") as f:
    f.write("import sys; print('epoch 1', 'y' * 70 + '=1', end=' loss 0.5'); sys.exit(3)")
end = subprocess.run(
    [sys.executable, "-m", "slurmdl", "end.py"],
    stdout=subprocess.PIPE,
    stderr=subprocess.PIPE,
    env={**os.environ, "DL_RUN_DIR": "end"},
)
same(slurmdl.read_metrics("end").of("loss")["value"].tolist(), [0.5], "a last line without a newline is captured")
same((end.returncode, end.stderr), (3, b""), "the exit status of the script is kept")

# ---- TensorBoard
for module in ("torch.utils.tensorboard", "tensorboardX"):
    try:
        importlib.import_module(module)
    except ImportError:
        skip(module, "not installed")
        continue
    folder = module.split(".")[0]
    board = [sys.executable, here + "/board.py", module]
    alone = subprocess.run(board, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    before = sum(len(files) for _, _, files in os.walk("board-" + folder))
    env = dict(os.environ, DL_RUN_DIR=folder)
    watched = subprocess.run([sys.executable, "-m", "slurmdl", *board[1:]], stdout=subprocess.PIPE, env=env)
    same(
        (watched.returncode, watched.stdout),
        (alone.returncode, alone.stdout),
        f"{module}: a script prints the same output with capture",
    )
    after = sum(len(files) for _, _, files in os.walk("board-" + folder))
    same((before > 0, after), (True, 2 * before), f"{module}: the script still writes its own event files")
    got = values(folder)
    same(
        (got.get(("training/loss", 2)), got.get(("plain", 2)), got.get(("both/b", 1))),
        (float(np.float32(1 / 3)), 4.0, -1.0),
        f"{module}: scalars are captured",
    )
    records = {(r["kind"], r["name"], r["step"]): r["value"] for r in slurmdl.read_records(folder + "/a.1")}
    ok(sum(records["histogram", "weights", 2]["counts"]) == 100, f"{module}: a histogram is captured")
    same(records.get(("text", "note", 1)), "hello", f"{module}: a text is captured")
    same(
        (records["image", "image", 1].shape, records["image", "grey", 1].shape),
        ((4, 5, 3), (4, 5, 1)),
        f"{module}: images are captured",
    )

# ---- tf.summary, with a fake module that has the same calls
script = """
import slurmdl
run = slurmdl.init("tf", capture=True)
import tensorflow as tf
import numpy as np
assert tf.summary.scalar("loss", 0.5, step=3) and tf.summary.scalar("loss", np.float32(0.25))
tf.summary.histogram("h", np.arange(10.0), step=1)
tf.summary.text("t", "hello", step=1)
tf.summary.image("i", np.zeros((2, 3, 4, 1)), step=1)
assert [c[0] for c in tf.calls] == ["scalar", "scalar", "histogram", "text", "image"]
"""
env = dict(os.environ, PYTHONPATH=here + "/fakes:" + os.environ.get("PYTHONPATH", ""))
same(subprocess.run([sys.executable, "-c", script], env=env).returncode, 0, "tf.summary functions are still called")
same(
    (values("tf").get(("loss", 3)), values("tf").get(("loss", 5))),
    (0.5, 0.25),
    "tf.summary scalars are captured with the explicit or the default step",
)
same(sorted(r["kind"] for r in slurmdl.read_records("tf/a.1")), ["histogram", "image", "text"], "tf.summary histograms, images and texts are captured")
