# SPDX-License-Identifier: Apache-2.0
"""One of several ranks: slurmdl.comm with numpy arrays and Python objects.  Rank 0 prints TAP."""

import json
import os
import random
import sys
import threading
import time

import numpy as np
from check import on_all, raises, same

import slurmdl
import slurmdl.comm

world = slurmdl.comm.init(timeout=200)
rank, size = world.rank, world.size
told = on_all(world, rank)


def mine(shape, dtype, of=None):
    generator = np.random.default_rng([rank if of is None else of, 7])
    return (generator.random(shape) * 8 - 4).astype(dtype)


told(slurmdl.comm.init() is world and slurmdl.comm.current() is world, "init() opens one world")
told((rank, size) == (int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])), "rank and size")
told(world.host(rank) and world.nodes >= 1 and world.local_size >= 1, "host(), nodes and local_size")
if rank == 0:
    with raises(ValueError, "there is no rank 99", "host() rejects an unknown rank"):
        world.host(99)

if size > 1:
    wraps = (2**64 - 8, 16) + (0,) * (size - 2)
    eight = bytearray(8)
    for call in (
        lambda: world.alltoall_memory(eight, wraps, eight, wraps),
        lambda: world.allgather_memory(eight, wraps[rank] % 2**63, eight, wraps),
        lambda: world.reduce_scatter_memory("u8", 8, eight, eight, wraps, 0),
    ):
        refused = False
        try:
            call()
        except ValueError as error:
            refused = str(error) == "the sum of the numbers is too large"
        told(refused, "numbers with a sum that overflows are rejected")

for dtype in ("float32", "float64", "float16", "int32", "int64", "uint8", "complex64"):
    x = mine((3, 5), dtype)
    every = [mine((3, 5), dtype, r) for r in range(size)]
    got = world.allreduce(x)
    want = sum(every[1:], every[0])
    told(np.allclose(got, want, rtol=1e-2 if dtype == "float16" else 1e-5), f"allreduce() of {dtype}")
    told((x == mine((3, 5), dtype)).all() and got.dtype == x.dtype and got.shape == x.shape, f"allreduce() of {dtype} returns a new array")
x = mine((4, 3), "float64")
every = [mine((4, 3), "float64", r) for r in range(size)]
told(np.allclose(world.allreduce(x, "average"), sum(every) / size), "allreduce(): average")
told((world.allreduce(x, "min") == np.minimum.reduce(every)).all(), "allreduce(): min")
told((world.allreduce(x, "max") == np.maximum.reduce(every)).all(), "allreduce(): max")
told(np.allclose(world.allreduce(x, "product"), np.multiply.reduce(every)), "allreduce(): product")
y = x.copy()
told(world.allreduce_(y) is y and np.allclose(y, sum(every)), "allreduce_() works in place")
told(float(world.allreduce(rank + 1)) == size * (size + 1) / 2, "allreduce() of a number")
told(world.allreduce(np.empty(0)).size == 0, "allreduce() of an empty array")
got = world.reduce(x, "sum", root=size - 1)
told(got is None if rank != size - 1 else np.allclose(got, sum(every)), "reduce() to the last rank")
rows = world.parts(10)
got = world.reduce_scatter(mine((10, 2), "float32"))
begin = sum(rows[:rank])
want = sum(mine((10, 2), "float32", r) for r in range(size))[begin : begin + rows[rank]]
told(got.shape == want.shape and np.allclose(got, want, atol=1e-5), "reduce_scatter() of rows")
got = world.allgather(np.full((rank, 2), rank, "int16"))
told((got[:, 0] == np.repeat(range(size), range(size))).all(), "allgather() of a different number of rows from each rank")
z = np.arange(6, dtype="float32") if rank == 1 % size else np.zeros(6, "float32")
world.broadcast_(z, root=1 % size)
told((z == np.arange(6)).all(), "broadcast_()")
got, came = world.alltoall(np.repeat(np.arange(size), [r + 1 for r in range(size)]), [r + 1 for r in range(size)])
told(came == (rank + 1,) * size and (got == rank).all(), "alltoall()")
things = world.allgather_object({"rank": rank, "text": "x" * rank * 1000})
told([t["rank"] for t in things] == list(range(size)) and len(things[-1]["text"]) == (size - 1) * 1000, "allgather_object()")
told(world.broadcast_object(["from", rank], root=size - 1) == ["from", size - 1], "broadcast_object()")

with raises(ValueError, "op must be one of sum, average", "allreduce() rejects an unknown operation"):
    world.allreduce(x, "mean")
with raises(slurmdl.Error, "", "allreduce() rejects an average of integers"):
    world.allreduce(np.arange(3), "average")
with raises(TypeError, "", "allreduce() rejects strings"):
    world.allreduce(np.array(["a"]))
with raises(ValueError, "contiguous", "allreduce_() rejects an array that is not contiguous"):
    try:
        world.allreduce_(np.zeros((4, 4))[:, 1])
    except BufferError as error:
        raise ValueError(f"contiguous: {error}") from error

