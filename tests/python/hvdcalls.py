# SPDX-License-Identifier: Apache-2.0
"""One of several ranks: the functions of slurmdl.hvd behave as Horovod documents them."""

import warnings

import torch
from check import on_all, raises, same

import slurmdl.hvd as hvd

torch.set_num_threads(1)
hvd.init(process_sets="dynamic", timeout=60)
rank, size = hvd.rank(), hvd.size()
ranks = list(range(size))
total = size * (size - 1) / 2
told = on_all(hvd, rank)


def refused(kinds, call):
    try:
        call()
    except kinds:
        return True
    return False


# ---- ranks and sizes
local = hvd.local_size()
told(hvd.is_initialized() and hvd.local_rank() == rank % local and hvd.cross_size() == size // local, "hvd.init()")
told(hvd.is_homogeneous() and not hvd.mpi_enabled() and not hvd.nccl_built(), "hvd.*_built() and hvd.*_enabled()")
told(hvd.gloo_built() and hvd.gloo_enabled(), "hvd.gloo_built() is true: our communicator takes the place of Gloo")
told(hvd.global_process_set.ranks == ranks and hvd.global_process_set.size() == size, "hvd.global_process_set")

# ---- all-reduce
t = torch.arange(4.0) + rank
mean = torch.arange(4.0) + (size - 1) / 2
told(torch.allclose(hvd.allreduce(t), mean), "hvd.allreduce() averages by default")
told(torch.allclose(hvd.allreduce(t, op=hvd.Sum, name="s"), mean * size), "hvd.allreduce(op=hvd.Sum)")
told(torch.allclose(hvd.allreduce(t, average=False), mean * size), "hvd.allreduce(average=False)")
told(refused(ValueError, lambda: hvd.allreduce(t, average=True, op=hvd.Sum)), "hvd.allreduce() rejects both op and average")
for name, call in (
    ("allreduce", lambda x: hvd.allreduce(x, name="unequal")), ("reducescatter", lambda x: hvd.reducescatter(x, name="unequal")),
    ("allgather", lambda x: hvd.allgather(x, name="unequal")), ("broadcast", lambda x: hvd.broadcast(x, 0, name="unequal")),
):  # fmt: skip
    unequal = torch.ones((4, 2, 3) if rank == 0 else (4, 3, 2))
    told(refused(hvd.HorovodInternalError, lambda: call(unequal)), f"hvd.{name}() rejects tensors of unequal shape")
told(torch.equal(t, torch.arange(4.0) + rank), "hvd.allreduce() leaves its argument unchanged")
told(hvd.allreduce(torch.tensor(rank), op=hvd.Max).item() == size - 1, "hvd.allreduce(op=hvd.Max) of a number")
told(hvd.allreduce(torch.full((3,), rank + 2)).tolist() == [int(total + 2 * size) // size] * 3, "hvd.allreduce() truncates averages of integers")
told(
    torch.equal(hvd.allreduce(torch.full((2,), 7), op=hvd.Sum, prescale_factor=0.5), torch.full((2,), 3 * size)),
    "hvd.allreduce() truncates scaled integers",
)
told(
    torch.allclose(hvd.allreduce(t, prescale_factor=3.0, postscale_factor=0.5), mean * 1.5),
    "hvd.allreduce(prescale_factor, postscale_factor)",
)
for compression in (hvd.Compression.fp16, hvd.Compression.bf16):
    told(torch.allclose(hvd.allreduce(t, compression=compression), mean, 0.02), f"hvd.allreduce(compression={compression.word})")


class Half(hvd.Compressor):
    """A compressor that a script defines."""

    @staticmethod
    def compress(tensor):
        return tensor[::2].contiguous(), tensor.shape

    @staticmethod
    def decompress(tensor, ctx):
        return tensor.repeat_interleave(2).reshape(ctx)


told(torch.equal(hvd.allreduce(t, compression=Half), mean[::2].repeat_interleave(2)), "hvd.allreduce() with a Compressor of the script")
w = torch.ones(4, requires_grad=True)
hvd.allreduce(w * (rank + 1), op=hvd.Sum).sum().backward()
told(torch.allclose(w.grad, torch.full((4,), float(size * (rank + 1)))), "hvd.allreduce(): gradient")
u = t.clone()
handle = hvd.allreduce_async_(u, name="u")
told(hvd.synchronize(handle) is u and torch.allclose(u, mean) and hvd.poll(handle), "hvd.allreduce_async_()")
told(hvd.synchronize(handle) is None, "hvd.synchronize() accepts a completed handle")
transposed = torch.full((3, 2), float(rank)).t()
hvd.allreduce_(transposed, op=hvd.Sum)
told((transposed == total).all(), "hvd.allreduce_() of a tensor that is not contiguous")
if rank == 0:
    late = hvd.allreduce_async(t, name="twice")
    with raises(ValueError, "twice", "hvd.allreduce_async() rejects a name that is in flight"):
        hvd.allreduce_async(t, name="twice")
hvd.barrier()
if rank != 0:
    late = hvd.allreduce_async(t, name="twice")
hvd.synchronize(late)
told(refused(RuntimeError, lambda: hvd.allreduce(torch.zeros(3 + rank), name="n")), "hvd.allreduce() fails on all ranks if the shapes differ")

# ---- groups, sparse tensors
got = hvd.grouped_allreduce([t, 2 * t], name="g")
told(torch.allclose(got[1], 2 * mean) and torch.allclose(got[0], mean), "hvd.grouped_allreduce()")
mine = [t.clone(), torch.full((2,), rank)]
hvd.grouped_allreduce_(mine, op=hvd.Sum)
told(torch.allclose(mine[0], mean * size) and mine[1].tolist() == [total] * 2, "hvd.grouped_allreduce_() of two types")
got = hvd.grouped_allgather([t.reshape(1, 4), torch.full((rank + 1,), rank)])
told(got[0].shape == (size, 4) and got[1].tolist() == [r for r in ranks for _ in range(r + 1)], "hvd.grouped_allgather()")
got = hvd.grouped_reducescatter([torch.ones(size, 2), torch.ones(2 * size)], op=hvd.Sum)
told(got[0].tolist() == [[size, size]] and got[1].tolist() == [size, size], "hvd.grouped_reducescatter()")
sparse = torch.sparse_coo_tensor([[rank, size]], [1.0, 1.0], (size + 1,))
got = hvd.sparse_allreduce_async(sparse, "sparse", hvd.Average)().to_dense()
told(torch.allclose(got, torch.tensor([1 / size] * size + [1.0])), "hvd.sparse_allreduce_async()")

# ---- other collectives
told(hvd.allgather(torch.full((rank + 1, 1), rank)).shape[0] == size * (size + 1) // 2, "hvd.allgather()")
told(hvd.allgather(torch.zeros(rank + 1, 0)).shape == (size * (size + 1) // 2, 0), "hvd.allgather() of rows of zero width")
told(refused(ValueError, lambda: hvd.allgather(torch.tensor(1.0))), "hvd.allgather() rejects a scalar")
w = torch.ones(rank + 1, 2, requires_grad=True)
(hvd.allgather(w) * torch.arange(1.0, size * (size + 1) // 2 + 1).reshape(-1, 1)).sum().backward()
first = rank * (rank + 1) // 2 + 1.0
told(torch.allclose(w.grad[:, 0], torch.arange(first, first + rank + 1)), "hvd.allgather(): gradient")
told((hvd.broadcast(t, size - 1) == torch.arange(4.0) + size - 1).all(), "hvd.broadcast()")
w = torch.ones(2, requires_grad=True)
hvd.broadcast(w, 0).sum().backward()
told(w.grad.tolist() == [1.0 if rank == 0 else 0.0] * 2, "hvd.broadcast(): gradient")
told(refused(RuntimeError, lambda: hvd.broadcast(t, rank, name="root")), "hvd.broadcast() fails on all ranks if the roots differ")
got, splits = hvd.alltoall(torch.full((size,), rank), splits=torch.ones(size, dtype=torch.int32))
told(got.tolist() == ranks and splits.tolist() == [1] * size, "hvd.alltoall()")
w = torch.arange(float(rank + 2 + size), requires_grad=True)
got, splits = hvd.alltoall(w, splits=[rank + 2] + [1] * (size - 1))
told(splits.tolist() == ([r + 2 for r in ranks] if rank == 0 else [1] * size), "hvd.alltoall() with unequal splits")
(got * (rank + 1)).sum().backward()
told(w.grad.tolist() == [1.0] * (rank + 2) + [r + 1.0 for r in ranks[1:]] + [0.0], "hvd.alltoall(): gradient")
told(refused(ValueError, lambda: hvd.alltoall(torch.zeros(size + 1))), "hvd.alltoall() rejects rows that it cannot split")
told(refused(RuntimeError, lambda: hvd.alltoall(torch.zeros(size, dtype=torch.int8 if rank else torch.int16))), "hvd.alltoall() rejects different types")
told(hvd.alltoall(torch.full((size, 2), rank)).tolist() == [[r, r] for r in ranks], "hvd.alltoall() works after an error")
got = hvd.reducescatter(torch.arange(3.0 * (size + 1)).reshape(-1, 3), op=hvd.Average)
rows = [[0, 1, 2], [3, 4, 5]] if rank == 0 else [[3 * (rank + 1) + i for i in range(3)]]
told(got.tolist() == rows, "hvd.reducescatter(): the first rank gets the extra row")
w = torch.ones(size, requires_grad=True)
(hvd.reducescatter(w, op=hvd.Sum) * rank).sum().backward()
told(w.grad.tolist() == [float(r * size) for r in ranks], "hvd.reducescatter(): gradient")

# ---- process sets
evens = hvd.add_process_set(range(0, size, 2))
hvd.init(process_sets=[evens])
told(evens.included() == (rank % 2 == 0) and evens.size() == (size + 1) // 2, "hvd.add_process_set()")
told(refused(ValueError, lambda: hvd.add_process_set([0, size])), "hvd.add_process_set() rejects an unknown rank")
again = hvd.ProcessSet(range(0, size, 2))
hvd.init(process_sets=[again])
told(again.process_set_id == evens.process_set_id is not None, "hvd.init() reuses the set with the same ranks")
given = [hvd.ProcessSet([size - 1]), hvd.ProcessSet(range(0, size, 2)), hvd.ProcessSet([size - 1])]
told(refused(ValueError, lambda: hvd.init(process_sets=given)), "hvd.init() rejects a list of sets with a duplicate")
told(given[0].process_set_id is None and given[0].size() is None, "hvd.init() adds no set of a list that it rejects")
told(refused(ValueError, lambda: hvd.init(process_sets=[hvd.ProcessSet([rank])])), "hvd.init() rejects lists that differ between ranks")
hvd.init(process_sets=given[:2])
told(given[0].size() == 1 and given[1].process_set_id == evens.process_set_id, "hvd.init() adds sets after an error")
hvd.remove_process_set(given[0])
told(given[0].process_set_id is None, "hvd.remove_process_set() clears the id")
told(refused(ValueError, lambda: hvd.add_process_set(list(range(0, size, 2)))), "hvd.add_process_set() rejects an existing set")
root = evens.ranks[-1]
right = True
if evens.included():
    # unnamed tensors of a set have their own count, apart from those of the world
    right = hvd.allreduce(torch.ones(1), op=hvd.Sum, process_set=evens).item() == evens.size()
    right = right and hvd.broadcast(torch.tensor([rank]), root, process_set=evens).item() == root
    right = right and hvd.broadcast_object({"r": rank}, root, process_set=evens) == {"r": root}
    hvd.barrier(evens)
told(right and hvd.allreduce(torch.ones(1)).item() == 1, "collectives of a process set use ranks of the world")
model = torch.nn.Linear(2, 1)
optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), 0.1), process_set=evens)
model(torch.ones(1, 2)).sum().backward()
optimizer.synchronize()
with optimizer.skip_synchronize():
    optimizer.step()
told(hvd.remove_process_set(evens) and not hvd.remove_process_set(evens), "hvd.remove_process_set() returns whether the set existed")
told(evens.size() is None, "a removed set has no size")

# ---- objects and state
told(hvd.allgather_object({"r": rank}) == [{"r": r} for r in ranks], "hvd.allgather_object()")
told(hvd.broadcast_object(rank, size - 1) == size - 1, "hvd.broadcast_object()")
state = [torch.full((2,), float(rank)), torch.full((3,), rank)]
hvd.broadcast_parameters(state, root_rank=size - 1)
told(state[0].tolist() == [size - 1] * 2 and state[1].tolist() == [size - 1] * 3, "hvd.broadcast_parameters() of a list")
told(refused(ValueError, lambda: hvd.broadcast_parameters(3, root_rank=0)), "hvd.broadcast_parameters() rejects a number")
parameter = torch.nn.Parameter(torch.ones(2))
optimizer = torch.optim.Adam([parameter], lr=0.1 * (rank + 1))
if rank == 0:
    parameter.grad = torch.ones(2)
    optimizer.step()
hvd.broadcast_optimizer_state(optimizer, root_rank=0)
moment = optimizer.state_dict()["state"][0]["exp_avg"]
told(optimizer.param_groups[0]["lr"] == 0.1 and torch.allclose(moment, torch.full((2,), 0.1)), "hvd.broadcast_optimizer_state()")


# ---- the optimizer
def learn(make_optimizer, batches=4, whole=False, bias=True):
    """Return the weights after some steps.  With 'whole', this process uses the samples of all ranks."""
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(3, 4, bias=bias), torch.nn.Tanh(), torch.nn.Linear(4, 2, bias=bias))
    optimizer = make_optimizer(model)
    x = torch.randn(batches, 6 * size, 3)
    for batch in x:
        optimizer.zero_grad()
        model(batch if whole else batch[rank::size]).square().mean().backward()
        optimizer.step()
    return torch.cat([p.detach().reshape(-1) for p in model.parameters()])


def sgd(model):
    return torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9)


def distributed(**options):
    return lambda model: hvd.DistributedOptimizer(sgd(model), model.named_parameters(), **options)


expected = learn(sgd, whole=True)
CASES = [("plain", {}), ("fp16", {"compression": hvd.Compression.fp16}), ("groups", {"groups": 2})]
CASES += [("gradient_predivide_factor", {"gradient_predivide_factor": 2.0})]
for name, options in CASES:
    atol = 0.01 if name == "fp16" else 1e-5
    told(torch.allclose(learn(distributed(**options)), expected, atol=atol), f"hvd.DistributedOptimizer(): {name}")
lists = lambda model: hvd.DistributedOptimizer(sgd(model), model.named_parameters(), groups=[[model[0].weight, model[2].bias]])
told(torch.allclose(learn(lists), expected, atol=1e-5), "hvd.DistributedOptimizer(groups=LISTS)")


class Doubled(hvd.Compressor):
    @staticmethod
    def compress(tensor):
        return tensor.double(), tensor.dtype

    @staticmethod
    def decompress(tensor, ctx):
        return tensor.to(ctx)


told(torch.allclose(learn(distributed(compression=Doubled)), expected, atol=1e-5), "hvd.DistributedOptimizer() with a Compressor of the script")
model = torch.nn.Embedding(5, 2, sparse=True)
hvd.broadcast_parameters(model.state_dict(), root_rank=0)
optimizer = hvd.DistributedOptimizer(torch.optim.SparseAdam(list(model.parameters()), 0.1), sparse_as_dense=True)
model(torch.tensor([rank])).sum().backward()
optimizer.step()
every = hvd.allgather(model.weight.detach().reshape(1, -1))
told((every == every[0]).all(), "hvd.DistributedOptimizer(sparse_as_dense=True) with SparseAdam")
names = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), 0.1))._parameter_names
told(list(names) == [model.weight], "hvd.DistributedOptimizer() has _parameter_names")
linear = torch.nn.Linear(1, 1)
optimizer = hvd.DistributedOptimizer(torch.optim.SGD(linear.parameters(), 0.1), linear.named_parameters())
linear(torch.ones(1, 1)).sum().backward()
optimizer.synchronize()
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    optimizer.step()
told(len(said) == 1 and "skip_synchronize()" in str(said[0].message), "step() warns after synchronize() without skip_synchronize()")
optimizer.set_backward_passes_per_step(2)
optimizer.zero_grad()
for _ in range(2):
    linear(torch.full((1, 1), 1.0 + rank)).sum().backward()
optimizer.step()
told(linear.weight.grad.item() == 2 * (1 + (size - 1) / 2), "set_backward_passes_per_step()")
for wrong in ({"groups": 0}, {"groups": [[1]]}, {"groups": [[linear.weight], [linear.weight]]}):
    told(refused(ValueError, lambda options=wrong: distributed(**options)(linear)), f"hvd.DistributedOptimizer() rejects groups={list(wrong.values())[0]!r:.20}")
told(refused(ValueError, lambda: hvd.DistributedOptimizer(sgd(linear), [linear.weight])), "hvd.DistributedOptimizer() rejects parameters without names")

# ---- SyncBatchNorm equals BatchNorm in one process over the batches of all ranks
torch.manual_seed(2)
x = torch.randn(3 * size, 4, 5, dtype=torch.float64)
cuts = torch.tensor_split(x, [2 + 3 * r for r in ranks[:-1]])  # of different sizes
serial, ours = torch.nn.BatchNorm1d(4).double(), hvd.SyncBatchNorm(4).double()
scale = torch.arange(1.0, 5.0, dtype=torch.float64)
for bn in (serial, ours):
    bn.weight.data.copy_(scale)
a = x.clone().requires_grad_()
b = cuts[rank].clone().requires_grad_()
whole, part = serial(a), ours(b)
told(torch.allclose(torch.tensor_split(whole, [2 + 3 * r for r in ranks[:-1]])[rank], part), "hvd.SyncBatchNorm: output")
whole.pow(3).sum().backward()
part.pow(3).sum().backward()
told(torch.allclose(torch.tensor_split(a.grad, [2 + 3 * r for r in ranks[:-1]])[rank], b.grad), "hvd.SyncBatchNorm: gradient of the input")
told(torch.allclose(hvd.allreduce(ours.weight.grad, op=hvd.Sum), serial.weight.grad), "hvd.SyncBatchNorm: gradient of the weight")
told(
    torch.allclose(ours.running_mean, serial.running_mean) and torch.allclose(ours.running_var, serial.running_var),
    "hvd.SyncBatchNorm: running mean and variance",
)
ours.eval()
serial.eval()
told(torch.allclose(ours(x), serial(x)), "hvd.SyncBatchNorm: no communication in evaluation")

# ---- Adasum
if size & (size - 1):
    told(refused(NotImplementedError, lambda: hvd.allreduce(t, op=hvd.Adasum)), "Adasum rejects a number of ranks that is not a power of two")
else:
    e = torch.zeros(size)
    e[rank] = rank + 1.0
    told(hvd.allreduce(e, op=hvd.Adasum).tolist() == [r + 1.0 for r in ranks], "Adasum adds orthogonal tensors")
    told(torch.allclose(hvd.allreduce(torch.ones(3), op=hvd.Adasum), torch.ones(3)), "Adasum averages equal tensors")
    got = learn(distributed(op=hvd.Adasum))
    every = hvd.allgather(got.reshape(1, -1))
    told((every == every[0]).all() and got.isfinite().all(), "hvd.DistributedOptimizer(op=hvd.Adasum): equal weights on all ranks")
told(refused(NotImplementedError, lambda: hvd.reducescatter(t, op=hvd.Adasum)), "hvd.reducescatter() rejects Adasum")

# ---- ranks with different numbers of batches
model = torch.nn.Linear(3, 1)
optimizer = hvd.DistributedOptimizer(sgd(model), model.named_parameters())
for _ in range(1 + rank):
    optimizer.zero_grad()
    model(torch.ones(2, 3)).sum().backward()
    optimizer.step()
last = hvd.join()
told(last in ranks and len(set(hvd.allgather_object(last))) == 1, "hvd.join() with different numbers of batches")

# ---- shutdown and a second init
hvd.shutdown()
hvd.shutdown()
if rank == 0:
    same(hvd.is_initialized(), False, "hvd.shutdown()")
    with raises(ValueError, "not been initialized", "hvd.rank() fails after hvd.shutdown()"):
        hvd.rank()
hvd.init(timeout=60)
told(hvd.allreduce(torch.ones(1), op=hvd.Sum).item() == size, "hvd.init() works after hvd.shutdown()")
hvd.shutdown()
