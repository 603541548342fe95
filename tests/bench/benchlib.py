# SPDX-License-Identifier: Apache-2.0
"""Helpers of the benchmarks: medians with intervals, ranks, hosts as network namespaces, a private cluster."""
import contextlib
import os
import random
import socket
import statistics
import subprocess

MINICLUSTER = os.path.join(os.path.dirname(os.path.realpath(__file__)), "../../contrib/minicluster")


def interval(values, r):
    """Return the 95 % interval of the median (bootstrap with 10,000 samples)."""
    medians = sorted(statistics.median(r.choices(values, k=len(values))) for _ in range(10000))
    return medians[250], medians[9749]


def with_interval(values, form="%.3f", r=None):
    """Format the median and its interval."""
    low, high = interval(values, r or random.Random(1))
    return f"{form} ({form} to {form})" % (statistics.median(values), low, high)


def ratios(a, b):
    """Return the ratios of a to b in each round."""
    return [x / y for x, y in zip(a, b)]


def free_port():
    with socket.socket() as s:
        s.bind(("", 0))
        return s.getsockname()[1]


def rank_environment(rank, size, host, address, port):
    """Return a rank's environment for our library (bootstrap tcp) and torch's gloo. 'host': its index; None: only
    one."""
    env = dict(os.environ, RANK=str(rank), WORLD_SIZE=str(size), LOCAL_RANK=str(rank), OMP_NUM_THREADS="1", MASTER_ADDR=address,
               MASTER_PORT=str(port), DL_COMM_ADDRESS=f"{address}:{port}", DL_COMM_BOOTSTRAP="tcp")
    return env if host is None else dict(env, DL_COMM_NODE=str(host), GLOO_SOCKET_IFNAME="veth0")


def enter(host):
    """Return the command prefix to run on a host of made_hosts()."""
    return ["ip", "netns", "exec", host] if host else []


def ip(*words):
    subprocess.run(["ip", *words], check=True)


def connect(names, hub):
    """Connect two hosts by a veth pair, more by a bridge in its own namespace."""
    if len(names) == 2:
        ip("link", "add", "veth0", "netns", names[0], "type", "veth", "peer", "name", "veth0", "netns", names[1])
        return
    ip("-n", hub, "link", "add", "br0", "type", "bridge")
    ip("-n", hub, "link", "set", "br0", "up")
    for i, name in enumerate(names):
        ip("link", "add", "veth0", "netns", name, "type", "veth", "peer", "name", f"port{i}", "netns", hub)
        ip("-n", hub, "link", "set", f"port{i}", "master", "br0", "up")


@contextlib.contextmanager
def made_hosts(n):
    """Create network namespaces, with addresses from 10.219.7.1 on at veth0 (as root). Yield their names, or [None]."""
    if n == 1:
        yield [None]
        return
    *names, hub = [f"dlbench{os.getpid()}.{k}" for k in range(1, n + 2)]
    try:
        for name in [*names, hub]:
            ip("netns", "add", name)
        connect(names, hub)
        for i, name in enumerate(names):
            for words in (f"addr add 10.219.7.{i + 1}/24 dev veth0", "link set veth0 up", "link set lo up"):
                ip("-n", name, *words.split())
        yield names
    finally:
        for name in [*names, hub]:
            subprocess.run(["ip", "netns", "del", name], check=False, stderr=subprocess.DEVNULL)


@contextlib.contextmanager
def private_cluster(name, *options):
    """Start a cluster with contrib/minicluster, and set SLURM_CONF in the environment."""
    call = lambda *words: subprocess.run([MINICLUSTER, *words], stdout=subprocess.PIPE, check=True, timeout=300, text=True).stdout
    call("up", "--name=" + name, *options)
    try:
        for line in call("env", name).splitlines():
            variable, _, value = line.removeprefix("export ").partition("=")
            os.environ[variable] = value.strip("'\"")
        yield
    finally:
        os.chdir("/")
        call("down", name)
