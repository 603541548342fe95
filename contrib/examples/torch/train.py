#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Train a small network on several ranks with PyTorch's DistributedDataParallel.

    srun --dl=torch -N2 --ntasks-per-node=4 python3 train.py

Nothing of the launch is in this file: rank, size and rendezvous come from the
variables that --dl=torch sets for each task.
"""
import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def make_data(rank, n=512):
    """Each rank has points of its own on the plane; a circle divides them."""
    generator = torch.Generator().manual_seed(rank)
    x = torch.rand(n, 2, generator=generator) * 2 - 1
    return x, (x.pow(2).sum(1) < 0.5).long()


def main():
    gpu = torch.cuda.is_available()
    dist.init_process_group("nccl" if gpu else "gloo")
    rank = dist.get_rank()
    device = torch.device(f"cuda:{os.environ['LOCAL_RANK']}" if gpu else "cpu")
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(2, 32), torch.nn.ReLU(), torch.nn.Linear(32, 2)).to(device)
    model = DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9)
    x, y = (t.to(device) for t in make_data(rank))
    for _ in range(60):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
    result = torch.tensor([loss.item(), (model(x).argmax(1) == y).float().mean().item()], device=device)
    dist.all_reduce(result)
    if rank == 0:
        loss, accuracy = (result / dist.get_world_size()).tolist()
        print(f"{dist.get_world_size()} ranks: loss {loss:.4f} accuracy {accuracy:.4f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
