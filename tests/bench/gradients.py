# SPDX-License-Identifier: Apache-2.0
"""Gradients of ResNet-50, and 1,000 small ones: by name beside torch's gloo.

    make tests/bench/gradients
    python3 tests/bench/gradients.py [--hosts 2] [--ranks 4] [--rounds 15] tests/bench/gradients

The ranks of both sides are there all the time, and work in turns.  --hosts 2 (as root): two
network namespaces with a veth between them.  The interpreter has to have torch.
"""
import argparse
import os
import socket
import statistics
import subprocess
import sys
import time


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


class Side:
    """The ranks of one side."""

    def __init__(self, command, ranks, hosts, address, prefix):
        with socket.socket() as s:
            s.bind(("", 0))
            port = s.getsockname()[1]
        self.ranks = []
        for r in range(ranks):
            host = r * hosts // ranks
            env = dict(os.environ, RANK=str(r), WORLD_SIZE=str(ranks), MASTER_ADDR=address, MASTER_PORT=str(port),
                       LOCAL_RANK="0", DL_COMM_ADDRESS=f"{address}:{port}", DL_COMM_NODE=str(host),
                       DL_COMM_BOOTSTRAP="tcp", OMP_NUM_THREADS="1")
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
    a, b = f"dlg{os.getpid()}a", f"dlg{os.getpid()}b"
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
    parser.add_argument("program")
    a = parser.parse_args()
    address = "10.219.7.1" if a.hosts > 1 else "127.0.0.1"
    names = "ab"

    def prefix(host):
        return ["ip", "netns", "exec", f"dlg{os.getpid()}{names[host]}"] if a.hosts > 1 else []

    if a.hosts > 1:
        namespaces(True)
    try:
        ours = Side([os.path.abspath(a.program)], a.ranks, a.hosts, address, prefix)
        theirs = Side([sys.executable, os.path.abspath(__file__), "gloo"], a.ranks, a.hosts, address, prefix)
        orders = [(ours, "resnet50"), (theirs, "buckets"), (theirs, "ddp"), (theirs, "alone"), (ours, "small"),
                  (ours, "small-waited"), (ours, "small-single"), (theirs, "small-single")]
        times = {}
        for side, what in orders:
            side.order(what, 2)
        for _ in range(a.rounds):
            for side, what in orders:
                key = (side is ours, what)
                times.setdefault(key, []).extend(side.order(what, 1))
        ours.close()
        theirs.close()
    finally:
        if a.hosts > 1:
            namespaces(False)
    m = {k: statistics.median(v) for k, v in times.items()}
    best = {k: min(v) for k, v in times.items()}
    print(f"{a.ranks} ranks, {a.hosts} host(s), {a.rounds} rounds in turns, load {os.getloadavg()[0]:.0f}: median, best")
    for (is_ours, what), v in m.items():
        print(f"  {'slurmdl' if is_ours else 'gloo':8}{what:14}{1e3 * v:10.2f} ms{1e3 * best[is_ours, what]:10.2f} ms")
    for name, t in (("median", m), ("best", best)):
        reduction = t[False, "ddp"] - t[False, "alone"]
        print(f"  ResNet-50, {name}: {t[False, 'buckets'] / t[True, 'resnet50']:.2f} times as fast as gloo in DDP's"
              f" buckets, {reduction / t[True, 'resnet50']:.2f} times as DDP's reduction (backward pass with - without)")
        print(f"  1,000 of 1 KB, {name}: {t[True, 'small-waited'] / t[True, 'small']:.1f} times as fast as by name one by"
              f" one, {t[True, 'small-single'] / t[True, 'small']:.1f} times as all-reduce one by one,"
              f" {t[False, 'small-single'] / t[True, 'small']:.1f} times as gloo one by one")


if __name__ == "__main__":
    if sys.argv[1:] == ["gloo"]:
        gloo()
    else:
        main()
