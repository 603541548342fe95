# SPDX-License-Identifier: Apache-2.0
"""Sharded models: all ranks save one file, and other numbers of ranks and kinds of sharding restore it bit for bit.

sharded.py [RANKS:KIND]...: run these worlds, by default two chains of worlds.  Each world of a chain restores the
checkpoint of the previous one, compares it with the state that torch gathered there, trains on and saves.  Then it
trains on, restores its own checkpoint and repeats those steps.
"""

import json
import os
import pickle
import shutil
import subprocess
import sys
import warnings

import torch
from check import ok, same, skip

try:
    from torch.distributed.fsdp import FullyShardedDataParallel, ShardingStrategy, fully_shard
except (ImportError, ValueError):
    skip("sharded models", f"PyTorch {torch.__version__} has no fully_shard()")
    sys.exit()

import h5py
import torch.distributed as dist
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_state_dict
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor
from torch.distributed.tensor.placement_types import _StridedShard
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from worlds import world

import slurmdl
import slurmdl.torch
from slurmdl.sharded import slab_of

warnings.simplefilter("ignore", FutureWarning)
torch.set_num_threads(1)

# ---- models


class Net(torch.nn.Module):
    """Layers of 10, 7, 3 and 1 rows: with 4 ranks, some ranks have fewer rows than others, or none."""

    def __init__(self, seed=1):
        torch.manual_seed(seed)
        super().__init__()
        self.first = torch.nn.Linear(6, 10)
        self.second = torch.nn.Linear(10, 7)
        self.third = torch.nn.Linear(7, 3)
        self.norm = torch.nn.BatchNorm1d(3)
        self.last = torch.nn.Linear(3, 1, dtype=torch.float64)

    def forward(self, x):
        return self.last(self.norm(self.third(self.second(self.first(x).relu()).relu())).double())


def flattened(net, one_by_one, **options):
    # the default device is an accelerator
    options.update(use_orig_params=one_by_one, device_id=torch.device("cpu"))
    net.first = FullyShardedDataParallel(net.first, **options)
    net.last = FullyShardedDataParallel(net.last, **options)
    return FullyShardedDataParallel(net, **options)


