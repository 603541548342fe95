#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A PyTorch DDP training script that does not use dl. It saves a checkpoint after each step, and resumes from --resume.

If a file hang.RANK appears in --work, that rank hangs, and with it the next collective. A file "enough" ends the training, as does --steps.
With --products N each rank computes in each step, so that a rank with less CPU time is slow. --inputs N sets the size of the model.
With --quiet SECONDS it prints nothing for that long at the start, in an evaluation and in a checkpoint, as real programs do.
"""
import argparse
import os
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

parser = argparse.ArgumentParser()
parser.add_argument("--work")
parser.add_argument("--resume")
parser.add_argument("--steps", type=int, default=0)
parser.add_argument("--products", type=int, default=0)
parser.add_argument("--inputs", type=int, default=8)
parser.add_argument("--quiet", type=float, default=0)
args = parser.parse_args()
torch.set_num_threads(1)
dist.init_process_group("gloo")
rank = dist.get_rank()
model = DistributedDataParallel(torch.nn.Linear(args.inputs, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.08 / args.inputs)
first = 1
if args.resume and os.path.exists(args.resume):
    state = torch.load(args.resume)
    model.load_state_dict(state["model"])
    first = state["step"] + 1
if rank == 0:
    print(f"{dist.get_world_size()} ranks begin at step {first}", flush=True)
    print("the data are there", flush=True)
    time.sleep(args.quiet)  # the others wait for it
step = first
matrix = torch.randn(128, 128)
enough = torch.zeros(1)
while not enough.item():
    if os.path.exists(f"{args.work}/hang.{rank}"):
        os.unlink(f"{args.work}/hang.{rank}")
        time.sleep(1e6)
    optimizer.zero_grad()
    for _ in range(args.products):
        torch.mm(matrix, matrix)
    loss = model(torch.randn(16, args.inputs)).pow(2).mean()
    loss.backward()
    optimizer.step()
    time.sleep(0.2)
    if rank == 0:
        until = time.monotonic() + (args.quiet if step == first + 30 else 0)
        right = 0
        while time.monotonic() < until:
            right += 1 if step else 2
        if step == first + 40:
            time.sleep(args.quiet)
        torch.save({"model": model.state_dict(), "step": step}, "ckpt.tmp")
        os.replace("ckpt.tmp", "ckpt.pt")
        print(f"step={step} loss={loss.item()}", flush=True)
        enough.fill_(step == args.steps or os.path.exists(f"{args.work}/enough"))
    dist.broadcast(enough, 0)
    step += 1
dist.destroy_process_group()
