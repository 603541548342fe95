# SPDX-License-Identifier: Apache-2.0
"""slurmdl.det without an experiment: each call of Determined's Core API, and its errors."""

import glob
import os
import pathlib
import sys

import determined as det
from check import ok
from determined import core


def error_of(call, *args, **options):
    try:
        call(*args, **options)
    except (Exception, SystemExit) as error:
        return f"{type(error).__name__}: {error}"
    return "none"


info = det.get_cluster_info()
ok(info.trial.hparams == {"lr": 0.5} and info.task_type == "TRIAL", "get_cluster_info() has the hyperparameters")
ok(info.latest_checkpoint is None and info.slot_ids == [0], "no checkpoint to resume from, and one slot")
ok("no master" in error_of(lambda: info.master_url), "master_url is rejected")
ok(info.container_addrs == ["127.0.0.1"], "container_addrs of one host")
os.environ["SLURM_STEP_NODELIST"] = "gpu-a[008-010,12],x3,r[1-2]n[1-2]"
hosts = "gpu-a008 gpu-a009 gpu-a010 gpu-a12 x3 r1n1 r1n2 r2n1 r2n2"
ok(info.container_addrs == hosts.split() and len(info.container_slot_counts) == 9, "container_addrs of the hosts of a step")
del os.environ["SLURM_STEP_NODELIST"]
context = core.init(checkpoint_storage="/elsewhere")
train, checkpoint = context.train, context.checkpoint
ok(context.distributed.allgather(1) == [1] and context.distributed.broadcast("a") == "a", "allgather() and broadcast() with one rank")

train.report_training_metrics(steps_completed=3, metrics={"loss": 0.5, "list": [1.0, 2.0], "odd": object()})
train.report_validation_metrics(3, {"loss": 0.25, "word": "x"})
train.report_metrics("test", 3, {"loss": 1})
train.set_status("well")
train.report_progress(0.5)
ok(train.set_metadata({"a": 1}) == {"a": 1} and train.get_metadata() == {"a": 1}, "set_metadata() and get_metadata()")
ok("must not contain" in error_of(train.report_metrics, "a.b", 1, {}), "report_metrics() rejects a dot in a group name")
ok("is None" in error_of(train.report_validation_metrics, 1, {"x": None}), "report_validation_metrics() rejects None")
ok("between 0 and 1" in error_of(train.report_progress, 2), "report_progress() rejects a number above 1")
ok(train.get_experiment_best_validation() is None, "get_experiment_best_validation() is None without an experiment")
ok(train.get_tensorboard_path().is_dir(), "get_tensorboard_path() is a folder")
context.profiler.on()
context.profiler.off()

ok("steps_completed" in error_of(checkpoint.store_path().__enter__), "store_path() requires steps_completed")
with checkpoint.store_path({"steps_completed": 3}) as (path, first):
    (path / "model").write_bytes(b"m" * 100000)
    (path / "a" / "b").mkdir(parents=True)
    (path / "a" / "b" / "c").touch()
os.mkdir("up")
pathlib.Path("up/weights").write_text("w")
second = checkpoint.upload("up", {"steps_completed": 4, "deep": {"k": [1]}})
ok(checkpoint.get_metadata(second) == {"steps_completed": 4, "deep": {"k": [1]}}, "get_metadata() of a checkpoint")
ok(det.get_cluster_info().latest_checkpoint == second, "latest_checkpoint is the newest")
with checkpoint.restore_path(first) as path:
    ok((path / "model").read_bytes() == b"m" * 100000 and (path / "a/b/c").stat().st_size == 0, "restore_path() restores the files")
    ok(path.stat().st_mode & 0o77 == 0, "restore_path() is readable only by its owner")
ok(not path.exists(), "restore_path() removes the files afterwards")
checkpoint.download(first, "down", selector=lambda name: name == "model")
ok([n for _, _, names in os.walk("down") for n in names] == ["model"], "download() with a selector")
ok("has a/b/c" in error_of(checkpoint.upload, "up", {"steps_completed": 3}), "upload() does not overwrite a checkpoint of the same step")
ok("no such checkpoint" in error_of(checkpoint.download, "../x-1-2", "down"), "download() rejects a path outside the experiment")
ok("no such checkpoint" in error_of(checkpoint.download, "0b1c", "down"), "download() rejects an unknown storage_id")
if os.getuid() == 0:
    file = glob.glob("slurmdl/a.1/ckpt/*4.h5")[0]
    os.chown(file, 65534, 65534)
    refused = error_of(checkpoint.download, second, "down")
    ok("trust" in refused and "65534" in refused, "download() rejects another user's checkpoint")
    os.chown(file, 0, 0)
checkpoint.delete(second)
ok(det.get_cluster_info().latest_checkpoint == first, "delete()")
ok("was not stored by slurmdl.det" in error_of(checkpoint.download, sys.argv[1], "down"), "download() rejects a checkpoint without files")

ok(not context.preempt.should_preempt(), "should_preempt() is false by default")
ops = context.searcher.operations()
op = next(ops)
ok(op.length == 7, "operations() yields the length")
ok("must call op.report_completed" in error_of(next, ops), "operations() requires report_completed()")
op.report_completed(0.125)
ok("only call" in error_of(op.report_completed, 1), "report_completed() can be called only once")
for name in ("pytorch", "experimental.client", "keras"):
    found = error_of(__import__, "determined." + name)
    ok("ModuleNotFoundError" in found and "is not offered by slurmdl.det" in found, f"determined.{name} is reported as not offered")
ok("slurmdl.torch" in error_of(lambda: det.pytorch), "the message suggests slurmdl.torch")
ok("not offered" in error_of(core.DistributedContext.from_tf_config), "from_tf_config() is not offered")
context.close()
import slurmdl

logged = slurmdl.read_metrics("slurmdl")
rows = {n: float(logged.of(n)["value"][-1]) for n in ("training/loss", "loss", "test/loss", "progress")}
ok(rows == {"training/loss": 0.5, "loss": 0.25, "test/loss": 1, "progress": 0.5}, "metrics are stored under their names")


def invalid():
    with core.init():
        raise det.InvalidHP("too large")


ok(error_of(invalid) == "SystemExit: 65", "InvalidHP exits with status 65")
