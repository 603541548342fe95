#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Train a perceptron on handwritten digits: a script that knows nothing of dl."""
import argparse
import gzip
import os

import numpy as np


def read_data(path):
    with gzip.open(path, "rt") as f:
        rows = np.loadtxt(f, delimiter=",")
    return rows[:, :64] / 16, rows[:, 64].astype(int)


def forward(x, w1, b1, w2, b2):
    hidden = np.maximum(x @ w1 + b1, 0)
    scores = hidden @ w2 + b2
    p = np.exp(scores - scores.max(axis=1, keepdims=True))
    return hidden, p / p.sum(axis=1, keepdims=True)


def save(out, epoch, weights):
    """Under another name first: it may be killed at any time."""
    path = os.path.join(out, "last.npz")
    with open(path + ".tmp", "wb") as f:
        np.savez(f, *weights, epoch=epoch)
    os.replace(path + ".tmp", path)


def restore(path, weights):
    with np.load(path) as f:
        for i, w in enumerate(weights):
            w[...] = f[f"arr_{i}"]
        return int(f["epoch"])


def train(x, y, args):
    rng = np.random.default_rng(args.seed)
    n = len(x) * 7 // 10
    w1 = rng.normal(0, (2 / 64) ** 0.5, (64, args.hidden))
    w2 = rng.normal(0, (2 / args.hidden) ** 0.5, (args.hidden, 10))
    b1, b2 = np.zeros(args.hidden), np.zeros(10)
    weights = (w1, b1, w2, b2)
    start = restore(args.resume, weights) if args.resume else 0
    for epoch in range(start + 1, args.epochs + 1):
        rng = np.random.default_rng([args.seed, epoch])
        for rows in np.array_split(rng.permutation(n), max(1, n // args.batch)):
            hidden, p = forward(x[rows], w1, b1, w2, b2)
            p[np.arange(len(rows)), y[rows]] -= 1
            p /= len(rows)
            delta = (p @ w2.T) * (hidden > 0)
            for w, g in ((w2, hidden.T @ p), (b2, p.sum(0)), (w1, x[rows].T @ delta), (b1, delta.sum(0))):
                w -= args.lr * g
        _, p = forward(x[n:], w1, b1, w2, b2)
        print(f"epoch {epoch}: accuracy = {(p.argmax(1) == y[n:]).mean():.4f}", flush=True)
        if args.out:
            save(args.out, epoch, weights)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data")
    parser.add_argument("--lr", type=float, default=0.1)
    parser.add_argument("--hidden", type=int, default=32)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", help="folder to save to")
    parser.add_argument("--resume", help="file to resume from")
    options = parser.parse_args()
    train(*read_data(options.data), options)
