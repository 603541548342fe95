# SPDX-License-Identifier: Apache-2.0
"""One of several ranks started by hand: Horovod's elastic training without dl elastic, commits before run(), and the
sampler.  With the argument "lost", the last rank dies."""

import os
import sys

import torch
from check import on_all, raises, same

import slurmdl
import slurmdl.hvd as hvd

torch.set_num_threads(1)
hvd.init(timeout=60)
rank, size = hvd.rank(), hvd.size()
told = on_all(hvd, rank)


def make(value):
    model = torch.nn.Linear(2, 1)
    with torch.no_grad():
        for p in model.parameters():
            p.fill_(value)
    return model


def try_it(where):
    """Use a state outside and inside run(), as scripts do, after hvd.init()."""
    rank = hvd.rank()  # under dl elastic this differs from RANK
    model = make(1.0 + rank)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    state = hvd.elastic.TorchState(model=model, optimizer=optimizer, batch=20 + rank)
    state.commit()
    told(state.batch == 20 + rank, f"{where}: state.commit() works before run()")
    state.sync()
    told(state.batch == 20 and model.weight.eq(1).all(), f"{where}: state.sync() copies the state of rank 0")
    state.batch = 21
    state.commit()
    state.batch = 99
    with torch.no_grad():
        model.weight.fill_(7)
    state.restore()
    told(state.batch == 21 and model.weight.eq(1).all(), f"{where}: state.restore() returns to the last commit")
    seen = []

    @hvd.elastic.run
    def train(state, more):
        seen.append(state.batch)
        while state.batch < 30:
            seen.append(hvd.allreduce(torch.ones(1), op=hvd.Sum).item())
            state.batch += more
            state.commit()
        return hvd.size()

    result = train(state, 3)
    hvd.shutdown()
    return result == size and seen == [21, size, size, size]


if len(sys.argv) > 1:
    state = hvd.elastic.ObjectState(step=0)

    @hvd.elastic.run
    def train(state):
        state.commit()
        if rank == size - 1:
            os._exit(0)
        while True:
            hvd.allreduce(torch.ones(1))

    with raises(slurmdl.Error, "started by hand cannot continue when", "by hand: a rank reports a dead peer and what to do"):
        train(state)
    sys.exit()

good = try_it("by hand")
hvd.init(timeout=60)
told(good, "by hand: hvd.elastic.run()")
hvd.shutdown()

os.environ.update(DL_ELASTIC_DIR=os.path.abspath("elastic"), DL_ELASTIC_START=str(size), DL_ELASTIC_SETTLE="30")
hvd.init(timeout=60)
good = try_it("dl elastic")
del os.environ["DL_ELASTIC_DIR"]
hvd.init(timeout=60)
told(good, "dl elastic: hvd.elastic.run()")

# ---- the sampler has Horovod's interface and returns the same indices
sampler = hvd.elastic.ElasticSampler(list(range(7 * size)), shuffle=True, seed=3)
told(isinstance(sampler, torch.utils.data.Sampler) and sampler.num_replicas == size and sampler.rank == rank, "ElasticSampler is a Sampler and knows its rank")
told((sampler.num_samples, sampler.total_size, len(sampler), len(sampler.remaining_indices)) == (7, 7 * size, 7, 7 * size), "ElasticSampler: sizes")
parts = hvd.allgather_object(list(sampler))
told(sorted(sum(parts, [])) == list(range(7 * size)), "ElasticSampler: each sample goes to one rank")
sampler.record_batch(0, 3)
told(sampler.processed_num == 3 * size and sampler.state_dict() == {"epoch": 0, "processed_num": 3 * size}, "ElasticSampler: record_batch() updates processed_num")
sampler.reset()
told(not set(sum([p[:3] for p in parts], [])) & set(sampler.remaining_indices), "ElasticSampler: reset() drops processed samples")
other = hvd.elastic.ElasticSampler(list(range(7 * size)), seed=3)
other.load_state_dict({"epoch": 0, "processed_num": 3 * size})
told(list(other) == list(sampler), "ElasticSampler loads a state saved by Horovod")
sampler.set_epoch(1)
told((sampler.processed_num, len(sampler), list(sampler) == parts[rank]) == (0, 7, False), "ElasticSampler: set_epoch() starts over in another order")
few = hvd.elastic.ElasticSampler([0], shuffle=False)
told(list(few) == [0], "ElasticSampler: with fewer samples than ranks, each rank gets one")
if rank == 0:
    import random

    order = list(range(7 * size))
    random.Random(3).shuffle(order)
    same(parts[0], order[0::size], "ElasticSampler uses the same order as Horovod")
hvd.shutdown()
