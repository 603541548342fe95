# SPDX-License-Identifier: Apache-2.0
"""Reduce the gradients of ResNet-50, and 1,000 small tensors: by name, compared with torch's gloo and Horovod.

    make tests/bench/gradients
    python3 tests/bench/gradients.py [--hosts 2] [--ranks 4] [--rounds 15] [--horovod PYTHON] tests/bench/gradients

The ranks of all libraries run all the time, and take turns. --hosts 2 (as root): two network namespaces with a veth
pair between them. Needs torch. PYTHON must have Horovod, built with gloo, and slurmdl (PYTHONPATH): the same script
then runs with horovod.torch and with slurmdl.hvd.
"""
import argparse
import contextlib
import importlib
import os
import statistics
import subprocess
import sys
import time

from benchlib import enter, free_port, made_hosts, rank_environment
from hvdstart import Rendezvous


def resnet50():
    """Return the sizes of the 161 parameters, in torchvision's order."""
    sizes = []

    def convolution(out, inputs, width):
        sizes.extend([out * inputs * width * width, out, out])

    convolution(64, 3, 7)
    inputs = 64
    for stage, blocks in enumerate((3, 4, 6, 3)):
        width = 64 << stage
        for block in range(blocks):
            convolution(width, inputs, 1)
            convolution(width, width, 3)
            convolution(4 * width, width, 1)
            if block == 0:
                convolution(4 * width, inputs, 1)
            inputs = 4 * width
    sizes.extend([1000 * 2048, 1000])
    assert len(sizes) == 161 and sum(sizes) == 25557032
    return sizes


def obey(orders, barrier, slowest, rank):
    """Read orders as gradients.c does. orders[what]() returns the function to measure; rank 0 prints its times."""
    for line in sys.stdin:
        what, rounds = line.rsplit(maxsplit=1)
        times = []
        for _ in range(int(rounds)):
            work = orders[what]()
            barrier()
            start = time.monotonic()
            work()
            times.append(slowest(time.monotonic() - start))
        if rank == 0:
            print(*times, flush=True)


def ddp_buckets(sizes):
    """Return the sizes of DDP's buckets: in backward order, first 1 MiB, then 25 MiB."""
    buckets, limit, now = [], 1 << 20, 0
    for n in reversed(sizes):
        now += n
        if 4 * now >= limit:
            buckets.append(now)
            now, limit = 0, 25 << 20
    return buckets + [now] * (now > 0)


def sum_model(sizes):
    """Return a module with parameters of these sizes that does little more than produce gradients."""
    import torch

    class Sum(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.all = torch.nn.ParameterList(torch.zeros(n) for n in sizes)

        def forward(self, x):
            for p in self.all:
                x = x + (p * 0.5).sum()
            return x

    return Sum()


def gloo():
    """Run a rank of torch's gloo."""
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    buckets = [torch.zeros(n) for n in ddp_buckets(resnet50())]
    small = [torch.zeros(256) for _ in range(1000)]
    model = torch.nn.parallel.DistributedDataParallel(sum_model(resnet50()), gradient_as_bucket_view=True)

    def in_buckets():
        for work in [dist.all_reduce(b, async_op=True) for b in buckets]:
            work.wait()
        for b in buckets:
            b.div_(dist.get_world_size())

    def one_by_one():
        for x in small:
            dist.all_reduce(x)

    def backward(context):
        model.zero_grad(set_to_none=False)
        with context():
            return model(torch.zeros(())).backward

    def slowest(seconds):
        t = torch.tensor(seconds, dtype=torch.float64)
        dist.all_reduce(t, op=dist.ReduceOp.MAX)
        return float(t)

    orders = {"buckets": lambda: in_buckets, "small-single": lambda: one_by_one,
              "ddp": lambda: backward(contextlib.nullcontext), "alone": lambda: backward(model.no_sync)}
    obey(orders, dist.barrier, slowest, dist.get_rank())


def horovod(module):
    """Run a rank of a Horovod script; 'module' is horovod.torch or slurmdl.hvd."""
    import torch

    hvd = importlib.import_module(module)
    torch.set_num_threads(1)
    hvd.init()
    gradients = [torch.zeros(n) for n in resnet50()]
    small = [torch.zeros(256) for _ in range(1000)]
    torch.manual_seed(1)
    layers = [m for _ in range(8) for m in (torch.nn.Linear(256, 256), torch.nn.ReLU())]
    model = torch.nn.Sequential(*layers, torch.nn.Linear(256, 10))
    x = torch.randn(32, 256)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)

    def named(tensors):
        handles = [hvd.allreduce_async_(t, name=f"t{i}", op=hvd.Average) for i, t in reversed(list(enumerate(tensors)))]
        for handle in handles:
            hvd.synchronize(handle)

    def one_by_one():
        for i, t in enumerate(small):
            hvd.allreduce_(t, name=f"s{i}", op=hvd.Average)

    def steps():
        for _ in range(10):
            optimizer.zero_grad()
            model(x).square().mean().backward()
            optimizer.step()

    def slowest(seconds):
        return hvd.allgather(torch.tensor([seconds], dtype=torch.float64), name="took").max().item()

    orders = {"resnet50": lambda: lambda: named(gradients), "small": lambda: lambda: named(small),
              "small-single": lambda: one_by_one, "10 steps": lambda: steps}
    obey(orders, lambda: hvd.allreduce(torch.zeros(1), name="barrier"), slowest, hvd.rank())
    hvd.shutdown()


