# SPDX-License-Identifier: Apache-2.0
"""The same as embedding.c, with numpy.

srun --dl=ps --dl-roles=ps:1,worker:* -n4 python embedding.py digits.csv.gz
"""

import gzip
import os
import sys

import numpy

import slurmdl.ps

GREYS, CLASSES, WIDTH, BATCH, EPOCHS = 5, 10, 16, 16, 12
LAYER = (WIDTH + 1) * CLASSES


def read(path):
    with gzip.open(path, "rt") as f:
        data = numpy.loadtxt(f, delimiter=",", dtype=numpy.int64)
    return numpy.arange(data.shape[1] - 1) * GREYS + data[:, :-1] // 4, data[:, -1]


def forward(rows, layer):
    """Sums of the pictures' rows, and the probabilities of the digits."""
    sums = rows.sum(1)
    p = sums @ layer[:-1] + layer[-1]
    p = numpy.exp(p - p.max(1, keepdims=True))
    return sums, p / p.sum(1, keepdims=True)


def step(words, digits, embedding, table):
    pulled = table.pull(later=True)
    rows = embedding.pull_rows(words.ravel()).reshape(*words.shape, WIDTH)
    layer = pulled.wait().reshape(WIDTH + 1, CLASSES)
    sums, d = forward(rows, layer)
    d[numpy.arange(len(digits)), digits] -= 1
    d /= len(digits)
    gradient = numpy.vstack([sums.T @ d, d.sum(0)]).astype(numpy.float32)
    rows[:] = (d @ layer[:-1].T)[:, None, :]
    embedding.push_rows(words.ravel(), rows)
    table.push(gradient)


def train(group, words, digits):
    start = 0.3 * numpy.sin(7 * numpy.arange(LAYER)).astype(numpy.float32)
    embedding = group.table("words", row=WIDTH, rule="adagrad", rate=0.1, uniform=(-0.05, 0.05))
    table = group.table("layer", initial=start, rule="adagrad", rate=0.1)
    training = len(digits) * 4 // 5
    mine = numpy.arange(group.index, training, group.workers)
    while group.iteration < EPOCHS * (training // group.workers) // BATCH:
        batch = mine[(group.iteration * BATCH + numpy.arange(BATCH)) % len(mine)]
        step(words[batch], digits[batch], embedding, table)
        group.clock()
    rows = embedding.pull_rows(words[training:].ravel()).reshape(-1, words.shape[1], WIDTH)
    _, p = forward(rows, table.pull().reshape(WIDTH + 1, CLASSES))
    right = (p.argmax(1) == digits[training:]).mean()
    print(f"worker {group.index}: {group.iteration} iterations, accuracy {right:.4f}", flush=True)


with slurmdl.ps.init(mode=os.environ.get("DL_PS_MODE", "async")) as group:
    if group.is_server:
        group.serve()
    else:
        train(group, *read(sys.argv[1]))
