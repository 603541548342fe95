#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Train a network on handwritten digits on all ranks of a step.

    srun --dl -N2 --ntasks-per-node=4 python3 parallel.py ../digits/digits.csv.gz

Gradients are averaged by slurmdl.DistributedOptimizer: no torch.distributed, no launcher.  Rank 0 logs metrics and
saves checkpoints; the step continues from the newest one, and ends in time when Slurm asks it to.
"""
import gzip
import sys

import torch

import slurmdl
import slurmdl.comm
import slurmdl.distributed
import slurmdl.torch

EPOCHS = 10


def read(path):
    with gzip.open(path, "rt") as f:
        rows = torch.tensor([[float(v) for v in line.split(",")] for line in f])
    x, y = rows[:, :64] / 16, rows[:, 64].long()
    n = len(x) * 7 // 10
    return torch.utils.data.TensorDataset(x[:n], y[:n]), x[n:], y[n:]


def main(path):
    torch.set_num_threads(1)
    world = slurmdl.comm.init()
    training, x, y = read(path)
    with slurmdl.init() as run:
        run.seed_all()
        model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10))
        optimizer = torch.optim.SGD(model.parameters(), lr=run.hp.get("lr", 0.1), momentum=0.9)
        loader = slurmdl.torch.ResumableLoader(
            training, batch_size=max(1, 64 // world.size), shuffle=True, seed=run.seed, rank=world.rank, size=world.size
        )
        parts = {"model": model, "optimizer": optimizer, "loader": loader}
        slurmdl.torch.restore_model(run, **parts)
        slurmdl.distributed.broadcast_state(model)
        optimizer = slurmdl.DistributedOptimizer(optimizer, model.named_parameters())
        step = loader.epoch * len(loader) + loader.position
        stopped = False
        while loader.epoch < min(run.length, EPOCHS) and not stopped:
            for bx, by in loader:
                optimizer.zero_grad()
                loss = torch.nn.functional.cross_entropy(model(bx), by)
                loss.backward()
                optimizer.step()
                step += 1
                run.log("training/loss", loss, step)
                stopped = run.stop_here(step)
                if stopped:
                    break
            accuracy = (model(x).argmax(1) == y).float().mean().item()
            run.log("validation/accuracy", accuracy, step)
            slurmdl.torch.save_model(run, step, **parts)
            if run.rank == 0:
                print(f"epoch {loader.epoch} accuracy {accuracy:.4f}", flush=True)
    world.close()


if __name__ == "__main__":
    main(sys.argv[1])
