# SPDX-License-Identifier: Apache-2.0
"""A line through points: the steps of digits.conf, with nothing but Python's library."""

import argparse
import json
import random


def data(a):
    rng = random.Random(0)
    xs = [rng.random() for _ in range(a.points)]
    json.dump([(x, 2 * x + 1 + rng.gauss(0, 0.1)) for x in xs], open(a.out, "w"))


def train(a):
    points = json.load(open(a.data))
    rng = random.Random(a.seed)
    slope, offset = rng.random(), rng.random()
    for epoch in range(1, 6):
        for x, y in points:
            error = slope * x + offset - y
            slope, offset = slope - a.lr * error * x, offset - a.lr * error
        loss = sum((slope * x + offset - y) ** 2 for x, y in points) / len(points)
        print(f"epoch {epoch}: loss = {loss:.6f}", flush=True)
    if a.out:
        json.dump({"slope": slope, "offset": offset, "loss": loss}, open(a.out, "w"))
    if a.values:
        print(f"loss={loss:.6f}", file=open(a.values, "a"))


def compare(a):
    print(f"best={min(json.load(open(m))['loss'] for m in a.models)}")


parser = argparse.ArgumentParser()
words = parser.add_subparsers(required=True)
p = words.add_parser("data")
p.add_argument("points", type=int)
p.add_argument("out")
p.set_defaults(run=data)
p = words.add_parser("train")
for name, kind, default in (("data", str, None), ("lr", float, 0.1), ("seed", int, 0), ("out", str, None), ("values", str, None)):
    p.add_argument(f"--{name}", type=kind, default=default)
p.set_defaults(run=train)
p = words.add_parser("compare")
p.add_argument("models", nargs="+")
p.set_defaults(run=compare)
args = parser.parse_args()
args.run(args)
