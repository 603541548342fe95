# SPDX-License-Identifier: Apache-2.0
"""The PyTorch adapter: exact state_dicts, restores in place, and the order of the data."""

import collections
import os
import pickle
import subprocess
import sys
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


# ---- save() and load() with arbitrary trees
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
ok(equal(tree, got), "load() returns the tree that save() saved")
same(got["state"]["a/b"].data_ptr(), got["state"][""].data_ptr(), "a shared tensor is saved once and stays shared")
with h5py.File("tree.h5") as f:
    ok((f["data/ordered/b"][:] == [0, 1, 2]).all() and "structure" in f, "tensors are HDF5 datasets")
slashes = {
    "loss": torch.ones(1), "loss/val": torch.ones(1) * 2, "loss/val/top": torch.ones(1) * 3, "x/y/z": torch.ones(1) * 4,
    "x": torch.ones(1) * 5, "x/y": torch.ones(1) * 6, "loss~2": torch.ones(1) * 7, "loss~2/a": torch.ones(1) * 8,
    "/": torch.ones(1) * 9, "//x": torch.ones(1) * 10, "n" * 200 + "/a": torch.ones(1) * 11, "n" * 200: torch.ones(1) * 12,
    "y": {"z": torch.ones(1) * 13}, "y/z/w": torch.ones(1) * 14, "loss/": torch.ones(1) * 15,
}  # fmt: skip
for order, name in ((slashes, "slashes.h5"), (dict(reversed(slashes.items())), "reversed.h5")):
    slurmdl.torch.save(order, name)
    ok(equal(order, slurmdl.torch.load(name)), "names with slashes that are prefixes of each other: " + name)
tensors = [n for n in slurmdl.load("tree.h5") if n != "structure"]
same(len(tensors), 16, "each distinct tensor has its own dataset")
if hasattr(torch, "float8_e4m3fnuz"):
    odd = torch.ones(2).to(torch.float8_e4m3fnuz)
    slurmdl.torch.save([odd], "odd.h5")
    (back,) = slurmdl.torch.load("odd.h5")
    ok(back.dtype == odd.dtype and torch.equal(back.float(), odd.float()), "a type that only torch has")
with raises(slurmdl.Error, "slurmdl.load", "load() rejects a checkpoint of slurmdl.dump()"):
    slurmdl.dump("plain.h5", {"a": np.zeros(2)})
    slurmdl.torch.load("plain.h5")


# ---- restore a model in place
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
        other, optimizer = make(kind)
        with torch.no_grad():
            for p in (*other.parameters(), *other.buffers()):
                p.zero_()
        schedule = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer)
        where = {n: t.data_ptr() for n, t in other.state_dict().items() if isinstance(t, torch.Tensor)}
        restored = slurmdl.torch.restore_model(run, model=other, optimizer=optimizer, scheduler=schedule)
        random_got = torch.rand(1)
        got = [other.state_dict(), optimizer.state_dict(), schedule.state_dict()]
        ok(equal(pickle.loads(wanted), got), f"{kind}: model, optimizer and scheduler are restored")
        ok(all(got[0][n].data_ptr() == p for n, p in where.items()), f"{kind}: tensors are restored in place")
        same(
            (restored.step, equal(restored.extra, ("x", half)), other.calls),
            (5, True, 3),
            f"{kind}: step, extra and extra state are restored",
        )
        ok(random_got == random_wanted, f"{kind}: the random state is restored")
        parts = slurmdl.torch.load(kind)
        got = [parts[name] for name in ("model", "optimizer", "scheduler")]
        ok(equal(pickle.loads(wanted), got), f"{kind}: load() works without a run and a model")
        ok(equal(parts["extra"], ("x", half)), f"{kind}: load() has extra")
        step(net, optimizer)
        slurmdl.torch.save_model(run, 6, model=other, optimizer=optimizer, scheduler=schedule)

