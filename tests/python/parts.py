# SPDX-License-Identifier: Apache-2.0
"""The adapter for PyTorch: state_dicts as they are, in place, and the order of the data."""

import collections
import pickle
import warnings

import h5py
import numpy as np
import torch
from check import ok, raises, same

import slurmdl.torch


def equal(a, b):
    if isinstance(a, torch.Tensor):
        return a.dtype == b.dtype and a.shape == b.shape and torch.equal(a, b)
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and (a == b).all()
    if isinstance(a, dict):
        return type(a) is type(b) and list(a) == list(b) and all(equal(a[k], b[k]) for k in a)
    if isinstance(a, (list, tuple)):
        return type(a) is type(b) and len(a) == len(b) and all(equal(x, y) for x, y in zip(a, b))
    return type(a) is type(b) and (a == b or a != a and b != b)


# ---- anything, as a file
half = torch.randn(3, 4)
imaginary = torch.full((2,), 1j)
tree = {
    "floats": [1.5, float("inf"), float("nan"), -0.0, 1e-300],
    1: (None, True, 3, "text", b"bytes", 1 + 2j, 2**70),
    "ordered": collections.OrderedDict([("b", torch.arange(3)), ("a", torch.tensor(2.5))]),
    "types": [
        half.to(t) for t in (torch.float16, torch.bfloat16, torch.float64, torch.int16, torch.bool, torch.complex64)
    ],
    "view": torch.arange(12.0).reshape(3, 4).t(),
    "empty": torch.empty(0, 5),
    "state": {"a/b": half, "": half, ".": half * 2, "manifest": half},
    "n" * 300: torch.ones(2),
    "array": np.arange(6).reshape(2, 3),
    "scalar": np.float32(1.5),
    "set": {1, 2},
    "sparse": torch.eye(3).to_sparse().coalesce().indices(),
    "conjugate": [imaginary, imaginary.conj()],
}
slurmdl.torch.save(tree, "tree.h5", step=4)
got = slurmdl.torch.load("tree.h5")
ok(equal(tree, got), "a tree of whatever a state_dict can have is the same again")
same(got["state"]["a/b"].data_ptr(), got["state"][""].data_ptr(), "a tensor that is there twice is saved once")
with h5py.File("tree.h5") as f:
    ok((f["data/ordered/b"][:] == [0, 1, 2]).all() and "structure" in f, "tensors are datasets")
slashes = {
    "loss": torch.ones(1), "loss/val": torch.ones(1) * 2, "loss/val/top": torch.ones(1) * 3, "x/y/z": torch.ones(1) * 4,
    "x": torch.ones(1) * 5, "x/y": torch.ones(1) * 6, "loss~2": torch.ones(1) * 7, "loss~2/a": torch.ones(1) * 8,
    "/": torch.ones(1) * 9, "//x": torch.ones(1) * 10, "n" * 200 + "/a": torch.ones(1) * 11, "n" * 200: torch.ones(1) * 12,
    "y": {"z": torch.ones(1) * 13}, "y/z/w": torch.ones(1) * 14, "loss/": torch.ones(1) * 15,
}  # fmt: skip
for order, name in ((slashes, "slashes.h5"), (dict(reversed(slashes.items())), "reversed.h5")):
    slurmdl.torch.save(order, name)
    ok(equal(order, slurmdl.torch.load(name)), "names with slashes, one of which begins with another: " + name)
tensors = [n for n in slurmdl.load("tree.h5") if n != "structure"]
same(len(tensors), 16, "each one of its own")
if hasattr(torch, "float8_e4m3fnuz"):
    odd = torch.ones(2).to(torch.float8_e4m3fnuz)
    slurmdl.torch.save([odd], "odd.h5")
    (back,) = slurmdl.torch.load("odd.h5")
    ok(back.dtype == odd.dtype and torch.equal(back.float(), odd.float()), "so is a type of torch's alone")
with raises(slurmdl.Error, "slurmdl.load", "another checkpoint is refused"):
    slurmdl.dump("plain.h5", {"a": np.zeros(2)})
    slurmdl.torch.load("plain.h5")


# ---- a model, in place
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a = torch.nn.Conv2d(2, 3, 3).to(memory_format=torch.channels_last)
        self.b = torch.nn.Linear(4, 4)
        self.tied = self.b.weight
        self.norm = torch.nn.BatchNorm1d(4)
        self.low = torch.nn.Linear(2, 2).bfloat16()

    def get_extra_state(self):
        return {"calls": getattr(self, "calls", 0)}

    def set_extra_state(self, state):
        self.calls = state["calls"]


