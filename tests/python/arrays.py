# SPDX-License-Identifier: Apache-2.0
"""Checkpoints of arrays."""

import array
import os
import signal
import subprocess
import sys
import threading
import time
import warnings

import h5py
import numpy as np
from check import ok, raises, same

import slurmdl

TYPES = "int8 uint8 int16 uint16 int32 uint32 int64 uint64 float16 float32 float64 bool complex64 complex128".split()
rng = np.random.default_rng(1)


def some(name):
    return (rng.standard_normal((3, 4)) * 10).astype(name)


# ---- protect, save, restore
run = slurmdl.init("trial")
same(run.restore(), None, "restore() returns None if no checkpoint exists")
arrays = {f"model/{name}": some(name) for name in TYPES}
arrays["scalar"] = np.array(3.5)
arrays["eight"] = np.arange(256, dtype="u1").reshape((2,) * 8)
for name, a in arrays.items():
    run.protect(name, a)
wanted = {name: a.copy() for name, a in arrays.items()}
doubles = array.array("d", [1, 2, 3])
run.protect("doubles", doubles)
raw = bytearray(b"bytes")
run.protect("raw", raw)
run.state("loader", b"position 3")
run.save(7)
with raises(BufferError, "", "protected memory cannot be resized"):
    raw.append(1)
for a in arrays.values():
    a[...] = 0
doubles[1] = 9
raw[0] = 0
same(run.restore(), 7, "restore() returns the step")
ok(all((arrays[n] == wanted[n]).all() for n in wanted), "restore() brings back values of each type")
same((doubles.tolist(), bytes(raw)), ([1, 2, 3], b"bytes"), "restore() fills any object with a buffer")
same((run.read_state("loader"), run.read_state("absent")), (b"position 3", None), "read_state() returns a saved state, and None for an unknown name")
path, step = slurmdl.newest("trial")
same((path, step), ("trial/a.1/ckpt/00000007.h5", 7), "newest() finds the checkpoint")
loaded = slurmdl.load("trial")
same(set(loaded), set(wanted) | {"doubles", "raw"}, "load() returns all arrays")
ok(all(loaded[n].dtype == wanted[n].dtype and (loaded[n] == wanted[n]).all() for n in wanted), "load() keeps types and values")
same(slurmdl.load(path, states=True)["state/loader"], b"position 3", "load(states=True) includes states")
with h5py.File(path) as f:
    ok((f["model/float32"][:] == wanted["model/float32"]).all(), "h5py reads the same values")

# ---- restore a part
arrays["scalar"][...] = 0
arrays["model/int8"][...] = 0
same(run.restore("model/*"), 7, "restore(PATTERN) returns the step")
ok(arrays["scalar"] == 0 and (arrays["model/int8"] == wanted["model/int8"]).all(), "restore(PATTERN) leaves other arrays alone")
same(run.restore(path=path), 7, "restore(path=) returns the step of the file")
ok(arrays["scalar"] == 3.5, "restore(path=) restores the arrays of the file")

# ---- invalid memory and names
for what, kind, text in (
    (np.zeros((2, 3)).T, (ValueError, BufferError), "contiguous"),
    (np.zeros(3, dtype=">f8"), TypeError, "byte order"),
    (np.array(["x"]), (TypeError, ValueError), ""),
    (b"x", (BufferError, TypeError), ""),
    (5, TypeError, ""),
    ([1, 2], TypeError, ""),
):
    with raises(kind, "refused: ", f"protect() rejects {type(what).__name__} {getattr(what, 'dtype', '')}"):
        run.protect("refused", what)
    with raises(kind, text, "protect() gives the reason"):
        run.protect("refused", what)
fixed = np.zeros(2)
fixed.flags.writeable = False
with raises((BufferError, ValueError), "", "protect() rejects read-only memory"):
    run.protect("refused", fixed)
with raises(ValueError, "'/bad': the name of a tensor must be", "protect() rejects an invalid name"):
    run.protect("/bad", np.zeros(2))