class Side:
    """The ranks of one library."""

    def __init__(self, command, ranks, hosts, address, more=lambda rank: {}):
        port = free_port()
        self.ranks = []
        for r in range(ranks):
            host = r * len(hosts) // ranks
            env = dict(rank_environment(r, ranks, host if len(hosts) > 1 else None, address, port), LOCAL_RANK="0", **more(r))
            self.ranks.append(subprocess.Popen(enter(hosts[host]) + command, env=env, text=True, stdin=subprocess.PIPE,
                                               stdout=subprocess.PIPE if r == 0 else subprocess.DEVNULL))

    def order(self, what, rounds):
        for p in self.ranks:
            p.stdin.write(f"{what} {rounds}\n")
            p.stdin.flush()
        answer = self.ranks[0].stdout.readline()
        if not answer:
            raise SystemExit(f"gradients.py: {what}: a rank has ended")
        return [float(t) for t in answer.split()]

    def close(self):
        for p in self.ranks:
            p.stdin.close()
        for p in self.ranks:
            p.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", type=int, choices=(1, 2), default=1)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--horovod", metavar="PYTHON")
    parser.add_argument("program")
    a = parser.parse_args()
    with made_hosts(a.hosts) as hosts:
        tell(a, measure(a, hosts, "10.219.7.1" if a.hosts > 1 else "127.0.0.1"))


def measure(a, hosts, address):
    """Return the seconds by side and order. Horovod's ranks get their rank from its rendezvous server."""
    me, server, times = os.path.abspath(__file__), None, {}

    def side(command, more=lambda rank: {}):
        return Side(command, a.ranks, hosts, address, more)

    sides = {"slurmdl": (side([os.path.abspath(a.program)]), ["resnet50", "small", "small-waited", "small-single"]),
             "gloo": (side([sys.executable, me, "gloo"]), ["buckets", "ddp", "alone", "small-single"])}
    if a.horovod:
        server = Rendezvous(a.horovod, a.ranks, a.hosts, address, "veth0" if a.hosts > 1 else "lo", enter(hosts[0]))
        both = ["resnet50", "small", "small-single", "10 steps"]
        sides["hvd"] = (side([a.horovod, me, "hvd", "slurmdl.hvd"]), both)
        sides["Horovod"] = (side([a.horovod, me, "hvd", "horovod.torch"], server.environment), both)
    for one, orders in sides.values():
        for what in orders:
            one.order(what, 2)
    for _ in range(a.rounds):
        for name, (one, orders) in sides.items():
            for what in orders:
                times.setdefault((name, what), []).extend(one.order(what, 1))
    for one, _ in sides.values():
        one.close()
    if server:
        server.close()
    return times


def tell(a, times):
    m = {k: statistics.median(v) for k, v in times.items()}
    best = {k: min(v) for k, v in times.items()}
    print(f"{a.ranks} ranks, {a.hosts} host(s), {a.rounds} rounds in turns, load {os.getloadavg()[0]:.0f}: median, best")
    for (name, what), v in m.items():
        print(f"  {name:8}{what:14}{1e3 * v:10.2f} ms{1e3 * best[name, what]:10.2f} ms")
    for name, t in (("median", m), ("best", best)):
        ours, reduction = t["slurmdl", "resnet50"], t["gloo", "ddp"] - t["gloo", "alone"]
        print(f"  ResNet-50, {name}: {t['gloo', 'buckets'] / ours:.2f} times as fast as gloo in DDP's"
              f" buckets, {reduction / ours:.2f} times as DDP's reduction (backward pass with - without)")
        small = t["slurmdl", "small"]
        print(f"  1,000 of 1 KB, {name}: {t['slurmdl', 'small-waited'] / small:.1f} times as fast as by name one by"
              f" one, {t['slurmdl', 'small-single'] / small:.1f} times as all-reduce one by one,"
              f" {t['gloo', 'small-single'] / small:.1f} times as gloo one by one")
        if a.horovod:
            words = [f"{what} {t['Horovod', what] / t['hvd', what]:.2f}" for side, what in t if side == "hvd"]
            print(f"  slurmdl.hvd, {name}, times as fast as Horovod: {', '.join(words)}")


if __name__ == "__main__":
    if sys.argv[1:] == ["gloo"]:
        gloo()
    elif sys.argv[1:2] == ["hvd"]:
        horovod(sys.argv[2])
    else:
        main()
