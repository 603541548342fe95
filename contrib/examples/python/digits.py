#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Train a perceptron on handwritten digits: metrics, checkpoints and stop requests with the package slurmdl."""

import gzip
import sys

import numpy as np

import slurmdl


def read_data(path):
    with gzip.open(path, "rt") as f:
        rows = np.loadtxt(f, delimiter=",")
    return rows[:, :64] / 16, rows[:, 64].astype(int)


def forward(x, w1, b1, w2, b2):
    hidden = np.maximum(x @ w1 + b1, 0)
    scores = hidden @ w2 + b2
    p = np.exp(scores - scores.max(axis=1, keepdims=True))
    return hidden, p / p.sum(axis=1, keepdims=True)


def train_epoch(x, y, weights, order, lr, batch):
    for rows in np.array_split(order, max(1, len(order) // batch)):
        hidden, p = forward(x[rows], *weights)
        p[np.arange(len(rows)), y[rows]] -= 1
        p /= len(rows)
        delta = (p @ weights[2].T) * (hidden > 0)
        for w, g in zip(weights, (x[rows].T @ delta, delta.sum(0), hidden.T @ p, p.sum(0))):
            w -= lr * g


def main(path):
    x, y = read_data(path)
    n = len(x) * 7 // 10
    with slurmdl.init() as run:
        hidden, lr, batch = run.hp.get("hidden", 32), run.hp.get("lr", 0.1), run.hp.get("batch", 32)
        rng = np.random.default_rng(run.seed)
        weights = [
            rng.normal(0, (2 / 64) ** 0.5, (64, hidden)),
            np.zeros(hidden),
            rng.normal(0, (2 / hidden) ** 0.5, (hidden, 10)),
            np.zeros(10),
        ]
        for name, w in zip(("w1", "b1", "w2", "b2"), weights):
            run.protect("model/" + name, w)
        epoch = run.restore() or 0
        while epoch < min(run.length, 1000) and not run.should_stop():
            epoch += 1
            # the order of an epoch is its own, so that a resumed training is the same
            order = np.random.default_rng([run.seed, epoch]).permutation(n)
            train_epoch(x, y, weights, order, lr, batch)
            accuracy = (forward(x[n:], *weights)[1].argmax(1) == y[n:]).mean()
            run.log("accuracy", accuracy, epoch)
            run.save(epoch)
            print(f"epoch {epoch} accuracy {accuracy:.6f}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
