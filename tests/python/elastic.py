# SPDX-License-Identifier: Apache-2.0
"""A rank of an elastic training: elastic.py STEPS LOST.  In the first world, the last rank dies at step LOST.  With
PyTorch, the model must end as if one process had trained it; without, the ranks add up numbers."""

import os
import signal
import sys
import time

import numpy as np

import slurmdl.comm
import slurmdl.elastic

steps, lost = int(sys.argv[1]), int(sys.argv[2])
try:
    import torch
except ImportError:
    torch = None


def die(step):
    world = slurmdl.comm.init()
    first = slurmdl.elastic.current().world()["generation"] == 1
    if first and step == lost and world.rank == world.size - 1:
        os.kill(os.getpid(), signal.SIGKILL)


if torch is None:
    state = slurmdl.elastic.ObjectState(step=0, total=np.zeros(3))

    @slurmdl.elastic.run
    def train(state):
        while state.step < steps:
            die(state.step)
            world = slurmdl.comm.init()
            state.total = state.total + world.allreduce(np.full(3, 1.0 / world.size))
            state.step += 1
            state.commit()
        return state.total

    wanted = np.full(3, float(steps))
else:
    import slurmdl.hvd as hvd

    torch.set_num_threads(1)

    def make():
        torch.manual_seed(1)
        return torch.nn.Linear(6, 3), torch.randn(24, 6), torch.randn(24, 3)

    def learn(model, x, y, optimizer):
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()

    hvd.init()
    model, x, y = make()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters(), op=hvd.Average)
    resets = []
    state = hvd.elastic.TorchState(model=model, optimizer=optimizer, step=0)
    state.register_reset_callbacks([lambda: resets.append(hvd.size())])

    @hvd.elastic.run
    def train(state):
        while state.step < steps:
            die(state.step)
            n = len(x) // hvd.size()
            learn(state.model, x[hvd.rank() * n : (hvd.rank() + 1) * n], y[hvd.rank() * n : (hvd.rank() + 1) * n], optimizer)
            state.step += 1
            time.sleep(0.01)
            if state.step % 3 == 0:
                state.commit()
        return np.concatenate([p.detach().numpy().ravel() for p in state.model.parameters()])

    alone, x, y = make()
    momentum = torch.optim.SGD(alone.parameters(), lr=0.1, momentum=0.9)
    for _ in range(steps):
        learn(alone, x, y, momentum)
    wanted = np.concatenate([p.detach().numpy().ravel() for p in alone.parameters()])

result = train(state)
if torch is not None and result is not None:
    # scripts that save the model on rank 0 after the training call these, too
    result = result if hvd.is_initialized() and hvd.rank() < hvd.size() == 2 else "other ranks"
good = result is not None and np.allclose(result, wanted, atol=1e-5)
print("learned", "the same" if good else f"{result} and not {wanted}", flush=True)
