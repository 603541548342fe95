# SPDX-License-Identifier: Apache-2.0
"""slurmdl.ps: two servers and three workers, each a process that this one starts."""

import os
import subprocess
import sys
import tempfile

import numpy
from check import raises, same

import slurmdl
import slurmdl.ps

N, ROW, ITERATIONS = 40000, 3, 4
SERVERS, WORKERS = 2, 3


def gradient(worker, t):
    return numpy.random.default_rng(10 * t + worker).standard_normal(N).astype(numpy.float32)


def expected():
    w = numpy.arange(N, dtype=numpy.float32)
    for t in range(ITERATIONS):
        g = gradient(0, t)
        for worker in range(1, WORKERS):
            g = g + gradient(worker, t)
        w = w - numpy.float32(0.5) * g
    return w


def work(group):
    start = numpy.arange(N, dtype=numpy.float32)
    w = group.table("w", initial=start, rule="sgd", rate=0.5)
    e = group.table("e", row=ROW, rule="add", uniform=(-1, 1), seed=3)
    ids = numpy.array([5, 2**40, 5], dtype=numpy.uint64)
    before = e.pull_rows(ids)
    assert before.shape == (3, ROW) and (before[0] == before[2]).all() and abs(before).max() <= 1
    for t in range(ITERATIONS):
        assert group.iteration == t
        ticket = w.pull(later=True)
        rows = e.pull_rows(ids)
        ticket.wait()
        # nobody waits for this ticket, nor has the gradient
        w.push(gradient(group.index, t), later=t % 2 == 1)
        e.push_rows(ids, numpy.ones((3, ROW), numpy.float32))
        group.clock()
    assert (w.pull() == expected()).all()
    ticket = w.pull(later=True)
    group.wait()
    assert (ticket.wait() == expected()).all()
    rows = e.pull_rows(ids)
    assert numpy.allclose(rows - before, [[24], [12], [24]]), rows - before
    assert group.stats()["pulls"] > 0 and group.workers == WORKERS and group.servers == SERVERS
    with raises(TypeError, "f64, not f32", "a wrong type is refused"):
        w.push(numpy.zeros(N))
    with raises(ValueError, "elements, not", "a wrong size is refused"):
        w.pull(numpy.zeros(N - 1, numpy.float32))
    with raises(ValueError, "one of add, assign", "a wrong rule is refused"):
        group.table("x", n=1, rule="adamw")
    try:
        import torch
    except ImportError:
        return
    out = torch.empty(N)
    assert w.pull(out) is out and (out.numpy() == expected()).all()


def main():
    if "DL_ROLE" in os.environ:
        with slurmdl.ps.init(mode="sync", timeout=200) as group:
            if group.is_server:
                group.serve()
            else:
                work(group)
        return
    folder = tempfile.mkdtemp(dir=".")
    roles = [("server", i) for i in range(SERVERS)] + [("worker", i) for i in range(WORKERS)]
    children = []
    for role, index in roles:
        env = dict(
            os.environ,
            DL_ROLE=role,
            DL_ROLE_INDEX=str(index),
            DL_PS_DIR=folder,
            DL_PS_SERVERS=str(SERVERS),
            DL_PS_WORKERS=str(WORKERS),
        )
        out = sys.stdout if role == "worker" and index == 0 else subprocess.DEVNULL
        children.append(subprocess.Popen([sys.executable, __file__], env=env, stdout=out))
    ends = [child.wait(120) for child in children]
    same(ends, [0] * len(roles), "servers and workers agree with numpy")
    with raises(slurmdl.Error, "server 0", "a server that is not there is named"):
        slurmdl.ps.init("worker", 0, 1, 1, os.path.join(folder, "none"), timeout=0.3)
    with raises(ValueError, "one of sync, async", "a wrong mode is told"):
        slurmdl.ps.init("worker", mode="fast")


main()