with slurmdl.Run("sgd") as run:
    net, optimizer = make("sgd")
    with raises(slurmdl.Error, "has no loader", "restore_model() reports a part that was not saved"):
        slurmdl.torch.restore_model(run, model=net, loader=slurmdl.torch.ResumableLoader([1]))
    net.b = torch.nn.Linear(4, 5)
    with raises((RuntimeError, slurmdl.Error), "size mismatch", "restore_model() rejects another shape"):
        slurmdl.torch.restore_model(run, model=net)
with slurmdl.Run("fresh") as run:
    same(slurmdl.torch.restore_model(run, model=net), None, "restore_model() returns None without a checkpoint")
    several = {"g": make("sgd")[0], "d": make("adam")[0]}
    slurmdl.torch.save_model(run, 1, model=several)
    wanted = pickle.dumps({k: m.state_dict() for k, m in several.items()})
    for m in several.values():
        torch.nn.init.zeros_(m.b.weight)
    slurmdl.torch.restore_model(run, model=several)
    ok(equal(pickle.loads(wanted), {k: m.state_dict() for k, m in several.items()}), "several models are restored")
    saved = slurmdl.load("fresh")
    ok("model/g/norm.weight" in saved and saved["model/g/a.weight"].shape == (3, 2, 3, 3), "several models are saved by their names")

# ---- skip a checkpoint with damaged tensors
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
        same(slurmdl.torch.restore_model(run, model=net, optimizer=optimizer).step, 1, "restore_model() skips a damaged checkpoint")
    ok(equal(pickle.loads(wanted), [net.state_dict(), optimizer.state_dict()]), "all parts come from the older checkpoint")
    ok("skipped" in str(said[0].message) and said[0].filename.endswith("torch.py"), "restore_model() warns about the checkpoint that it skips")
    run.unprotect()
    slurmdl.torch.save_model(run, 3, model=net, optimizer=optimizer)
    same(slurmdl.torch.restore_model(run, model=net).step, 3, "save_model() works after unprotect()")
    at = slurmdl.torch.restore_model(run, model=net) or 0
    same((at, at + 1, list(range(at, 5))), (3, 4, [3, 4]), "restore_model() or 0 is a step, as with restore()")
    same(tuple(slurmdl.torch.restore_model(run, model=net))[0], 3, "the result of restore_model() unpacks")


# ---- wrappers do not change the names of parameters
class OptimizedModule(torch.nn.Module):
    """Stands in for the wrapper of torch.compile(), which older versions do not have."""

    def __init__(self, module):
        super().__init__()
        self._orig_mod = module


class DistributedDataParallel(torch.nn.Module):
    def __init__(self, module):
        super().__init__()
        self.module = module


def blocks(value):
    net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Sequential(torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 2)))
    with torch.no_grad():
        for t in net.state_dict().values():
            t.fill_(value)
    return net


def compiled(net):
    net[0] = OptimizedModule(net[0])
    net[1] = OptimizedModule(net[1])
    net[1]._orig_mod[1] = OptimizedModule(net[1]._orig_mod[1])
    return net


ways = {
    "bare": lambda net: net, "compiled": OptimizedModule, "blocks compiled": compiled, "DDP(compile())": lambda net: (
        DistributedDataParallel(OptimizedModule(net))), "compile(DDP())": lambda net: OptimizedModule(DistributedDataParallel(net)),
    "DDP with compiled blocks": lambda net: DistributedDataParallel(compiled(net)),
    "compiled blocks in one": lambda net: OptimizedModule(compiled(net)),
    "a block in DDP": lambda net: torch.nn.Sequential(DistributedDataParallel(OptimizedModule(net[0])), net[1]),
}  # fmt: skip
for i, (name, wrap) in enumerate(ways.items()):
    with slurmdl.Run("wrapped") as run:
        slurmdl.torch.save_model(run, i + 1, model=wrap(blocks(i + 1.0)))
        plain = blocks(0.0)
        slurmdl.torch.restore_model(run, model=plain)
        saved = slurmdl.torch.load("wrapped")["model"]
        right = list(saved) == list(plain.state_dict()) and saved._metadata == plain.state_dict()._metadata
        ok(right and all(t.eq(i + 1).all() for t in plain.state_dict().values()), f"{name}: saved like the bare model")
        wrong = []
        for way, wrap in ways.items():
            net = blocks(0.0)
            before = net.state_dict()
            slurmdl.torch.restore_model(run, model=wrap(net))
            if not all(t.eq(i + 1).all() for t in before.values()):
                wrong.append(way)
        same(wrong, [], f"{name}: restored into each of the others")


