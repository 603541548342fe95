# SPDX-License-Identifier: Apache-2.0
"""Scaling of data-parallel training over 1, 2 and 4 hosts: a perceptron of 25 M parameters, and the digits.

    PYTHONPATH=contrib/python:... python3 tests/bench/scaling.py [--rounds 5] [--batch 64] PARALLEL DIGITS

Run as root: each host is a network namespace on one bridge, with one rank of one thread. The hosts share the cores of
this machine, so the baseline is as many processes that train at the same time without communication: efficiency = step
time of the baseline / step time of the ranks; both take turns. 'ddp' is torch's DistributedDataParallel over gloo.
PARALLEL is the example contrib/examples/parallel/parallel, DIGITS its data (strong scaling: a total batch of 64).
"""
import argparse
import os
import statistics
import subprocess
import sys
import time

from benchlib import enter, free_port, made_hosts, rank_environment


def train(kind, batch, steps):
    """Train as a rank, and print the median seconds per step."""
    import torch

    torch.set_num_threads(1)
    torch.manual_seed(0)
    layers = [layer for _ in range(6) for layer in (torch.nn.Linear(2048, 2048), torch.nn.ReLU())]
    model = torch.nn.Sequential(*layers)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    call = model
    if kind == "ours":
        import slurmdl
        import slurmdl.comm

        world = slurmdl.comm.init()
        optimizer = slurmdl.DistributedOptimizer(optimizer, model.named_parameters())
    elif kind == "ddp":
        torch.distributed.init_process_group("gloo")
        call = torch.nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=True)
    x = torch.randn(batch, 2048)
    times = []
    for _ in range(steps + 2):
        start = time.monotonic()
        optimizer.zero_grad(set_to_none=False)
        call(x).square().mean().backward()
        optimizer.step()
        times.append(time.monotonic() - start)
    if kind == "ours":
        world.barrier()
    print(statistics.median(times[2:]), flush=True)


def ranks(hosts, command, together):
    """Run the command on each host, and return the last lines that they print."""
    port, size = free_port(), len(hosts) if together else 1
    processes = []
    for r, host in enumerate(hosts):
        env = rank_environment(r if together else 0, size, r, "10.219.7.1", port)
        env["DL_RUN_DIR"] = f"{os.getcwd()}/{f'together{port}' if together else host}"
        processes.append(subprocess.Popen(enter(host) + command, env=env, text=True, stdout=subprocess.PIPE))
    outputs = [p.communicate(timeout=600)[0] for p in processes]
    if any(p.returncode for p in processes):
        raise SystemExit(f"scaling.py: {command} failed")
    return [o.split("\n")[-2] for o in outputs if o.strip()]


def perceptron(hosts, kind, batch, steps):
    command = [sys.executable, os.path.abspath(__file__), "rank", kind, str(batch), str(steps)]
    return max(float(t) for t in ranks(hosts, command, kind != "alone"))


def digits(hosts, together, program, data):
    start = time.monotonic()
    ranks(hosts, [program, data, "20"], together)
    return time.monotonic() - start


def table(title, rate, hosts, rounds, kinds, measure):
    print(f"{title}: {rounds} rounds in turns, load {os.getloadavg()[0]:.0f}")
    for n in (1, 2, 4):
        times = {kind: [] for kind in kinds}
        for _ in range(rounds):
            for kind in kinds:
                times[kind].append(measure(hosts[:n], kind))
        medians = {kind: statistics.median(t) for kind, t in times.items()}
        row = "  ".join(f"{kind} {1e3 * t:.0f} ms" for kind, t in medians.items())
        rates = "  ".join(f"{k} {medians['alone'] / medians[k]:.2f}" for k in kinds if k != "alone")
        print(f"  {n} hosts: {row}; {rate} {rates}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("program")
    parser.add_argument("data")
    a = parser.parse_args()
    with made_hosts(4) as hosts:
        table(f"25 M parameters, {a.batch} samples a rank, a step", "efficiency", hosts, a.rounds, ("alone", "ours", "ddp"),
              lambda h, kind: perceptron(h, kind, a.batch, a.steps))
        program, data = os.path.abspath(a.program), os.path.abspath(a.data)
        table("digits, 20 epochs, start and all; alone: each does all of it", "speed-up", hosts, a.rounds, ("alone", "ours"),
              lambda h, kind: digits(h, kind == "ours", program, data))


if __name__ == "__main__":
    if sys.argv[1:2] == ["rank"]:
        train(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
    else:
        main()
