# SPDX-License-Identifier: Apache-2.0
"""One of several ranks: PyTorch with our communicator ends with the same weights as one process with all data."""

import hashlib
import sys

import torch
from check import on_all, raises, same
from torch.utils.data import TensorDataset

import slurmdl
import slurmdl.comm
import slurmdl.distributed
from slurmdl.arrays import tensor_bytes

torch.set_num_threads(1)
world = slurmdl.comm.init(timeout=200)
rank, size = world.rank, world.size
STEPS, BATCH = 12, 24
told = on_all(world, rank)


def same_on_all(tensors):
    """Whether these tensors have the same bits on all ranks."""
    digest = hashlib.sha256()
    for t in tensors:
        digest.update(tensor_bytes(t))
    return len(set(world.allgather_object(digest.hexdigest()))) == 1


def make(kind="dense"):
    torch.manual_seed(3)
    if kind == "sparse":
        return torch.nn.Sequential(torch.nn.EmbeddingBag(40, 8, sparse=True), torch.nn.Linear(8, 3))
    return torch.nn.Sequential(
        torch.nn.Conv2d(1, 4, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(4 * 36, 10), torch.nn.Linear(10, 3)
    )


def data(kind="dense"):
    generator = torch.Generator().manual_seed(5)
    n = STEPS * BATCH
    x = torch.randint(0, 40, (n, 4), generator=generator) if kind == "sparse" else torch.randn(n, 1, 8, 8, generator=generator)
    return TensorDataset(x, torch.randint(0, 3, (n,), generator=generator))


def batches(kind, part, parts):
    for i in range(STEPS):
        yield data(kind)[i * BATCH + part : (i + 1) * BATCH : parts]


def train(model, optimizer, kind="dense", part=0, parts=1, passes=1, call=None):
    f = torch.nn.CrossEntropyLoss()
    for i, (x, y) in enumerate(batches(kind, part, parts)):
        if i % passes == 0:
            optimizer.zero_grad()
        (f((call or model)(x), y) / passes).backward()
        if i % passes == passes - 1:
            optimizer.step()
    return model


def close(a, b, atol=1e-5):
    return all(torch.allclose(p, q, atol=atol) for p, q in zip(a.parameters(), b.parameters()))


def serial(make_optimizer, kind="dense", passes=1):
    model = make(kind)
    return train(model, make_optimizer(model.parameters()), kind, passes=passes)


def sgd(parameters):
    return torch.optim.SGD(parameters, lr=0.1, momentum=0.9)


def adam(parameters):
    return torch.optim.Adam(parameters, lr=0.01)


# ---- the optimizer
for name, make_optimizer in (("SGD", sgd), ("Adam", adam)):
    model = make()
    if rank > 0:
        for p in model.parameters():
            p.data.add_(rank)
    slurmdl.distributed.broadcast_state(model)
    told(close(model, make(), 0), f"{name}: broadcast_state() copies the weights of rank 0")
    optimizer = slurmdl.DistributedOptimizer(make_optimizer(model.parameters()), model.named_parameters())
    told(isinstance(optimizer, (torch.optim.SGD, torch.optim.Adam)), f"{name}: the class of the optimizer is kept")
    train(model, optimizer, part=rank, parts=size)
    told(close(model, serial(make_optimizer)), f"{name}: same weights as one process with all data")
    told(same_on_all(model.parameters()), f"{name}: bit-identical on all ranks")
model = make()
optimizer = slurmdl.DistributedOptimizer(sgd(model.parameters()), model.named_parameters(), backward_passes_per_step=3)
train(model, optimizer, part=rank, parts=size, passes=3)
told(close(model, serial(sgd, passes=3)), "backward_passes_per_step=3")
model = make()
optimizer = slurmdl.DistributedOptimizer(sgd(model.parameters()), model.named_parameters(), predivide=2.0)
train(model, optimizer, part=rank, parts=size)
told(close(model, serial(sgd)), "predivide=2.0")
for compression, atol in (("f16", 0.02), ("bf16", 0.1)):
    model = make()
    optimizer = slurmdl.DistributedOptimizer(sgd(model.parameters()), model.named_parameters(), compression=compression)
    train(model, optimizer, part=rank, parts=size)
    told(close(model, serial(sgd), atol), f"compression={compression}: nearly the same weights")
for dense in (False, True):
    model = make("sparse")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    optimizer = slurmdl.DistributedOptimizer(optimizer, model.named_parameters(), sparse_as_dense=dense)
    train(model, optimizer, "sparse", part=rank, parts=size)
    want = serial(lambda p: torch.optim.SGD(p, lr=0.1), "sparse")
    told(close(model, want), "sparse gradients" + (", sparse_as_dense=True" if dense else ""))

# zero_grad() before step(), clipped gradients, a step with a closure, schedulers
model = make()
optimizer = slurmdl.DistributedOptimizer(sgd(model.parameters()), model.named_parameters())
x, y = data()[rank:BATCH:size]
f = torch.nn.CrossEntropyLoss()
f(model(x), y).backward()
with raises(RuntimeError, "still being sent", "zero_grad() is rejected while gradients are being sent"):
    optimizer.zero_grad()
optimizer.synchronize()
norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1)
with optimizer.skip_synchronize():
    optimizer.step()
