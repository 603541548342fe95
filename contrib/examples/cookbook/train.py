# SPDX-License-Identifier: Apache-2.0
# The script of doc/cookbook.md: it stands for any script with arguments, and knows nothing of dl.  What it trains is
# one weight, which SGD brings near a noisy optimum; it needs no package.
import argparse
import json
import os
import random
import signal
import sys

parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, default=0.1)
parser.add_argument("--optimizer", choices=["sgd", "adam"], default="sgd")
parser.add_argument("--momentum", type=float, default=0.0)
parser.add_argument("--nesterov", action="store_true")
parser.add_argument("--batch", type=int, default=16)
parser.add_argument("--epochs", type=int, default=9)
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--out", help="folder for last.json")
parser.add_argument("--resume", help="file to resume from")
a = parser.parse_args()

state = {"epoch": 0, "weight": 4.0, "speed": 0.0}
if a.resume:
    with open(a.resume) as f:
        state = json.load(f)
    print(f"going on after epoch {state['epoch']}")
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))

for epoch in range(state["epoch"] + 1, a.epochs + 1):
    noise = random.Random(a.seed * 1000 + epoch)
    for _ in range(64 // a.batch or 1):
        slope = 0.3 * state["weight"] + noise.gauss(0, 1 / a.batch)
        if a.optimizer == "adam":
            slope = max(-1.0, min(1.0, slope))
        state["speed"] = a.momentum * state["speed"] - a.lr * slope
        state["weight"] += state["speed"]
    state["epoch"] = epoch
    print(f"epoch {epoch}: loss = {min(state['weight'] ** 2, 1e9):.4f}", flush=True)
    if a.out:
        with open(f"{a.out}/last.json.new", "w") as f:
            json.dump(state, f)
        os.replace(f"{a.out}/last.json.new", f"{a.out}/last.json")
