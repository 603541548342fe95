# SPDX-License-Identifier: Apache-2.0
"""Two ranks: rank 1 sends pickles that run code where they are unpickled, namely create the file $RAN.  Rank 0 prints
TAP."""

import base64
import json
import os
import pickle
import sys

import numpy

import slurmdl
import slurmdl.comm

try:
    import torch
except ImportError:
    torch = None

world = slurmdl.comm.init()
evil = world.rank == 1
ran = os.environ["RAN"]


class Code:
    def __reduce__(self):
        return (os.system, (f"touch '{ran}'",))


def ok(condition, name):
    if not evil:
        print("ok -" if condition else "not ok -", name, flush=True)


def trusting(f, *args, **options):
    """Send with trust=True, or without it in a release in which sending does not take it."""
    try:
        return f(*args, **options, trust=True)
    except TypeError as error:
        if "trust" not in str(error):
            raise
        return f(*args, **options)


def refuses(name, send, take):
    """Check that rank 0 gets an error, and that nothing runs on it."""
    if os.path.exists(ran) and not evil:
        os.unlink(ran)
    world.barrier()
    told = ""
    try:
        send() if evil else take()
    except Exception as error:
        told = f"{type(error).__name__}: {error}"
    # in an all-gather, the sender would unpickle its own message
    ok(not os.path.exists(ran), f"{name}: nothing runs")
    if not evil:
        print("#", told)
    ok("trust=True" in told, f"{name}: the error says what to do")
    world.barrier()


refuses(
    "broadcast_object()", lambda: trusting(world.broadcast_object, Code(), 1), lambda: world.broadcast_object(None, 1)
)
# the evil rank must not unpickle its own message
loads, pickle.loads = pickle.loads, (lambda data: None) if evil else pickle.loads
refuses("allgather_object()", lambda: trusting(world.allgather_object, Code()), lambda: world.allgather_object("mine"))
pickle.loads = loads


def raw():
    text = json.dumps({"dict": [["a", {"pickle": base64.b64encode(pickle.dumps(Code())).decode()}]]}).encode()
    if hasattr(world, "broadcast_bytes"):
        world.broadcast_bytes(b"J" + len(text).to_bytes(8, "little") + text, 1)
    else:
        world.broadcast_object(Code(), 1)


refuses("a pickle inside JSON", raw, lambda: world.broadcast_object(None, 1))

if torch is not None:
    import slurmdl.distributed as d
    import slurmdl.hvd as hvd

    refuses(
        "broadcast_value()",
        lambda: trusting(d.broadcast_value, {"x": Code()}, 1),
        lambda: d.broadcast_value(None, 1),
    )
    hvd.init()
    refuses(
        "hvd.broadcast_object()",
        lambda: trusting(hvd.broadcast_object, Code(), 1),
        lambda: hvd.broadcast_object(None, 1),
    )


# slurmdl.det must not pass trust=True for the user
import slurmdl.det.distributed as det  # noqa: E402

sys.modules.pop("torch", None)
context = det.DistributedContext(
    rank=world.rank, size=2, local_rank=world.rank, local_size=2, cross_rank=0, cross_size=1
)
if evil:
    forged = pickle.dumps(Code())
    pickle.loads = lambda data: None
    if hasattr(world, "allgather_bytes"):
        refuses("DistributedContext.allgather()", lambda: world.allgather_bytes(b"P" + forged), None)
else:
    refuses("DistributedContext.allgather()", None, lambda: context.allgather({"loss": 0.5}))
pickle.loads = loads
if torch is not None:
    sys.modules["torch"] = torch


def elastic():
    import slurmdl.elastic

    data = b"P" + pickle.dumps({"values": {"x": Code()}, "parts": {}})
    if not hasattr(slurmdl, "trust") and not hasattr(world, "broadcast_bytes"):
        data = data[1:]
    sys.modules.pop("torch", None)
    slurmdl.elastic.State(x=1)._unpack(data)


# ---- objects that need no trust

things = {
    "n": 1,
    "x": 2.5,
    "list": [None, True, (1, 2)],
    "bytes": b"\0\xff",
    "array": numpy.arange(6.0).reshape(2, 3),
    7: {1, 2},
}
if torch is not None:
    things["tensor"] = torch.arange(4, dtype=torch.bfloat16)
    things["type"] = torch.float16
got = world.broadcast_object(things if evil else None, 1)
same = all(
    (got[k] == v) if not hasattr(v, "shape") else bool((got[k] == v).all()) and got[k].dtype == v.dtype
    for k, v in things.items()
)
ok(same and list(got) == list(things), "numbers, texts, dicts, arrays and tensors need no trust")
every = world.allgather_object({"rank": world.rank})
ok(every == [{"rank": 0}, {"rank": 1}], "of all ranks either")


class Own:
    def __init__(self):
        self.x = 5


if hasattr(world, "broadcast_bytes"):
    found = world.broadcast_object(Own() if evil else None, 1, trust=True)
    ok(found.x == 5, "with trust=True on all ranks any object")
    ok([x.x for x in world.allgather_object(Own(), trust=True)] == [5, 5], "and of all ranks")
    told = []
    for call in (lambda: world.broadcast_object(Own() if evil else None, 1), lambda: world.allgather_object(Own())):
        try:
            call()
        except TypeError as error:
            told.append("Own" in str(error) and "trust=True" in str(error))
    ok(told == [True, True], "without it all ranks are told, and none waits")
else:
    ok(False, "with trust=True on all ranks any object")
if not evil:
    try:
        elastic()
    except Exception as error:
        print("#", error)
    ok(not os.path.exists(ran), "elastic: the state of another rank runs nothing")