class Twice(torch.nn.Module):
    """A block that is also compiled, for training and inference, and names that look like wrappers."""

    def __init__(self):
        super().__init__()
        self.block = torch.nn.Linear(2, 2)
        self.fast = OptimizedModule(self.block)
        self.module = torch.nn.Linear(1, 1)
        self._orig_mode = torch.nn.Linear(1, 1)


with slurmdl.Run("twice") as run:
    net, other = Twice(), Twice()
    slurmdl.torch.save_model(run, 1, model=net)
    slurmdl.torch.restore_model(run, model=other)
    ok(equal(net.state_dict(), other.state_dict()) and other.fast._orig_mod is other.block, "a block that is registered twice")
    names = [n[len("model/") :] for n in slurmdl.load("twice") if n.startswith("model/")]
    ok("module/weight" in "/".join(names).replace(".", "/") and len(names) == 6, "modules named like a wrapper keep their names")

# ---- lazy modules that have not seen data yet
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    lazy = lambda: torch.nn.Sequential(torch.nn.LazyLinear(3), torch.nn.LazyBatchNorm1d())  # noqa: E731
    first, second, third, fourth = lazy(), lazy(), lazy(), lazy()
is_lazy = torch.nn.parameter.is_lazy
with slurmdl.Run("lazy") as run:
    slurmdl.torch.save_model(run, 1, model=first)
    slurmdl.torch.restore_model(run, model=second)
    ok(is_lazy(second[0].weight) and is_lazy(second[1].running_mean), "a lazy model is saved and restored")
    first(torch.randn(4, 2))
    with raises(slurmdl.Error, "was saved before its module had seen data", "a lazy checkpoint is rejected by an initialized model"):
        slurmdl.torch.restore_model(run, model=first)
    slurmdl.torch.save_model(run, 2, model=first)
    slurmdl.torch.restore_model(run, model=third)
    ok(equal(first.state_dict(), third.state_dict()), "an initialized checkpoint is restored into a lazy model")
    third(torch.randn(4, 2))
    slurmdl.torch.save_model(run, 3, model={"a": fourth, "b": third})
    slurmdl.torch.restore_model(run, model={"b": second})
    ok(equal(third.state_dict(), second.state_dict()), "one of two models is restored if the other is lazy")


# ---- a failed restore changes nothing, or reports what it changed
def kept(net, optimizer, call, kind, text, name):
    before = pickle.dumps([net.state_dict(), optimizer.state_dict()])
    with raises(kind, text, name):
        call()
    ok(equal(pickle.loads(before), [net.state_dict(), optimizer.state_dict()]), name + ": nothing has changed")


