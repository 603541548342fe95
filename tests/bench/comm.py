# SPDX-License-Identifier: Apache-2.0
"""comm.py [OPTIONS]: all-reduce and startup of libslurmdl, compared with Open MPI, torch.distributed gloo and Horovod.

    make tests/bench/comm
    python3 tests/bench/comm.py --ranks=4
    python3 tests/bench/comm.py --ranks=4 --hosts=4          # as root; uses network namespaces
    python3 tests/bench/comm.py --boot=64                    # srun on the private cluster of SLURM_CONF

Each round runs every library once, in random order, with the same sizes; sums are verified. For each size, a round
counts with the median of its runs. Prints the median over the rounds, and the median ratio to ours within a round with
its 95 % interval (bootstrap with 10,000 samples): above 1, ours is faster. Skips MPI without mpicc, gloo without torch
(--gloo=PYTHON), and Horovod without --horovod=PYTHON.
"""
import argparse
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

from benchlib import enter, free_port, made_hosts, rank_environment, ratios, with_interval
from hvdstart import Rendezvous

HERE = os.path.dirname(os.path.abspath(__file__))
SIZES = [1024, 16384, 262144, 1 << 20, 4 << 20, 16 << 20, 64 << 20]


# ---- a rank of gloo or Horovod ----


def open_world(kind, torch):
    """Return the start time, rank and size, and functions: barrier, in-place all-reduce, maximum of a tensor."""
    if kind == "gloo":
        import torch.distributed as dist

        start = time.perf_counter()
        dist.init_process_group("gloo")
        most = lambda x: (dist.all_reduce(x, op=dist.ReduceOp.MAX), x)[1]
        return start, dist.get_rank(), dist.get_world_size(), dist.barrier, dist.all_reduce, most
    import horovod.torch as hvd

    start = time.perf_counter()
    hvd.init()
    barrier = lambda: hvd.allreduce(torch.zeros(1), name="barrier")
    call = lambda x: hvd.allreduce_(x, op=hvd.Sum, name="x")
    return start, hvd.rank(), hvd.size(), barrier, call, lambda x: hvd.allgather(x, name="most").max()