told(len(set(world.allgather_object(float(norm)))) == 1, "clip_grad_norm_() sees the reduced gradient on all ranks")


def closure():
    optimizer.zero_grad()
    loss = f(model(x), y)
    loss.backward()
    return loss


told(optimizer.step(closure) > 0 and same_on_all(model.parameters()), "step() with a closure")
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)
optimizer.step()
scheduler.step()
told(optimizer.param_groups[0]["lr"] == 0.05, "a scheduler of the distributed optimizer")
model = make()
optimizer = sgd(model.parameters())
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)
optimizer = slurmdl.DistributedOptimizer(optimizer, model.named_parameters())
train(model, optimizer, part=rank, parts=size)
told(close(model, serial(sgd)), "a scheduler created before the distributed optimizer")
if rank == 0:
    with raises(ValueError, "already", "DistributedOptimizer() rejects a distributed optimizer"):
        slurmdl.DistributedOptimizer(optimizer, model.named_parameters())
    with raises(ValueError, "lacks", "DistributedOptimizer() rejects parameters without names"):
        slurmdl.DistributedOptimizer(sgd(make().parameters()), [("a", torch.zeros(1))])

# a group with a frozen parameter, and rows for which some ranks have no gradient
torch.manual_seed(3)
model = torch.nn.ModuleDict({"rows": torch.nn.Embedding(4, 2, sparse=True), "frozen": torch.nn.Linear(2, 1)})
model["frozen"].bias.requires_grad_(False)
want = model["rows"].weight.detach().clone()
groups = [list(model["frozen"].parameters())]
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
optimizer = slurmdl.DistributedOptimizer(optimizer, model.named_parameters(), groups=groups)
for i in range(2):
    optimizer.zero_grad()
    model["frozen"](torch.ones(1, 2)).sum().backward()
    if rank == 0 or i == 0:
        model["rows"](torch.tensor([rank])).sum().backward()
    want[: size if i == 0 else 1] -= 0.1 / size
    optimizer.step()
told(torch.allclose(model["rows"].weight, want), "a sparse parameter without a gradient on some ranks")
late = torch.nn.Parameter(torch.ones(2))
optimizer.add_param_group({"params": [late]})
(late * (rank + 1)).sum().backward()
optimizer.step()
told(torch.allclose(late, torch.full((2,), 1 - 0.1 * (size + 1) / 2)), "add_param_group() after the start")
rows = model["rows"]
optimizer = torch.optim.SGD(rows.parameters(), lr=0.1)
optimizer = slurmdl.DistributedOptimizer(optimizer, groups=[[rows.weight]])
try:
    rows(torch.tensor([rank])).sum().backward()
    told(False, "sparse gradients in groups are rejected")
except (ValueError, RuntimeError) as error:
    told("leave it out of groups" in str(error), "sparse gradients in groups are rejected")

# a layer that some ranks do not use
model = make()
extra = torch.nn.Linear(3, 3)
named = list(model.named_parameters()) + [("extra." + n, p) for n, p in extra.named_parameters()]
optimizer = slurmdl.DistributedOptimizer(sgd([p for _, p in named]), named)
out = model(x)
f(extra(out) if rank == 0 else out, y).backward()
optimizer.step()
told(same_on_all(extra.parameters()), "a layer that only one rank has used")

# with one rank, the gradients need no communication
alone = slurmdl.comm.Comm(rank=0, size=1)
alone.submit = None  # must not be called
model = make()
optimizer = slurmdl.DistributedOptimizer(sgd(model.parameters()), model.named_parameters(), predivide=3.0, comm=alone)
train(model, optimizer)
told(close(model, serial(sgd), 0), "one rank: gradients are not sent")
del alone.submit
optimizer = slurmdl.DistributedOptimizer(sgd(model.parameters()), model.named_parameters(), compression="f16", comm=alone)
f(model(x), y).backward()
optimizer.synchronize()
told(all(torch.equal(p.grad, p.grad.half().float()) for p in model.parameters()), "one rank: compression still rounds the gradients")
alone.close()

# ---- the state of an optimizer
model = make()
optimizer = adam(model.parameters())
if rank == 0:
    train(model, optimizer)
slurmdl.distributed.broadcast_state(model)
slurmdl.distributed.broadcast_state(optimizer)
states = [v for s in optimizer.state.values() for v in s.values() if isinstance(v, torch.Tensor)]
told(len(states) >= 12 and same_on_all(states), "broadcast_state() copies the moments of Adam")

# ---- DistributedDataParallel
if size > 1 and torch.distributed.is_available():
    torch.distributed.init_process_group("gloo", rank=rank, world_size=size, init_method=f"file://{sys.argv[1]}")
    for compression, atol in (("none", 1e-5), ("f16", 0.02)):
        model = make()
        ddp = torch.nn.parallel.DistributedDataParallel(model, bucket_cap_mb=0.002)
        state = slurmdl.distributed.HookState(compression=compression, name="ddp." + compression)
        ddp.register_comm_hook(state, slurmdl.distributed.hook)
        train(model, sgd(model.parameters()), part=rank, parts=size, call=ddp)
        told(close(model, serial(sgd), atol), f"DistributedDataParallel, {compression}: same weights")
    torch.distributed.destroy_process_group()

world.close()