with slurmdl.Run("refused") as run:
    net, optimizer = make("adam")
    step(net, optimizer)
    slurmdl.torch.save_model(run, 1, model=net, optimizer=optimizer, extra=1)
    for change, text in (
        (lambda m: m.add_module("more", torch.nn.Linear(1, 1)), "missing in the checkpoint: more.weight, more.bias"),
        (lambda m: m._modules.pop("low"), "not in the model: low.weight, low.bias"),
        (lambda m: m._modules.update(b=torch.nn.Linear(4, 5)), "size mismatch: (4, 4) in the checkpoint, (5, 4) in the model"),
    ):
        other, adam = make("sgd")[0], make("adam")[1]
        change(other)
        call = lambda: slurmdl.torch.restore_model(run, model=other, optimizer=adam)  # noqa: B023, E731
        kept(other, adam, call, slurmdl.Error, text, text.split(":")[0])
    other = make("sgd")[0]
    adam = torch.optim.Adam([{"params": [other.b.weight]}, {"params": [other.b.bias]}])
    call = lambda: slurmdl.torch.restore_model(run, model=other, optimizer=adam)  # noqa: E731
    kept(other, adam, call, slurmdl.Error, "have [2] parameters, those of the optimizer [1, 1]", "another number of parameter groups")
    call = lambda: slurmdl.torch.restore_model(run, model=[other, other], optimizer=adam)  # noqa: E731
    kept(other, adam, call, slurmdl.Error, "the checkpoint has only one, expected 2", "a list of models for a single one")

    class Strange:
        def state_dict(self):
            return {"a": 1}

        def load_state_dict(self, state):
            raise KeyError("b")

    slurmdl.torch.save_model(run, 2, model=net, scheduler=Strange())
    with raises(KeyError, "has changed, in whole or in part: model, scheduler", "a failed load_state_dict() reports which parts have changed"):
        slurmdl.torch.restore_model(run, model=other, scheduler=Strange())
    slurmdl.torch.save_model(run, 3, model=[net, net])
    one, two, three = (make("sgd")[0] for _ in range(3))
    with raises(slurmdl.Error, "the checkpoint has 2, expected 3", "more models than were saved"):
        slurmdl.torch.restore_model(run, model=[one, two, three])
    slurmdl.torch.restore_model(run, model=[one, two])
    ok(equal(two.state_dict(), net.state_dict()), "the same number of models")

