# SPDX-License-Identifier: Apache-2.0
"""A typical training script for Horovod that does not use slurmdl."""

import argparse
import gzip

import horovod.torch as hvd
import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


def read(path):
    with gzip.open(path, "rt") as f:
        rows = torch.tensor([[float(v) for v in line.split(",")] for line in f])
    x, y = rows[:, :64] / 16, rows[:, 64].long()
    n = len(x) * 7 // 10
    return TensorDataset(x[:n], y[:n]), x[n:], y[n:]


def metric_average(value, name):
    return hvd.allreduce(torch.tensor(value), name=name).item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("data")
    parser.add_argument("--epochs", type=int, default=3)
    args = parser.parse_args()
    hvd.init()
    torch.manual_seed(42)
    torch.set_num_threads(1)
    if torch.cuda.is_available():
        torch.cuda.set_device(hvd.local_rank())
    training, x, y = read(args.data)
    sampler = DistributedSampler(training, num_replicas=hvd.size(), rank=hvd.rank())
    loader = DataLoader(training, batch_size=32, sampler=sampler)
    model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05 * hvd.size(), momentum=0.9)
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    hvd.broadcast_optimizer_state(optimizer, root_rank=0)
    optimizer = hvd.DistributedOptimizer(
        optimizer, named_parameters=model.named_parameters(), compression=hvd.Compression.none, op=hvd.Average
    )
    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        for bx, by in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(bx), by).backward()
            optimizer.step()
        accuracy = metric_average((model(x).argmax(1) == y).float().mean().item(), "accuracy")
    if hvd.rank() == 0:
        print("ok" if accuracy > 0.85 else "not ok", f"- accuracy {accuracy:.3f} after {args.epochs} epochs")


if __name__ == "__main__":
    main()
