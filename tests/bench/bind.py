# SPDX-License-Identifier: Apache-2.0
"""bind.py [PAIRS [RANKS]]: compare a training with --dl-bind=closest and none.

    contrib/minicluster up --name=bind --nodes=1 --plugin="$PWD/build/test/spank/.libs/dl.so"
    eval "$(contrib/minicluster env bind)"; python3 tests/bench/bind.py 15 2; contrib/minicluster down bind

Trains a perceptron on the cluster of SLURM_CONF, with the plugin, on RANKS ranks of one node over gloo (Debian's
python3-torch). Each pair is one training each way, in random order. The time of a training is that of its slowest rank,
from the first step to the last. Prints medians, and the median of the paired ratios with its 95 % interval (bootstrap
with 10,000 samples).
"""
import os
import random
import statistics
import subprocess
import sys
import time

from benchlib import ratios, with_interval

STEPS = 30


def train():
    import torch
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel
    if "OMP_NUM_THREADS" in os.environ:
        torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    layers = [torch.nn.Linear(256, 256), torch.nn.ReLU(), torch.nn.Linear(256, 256), torch.nn.ReLU(), torch.nn.Linear(256, 10)]
    model = DistributedDataParallel(torch.nn.Sequential(*layers))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    x, y = torch.rand(64, 256), torch.randint(10, (64,))
    for step in range(STEPS + 5):
        if step == 5:
            dist.barrier()
            start = time.perf_counter()
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
    seconds = torch.tensor([time.perf_counter() - start])
    dist.all_reduce(seconds, op=dist.ReduceOp.MAX)
    if dist.get_rank() == 0:
        print("seconds %.4f threads %d" % (seconds.item(), torch.get_num_threads()))


def run(where, ranks):
    out = subprocess.run(["srun", "-Q", "-N1", "-n%d" % ranks, "--dl=torch", "--dl-bind=" + where, "/usr/bin/python3", os.path.abspath(__file__), "train"],
                         stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=True, timeout=300).stdout.decode().split()
    return float(out[1]), out[3]


def main():
    pairs = int(sys.argv[1]) if len(sys.argv) > 1 else 15
    ranks = int(sys.argv[2]) if len(sys.argv) > 2 else 2
    r = random.Random(1)
    times = {"closest": [], "none": []}
    threads = {}
    for _ in range(pairs):
        for where in r.sample(list(times), 2):
            seconds, threads[where] = run(where, ranks)
            times[where].append(seconds)
    for where, t in times.items():
        print("%-8s median %.3f s for %d steps, %s threads a rank" % (where, statistics.median(t), STEPS, threads[where]))
    ratio = with_interval(ratios(times["closest"], times["none"]))
    print("closest / none: %s, %d pairs, %d ranks, %d CPUs" % (ratio, pairs, ranks, os.cpu_count()))


if sys.argv[1:2] == ["train"]:
    train()
else:
    main()