def make(kind):
    torch.manual_seed(len(kind))
    net = Net()
    optimizer = {
        "sgd": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9),
        "adam": lambda p: torch.optim.Adam(p, lr=0.1, amsgrad=True),
        "adamw": lambda p: torch.optim.AdamW([{"params": p, "lr": 0.5}], betas=(0.8, 0.9)),
        "rmsprop": lambda p: torch.optim.RMSprop(p, momentum=0.5, centered=True),
        "adagrad": lambda p: torch.optim.Adagrad(p),
        "lbfgs": lambda p: torch.optim.LBFGS(p),
    }[kind]([p for p in net.b.parameters()])
    return net, optimizer


def step(net, optimizer):
    def closure():
        optimizer.zero_grad()
        loss = net.b(torch.ones(2, 4)).pow(2).sum()
        loss.backward()
        return loss

    optimizer.step(closure)


for kind in ("sgd", "adam", "adamw", "rmsprop", "adagrad", "lbfgs"):
    with slurmdl.Run(kind) as run:
        net, optimizer = make(kind)
        net.calls = 3
        step(net, optimizer)
        schedule = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer)
        schedule.step(1.0)
        slurmdl.torch.save_model(run, 5, model=net, optimizer=optimizer, scheduler=schedule, extra=("x", half))
        wanted = pickle.dumps([net.state_dict(), optimizer.state_dict(), schedule.state_dict()])
        random_wanted = torch.rand(1)
    with slurmdl.Run(kind) as run:
        other, optimizer = make(kind + "  ".strip())
        with torch.no_grad():
            for p in other.parameters():
                p.zero_()
        schedule = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer)
        where = {n: t.data_ptr() for n, t in other.state_dict().items() if isinstance(t, torch.Tensor)}
        restored = slurmdl.torch.restore_model(run, model=other, optimizer=optimizer, scheduler=schedule)
        random_got = torch.rand(1)
        got = [other.state_dict(), optimizer.state_dict(), schedule.state_dict()]
        ok(equal(pickle.loads(wanted), got), f"{kind}: model, optimizer and schedule are as they were")
        ok(all(got[0][n].data_ptr() == p for n, p in where.items()), f"{kind}: in the memory where they are")
        same(
            (restored.step, equal(restored.extra, ("x", half)), other.calls),
            (5, True, 3),
            f"{kind}: with what goes with them",
        )
        ok(random_got == random_wanted, f"{kind}: and the random numbers go on")
        parts = slurmdl.torch.load(kind)
        got = [parts[name] for name in ("model", "optimizer", "scheduler")]
        ok(equal(pickle.loads(wanted), got), f"{kind}: load() has them without a run, and without a model")
        ok(equal(parts["extra"], ("x", half)), f"{kind}: and what goes with them")
        step(net, optimizer)
        slurmdl.torch.save_model(run, 6, model=other, optimizer=optimizer, scheduler=schedule)

with slurmdl.Run("sgd") as run:
    net, optimizer = make("sgd")
    with raises(slurmdl.Error, "has no loader", "a part that was not saved is told"):
        slurmdl.torch.restore_model(run, model=net, loader=slurmdl.torch.ResumableLoader([1]))
    net.b = torch.nn.Linear(4, 5)
    with raises((RuntimeError, slurmdl.Error), "size mismatch", "so is another shape"):
        slurmdl.torch.restore_model(run, model=net)
with slurmdl.Run("fresh") as run:
    same(slurmdl.torch.restore_model(run, model=net), None, "without a checkpoint nothing is restored")
    several = {"g": make("sgd")[0], "d": make("adam")[0]}
    slurmdl.torch.save_model(run, 1, model=several)
    wanted = pickle.dumps({k: m.state_dict() for k, m in several.items()})
    for m in several.values():
        torch.nn.init.zeros_(m.b.weight)
    slurmdl.torch.restore_model(run, model=several)
    ok(equal(pickle.loads(wanted), {k: m.state_dict() for k, m in several.items()}), "several models")
    saved = slurmdl.load("fresh")
    ok("model/g/norm.weight" in saved and saved["model/g/a.weight"].shape == (3, 2, 3, 3), "by their names")

