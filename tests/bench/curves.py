#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Make a table of learning curves for a benchmark of multi-fidelity searchers.

    curves.py TASK OUT.csv [--configs N] [--epochs 81]

Trains a small multilayer perceptron (SGD with momentum, weight decay and exponential learning rate
decay) for each point of a grid of hyperparameters on a generated task:

    teacher  labels of a random network, 15 % of them random: over-fits
    spirals  interleaved spirals and noise inputs: plateaus, then falls
    regress  Friedman's function, noise that depends on x: the best configurations improve late
    sparse   200 inputs of which 10 matter, few points: over-fits without weight decay

Each row of the table is a configuration: id, hyperparameters, assumed seconds per epoch, final
loss, and the validation loss after each epoch (at most CAP times that of the constant predictor).
The grid is a full product with at most N points, from 320 to 2880; the default of 1440 takes a
minute or two on one core. The same command gives the same table, up to rounding in the matrix
library. Needs numpy.

More tasks are in curve_kinds.py and curve_unseen.py: other models (trees, kernels, neighbours,
mixtures, factors, recurrent and convolutional networks, other optimisers, a policy), other
fidelities than epochs, and other hyperparameters.
"""
import argparse
import csv
import itertools
import math
import os

for _v in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_v, "1")
import numpy as np  # noqa: E402  (import after setting the number of threads)

from curve_kinds import KINDS  # noqa: E402
from curve_unseen import UNSEEN  # noqa: E402

KINDS = {**KINDS, **UNSEEN}

CAP = 10.0
AXES = ("lr", "batch", "hidden", "layers", "momentum", "wd", "gamma")
FORMAT = {"momentum": "%.2g", "wd": "%.0e", "gamma": "%.2f"}
GRID = {
    "lr": [10 ** (-3.5 + 0.4 * i) for i in range(10)],
    "batch": [10, 30, 100],
    "hidden": [8, 16, 32, 64],
    "layers": [1, 2],
    "momentum": [0, 0.5, 0.9],
    "wd": [1e-6, 1e-3],
    "gamma": [0.93, 1],
}
# Values to remove, in this order, until the grid is small enough
THIN = (("hidden", 1), ("batch", 0), ("momentum", 1), ("hidden", 1),
        ("lr", 8), ("lr", 6), ("lr", 4), ("lr", 2), ("lr", 0))
LEAST = 320  # points that are left without all of these


class Task:
    """Data and grid of a task; the first `ntrain` rows are for training."""

    def __init__(self, x, y, ntrain, classes, **grid):
        x = (x - x[:ntrain].mean(0)) / (x[:ntrain].std(0) + 1e-6)
        self.x, self.xv = np.split(x.astype(np.float32), [ntrain])
        if classes:
            y = np.eye(classes, dtype=np.float32)[y]
        else:
            y = ((y - y[:ntrain].mean()) / y[:ntrain].std())[:, None].astype(np.float32)
        self.y, self.yv = np.split(y, [ntrain])
        self.classes, self.grid = classes, dict(GRID, **grid)
        p = self.y.mean(0)
        self.cap = CAP * (-(p * np.log(p)).sum() if classes else 1.0)


def redraw(rng, y, share, classes):
    """Redraw a share of the labels. By chance, one in `classes` of them stays right."""
    new = rng.random(len(y)) < share
    return np.where(new, rng.integers(0, classes, len(y)), y)


def teacher(rng):
    x = rng.normal(size=(2500, 20))
    h = np.maximum(x @ rng.normal(size=(20, 12)) / 20 ** 0.5 + 0.3 * rng.normal(size=12), 0)
    y = h @ rng.normal(size=(12, 4))
    y = np.argmax(y - y.mean(0), 1)
    return Task(x, redraw(rng, y, 0.15, 4), 1500, 4)


def spirals(rng):
    n, arms = 2000, 3
    y = rng.integers(0, arms, n)
    r = np.sqrt(rng.uniform(0.02, 1, n))
    a = 2 * math.pi * (y / arms + 1.3 * r) + rng.normal(0, 0.25, n)
    x = np.column_stack([r * np.cos(a), r * np.sin(a), rng.normal(size=(n, 6))])
    return Task(x, y, 1200, arms)


def regress(rng):
    x = rng.random((2500, 10))
    y = (10 * np.sin(math.pi * x[:, 0] * x[:, 1]) + 20 * (x[:, 2] - 0.5) ** 2
         + 10 * x[:, 3] + 5 * x[:, 4])
    y += (1 + 8 * x[:, 5] ** 2) * rng.normal(size=len(x))
    return Task(x, y, 1500, 0, batch=[4, 8, 32], gamma=[0.95, 1],
                lr=[10 ** (-4.1 + 0.4 * i) for i in range(10)])


def sparse(rng):
    n, dim, good = 1400, 200, 10
    x = rng.normal(size=(n, dim)) * (rng.random((n, dim)) < 0.2)
    s = x[:, :good] @ rng.choice([-1.0, 1.0], good) + 2 * x[:, 0] * x[:, 1]
    y = (rng.random(n) < 1 / (1 + np.exp(-6 * s))).astype(int)
    return Task(x, y, 400, 2, wd=[1e-4, 3e-2])


TASKS = {"teacher": teacher, "spirals": spirals, "regress": regress, "sparse": sparse}


class Nets:
    """Networks of one shape, one for each of several configurations."""

    def __init__(self, rng, count, sizes):
        shapes = list(zip(sizes, sizes[1:]))
        self.size = sum(i * o + o for i, o in shapes)
        self.p = np.zeros((count, self.size), np.float32)
        self.g, self.m = np.zeros_like(self.p), np.zeros_like(self.p)
        self.w, self.dw = self.views(self.p, shapes), self.views(self.g, shapes)
        for (w, _), i in zip(self.w, sizes):
            w[:] = rng.normal(0, math.sqrt(2 / i), w.shape)

    @staticmethod
    def views(flat, shapes):
        out, n = [], 0
        for i, o in shapes:
            w = flat[:, n:n + i * o].reshape(-1, i, o)
            out.append((w, flat[:, n + i * o:n + i * o + o].reshape(-1, 1, o)))
            n += i * o + o
        return out

    def forward(self, x):
        """Return a list of the inputs of each layer, and the outputs."""
        a = [x]
        for k, (w, b) in enumerate(self.w):
            z = a[-1] @ w
            z += b
            if k < len(self.w) - 1:
                np.maximum(z, 0, out=z)
            a.append(z)
        return a

    def gradient(self, a, d):
        """Compute the gradient into `g` from the list of forward() and the errors of the outputs."""
        for k in reversed(range(len(self.w))):
            dw, db = self.dw[k]
            np.matmul(a[k].swapaxes(-1, -2), d, out=dw)
            np.sum(d, 1, keepdims=True, out=db)
            if k:
                d = d @ self.w[k][0].swapaxes(1, 2)
                d *= a[k] > 0

    def step(self, lr, momentum, wd):
        self.m *= momentum
        self.m += self.g
        self.g[:] = self.p
        self.g *= wd
        self.m += self.g
        np.multiply(self.m, lr, out=self.g)
        self.p -= self.g


def softmax(z):
    z = np.exp(z - z.max(-1, keepdims=True))
    z /= z.sum(-1, keepdims=True)
    return z


def error(task, out, y):
    """Return the derivative of the loss with respect to the outputs."""
    d = softmax(out) if task.classes else 2 * out
    d -= y if task.classes else 2 * y
    d /= len(y)
    return d


def validate(task, nets):
    out = nets.forward(task.xv)[-1].astype(np.float64)
    if not task.classes:
        return ((out - task.yv) ** 2).mean((1, 2))
    out -= out.max(2, keepdims=True)
    return (np.log(np.exp(out).sum(2)) - (out * task.yv).sum(2)).mean(1)


def train(task, rng, batch, sizes, axes, epochs):
    """Return the curves (configuration, epoch) of all configurations with one shape and batch size.
    axes: columns of learning rate, momentum, weight decay and learning rate decay."""
    lr, momentum, wd, gamma = (np.array(c, np.float32)[:, None] for c in axes)
    nets = Nets(rng, len(lr), sizes)
    curves = np.full((len(lr), epochs), task.cap)
    live = np.full(len(lr), True)
    for e in range(epochs):
        order = rng.permutation(len(task.x))
        for at in range(0, len(order), batch):
            k = order[at:at + batch]
            a = nets.forward(task.x[k])
            nets.gradient(a, error(task, a[-1], task.y[k]))
            nets.step(lr, momentum, wd)
        loss = validate(task, nets)
        live &= np.isfinite(loss)
        nets.p[~live], nets.m[~live], lr[~live] = 0, 0, 0  # diverged: keep it at the cap
        curves[live, e] = np.minimum(loss[live], task.cap)
        lr *= gamma
    return curves


def thin(grid, count):
    """Remove values from a grid until it has at most `count` points."""
    grid = {a: list(grid[a]) for a in AXES}
    for axis, k in THIN:
        if math.prod(map(len, grid.values())) <= count:
            return grid
        del grid[axis][k]
    return grid


def cost(task, batch, size):
    """Return the assumed seconds per epoch: data, arithmetic and steps."""
    return len(task.x) / 1000 * (4 + 10 * size / 4096 + 60 / batch)


def write(out, grid, rows, epochs):
    with open(out, "w", newline="") as f:
        w = csv.writer(f, lineterminator="\n")
        w.writerow(("id",) + tuple(grid) + ("sec_per_epoch", "final_loss")
                   + tuple("e%d" % (e + 1) for e in range(epochs)))
        for n, key in enumerate(itertools.product(*grid.values())):
            sec, c = rows[key]
            w.writerow([n] + [FORMAT.get(a, "%.5g") % v for a, v in zip(grid, key)]
                       + ["%.2f" % sec, "%.5f" % c[-1]] + ["%.5f" % v for v in c])


def make(name, out, count, epochs):
    """Write the table of a perceptron task."""
    task = TASKS[name](np.random.default_rng(1))
    grid = thin(task.grid, count)
    rows = {}
    inner = list(itertools.product(*(grid[a] for a in ("lr", "momentum", "wd", "gamma"))))
    for n, shape in enumerate(itertools.product(*(grid[a] for a in ("batch", "hidden", "layers")))):
        batch, hidden, layers = shape
        sizes = [task.x.shape[1]] + [hidden] * layers + [max(1, task.classes)]
        rng = np.random.default_rng([n, 7])
        curves = train(task, rng, batch, sizes, zip(*inner), epochs)
        sec = cost(task, batch, sum(i * o + o for i, o in zip(sizes, sizes[1:])))
        for (lr, *rest), curve in zip(inner, curves):
            rows[(lr, *shape, *rest)] = sec, curve
    write(out, grid, rows, epochs)


def main():
    ap = argparse.ArgumentParser(description=__doc__,
                                 formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("task", choices=[*TASKS, *KINDS])
    ap.add_argument("out")
    ap.add_argument("--configs", type=int, default=1440, metavar="N")
    ap.add_argument("--epochs", type=int, default=81)
    a = ap.parse_args()
    if a.configs < LEAST or a.epochs < 1:
        ap.error("at least %d configurations and one epoch" % LEAST)
    with np.errstate(all="ignore"):
        if a.task in TASKS:
            make(a.task, a.out, a.configs, a.epochs)
        else:
            kind, epochs = KINDS[a.task]
            write(a.out, *kind(epochs), epochs)


if __name__ == "__main__":
    main()