with raises(ValueError, "'a/': the name of a state must be", "state() rejects an invalid name"):
    run.state("a/", b"")
run.unprotect("scalar")
run.protect("scalar", np.zeros(2))
with raises(slurmdl.Error, "another type or shape", "restore() rejects another shape"):
    run.restore()
run.unprotect()

# ---- asynchronous saves, while other threads run
big = np.zeros(1 << 22)
run.protect("big", big)
counted = [0]
stop = threading.Event()


def count():
    while not stop.is_set():
        counted[0] += 1
        time.sleep(0)


thread = threading.Thread(target=count)
thread.start()
before = counted[0]
for step in range(10, 13):
    big[:] = step
    run.save_async(step)
    big[:] = -1
run.wait()
run.save(20)
ok(counted[0] > before, "other threads run during a save")
stop.set()
thread.join()
same(run.restore(), 20, "restore() picks the newest checkpoint")
ok((slurmdl.load("trial/a.1/ckpt/00000012.h5")["big"] == 12).all(), "save_async() saves a copy, not later changes")
# restore() skips a damaged checkpoint
with open("trial/a.1/ckpt/00000020.h5", "r+b") as f:
    f.seek(1 << 20)
    f.write(b"damage")
with raises(slurmdl.Error, "damaged", "load() detects damage"):
    slurmdl.load("trial/a.1/ckpt/00000020.h5")
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    same(run.restore(), 12, "restore() skips a damaged checkpoint")
same([str(w.message).split("/")[-1] for w in said], ["00000020.h5: is damaged: skipped"], "restore() warns about the checkpoint that it skips")
with raises(slurmdl.Error, "absent.h5: cannot read: No such file", "restore(path=) reports a missing file"):
    run.restore(path="absent.h5")
# if all checkpoints are damaged, restore() fails instead of starting from scratch
with slurmdl.Run("cut") as other:
    other.protect("x", np.zeros(3))
    for step in (1, 2):
        other.save(step)
    for size in (100, 0):
        for step in (1, 2):
            os.truncate(f"cut/a.1/ckpt/{step:08}.h5", size)
        with raises(slurmdl.Error, "(a.1/ckpt/00000002.h5, a.1/ckpt/00000001.h5)", f"restore() names all checkpoints if all are cut to {size} bytes"):
            other.restore()
# save_async() warns if it lacks the memory for a copy and saves synchronously
run.close()
os.environ["DL_SNAPSHOT_MAX"] = "1000"
with slurmdl.Run("sync") as run, warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    run.protect("big", big)
    run.save_async(21)
same(len(said), 1, "save_async() warns if it has to save synchronously")
del os.environ["DL_SNAPSHOT_MAX"]

# ---- files without a run
slurmdl.dump("file.h5", {"a": np.arange(5), "b/c": np.eye(2, dtype="f2")}, step=3)
same(
    {k: v.tolist() for k, v in slurmdl.load("file.h5").items()},
    {"a": [0, 1, 2, 3, 4], "b/c": [[1, 0], [0, 1]]},
    "dump() and load() work without a run",
)
with raises((TypeError, ValueError, BufferError), "", "dump() rejects an unsupported value"):
    slurmdl.dump("other.h5", {"a": np.arange(5), "b": "text"})
ok(not os.path.exists("other.h5"), "dump() leaves no file after an error")
with raises(slurmdl.Error, "file.txt", "load() rejects a file that is not a checkpoint"):
    open("file.txt", "w").write("x" * 10000)
    slurmdl.load("file.txt")
with raises(FileNotFoundError, "no checkpoint", "load() reports a folder without a checkpoint"):
    os.mkdir("empty")
    slurmdl.load("empty")

# ---- a stop request
script = """
import slurmdl, time
run = slurmdl.init("stopped")
print("up", flush=True)
while not run.should_stop():
    time.sleep(0.01)
run.save(1)
"""
p = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE)
p.stdout.readline()
p.send_signal(signal.SIGTERM)
same((p.wait(30), slurmdl.newest("stopped")[1]), (0, 1), "a script saves and exits after SIGTERM")
