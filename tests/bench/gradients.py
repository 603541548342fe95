# SPDX-License-Identifier: Apache-2.0
"""Gradients of ResNet-50, and 1,000 small ones: by name beside torch's gloo, and Horovod.

    make tests/bench/gradients
    python3 tests/bench/gradients.py [--hosts 2] [--ranks 4] [--rounds 15] [--horovod PYTHON] tests/bench/gradients

The ranks of all sides are there all the time, and work in turns.  --hosts 2 (as root): two
network namespaces with a veth between them.  The interpreter has to have torch.  PYTHON has Horovod,
built with gloo, and slurmdl (PYTHONPATH): the same script runs with horovod.torch and with slurmdl.hvd.
"""
import argparse
import importlib
import os
import socket
import statistics
import subprocess
import sys
import time

from hvdstart import Rendezvous

SPACE = "dlg" + os.urandom(4).hex()  # of the network namespaces


def resnet50():
    """Elements of the 161 parameters, in torchvision's order."""
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


def gloo():
    """A rank: orders come as for gradients.c."""
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    sizes = resnet50()
    small = [torch.zeros(256) for _ in range(1000)]

    # as DDP's: in backward order, 1 MiB and then 25 MiB
    buckets, limit, now = [], 1 << 20, 0
    for n in reversed(sizes):
        now += n
        if 4 * now >= limit:
            buckets.append(torch.zeros(now))
            now, limit = 0, 25 << 20
    if now:
        buckets.append(torch.zeros(now))

    class Sum(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.all = torch.nn.ParameterList(torch.zeros(n) for n in sizes)

        def forward(self, x):
            for p in self.all:
                x = x + (p * 0.5).sum()
            return x

    model = torch.nn.parallel.DistributedDataParallel(Sum(), gradient_as_bucket_view=True)

    def in_buckets():
        for work in [dist.all_reduce(b, async_op=True) for b in buckets]:
            work.wait()
        for b in buckets:
            b.div_(size)

    def one_by_one():
        for x in small:
            dist.all_reduce(x)

    def step(sync):
        model.zero_grad(set_to_none=False)
        if sync:
            loss = model(torch.zeros(()))
            dist.barrier()
            start = time.monotonic()
            loss.backward()
            return time.monotonic() - start
        with model.no_sync():
            loss = model(torch.zeros(()))
            dist.barrier()
            start = time.monotonic()
            loss.backward()
            return time.monotonic() - start

    def timed(f):
        dist.barrier()
        start = time.monotonic()
        f()
        return time.monotonic() - start

    orders = {"buckets": lambda: timed(in_buckets), "small-single": lambda: timed(one_by_one),
              "ddp": lambda: step(True), "alone": lambda: step(False)}
    for line in sys.stdin:
        what, rounds = line.split()
        times = []
        for _ in range(int(rounds)):
            t = torch.tensor(orders[what](), dtype=torch.float64)
            dist.all_reduce(t, op=dist.ReduceOp.MAX)
            times.append(float(t))
        if rank == 0:
            print(*times, flush=True)


def horovod(module):
    """A rank of a script for Horovod, with the names of this module."""
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

    orders = {"resnet50": lambda: named(gradients), "small": lambda: named(small), "small-single": one_by_one,
              "10 steps": steps}
    for line in sys.stdin:
        what, rounds = line.rsplit(maxsplit=1)
        times = []
        for _ in range(int(rounds)):
            hvd.allreduce(torch.zeros(1), name="barrier")
            start = time.monotonic()
            orders[what]()
            took = torch.tensor([time.monotonic() - start], dtype=torch.float64)
            times.append(hvd.allgather(took, name="took").max().item())
        if hvd.rank() == 0:
            print(*times, flush=True)
    hvd.shutdown()


class Side:
    """The ranks of one side."""

    def __init__(self, command, ranks, hosts, address, prefix, more=lambda rank: {}):
        with socket.socket() as s:
            s.bind(("", 0))
            port = s.getsockname()[1]
        self.ranks = []
        for r in range(ranks):
            host = r * hosts // ranks
            env = dict(os.environ, RANK=str(r), WORLD_SIZE=str(ranks), MASTER_ADDR=address, MASTER_PORT=str(port),
                       LOCAL_RANK="0", DL_COMM_ADDRESS=f"{address}:{port}", DL_COMM_NODE=str(host),
                       DL_COMM_BOOTSTRAP="tcp", OMP_NUM_THREADS="1", **more(r))
            if hosts > 1:
                env["GLOO_SOCKET_IFNAME"] = "veth0"
            self.ranks.append(subprocess.Popen(prefix(host) + command, env=env, text=True, stdin=subprocess.PIPE,
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


def namespaces(create):
    a, b = f"{SPACE}a", f"{SPACE}b"
    if not create:
        for ns in (a, b):
            subprocess.run(["ip", "netns", "del", ns], check=False)
        return
    for ns in (a, b):
        subprocess.run(["ip", "netns", "add", ns], check=True)
    subprocess.run(["ip", "link", "add", "veth0", "netns", a, "type", "veth", "peer", "name", "veth0", "netns", b],
                   check=True)
    for k, ns in enumerate((a, b)):
        for command in (f"addr add 10.219.7.{k + 1}/24 dev veth0", "link set veth0 up", "link set lo up"):
            subprocess.run(["ip", "-n", ns] + command.split(), check=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", type=int, choices=(1, 2), default=1)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--horovod", metavar="PYTHON")
    parser.add_argument("program")
    a = parser.parse_args()
    address = "10.219.7.1" if a.hosts > 1 else "127.0.0.1"
    names = "ab"

    def prefix(host):
        return ["ip", "netns", "exec", SPACE + names[host]] if a.hosts > 1 else []

    def side(command, more=lambda rank: {}):
        return Side(command, a.ranks, a.hosts, address, prefix, more)

    me, server = os.path.abspath(__file__), None
    if a.hosts > 1:
        namespaces(True)
    try:
        sides = {"slurmdl": (side([os.path.abspath(a.program)]), ["resnet50", "small", "small-waited", "small-single"]),
                 "gloo": (side([sys.executable, me, "gloo"]), ["buckets", "ddp", "alone", "small-single"])}
        if a.horovod:
            server = Rendezvous(a.horovod, a.ranks, a.hosts, address, "veth0" if a.hosts > 1 else "lo", prefix(0))
            both = ["resnet50", "small", "small-single", "10 steps"]
            sides["hvd"] = (side([a.horovod, me, "hvd", "slurmdl.hvd"]), both)
            sides["Horovod"] = (side([a.horovod, me, "hvd", "horovod.torch"], server.environment), both)
        times = {}
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
    finally:
        if a.hosts > 1:
            namespaces(False)
    tell(a, times)


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