# ---- some or all files are damaged
with slurmdl.Run("cut") as run:
    net, optimizer = make("adam")
    for at in (1, 2, 3, 4):
        slurmdl.torch.save_model(run, at, model=net)
        os.rename(f"{run.dir}/ckpt/{at:08}.h5", f"{run.dir}/{at}")
    for at in (1, 2, 3, 4):
        os.rename(f"{run.dir}/{at}", f"{run.dir}/ckpt/{at:08}.h5")
    for at in (3, 4):
        os.truncate(f"{run.dir}/ckpt/{at:08}.h5", 100)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        same(slurmdl.torch.restore_model(run, model=net).step, 2, "restore_model() skips two damaged files")
    same(len(said), 1, "restore_model() warns once about both files")
    text = str(said[0].message)
    ok("00000004.h5" in text and "00000003.h5" in text and "00000002.h5" not in text, "the warning names both files")
    with open(f"{run.dir}/ckpt/00000002.h5", "r+b") as f:
        f.write(bytes(os.path.getsize(f.name) // 2))
    os.unlink(f"{run.dir}/ckpt/00000001.h5")
    os.symlink("/nonexistent/1", f"{run.dir}/ckpt/00000001.h5")
    try:
        slurmdl.torch.restore_model(run, model=net)
        ok(False, "restore_model() fails if all files are damaged")
    except slurmdl.Error as error:
        ok(all(f"{at:08}.h5" in str(error) for at in (1, 2, 3, 4)), "restore_model() names all files if all are damaged")

# ---- go back to an older step with the command in slurmdl(3)
with slurmdl.Run("back") as run:
    net, optimizer = make("adam")
    for at in (5, 10):
        slurmdl.torch.save_model(run, at, model=net)
        step(net, optimizer)
with open(os.path.join(os.environ["srcdir"], "doc/slurmdl.3")) as f:
    command = next(line for line in f if line.startswith("for f in")).replace("\\-", "-")
subprocess.run(["sh", "-c", command], env=dict(os.environ, trial="back", step="5"), check=True)
with slurmdl.Run("back") as run:
    same(slurmdl.torch.restore_model(run, model=net).step, 5, "the command in slurmdl(3) returns to step 5")
    slurmdl.torch.save_model(run, 6, model=net)
    same(slurmdl.torch.restore_model(run, model=net).step, 6, "training continues from step 5")

# ---- random states, restored by another number of ranks
def ranks(n, *words):
    """Run n ranks and return the words that each prints, in order of rank."""
    env = [dict(os.environ, RANK=str(r), WORLD_SIZE=str(n), DL_RUN_DIR="random") for r in range(n)]
    started = [subprocess.Popen([sys.executable, "random_ranks.py", *words], env=e, stdout=subprocess.PIPE) for e in env]
    return [p.communicate()[0].decode().split() for p in started]


with open("random_ranks.py", "w") as f:
    f.write("""
import random, sys, numpy, torch, slurmdl, slurmdl.torch
net = torch.nn.Linear(1, 1)
with slurmdl.init() as run:
    if sys.argv[1] != "load":
        random.seed(run.rank); torch.manual_seed(run.rank); numpy.random.seed(run.rank)
        slurmdl.torch.save_model(run, int(sys.argv[1]), model=net)
    else:
        slurmdl.torch.restore_model(run, model=net)
    print(random.random(), torch.rand(1).item(), numpy.random.rand())
""")
alone = ranks(1, "1")
same(ranks(1, "load"), alone, "random state: one rank restores its own")
both = ranks(2, "load")
same(both[0], alone[0], "random state: one to two ranks: rank 0 keeps its state")
ok(not set(both[1]) & set(both[0]) and len(set(both[1])) == 3, "random state: one to two ranks: rank 1 gets another")
same(ranks(2, "load"), both, "random state: one to two ranks: the result is reproducible")
two = ranks(2, "2")
same(ranks(1, "load"), two[:1], "random state: two ranks to one")
three = ranks(3, "load")
same(three[:2], two, "random state: two to three ranks: both keep their state")
ok(not set(three[2]) & set(two[0] + two[1]), "random state: two to three ranks: the third gets another")

# ---- unusual names and values
odd = {
    "größe/ß": torch.ones(1), "": {"": torch.ones(2)}, "a.b": torch.ones(3), "a": {"b": torch.ones(4)}, 3: torch.ones(5),
    "3": torch.ones(6), None: torch.ones(7), (1, 2): torch.tensor(5), "none": None, "..": torch.ones(8), "a/..": torch.ones(9),
    "state": torch.ones(10), "shards": torch.ones(11), "x" * 500 + "/y": torch.ones(12), "new\nline": torch.ones(13),
    "complex": torch.tensor(1 + 2j), "empty": torch.empty(0, 3, dtype=torch.complex64), "bool": torch.tensor(True), "int": 2**80,
}  # fmt: skip
with slurmdl.Run("odd") as run:
    slurmdl.torch.save_model(run, 1, model=make("sgd")[0], extra=odd)
    ok(equal(odd, slurmdl.torch.restore_model(run).extra), "unusual names and values")
with slurmdl.Run("groups") as run:
    net = blocks(1.0)
    groups = lambda net: torch.optim.AdamW([  # noqa: E731
        {"params": net[0].parameters(), "lr": 0.5}, {"params": [], "name": "none"}, {"params": net[1].parameters()}], lr=0.1)  # fmt: skip
    optimizer = groups(net)
    net[0](torch.ones(1, 3)).sum().backward()
    optimizer.step()
    slurmdl.torch.save_model(run, 1, model=OptimizedModule(net), optimizer=optimizer)
    other = blocks(0.0)
    again = groups(other)
    slurmdl.torch.restore_model(run, model=compiled(other), optimizer=again)
    ok(equal(optimizer.state_dict(), again.state_dict()), "parameter groups that are empty or have no state")
with slurmdl.Run("parametrized") as run:
    def normed():
        return torch.nn.utils.parametrizations.spectral_norm(OptimizedModule(torch.nn.Linear(3, 3))._orig_mod)

    old = lambda: torch.nn.Sequential(OptimizedModule(torch.nn.utils.weight_norm(torch.nn.Linear(2, 2))), normed())  # noqa: E731
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        one, two = old(), old()
    slurmdl.torch.save_model(run, 1, model=one)
    slurmdl.torch.restore_model(run, model=two)
    ok(equal(one.state_dict(), two.state_dict()), "weight norm and parametrizations, compiled")

# ---- protect a single tensor
with slurmdl.Run("tensor") as run:
    t = torch.arange(6.0).reshape(2, 3)
    run.protect("t", t)
    run.protect("low", torch.ones(3, dtype=torch.bfloat16))
    run.save(1)
    t.zero_()
    run.restore()
    ok(torch.equal(t, torch.arange(6.0).reshape(2, 3)), "a protected tensor is restored")
    with raises(ValueError, "t: the tensor is not contiguous", "protect() rejects a tensor that is not contiguous"):
        run.protect("t", t.t())
    with raises(ValueError, "conj", "protect() rejects a conjugate view"):
        run.protect("c", imaginary.conj())
    run.protect("none", torch.zeros(0, 3))
    run.save(2)
    same(slurmdl.load(run.dir + "/ckpt/00000002.h5")["none"].shape, (0, 3), "protect() accepts an empty tensor")
    run.log("loss", torch.tensor(1.5, requires_grad=True), 1)
    run.histogram("weights", torch.randn(100, 2).t(), 1)
    run.vector("v", torch.arange(3, dtype=torch.bfloat16), 1)
    run.flush()
    same(slurmdl.read_metrics(run.dir)["value"].tolist(), [1.5], "log() accepts a tensor")
    weights = [r["value"] for r in slurmdl.read_records(run.dir) if r["name"] == "weights"]
    same(sum(weights[0]["counts"].tolist()), 200, "histogram() accepts a tensor")


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
    (sorted(sum(whole[0], [])), len(whole[0]), len(loader())), (list(range(23)), 6, 6), "ResumableLoader: an epoch has each sample once"
)
ok(whole[0] != whole[1] and whole[1] != whole[2], "ResumableLoader: epochs differ")
first = loader()
order(first)
head = order(first, 2)
second = loader(seed=99)
second.load_state_dict(first.state_dict())
same((head + order(second), order(second)), (whole[1], whole[2]), "ResumableLoader resumes in mid-epoch")
same((first.epoch, first.position, second.epoch, second.position), (1, 2, 3, 0), "ResumableLoader: epoch and position")
ranks = [order(loader(rank=r, size=3)) for r in range(3)]
same(
    (sorted(set(sum(sum(ranks, []), []))), [len(sum(r, [])) for r in ranks]),
    (list(range(23)), [8, 8, 8]),
    "ResumableLoader: ranks share an epoch",
)
same(len(order(loader(drop_last=True))), 5, "ResumableLoader: drop_last")
third = loader()
order(third, 4)
fourth = loader(rank=0, size=2)
fourth.load_state_dict(third.state_dict())
same(fourth.position, 2, "ResumableLoader resumes at the same sample with another number of ranks")
with raises(TypeError, "has no length", "ResumableLoader rejects a dataset without a length"):
    slurmdl.torch.ResumableLoader(iter([1]))
with raises(ValueError, "not 0", "ResumableLoader rejects batch_size=0"):
    slurmdl.torch.ResumableLoader([1], batch_size=0)
with raises(TypeError, "no argument 'sampler'", "ResumableLoader rejects a sampler"):
    loader(sampler=None)
with raises(ValueError, "had 23 samples", "ResumableLoader rejects the state of another dataset"):
    slurmdl.torch.ResumableLoader([1, 2]).load_state_dict(third.state_dict())