def rank_main(kind, runs, sizes):
    import numpy
    import torch

    torch.set_num_threads(1)
    start, rank, size, barrier, call, most = open_world(kind, torch)
    barrier()
    if rank == 0:
        print("0 %.9f" % (time.perf_counter() - start))

    def each(x, calls):
        barrier()
        begin = time.perf_counter()
        for _ in range(calls):
            call(x)
        return float(most(torch.tensor([(time.perf_counter() - begin) / calls])))

    for bytes in sizes:
        n = bytes // 4
        whole = torch.from_numpy(numpy.arange(n) % 1000).float()
        x = torch.zeros(n)
        each(x, 2)
        first = each(x, 2)
        calls = 1 if first > 0.01 else int(0.02 / first) + 1
        for _ in range(runs):
            t = each(x, calls)
            if rank == 0:
                print(bytes, "%.9f" % t)
        x.copy_(whole * (rank + 1))
        call(x)
        assert torch.equal(x, whole * (size * (size + 1) // 2)), "wrong sum"
    sys.stdout.flush()
    if kind == "gloo":
        torch.distributed.destroy_process_group()


# ---- runs ----


class Bench:
    def __init__(self, o, hosts, folder):
        self.o, self.hosts, self.folder = o, hosts, folder
        self.host = lambda r: r * o.hosts // o.ranks  # consecutive ranks share a host
        self.root = "10.219.7.1" if o.hosts > 1 else "127.0.0.1"
        self.sizes = [str(s) for s in o.sizes]

    def enter(self, host):
        """Return the command prefix for a host. Sets a host name, by which Open MPI tells hosts apart."""
        name = ["unshare", "--uts", "sh", "-c", 'hostname "$0"; exec "$@"', "host%d" % host]
        return enter(self.hosts[host]) + name if self.o.hosts > 1 else []

    def ranks(self, argv, bind=False, more=lambda rank: {}):
        """Run the ranks without a launcher. With 'bind', give each its own CPU if there are enough, as mpirun does."""
        o, cpus, port, all = self.o, sorted(os.sched_getaffinity(0)), free_port(), []
        for r in range(o.ranks):
            host = self.host(r)
            env = dict(rank_environment(r, o.ranks, host if o.hosts > 1 else None, self.root, port), **more(r))
            on = ["taskset", "-c", str(cpus[r])] if bind and o.ranks <= len(cpus) else []
            pipe = subprocess.PIPE if r == 0 else subprocess.DEVNULL
            all.append(subprocess.Popen(self.enter(host) + on + argv, env=env, stdout=pipe, text=True))
        out = all[0].communicate(timeout=600)[0]
        if any([p.wait(60) for p in all]):
            raise SystemExit("comm.py: a rank failed: " + " ".join(argv))
        return out

    def ours(self):
        return self.ranks([self.o.program, str(self.o.runs)] + self.sizes, bind=True)

    def peer(self, python, kind, more=lambda rank: {}):
        argv = [python, os.path.abspath(__file__), "rank", kind, str(self.o.runs)] + self.sizes
        return self.ranks(argv, more=more)

    def gloo(self):
        return self.peer(self.o.gloo, "gloo")

    def mpirun(self):
        argv = ["mpirun", "-np", str(self.o.ranks), "--oversubscribe", "--mca", "mpi_yield_when_idle", "1"]
        if os.geteuid() == 0:
            argv.append("--allow-run-as-root")
        if self.o.hosts == 1:
            return argv + ["--mca", "btl", "self,vader"]
        agent = os.path.join(self.folder, "agent")
        with open(agent, "w") as f:  # takes HOST COMMAND, like ssh
            f.write('#!/bin/sh\nk=${1##*.}; shift\nexec ip netns exec "%s$k" ' % self.hosts[0][:-1])
            f.write("unshare --uts sh -c \"hostname host$((k - 1)); $*\"\n")
        os.chmod(agent, 0o755)
        hosts = ",".join("10.219.7.%d:%d" % (k, self.o.ranks // self.o.hosts) for k in range(1, self.o.hosts + 1))
        return (self.enter(0) + argv + ["--host", hosts, "--mca", "plm_rsh_agent", agent, "--mca", "btl", "self,vader,tcp"]
                + ["--mca", "btl_tcp_if_include", "10.219.7.0/24", "--mca", "oob_tcp_if_include", "10.219.7.0/24"])

    def mpi(self):
        argv = self.mpirun() + [self.o.mpi, str(self.o.runs)] + self.sizes
        return subprocess.run(argv, stdout=subprocess.PIPE, text=True, check=True, timeout=600).stdout

    def horovod(self):
        """Run Horovod with its gloo backend."""
        o = self.o
        server = Rendezvous(o.horovod, o.ranks, o.hosts, self.root, "veth0" if o.hosts > 1 else "lo", self.enter(0))
        try:
            return self.peer(o.horovod, "horovod", server.environment)
        finally:
            server.close()

    # ---- startup ----

    def srun(self, program, kind):
        argv = ["srun", "--overcommit", "--mpi=" + kind, "-n", str(self.o.boot), program]
        begin = time.perf_counter()
        out = subprocess.run(argv, stdout=subprocess.PIPE, text=True, check=True, timeout=600).stdout
        return "%s1 %.9f\n" % (out, time.perf_counter() - begin)  # "size" 1: the whole srun


def medians(text):
    """Return the median by size of lines "SIZE SECONDS"."""
    rows = {}
    for line in text.splitlines():
        word = line.split()
        if len(word) == 2 and word[0].isdigit():
            rows.setdefault(int(word[0]), []).append(float(word[1]))
    return {size: statistics.median(row) for size, row in rows.items()}


def compile_mpi(folder):
    out = os.path.join(folder, "peer")
    if not shutil.which("mpicc"):
        return None
    subprocess.run(["mpicc", "-O2", "-DPEER_MPI", "-D_GNU_SOURCE", "-I" + os.path.join(HERE, "../.."), os.path.join(HERE, "comm.c"), "-o", out], check=True)
    return out


def has_torch(python):
    return subprocess.run([python, "-c", "import torch.distributed"], stderr=subprocess.DEVNULL).returncode == 0


def rounds_of(ways, rounds):
    r = random.Random(1)
    results = {name: [] for name, _ in ways}
    for k in range(rounds):
        for name, f in r.sample(ways, len(ways)):
            results[name].append(medians(f()))
        print("round %d of %d, load %.1f" % (k + 1, rounds, os.getloadavg()[0]), file=sys.stderr)
    return results, r


def show(results, size, r):
    ours = [row[size] for row in results["ours"]]
    for name, found in results.items():
        rows = [row[size] for row in found]
        line = "%-10s %12.1f us" % (name, 1e6 * statistics.median(rows))
        if name != "ours":
            line += "   ratio " + with_interval(ratios(rows, ours), "%.2f", r)
        print(line)


def ways_of(o, hosts, folder):
    b, o.mpi = Bench(o, hosts, folder), compile_mpi(folder)
    if o.boot:
        o.runs, o.sizes = 0, [0, 1]
        ways = [("ours", lambda: b.srun(o.program, "pmix")), ("MPI", lambda: b.srun(o.mpi, "pmix"))]
        return ways + [("ours, TCP", lambda: b.srun(o.program, "none"))]
    ways = [("ours", b.ours)] + ([("MPI", b.mpi)] if o.mpi else [])
    ways += [("gloo", b.gloo)] if has_torch(o.gloo) else []
    return ways + ([("Horovod", b.horovod)] if o.horovod else [])


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--program", default="tests/bench/comm", help="ours")
    p.add_argument("--ranks", type=int, default=2)
    p.add_argument("--hosts", type=int, default=1, choices=(1, 2, 4))
    p.add_argument("--rounds", type=int, default=9)
    p.add_argument("--runs", type=int, default=9, help="of each size in a round")
    p.add_argument("--sizes", type=lambda s: [int(x) for x in s.split(",")], default=SIZES)
    p.add_argument("--gloo", default="python3", metavar="PYTHON")
    p.add_argument("--horovod", metavar="PYTHON")
    p.add_argument("--boot", type=int, metavar="RANKS", help="time the start of so many ranks instead")
    o = p.parse_args()
    o.program = os.path.abspath(o.program)
    with made_hosts(o.hosts) as hosts, tempfile.TemporaryDirectory() as folder:
        results, r = rounds_of(ways_of(o, hosts, folder), o.rounds)
    for size in sorted(results["ours"][0]):
        title = {0: "start (open and a barrier)", 1: "srun in all"}.get(size, "%d bytes" % size)
        print("\n%s, %d ranks, %d host(s)" % (title, o.boot or o.ranks, o.hosts))
        show(results, size, r)


if __name__ == "__main__":
    if sys.argv[1:2] == ["rank"]:
        rank_main(sys.argv[2], int(sys.argv[3]), [int(x) for x in sys.argv[4:]])
    else:
        main()