def shard(net, kind):
    size = dist.get_world_size()
    plan = {"first": ColwiseParallel(), "second": RowwiseParallel()}
    if kind in ("bare", "bare, one group"):
        return net
    if kind in ("flat", "one by one"):
        return flattened(net, kind == "one by one")
    if kind == "flat with a mesh":
        return flattened(net, False, device_mesh=init_device_mesh("cpu", (size,)))
    if kind == "flat replicas":
        groups = [dist.new_group(ranks) for ranks in ([0, 1], [2, 3], [0, 2], [1, 3])]
        mine = groups[dist.get_rank() // 2], groups[2 + dist.get_rank() % 2]
        return flattened(net, False, process_group=mine, sharding_strategy=ShardingStrategy.HYBRID_SHARD)
    if kind == "tensor parallel":
        mesh = init_device_mesh("cpu", (size // 2, 2), mesh_dim_names=("replica", "tensor"))
        return parallelize_module(net, mesh["tensor"], plan)
    if kind == "both":
        mesh = init_device_mesh("cpu", (size // 2, 2), mesh_dim_names=("data", "tensor"))
        parallelize_module(net, mesh["tensor"], plan)
        mesh = mesh["data"]
    else:
        shape, names = ((2, size // 2), ("replica", "data")) if kind == "hybrid" else ((size,), ("data",))
        mesh = init_device_mesh("cpu", shape, mesh_dim_names=names)
    for layer in (net.first, net.second, net.third, net.last):
        fully_shard(layer, mesh=mesh)
    return fully_shard(net, mesh=mesh)


def adam(net):
    weights = [p for n, p in net.named_parameters() if n.endswith("weight")]
    others = [p for n, p in net.named_parameters() if not n.endswith("weight")]
    return torch.optim.AdamW([{"params": weights, "lr": 0.02}, {"params": others, "weight_decay": 0.0}], lr=0.01)


def make(kind, seed=1, optimizer=adam):
    net = shard(Net(seed), kind)
    return net, torch.optim.Adam(net.parameters(), lr=0.01) if kind in ONE_GROUP else optimizer(net)


def train(net, optimizer, first, steps):
    for step in range(first, first + steps):
        generator = torch.Generator().manual_seed(step)
        optimizer.zero_grad()
        net(torch.randn(8, 6, generator=generator)).pow(2).mean().backward()
        optimizer.step()


def gathered(net, optimizer):
    """Return the full state, gathered by torch."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        state = get_state_dict(net, optimizer, options=StateDictOptions(full_state_dict=True))
    return pickle.loads(pickle.dumps(state))


def equal(a, b):
    """Compare types, shapes and bits."""
    if isinstance(a, dict):
        return set(a) == set(b) and all(equal(a[k], b[k]) for k in a)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(equal, a, b))
    if isinstance(a, torch.Tensor):
        return a.dtype == b.dtype and torch.equal(a, b)
    return a == b


def same_values(a, b):
    """Compare like equal(), but only the state of the optimizer: the order of the groups that torch gathers varies."""
    return equal(a[0], b[0]) and equal(a[1]["state"], b[1]["state"])


# ---- a world of the chain


def begin(kind, seed=1):
    net, optimizer = make(kind, seed)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.5)
    return {"model": net, "optimizer": optimizer, "scheduler": scheduler}


def go_on(parts, step):
    train(parts["model"], parts["optimizer"], step, 2)
    parts["scheduler"].step()
    # after a forward pass without a backward pass, fully_shard() leaves some parameters unsharded
    parts["model"].eval()
    with torch.no_grad():
        parts["model"](torch.ones(1, 6))
    parts["model"].train()
    return step + 2


def kept(path="all.pickle"):
    with open(path, "rb") as f:
        return pickle.load(f)


def chained(told, kind, wait=True):
    run = slurmdl.Run("flat" if kind in ONE_GROUP else "chain")
    parts = begin(kind, seed=2)
    restored = slurmdl.torch.restore_model(run, **parts)
    step = restored.step if restored else 0
    if restored:
        told(same_values(gathered(parts["model"], parts["optimizer"]), kept()), "the state of the previous world is restored")
        told(restored.extra["from"] == [step, "x"], "extra is restored")
    step = go_on(parts, step)
    with NoGather(kind):
        slurmdl.torch.save_model(run, step, **parts, extra={"from": [step, "x"]}, wait=wait)
    now = gathered(parts["model"], parts["optimizer"])
    go_on(parts, step)
    then = gathered(parts["model"], parts["optimizer"])
    run.wait()
    again = begin(kind, seed=3)
    slurmdl.torch.restore_model(run, **again)
    told(equal(gathered(again["model"], again["optimizer"]), now), "the same ranks restore their own state")
    go_on(again, step)
    told(equal(gathered(again["model"], again["optimizer"]), then), "training continues with the same result")
    told(again["scheduler"].state_dict() == parts["scheduler"].state_dict(), "the scheduler is restored")
    run.close()
    if dist.get_rank() == 0:
        with open("all.pickle", "wb") as f:
            pickle.dump(now, f)
        with open("step", "w") as f:
            f.write(str(step))


class NoGather:
    """Make the methods of DTensor that gather whole tensors fail."""

    def __init__(self, kind):
        self.names = () if "flat" in kind or kind == "one by one" else ("full_tensor", "redistribute")

    def __enter__(self):
        self.before = {n: getattr(DTensor, n) for n in self.names}
        for n in self.names:
            setattr(DTensor, n, None)

    def __exit__(self, *error):
        for n, f in self.before.items():
            setattr(DTensor, n, f)


def check_file(folder, name):
    """Check that h5py reads whole tensors from the checkpoint of the last world."""
    (net, state), step = kept(), int(open("step").read())
    path, found = slurmdl.newest(folder)
    same(found, step, f"{name}: newest() finds the checkpoint of the last world")
    with h5py.File(path) as f:
        wrong = [n for n, x in net.items() if not torch.equal(torch.tensor(f[f"model/{n}"][()]), x)]
        moments = [torch.tensor(f[f"optimizer/state/{i}/exp_avg"][()]) for i in range(len(state["state"]))]
    same(wrong, [], f"{name}: h5py reads whole parameters")
    found = [any(torch.equal(m, s["exp_avg"]) for m in moments) for s in state["state"].values()]
    ok(len(found) >= 10 and all(found), f"{name}: h5py reads whole optimizer moments")


def check_commands(name):
    """Check dl ckpt and its exports on the checkpoint of the last world."""
    if not shutil.which("dl"):
        skip(f"{name}: dl ckpt", "no dl")
        return
    path, step = slurmdl.newest("chain")
    weight = kept()[0]["second.weight"]

    def dl(*words):
        done = subprocess.run(["dl", "ckpt", *words], capture_output=True, text=True)
        return done.stdout if done.returncode == 0 else f"{done.returncode}: {done.stderr}"

    same(dl("verify", path).split(":")[0], path, f"{name}: dl ckpt verify")
    listed = json.loads(dl("ls", "--json", path))
    shards = {t["name"]: t["shards"] for t in listed["tensors"]}
    same((listed["step"], shards["model/second.weight"]), (step, 3), f"{name}: dl ckpt ls")
    same(dl("extract", "--format=raw", "--output=w.raw", path, "model/second.weight"), "w.raw\n", f"{name}: dl ckpt extract")
    with open("w.raw", "rb") as f:
        ok(
            torch.equal(torch.frombuffer(bytearray(f.read()), dtype=torch.float32).reshape(7, 10), weight),
            f"{name}: dl ckpt extract: values",
        )
    dl("export", path, "all.safetensors")
    with open("all.safetensors", "rb") as f:
        header = json.loads(f.read(int.from_bytes(f.read(8), "little")))
        about, begin = header["model/second.weight"], f.tell()
        f.seek(begin + about["data_offsets"][0])
        data = f.read(about["data_offsets"][1] - about["data_offsets"][0])
    same(about["shape"], [7, 10], f"{name}: dl ckpt export")
    ok(
        torch.equal(torch.frombuffer(bytearray(data), dtype=torch.float32).reshape(7, 10), weight),
        f"{name}: dl ckpt export: values",
    )


# ---- single worlds


def pieces(told):
    """Each rank's slab of a known tensor has the right numbers."""
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("a", "b"))
    whole = torch.arange(7 * 5 * 3.0).reshape(7, 5, 3)
    for places in (
        [Shard(0), Replicate()],
        [Replicate(), Shard(1)],
        [Shard(0), Shard(0)],
        [Shard(1), Shard(0)],
        [Shard(2), Shard(2)],
        [Replicate(), Replicate()],
    ):
        x = slab_of(distribute_tensor(whole, mesh, places), "x")
        part = whole
        for d, (at, n) in enumerate(zip(x.offset, x.local.shape)):
            part = part.narrow(d, at, n)
        told(torch.equal(part, x.local), f"{places}: slab and offset")
        counted = torch.tensor(x.local.numel() if x.writes else 0)
        dist.all_reduce(counted)
        told(counted == whole.numel(), f"{places}: each number is written once")
    partial = DTensor.from_local(torch.ones(3), mesh, [Partial(), Replicate()])
    told.raises(TypeError, "x: is a partial sum", "slab_of() rejects a partial sum", slab_of, partial, "x")
    strided = DTensor.from_local(torch.ones(2), mesh, [Shard(0), _StridedShard(0, split_factor=2)])
    told.raises(TypeError, "x: a rank has several pieces", "slab_of() rejects several pieces on a rank", slab_of, strided, "x")
    run = slurmdl.Run("pieces")
    told.raises(TypeError, "spread over ranks", "protect() rejects a DTensor", run.protect, "x", partial)
    told.raises(
        TypeError, "save_model()", "save() rejects a DTensor", slurmdl.torch.save, [distribute_tensor(whole, mesh)], "x"
    )
    run.close()
    net = torch.nn.Module()
    net.x = torch.nn.Parameter(partial)
    run = slurmdl.Run("pieces")
    told.raises(
        TypeError, "model/x: is a partial", "save_model() rejects a partial sum", slurmdl.torch.save_model, run, 1, model=net
    )
    stage = torch.nn.Module()
    stage.register_parameter(f"x{dist.get_rank() // 2}", torch.nn.Parameter(distribute_tensor(whole, mesh["b"], [Shard(0)])))
    told.raises(
        slurmdl.Error, "no rank protects a slab", "save_model() rejects pipeline stages", slurmdl.torch.save_model, run, 1, model=stage
    )
    told(slurmdl.newest("pieces") is None, "rejected models leave no checkpoint")
    run.close()


def some(told):
    """Tensors on some of the ranks only, scalars, tied weights, another type, another shape, two models."""
    mesh = DeviceMesh("cpu", [0, 2])
    everyone = init_device_mesh("cpu", (3,))

    def hold(factor, kind=torch.float32, rows=5, tied=True):
        a, b = torch.nn.Module(), torch.nn.Module()
        whole = (torch.arange(rows * 2.0).reshape(rows, 2) * factor).to(kind)
        a.x = a.same = torch.nn.Parameter(distribute_tensor(whole, mesh, [Shard(0)]))
        if not tied:
            a.same = torch.nn.Parameter(distribute_tensor(whole, mesh, [Shard(0)]))
        b.s = torch.nn.Parameter(distribute_tensor(torch.tensor(2.5) * factor, everyone, [Replicate()]))
        b.t = torch.nn.Parameter(distribute_tensor(torch.ones(2) * factor, everyone, [Shard(0)]))
        b.plain = torch.nn.Parameter(torch.ones(3) * factor)
        return {"a": a, "b": b}

    run = slurmdl.Run("some")
    saved = hold(3)
    slurmdl.torch.save_model(run, 1, model=saved)
    got = hold(0)
    where = [p.to_local().data_ptr() for p in (got["a"].x, got["b"].t)]
    slurmdl.torch.restore_model(run, model=got)
    pairs = list(zip((p for m in saved.values() for p in m.parameters()), (p for m in got.values() for p in m.parameters())))
    local = [[getattr(p, "_local_tensor", p) for p in pair] for pair in pairs]
    told(len(local) == 4 and all(torch.equal(a, b) for a, b in local), "tensors on some of the ranks are restored")
    told(where == [p.to_local().data_ptr() for p in (got["a"].x, got["b"].t)], "tensors are restored in place")
    low = hold(0, torch.bfloat16)
    slurmdl.torch.restore_model(run, model=low)
    told(torch.equal(low["a"].x.to_local(), saved["a"].x.to_local().bfloat16()), "tensors are restored as another type")
    refused = "a/x: size mismatch: (5, 2) in the checkpoint"
    told.raises(slurmdl.Error, refused, "restore_model() rejects another shape", slurmdl.torch.restore_model, run, model=hold(0, rows=6))
    with h5py.File(slurmdl.newest("some")[0]) as f:
        told(sorted(f["model/a"]) == ["x"], "a tied weight is saved once")
        told(f["model/b/s"][()] == 7.5, "a scalar is saved")
    for step, tied in ((2, False), (3, True)):
        got = hold(0, tied=tied)
        slurmdl.torch.restore_model(run, model=got)
        both = torch.equal(got["a"].same.to_local(), saved["a"].x.to_local()) and torch.equal(
            got["a"].x.to_local(), saved["a"].x.to_local()
        )
        told(both, "separate weights are restored into a tied one" if tied else "a tied weight is restored into separate ones")
        slurmdl.torch.save_model(run, step, model=got)
    run.close()


class Rows(torch.optim.Optimizer):
    """An optimizer whose state has another shape than the parameter."""

    def __init__(self, net):
        super().__init__(net.parameters(), {"lr": 0.01})

    @torch.no_grad()
    def step(self):
        for p in (p for group in self.param_groups for p in group["params"]):
            state, matrix = self.state[p], p.dim() == 2
            new = p.grad.abs().sum(1) if matrix else p.grad.abs()
            state["rows"] = 0.9 * state["rows"] + new if "rows" in state else new
            scale = 1 + state["rows"]
            p.sub_(0.01 * p.grad / (scale.unsqueeze(1) if matrix else scale))


def optimizers(told):
    """Optimizers other than Adam, before and after their first step."""
    for name, f in {
        "momentum": lambda net: torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9),
        "no state": lambda net: torch.optim.SGD(net.parameters(), lr=0.01),
        "amsgrad": lambda net: torch.optim.Adam(net.parameters(), amsgrad=True),
        "rows": Rows,
    }.items():
        run = slurmdl.Run(name.replace(" ", "-"))
        net, optimizer = make("spread", 1, f)
        slurmdl.torch.save_model(run, 0, model=net, optimizer={"o": optimizer})
        train(net, optimizer, 0, 2)
        slurmdl.torch.save_model(run, 2, model=net, optimizer={"o": optimizer})
        train(net, optimizer, 2, 2)
        for twice in range(2):
            again, o = make("spread", 2, f)
            if twice:
                train(again, o, 7, 1)
            slurmdl.torch.restore_model(run, model=again, optimizer={"o": o})
            train(again, o, 2, 2)
            told(equal(gathered(again, o), gathered(net, optimizer)), name + (", restored after a step" if twice else ""))
        run.close()


def alone(told):
    """Without RANK, each process has its own run, and cannot save a sharded model."""
    for name in ("RANK", "WORLD_SIZE"):
        del os.environ[name]
    with slurmdl.Run(f"alone{dist.get_rank()}") as run:
        net, _ = make("spread")
        told.raises(slurmdl.Error, "set RANK and", "save_model() asks for RANK and WORLD_SIZE", slurmdl.torch.save_model, run, 1, model=net)


# a flat parameter holds many parameters, which therefore share one optimizer group
ONE_GROUP = ("flat", "flat with a mesh", "flat replicas", "bare, one group")

CHAINS = {
    "flat": [
        (1, "bare, one group"),
        (3, "flat"),
        (2, "flat with a mesh"),
        (4, "flat replicas"),
        (1, "bare, one group"),
    ],
    "chain": [
        (1, "bare"),
        (4, "spread"),
        (3, "spread"),
        (4, "both"),
        (2, "tensor parallel"),
        (1, "bare"),
        (4, "hybrid"),
        (4, "tensor parallel"),
        (2, "one by one"),
        (3, "spread"),
    ],
}

if __name__ == "__main__":
    functions = {f.__name__: f for f in (pieces, some, optimizers, alone)}
    for what in sys.argv[1:]:
        n, _, name = what.partition(":")
        world(int(n), *([functions[name]] if name in functions else [chained, name]))
    for folder, chain in CHAINS.items() if len(sys.argv) == 1 else ():
        for n, kind in chain:
            world(n, chained, kind, n == 3)
            check_file(folder, f"{n} ranks, {kind}")
    if len(sys.argv) == 1:
        check_commands("3 ranks, spread")