# ---- one whose tensors are damaged is passed over
with slurmdl.Run("damaged") as run:
    net, optimizer = make("adam")
    for at in (1, 2):
        step(net, optimizer)
        slurmdl.torch.save_model(run, at, model=net, optimizer=optimizer)
        if at == 1:
            wanted = pickle.dumps([net.state_dict(), optimizer.state_dict()])
    newest = run.dir + "/ckpt/00000002.h5"
    with h5py.File(newest) as f:
        where = f["model/" + next(iter(net.state_dict()))].id.get_offset()
    with open(newest, "r+b") as f:
        f.seek(where)
        f.write(b"damage")
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        same(slurmdl.torch.restore_model(run, model=net, optimizer=optimizer).step, 1, "the one before is restored")
    ok(equal(pickle.loads(wanted), [net.state_dict(), optimizer.state_dict()]), "all of it")
    ok("skipped" in str(said[0].message) and said[0].filename.endswith("torch.py"), "and that is said")
    run.unprotect()
    slurmdl.torch.save_model(run, 3, model=net, optimizer=optimizer)
    same(slurmdl.torch.restore_model(run, model=net).step, 3, "after unprotect() it is saved all the same")
    step = slurmdl.torch.restore_model(run, model=net) or 0
    same((step, step + 1, list(range(step, 5))), (3, 4, [3, 4]), "restore_model() or 0 is a step, as of restore()")
    same(tuple(slurmdl.torch.restore_model(run, model=net))[0], 3, "and can be taken apart")

# ---- a tensor by itself
with slurmdl.Run("tensor") as run:
    t = torch.arange(6.0).reshape(2, 3)
    run.protect("t", t)
    run.protect("low", torch.ones(3, dtype=torch.bfloat16))
    run.save(1)
    t.zero_()
    run.restore()
    ok(torch.equal(t, torch.arange(6.0).reshape(2, 3)), "a tensor is protected")
    with raises(ValueError, "t: the tensor is not contiguous", "one that is not contiguous is not"):
        run.protect("t", t.t())
    with raises(ValueError, "conj", "nor one whose memory is not what it says"):
        run.protect("c", imaginary.conj())
    run.protect("none", torch.zeros(0, 3))
    run.save(2)
    same(slurmdl.load(run.dir + "/ckpt/00000002.h5")["none"].shape, (0, 3), "an empty one is")
    run.log("loss", torch.tensor(1.5, requires_grad=True), 1)
    run.histogram("weights", torch.randn(100, 2).t(), 1)
    run.vector("v", torch.arange(3, dtype=torch.bfloat16), 1)
    run.flush()
    same(slurmdl.read_metrics(run.dir)["value"].tolist(), [1.5], "a tensor is logged")
    weights = [r["value"] for r in slurmdl.read_records(run.dir) if r["name"] == "weights"]
    same(sum(weights[0]["counts"].tolist()), 200, "and its histogram")


# ---- the order of the data
def order(loader, n=None):
    result = []
    for batch in loader:
        result.append(batch.tolist())
        if n is not None and len(result) == n:
            break
    return result


def loader(**options):
    return slurmdl.torch.ResumableLoader(list(range(23)), **{"batch_size": 4, "shuffle": True, "seed": 3, **options})


whole = [order(l) for l in [loader()] for _ in range(3)]
same(
    (sorted(sum(whole[0], [])), len(whole[0]), len(loader())), (list(range(23)), 6, 6), "an epoch has each sample once"
)
ok(whole[0] != whole[1] and whole[1] != whole[2], "epochs differ")
first = loader()
order(first)
head = order(first, 2)
second = loader(seed=99)
second.load_state_dict(first.state_dict())
same((head + order(second), order(second)), (whole[1], whole[2]), "in mid-epoch it goes on exactly there")
same((first.epoch, first.position, second.epoch, second.position), (1, 2, 3, 0), "and knows where it is")
ranks = [order(loader(rank=r, size=3)) for r in range(3)]
same(
    (sorted(set(sum(sum(ranks, []), []))), [len(sum(r, [])) for r in ranks]),
    (list(range(23)), [8, 8, 8]),
    "ranks share an epoch",
)
same(len(order(loader(drop_last=True))), 5, "the last batch may be dropped")
third = loader()
order(third, 4)
fourth = loader(rank=0, size=2)
fourth.load_state_dict(third.state_dict())
same(fourth.position, 2, "another number of ranks goes on at the same sample")
with raises(TypeError, "has no length", "what has no length is refused"):
    slurmdl.torch.ResumableLoader(iter([1]))
with raises(ValueError, "not 0", "and so are empty batches"):
    slurmdl.torch.ResumableLoader([1], batch_size=0)
with raises(TypeError, "no argument 'sampler'", "a sampler of its own is refused"):
    loader(sampler=None)
with raises(ValueError, "had 23 samples", "so is another dataset"):
    slurmdl.torch.ResumableLoader([1, 2]).load_state_dict(third.state_dict())
