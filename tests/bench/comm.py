# SPDX-License-Identifier: Apache-2.0
"""comm.py [OPTIONS]: all-reduce and start of libslurmdl beside Open MPI, torch.distributed gloo and Horovod.

    make tests/bench/comm
    python3 tests/bench/comm.py --ranks=4
    python3 tests/bench/comm.py --ranks=2 --hosts=2          # root: two network namespaces and a veth pair
    python3 tests/bench/comm.py --boot=64                    # srun on the private cluster of SLURM_CONF

Each round runs every library once, in an order of its own, with the same sizes; sums are verified.  Of each size the
median of a library's runs in a round is taken; printed are the median over the rounds, and of the ratios to ours
within a round the median with its 95 % interval (bootstrap of 10,000 samples): above 1, ours is faster.  MPI is left
out without mpicc, gloo without torch (--gloo=PYTHON), Horovod unless --horovod=PYTHON says where it is.
"""
import argparse
import os
import random
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time

from hvdstart import Rendezvous

HERE = os.path.dirname(os.path.abspath(__file__))
SIZES = [1024, 16384, 262144, 1 << 20, 4 << 20, 16 << 20, 64 << 20]
SPACE = "dlcomm%d-" % os.getpid()  # of the network namespaces


# ---- a rank of gloo or Horovod ----


