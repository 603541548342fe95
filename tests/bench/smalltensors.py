# SPDX-License-Identifier: Apache-2.0
"""Save and load many small tensors with slurmdl and with torch.

    PYTHONPATH=SITE python3 tests/bench/smalltensors.py DIR [--tensors=20000] [--rounds=7]

SITE has the package slurmdl. Each round does everything once, so that other load affects all alike; the table has the
medians, and the medians of the ratios within a round. Our functions sync the file and its directory entry and read the
file back; torch's do not. "torch.save, synced" is torch.save() with fsync() of the file and its directory.
"""
import argparse
import os
import pathlib
import shutil
import statistics
import time

import benchlib
import torch

import slurmdl.torch


class Many(torch.nn.Module):
    """A model of blocks with ten small parameters each."""

    def __init__(self, n):
        super().__init__()
        self.blocks = torch.nn.ModuleList()
        for i in range(n // 10):
            block = torch.nn.Module()
            for k in range(10):
                block.register_parameter(f"weight{k}", torch.nn.Parameter(torch.randn(1 + (7 * i + k) % 200)))
            self.blocks.append(block)


def timed(f, *args, **options):
    start = time.perf_counter()
    f(*args, **options)
    return time.perf_counter() - start


def save_synced(obj, path):
    torch.save(obj, path)
    for name, flags in ((path, os.O_RDWR), (path.parent, os.O_RDONLY | os.O_DIRECTORY)):
        fd = os.open(name, flags)
        os.fsync(fd)
        os.close(fd)


def one_round(top, model, other):
    shutil.rmtree(top, ignore_errors=True)
    top.mkdir(parents=True)
    times = {"torch.save": timed(lambda: torch.save({"model": model.state_dict()}, top / "theirs"))}
    times["torch.save, synced"] = timed(lambda: save_synced({"model": model.state_dict()}, top / "synced"))
    with slurmdl.Run(top / "run") as run:
        times["save_model"] = timed(slurmdl.torch.save_model, run, 1, model=model)
    times["slurmdl.torch.save"] = timed(lambda: slurmdl.torch.save({"model": model.state_dict()}, top / "ours"))
    times["torch.load"] = timed(lambda: other.load_state_dict(torch.load(top / "theirs")["model"]))
    with slurmdl.Run(top / "run") as run:
        times["restore_model"] = timed(slurmdl.torch.restore_model, run, model=other)
    times["slurmdl.torch.load"] = timed(lambda: other.load_state_dict(slurmdl.torch.load(top / "ours")["model"]))
    return times


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("dir", type=pathlib.Path)
    p.add_argument("--tensors", type=int, default=20000)
    p.add_argument("--rounds", type=int, default=7)
    a = p.parse_args()
    torch.set_num_threads(1)
    model, other = Many(a.tensors), Many(a.tensors)
    load = ", ".join(f"{x:.1f}" for x in os.getloadavg())
    print(f"# torch {torch.__version__}, {a.tensors} tensors, {os.cpu_count()} cores, load average {load}")
    one_round(a.dir / "bench", model, other)
    every = [one_round(a.dir / "bench", model, other) for _ in range(a.rounds)]
    assert all(torch.equal(x, y) for x, y in zip(model.parameters(), other.parameters()))
    for name in every[0]:
        peers = ("torch.load",) if "load" in name or "restore" in name else ("torch.save", "torch.save, synced")
        times = [r[name] for r in every]
        shares = [benchlib.with_interval(benchlib.ratios(times, [r[p] for r in every]), "%.2f") + f" of {p}" for p in peers]
        print(f"{name:20} {statistics.median(times):7.3f} s   {'   '.join(shares)}")
    shutil.rmtree(a.dir / "bench")


if __name__ == "__main__":
    main()