# ---- splitting
part = world.split(rank % 2, -rank)
told(part.size == (size + 1 - rank % 2) // 2, "split(): size")
told(part.allgather_object(rank) == sorted((r for r in range(size) if r % 2 == rank % 2), reverse=True), "split(): order")
part.close()
told(part.closed and not world.closed, "closing a part leaves the world open")
told((world.split(-1) is None) if rank == 0 else world.split(0).size == size - 1, "split(-1) returns None")

# ---- named tensors
names = [f"layer{i}.weight" for i in range(60)]
for turn in range(3):
    random.Random(rank * 10 + turn).shuffle(names)
    arrays = {n: mine((int(n[5:-7]) * 37 + 1,), "float32") for n in names}
    handles = {n: world.submit(n, arrays[n], op="average") for n in names}
    for n in names:
        assert handles[n].wait() is arrays[n]
good = all(np.allclose(a, sum(mine(a.shape, "float32", r) for r in range(size)) / size, atol=1e-5) for a in arrays.values())
told(good, "submit(): 60 tensors in a different order on each rank")
stats = world.stats()
told(stats["tensors"] >= 180 and (size == 1 or stats["fused"] < 180), "submit() fuses tensors")
out = np.zeros(5)
given = np.ones(5)
told((world.submit("out", given, out=out).wait() == size).all() and (given == 1).all(), "submit(out=)")
for small in (np.zeros(4), np.zeros(5, "float32")):
    with raises(ValueError, "'out' has", f"submit(out=) rejects {small.size} {small.dtype}"):
        world.submit("small", given, out=small)
with raises(ValueError, "no rows", "reduce_scatter() rejects a scalar"):
    world.reduce_scatter(np.float64(1))
got = world.submit_allgather("rows", np.full((rank + 1, 2), rank, "int32")).wait()
told(got.shape == (size * (size + 1) // 2, 2) and (got[-1] == size - 1).all(), "submit_allgather()")
for width in ((0,), (0, 4)):
    got = world.submit_allgather("empty", np.zeros((rank + 2,) + width, "float32")).wait()
    told(got.shape == (size * (size + 3) // 2,) + width, f"submit_allgather() of rows of width {width}")
told(world.allgather(np.zeros((rank + 2, 0))).shape == (size * (size + 3) // 2, 0), "allgather() of rows of zero width")
if size > 1:
    bad = world.submit_allgather("width", np.zeros((rank, 0 if rank else 1), "float32"))
    with raises(slurmdl.Error, "rows of 0 f32", "submit_allgather() rejects different widths"):
        bad.wait()
z = np.full(3, rank, "int64")
told((world.submit_broadcast("b", z, root=size - 1).wait() == size - 1).all(), "submit_broadcast()")
half = mine((1000,), "float32")
want = sum(mine((1000,), "float32", r) for r in range(size))
told(np.allclose(world.submit("half", half, compression="f16").wait(), want, atol=0.02 * size), "submit(compression='f16')")
if size > 1:
    bad = world.submit("differs", np.zeros(3 + rank, "float32"))
    with raises(slurmdl.Error, "differs", "submit() rejects different sizes"):
        bad.wait()
results = []


def submit_some(t):
    results.append(all((world.submit(f"thread{t}.{i}", np.ones(10)).wait() == size).all() for i in range(20)))


threads = [threading.Thread(target=submit_some, args=(t,)) for t in range(4)]
for t in threads:
    t.start()
for t in threads:
    t.join()
told(results == [True] * 4, "submit() from four threads")
world.timeline("timeline.%r.json")
world.submit("in the timeline", np.ones(4)).wait()
world.timeline(None)
with open(f"timeline.{rank}.json") as f:
    text = f.read()
events = json.loads(text if text.rstrip().endswith("]") else text.rstrip().rstrip(",") + "]")
told(any("in the timeline" in json.dumps(e) for e in events), "timeline(): JSON with the tensor")
world.timeline("timeline.json", True)
world.submit("on rank 0", np.ones(4)).wait()
world.timeline(None)
world.barrier()
with open("timeline.json") as f:
    names = {e["name"] for e in json.load(f)}
told({"NEGOTIATE_ALLREDUCE", "ALLREDUCE", "CYCLE_START"} <= names, "timeline() without %r: rank 0 writes it, with cycles")
ragged = np.ones((2, 3) if rank == 0 else (3, 2))
try:
    told(size == 1 or not world.submit("ragged", ragged).wait().any(), "submit() rejects different shapes")
except slurmdl.Error as error:
    shapes = "f64 of 2 x 3" in str(error) and "f64 of 3 x 2" in str(error)
    told(shapes or str(error), "submit() reports different shapes")
told(world.submit("ragged", np.ones((1,) * 8)).wait().shape == (1,) * 8, "submit() works after an error, with another shape")
last = world.join()
told(last in range(size), "join()")
world.barrier()

# ---- leaving
pid = os.fork()
if pid == 0:
    try:
        world.barrier()
    except RuntimeError:
        os._exit(0)
    os._exit(1)
told(os.waitpid(pid, 0)[1] == 0, "a forked child cannot use the communicator")
if size > 1 and len(sys.argv) > 1 and sys.argv[1] == "abort":
    open(f"here.{rank}", "w").close()
    if rank == 1:
        # wait, because abort() would cut off what the other ranks are still receiving
        while not all(os.path.exists(f"here.{r}") for r in range(size)):
            time.sleep(0.01)
        world.abort("it has seen enough")
        sys.exit(0)
    with raises(slurmdl.Error, "it has seen enough", "peers report the reason of abort()"):
        world.barrier()
    with raises(slurmdl.Error, "", "calls fail after abort()"):
        world.barrier()
world.close()
if rank == 0:
    same(slurmdl.comm.current(), None, "current() is None after close()")
    with raises(ValueError, "is closed", "barrier() fails after close()"):
        world.barrier()