def rank_main(kind, runs, sizes):
    import numpy

    start = time.perf_counter()
    import torch

    torch.set_num_threads(1)
    if kind == "gloo":
        import torch.distributed as dist

        start = time.perf_counter()
        dist.init_process_group("gloo")
        rank, size, barrier = dist.get_rank(), dist.get_world_size(), dist.barrier
        call = dist.all_reduce  # in place
        most = lambda x: (dist.all_reduce(x, op=dist.ReduceOp.MAX), x)[1]
    else:
        import horovod.torch as hvd

        start = time.perf_counter()
        hvd.init()
        rank, size = hvd.rank(), hvd.size()
        barrier = lambda: hvd.allreduce(torch.zeros(1), name="barrier")
        call = lambda x: hvd.allreduce_(x, op=hvd.Sum, name="x")
        most = lambda x: hvd.allgather(x, name="most").max()
    barrier()
    if rank == 0:
        print("0 %.9f" % (time.perf_counter() - start))
    for bytes in sizes:
        n = bytes // 4
        whole = torch.from_numpy(numpy.arange(n) % 1000).float()
        x = torch.empty(n)

        def each(calls):
            barrier()
            begin = time.perf_counter()
            for _ in range(calls):
                call(x)
            return float(most(torch.tensor([(time.perf_counter() - begin) / calls])))

        x.zero_()
        each(2)
        first = each(2)
        calls = 1 if first > 0.01 else int(0.02 / first) + 1
        for _ in range(runs):
            t = each(calls)
            if rank == 0:
                print(bytes, "%.9f" % t)
        x.copy_(whole * (rank + 1))
        call(x)
        assert torch.equal(x, whole * (size * (size + 1) // 2)), "wrong sum"
    sys.stdout.flush()
    if kind == "gloo":
        dist.destroy_process_group()


# ---- hosts ----


def make_hosts():
    """Two network namespaces, joined by a cable."""
    run = lambda *argv: subprocess.run(argv, check=True)
    for k in (0, 1):
        run("ip", "netns", "add", SPACE + str(k))
        run("ip", "-n", SPACE + str(k), "link", "set", "lo", "up")
    run("ip", "-n", SPACE + "0", "link", "add", "eth0", "type", "veth", "peer", "name", "eth0", "netns", SPACE + "1")
    for k in (0, 1):
        run("ip", "-n", SPACE + str(k), "address", "add", "10.99.0.%d/24" % (k + 1), "dev", "eth0")
        run("ip", "-n", SPACE + str(k), "link", "set", "eth0", "up")


def remove_hosts():
    for k in (0, 1):
        subprocess.run(["ip", "netns", "delete", SPACE + str(k)], stderr=subprocess.DEVNULL)


# ---- runs ----


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Bench:
    def __init__(self, o):
        self.o = o
        self.host = lambda r: r * o.hosts // o.ranks  # block after block
        self.root = "10.99.0.1" if o.hosts > 1 else "127.0.0.1"
        self.sizes = [str(s) for s in o.sizes]
        self.folder = tempfile.mkdtemp()

    def enter(self, host):
        """With a host name of its own, by which Open MPI tells hosts apart."""
        name = ["unshare", "--uts", "sh", "-c", 'hostname "$0"; exec "$@"', "host%d" % host]
        return ["ip", "netns", "exec", SPACE + str(host)] + name if self.o.hosts > 1 else []

    def ranks(self, argv, env, bind=False):
        """Start the ranks ourselves; with 'bind' each on a CPU of its own if there are enough, as mpirun does."""
        o, cpus, all = self.o, sorted(os.sched_getaffinity(0)), []
        for r in range(o.ranks):
            mine = dict(os.environ, RANK=str(r), WORLD_SIZE=str(o.ranks), LOCAL_RANK=str(r), OMP_NUM_THREADS="1")
            mine.update({k: v(r) if callable(v) else v for k, v in env.items()})
            on = ["taskset", "-c", str(cpus[r])] if bind and o.ranks <= len(cpus) else []
            pipe = subprocess.PIPE if r == 0 else subprocess.DEVNULL
            all.append(subprocess.Popen(self.enter(self.host(r)) + on + argv, env=mine, stdout=pipe, text=True))
        out = all[0].communicate(timeout=600)[0]
        if any([p.wait(60) for p in all]):
            raise SystemExit("comm.py: a rank failed: " + " ".join(argv))
        return out

    def ours(self):
        env = {"DL_COMM_ADDRESS": "%s:%d" % (self.root, free_port()), "DL_COMM_BOOTSTRAP": "tcp"}
        if self.o.hosts > 1:
            env["DL_COMM_NODE"] = lambda r: str(self.host(r))
        return self.ranks([self.o.program, str(self.o.runs)] + self.sizes, env, True)

    def gloo(self, kind="gloo", python=None):
        env = {"MASTER_ADDR": self.root, "MASTER_PORT": str(free_port())}
        if self.o.hosts > 1:
            env["GLOO_SOCKET_IFNAME"] = "eth0"
        argv = [python or self.o.gloo, os.path.abspath(__file__), "rank", kind, str(self.o.runs)] + self.sizes
        return self.ranks(argv, env)

    def mpirun(self):
        argv = ["mpirun", "-np", str(self.o.ranks), "--oversubscribe", "--mca", "mpi_yield_when_idle", "1"]
        if os.geteuid() == 0:
            argv.append("--allow-run-as-root")
        if self.o.hosts == 1:
            return argv + ["--mca", "btl", "self,vader"]
        agent = os.path.join(self.folder, "agent")
        with open(agent, "w") as f:  # as ssh: HOST COMMAND
            f.write('#!/bin/sh\nk=$((${1##*.} - 1)); shift\nexec ip netns exec "%s$k" ' % SPACE)
            f.write("unshare --uts sh -c \"hostname host$k; $*\"\n")
        os.chmod(agent, 0o755)
        hosts = ",".join("10.99.0.%d:%d" % (k + 1, self.o.ranks // 2) for k in (0, 1))
        return (self.enter(0) + argv + ["--host", hosts, "--mca", "plm_rsh_agent", agent, "--mca", "btl", "self,vader,tcp"]
                + ["--mca", "btl_tcp_if_include", "10.99.0.0/24", "--mca", "oob_tcp_if_include", "10.99.0.0/24"])

    def mpi(self):
        argv = self.mpirun() + [self.o.mpi, str(self.o.runs)] + self.sizes
        return subprocess.run(argv, stdout=subprocess.PIPE, text=True, check=True, timeout=600).stdout

    def horovod(self):
        """Over its gloo."""
        o = self.o
        server = Rendezvous(o.horovod, o.ranks, o.hosts, self.root, "eth0" if o.hosts > 1 else "lo", self.enter(0))
        argv = [o.horovod, os.path.abspath(__file__), "rank", "horovod", str(o.runs)] + self.sizes
        names = server.environment(0)
        try:
            return self.ranks(argv, {k: lambda r, k=k: server.environment(r)[k] for k in names})
        finally:
            server.close()

    # ---- the start ----

    def srun(self, program, kind):
        argv = ["srun", "--overcommit", "--mpi=" + kind, "-n", str(self.o.boot), program]
        begin = time.perf_counter()
        out = subprocess.run(argv, stdout=subprocess.PIPE, text=True, check=True, timeout=600).stdout
        return "%s1 %.9f\n" % (out, time.perf_counter() - begin)  # "size" 1: srun in all


def medians(text):
    """Of each size, of the lines "SIZE SECONDS"."""
    rows = {}
    for line in text.splitlines():
        word = line.split()
        if len(word) == 2 and word[0].isdigit():
            rows.setdefault(int(word[0]), []).append(float(word[1]))
    return {size: statistics.median(row) for size, row in rows.items()}


def interval(x, r):
    m = sorted(statistics.median(r.choices(x, k=len(x))) for _ in range(10000))
    return m[250], m[9749]


def compile_mpi(folder):
    out = os.path.join(folder, "peer")
    if not shutil.which("mpicc"):
        return None
    subprocess.run(["mpicc", "-O2", "-DPEER_MPI", os.path.join(HERE, "comm.c"), "-o", out], check=True)
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


def show(results, names, size, r):
    ours = [row[size] for row in results["ours"]]
    for name in names:
        rows = [row[size] for row in results[name]]
        line = "%-10s %12.1f us" % (name, 1e6 * statistics.median(rows))
        if name != "ours":
            ratios = [b / a for a, b in zip(ours, rows)]
            line += "   ratio %.2f  (%.2f .. %.2f)" % (statistics.median(ratios), *interval(ratios, r))
        print(line)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--program", default="tests/bench/comm", help="ours")
    p.add_argument("--ranks", type=int, default=2)
    p.add_argument("--hosts", type=int, default=1, choices=(1, 2))
    p.add_argument("--rounds", type=int, default=9)
    p.add_argument("--runs", type=int, default=9, help="of each size in a round")
    p.add_argument("--sizes", type=lambda s: [int(x) for x in s.split(",")], default=SIZES)
    p.add_argument("--gloo", default="python3", metavar="PYTHON")
    p.add_argument("--horovod", metavar="PYTHON")
    p.add_argument("--boot", type=int, metavar="RANKS", help="time the start of so many ranks instead")
    o = p.parse_args()
    b = Bench(o)
    o.program = os.path.abspath(o.program)
    o.mpi = compile_mpi(b.folder)
    try:
        if o.boot:
            o.runs, o.sizes = 0, [0, 1]
            ways = [("ours", lambda: b.srun(o.program, "pmix")), ("MPI", lambda: b.srun(o.mpi, "pmix"))]
            ways += [("ours, TCP", lambda: b.srun(o.program, "none"))]
        else:
            if o.hosts > 1:
                make_hosts()
            ways = [("ours", b.ours)] + ([("MPI", b.mpi)] if o.mpi else [])
            ways += [("gloo", b.gloo)] if has_torch(o.gloo) else []
            ways += [("Horovod", b.horovod)] if o.horovod else []
        results, r = rounds_of(ways, o.rounds)
    finally:
        if o.hosts > 1:
            remove_hosts()
        shutil.rmtree(b.folder)
    for size in sorted(results["ours"][0]):
        title = {0: "start (open and a barrier)", 1: "srun in all"}.get(size, "%d bytes" % size)
        print("\n%s, %d ranks, %d host(s)" % (title, o.boot or o.ranks, o.hosts))
        show(results, [name for name, _ in ways], size, r)


if __name__ == "__main__":
    if sys.argv[1:2] == ["rank"]:
        rank_main(sys.argv[2], int(sys.argv[3]), [int(x) for x in sys.argv[4:]])
    else:
        main()
