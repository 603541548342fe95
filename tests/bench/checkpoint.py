# SPDX-License-Identifier: Apache-2.0
"""Compare checkpoints with plain file I/O, torch.save, safetensors and h5py.

usage: checkpoint.py BENCH DIR [--mib=1024] [--rounds=5] [--peer=PYTHON...]

BENCH: tests/bench/checkpoint in the build directory (make tests/bench/checkpoint). DIR must be on the disk to measure.
Each round does everything once, so that other load affects all alike; the table has medians. PYTHON saves the same
bytes with those of torch, safetensors and h5py that it has, and calls fsync().
"""
import argparse
import collections
import os
import shutil
import statistics
import subprocess
import sys
import time

OURS = ("raw-direct", "save", "raw-buffered", "async", "raw-ranks", "ranks", "restore")
AGAINST = {"save": "raw-direct", "save-4-ranks": "raw-direct", "raw-4-ranks": "raw-direct", "restore-warm": "raw-read-warm",
           "restore-cold": "raw-read-cold"}


def synced(path):
    fd = os.open(path, os.O_RDONLY)
    os.fsync(fd)
    os.close(fd)


def save_torch(path, arrays):
    import torch
    torch.save({k: torch.from_numpy(v) for k, v in arrays.items()}, path)


def save_safetensors(path, arrays):
    from safetensors.numpy import save_file
    save_file(arrays, path)


def save_h5py(path, arrays):
    import h5py
    with h5py.File(path, "w") as f:
        for k, v in arrays.items():
            f.create_dataset(k, data=v)


def peers(top, mib):
    """Run in a PYTHON of --peer: save once with each library that it has."""
    import numpy as np
    n = (mib << 20) // 4 // 100 - 4096
    rng = np.random.default_rng(1)
    arrays = {f"layer{i}.weight": rng.standard_normal(n + i, dtype=np.float32) for i in range(100)}
    arrays.update({f"layer{i}.bias": rng.standard_normal(1000 + 25 * i, dtype=np.float32) for i in range(100)})
    path = f"{top}/peer"
    for name, f in (("torch.save", save_torch), ("safetensors", save_safetensors), ("h5py", save_h5py)):
        try:
            __import__(name.split(".")[0])
        except ImportError:
            continue
        if os.path.exists(path):
            os.unlink(path)
        t = time.monotonic()
        f(path, arrays)
        synced(path)
        print(name, time.monotonic() - t, flush=True)
    os.unlink(path)


def measure(args, top, what):
    shutil.rmtree(top, ignore_errors=True)
    os.mkdir(top)
    if what in OURS:
        command = [args.bench, top, what, str(args.mib)]
    else:
        command = [what, __file__, "--as-peer", top, str(args.mib)]
    os.sync()
    out = subprocess.run(command, stdout=subprocess.PIPE, check=True, timeout=600).stdout.decode()
    shutil.rmtree(top)
    return [(x.split()[0], float(x.split()[1])) for x in out.splitlines()]


def main():
    if sys.argv[1] == "--as-peer":
        return peers(sys.argv[2], int(sys.argv[3]))
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("bench")
    p.add_argument("dir")
    p.add_argument("--mib", type=int, default=1024)
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--peer", action="append", default=[])
    args = p.parse_args()
    times = collections.defaultdict(list)
    for r in range(args.rounds):
        for what in (*OURS, *args.peer):
            for name, seconds in measure(args, f"{args.dir}/bench.{os.getpid()}", what):
                times[name].append(seconds)
    gib = args.mib / 1024
    print(f"{args.mib} MiB, {args.rounds} rounds, load {os.getloadavg()[0]:.1f}")
    print(f"{'':20} {'s/GiB':>8} {'min':>8} {'max':>8} {'GiB/s':>8}  of")
    for name, t in times.items():
        s = statistics.median(t) / gib
        base = AGAINST.get(name, "raw-direct")
        ratio = statistics.median(b / a for a, b in zip(t, times[base]))
        print(f"{name:20} {s:8.3f} {min(t) / gib:8.3f} {max(t) / gib:8.3f} {1 / s:8.2f}  {100 * ratio:.0f} % of {base}")


main()
