#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# case: order 22, seconds 115
"""Named tensors on the device: train PyTorch models with DistributedOptimizer, on one rank and on several that share a
GPU.

engine.t train OUT SECONDS runs one rank.
"""

import faulthandler
import json
import os
import sys
import time

from gpu import (STAND_INS, case, device_of, digits, done, figure, finish, folder, left, need, need_device, ok, ranks, same,
                 say, skip)

numpy, torch, slurmdl = need("numpy", "torch", "slurmdl")

KINDS = ("none", "f16", "bf16", "many")
BATCH = 128


def epochs(what, size):
    """Return the number of epochs. The first is not timed. Ranks that share a GPU are slower, so they run fewer."""
    if STAND_INS:
        return 1
    if what in ("f16", "bf16"):
        return 3
    return {"none": 30 if size == 1 else 6, "many": 10 if size == 1 else 3}[what]


def net(device, width=256):
    c = 2 if STAND_INS else 32
    torch.manual_seed(11)
    conv = torch.nn.Sequential(
        torch.nn.Unflatten(1, (1, 8, 8)), torch.nn.Conv2d(1, c, 3, padding=1), torch.nn.ReLU(),
        torch.nn.Conv2d(c, 2 * c, 3, padding=1), torch.nn.ReLU(), torch.nn.Flatten(),
        torch.nn.Linear(128 * c, width), torch.nn.ReLU(), torch.nn.Linear(width, 10))
    return conv.to(device)


def mlp(device, depth=40):
    """Return a model with many small gradients, to test fusion."""
    width = 64 if STAND_INS else 512
    torch.manual_seed(12)
    layers = [torch.nn.Linear(64, width), torch.nn.ReLU()]
    for _ in range(4 if STAND_INS else depth):
        layers += [torch.nn.Linear(width, width), torch.nn.ReLU()]
    return torch.nn.Sequential(*layers, torch.nn.Linear(width, 10)).to(device)


def reproducible():
    os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"
    torch.use_deterministic_algorithms(True)
    torch.backends.cudnn.benchmark = False
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False


def digest(tensors):
    import hashlib

    h = hashlib.sha256()
    for t in tensors:
        h.update(t.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
    return h.hexdigest()


def train(device, wrap, rank=0, size=1, passes=1, make=net):
    """Train on this rank's part of the digits. Return the seconds for each step, loss, accuracy and a digest of the
    parameters."""
    import torch.nn.functional as F

    x, y = (torch.from_numpy(a).to(device) for a in digits())
    model = make(device)
    optimizer = wrap(torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9), model)
    began, steps = time.monotonic(), 0
    for epoch in range(passes):
        if epoch == 1:
            finish(torch)
            began, steps = time.monotonic(), 0
        order = torch.from_numpy(numpy.random.default_rng(epoch).permutation(len(x))).to(device)
        for i in range(0, len(x) - BATCH + 1, BATCH):
            mine = order[i:i + BATCH][rank::size]
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x[mine]), y[mine])
            loss.backward()
            optimizer.step()
            steps += 1
    finish(torch)
    seconds = (time.monotonic() - began) / steps
    with torch.no_grad():
        accuracy = (model(x).argmax(1) == y).float().mean().item()
    return {"seconds": seconds, "loss": loss.item(), "accuracy": accuracy, "digest": digest(model.parameters())}


# ---- a rank


def one_rank(out, seconds):
    """Train on the device; with several ranks, also train with gradients that the program copies to the host and
    submits from there."""
    import slurmdl.comm

    began = time.monotonic()
    faulthandler.dump_traceback_later(float(seconds), exit=True)  # shows where a hang is
    device = device_of(torch)
    reproducible()
    if not STAND_INS:
        torch.cuda.set_device(0)
    world = slurmdl.comm.init()
    result = {"rank": world.rank, "size": world.size, "backend": world.backend}

    def note(name, found):
        result[name] = found
        print(f"rank {world.rank}: {time.monotonic() - began:5.1f} s: {name}", file=sys.stderr, flush=True)

    def wrap(where, compression):
        if where == "copied":
            return lambda o, m: Copied(o, m, world, compression)
        return lambda o, m: slurmdl.DistributedOptimizer(o, m.named_parameters(), compression=compression)

    for where in ("device", "copied") if world.size > 1 else ("device",):
        for what in KINDS:
            wrapped = wrap(where, "none" if what == "many" else what)
            note(f"{where} {what}", train(device, wrapped, world.rank, world.size, epochs(what, world.size),
                                          mlp if what == "many" else net))
    note("named", named(world, device))
    note("disagreement", disagreement(world, device))
    with open(f"{out}.{world.rank}", "w") as f:
        json.dump(result, f)
    world.close()


class Copied:
    """An optimizer that copies gradients to the host, submits them from there, and copies them back."""

    def __init__(self, optimizer, model, world, compression):
        self.inner, self.world, self.compression = optimizer, world, compression
        self.named = list(model.named_parameters())

    def zero_grad(self):
        self.inner.zero_grad()

    def step(self):
        waiting = []
        for name, p in self.named:
            host = p.grad.detach().cpu()
            waiting.append((p, host, self.world.submit(f"copied/{name}", host, op="average",
                                                       compression=self.compression)))
        for p, host, handle in waiting:
            handle.wait()
            p.grad.copy_(host)
        self.inner.step()


def named(world, device):
    """Check each kind of named tensor in device memory. Return what is wrong."""
    r, n, wrong = world.rank, world.size, []

    def check(name, got, want):
        if not torch.equal(got.cpu(), want.cpu()):
            wrong.append(f"{name}: {got.flatten()[:4].tolist()} for {want.flatten()[:4].tolist()}")

    base = torch.arange(1000, device=device, dtype=torch.float32)
    for dtype in (torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int32, torch.int64):
        x = (base % 50).to(dtype) * (r + 1)
        world.submit(f"sum {dtype}", x, op="sum").wait()
        check(f"sum {dtype}", x, ((base % 50) * (n * (n + 1) // 2)).to(dtype))
    for op, factor in (("min", 1), ("max", n)):
        x = base * (r + 1)
        check(op, world.submit(f"op {op}", x, op=op).wait(), base * factor)
    x = base * (r + 1)
    check("scaled", world.submit("scaled", x, op="sum", prescale=0.5, postscale=4.0).wait(), base * n * (n + 1))
    x = base + r
    check("broadcast", world.submit_broadcast("b", x, root=n - 1).wait(), base + n - 1)
    got = world.submit_allgather("g", base[: 10 + r].clone()).wait()
    check("allgather", got, torch.cat([base[: 10 + k] for k in range(n)]))
    x = (base * (r + 1)).reshape(100, 10)
    begin = sum(world.parts(100)[:r])
    want = (base * (n * (n + 1) // 2)).reshape(100, 10)[begin:begin + world.parts(100)[r]]
    check("reduce-scatter", world.submit_reduce_scatter("rs", x, op="sum").wait(), want)
    handles = [(world.submit(f"small {i}", base[:7] * (r + 1), op="sum"), i) for i in range(200)]
    for handle, i in reversed(handles):
        check(f"small {i}", handle.wait(), base[:7] * (n * (n + 1) // 2))
    if device.type == "cuda":
        on_streams(world, device, check, base)
    for name, got, want in (("allreduce", world.allreduce(base * (r + 1)), base * (n * (n + 1) // 2)),
                            ("all-gather", world.allgather(base[:5] + r), torch.cat([base[:5] + k for k in range(n)]))):
        check(f"collective {name}", got, want)
    return wrong


def on_streams(world, device, check, base):
    """A collective must wait for the caller's stream, and any stream may use the result."""
    n, other = world.size, torch.cuda.Stream()
    a = torch.randn(4096, 4096, device=device)
    for i in range(3):
        with torch.cuda.stream(other):
            b = a
            for _ in range(30):
                b = (b @ a) * 1e-3
            x = torch.full((1 << 20,), 1.0, device=device) + 0 * b[0, 0].nan_to_num(0, 0, 0)
            x *= world.rank + 1
            handle = world.submit(f"stream {i}", x, op="sum")
        handle.wait()
        y = x + 0  # on the default stream
        check(f"stream {i}", y, torch.full_like(y, n * (n + 1) / 2))


def disagreement(world, device):
    """Ranks that submit a name with different sizes get an error; other names still work."""
    if world.size == 1:
        return "one rank"
    try:
        world.submit("differs", torch.zeros(4 + world.rank, device=device)).wait()
        return "no error"
    except slurmdl.Error as error:
        x = torch.ones(3, device=device)
        world.submit("after", x, op="sum").wait()
        return str(error) if x.tolist() == [world.size] * 3 else f"wrong afterwards: {x.tolist()}"


# ---- the case


def start(size, top, backend):
    out, seconds = os.path.join(top, f"{size}.{backend}"), left(60)
    ends = ranks([sys.executable, __file__, "train", out, str(seconds)], size, seconds + 3, backend)
    for r, (status, text) in enumerate(ends):
        if not same(status, 0, f"{size} rank(s), back end {backend or 'default'}: rank {r} ends"):
            say(text[-3000:])
        elif r == 0:
            say(text[-2000:])
    found = []
    for r in range(size):
        if os.path.exists(f"{out}.{r}"):
            with open(f"{out}.{r}") as f:
                found.append(json.load(f))
    return found


def worlds():
    plain = os.path.join(os.getcwd(), "plain.json")
    ends = ranks([sys.executable, __file__, "alone", plain], 1, left(60))
    if not same(ends[0][0], 0, "training without us ends"):
        say(ends[0][1][-3000:])
        return
    with open(plain) as f:
        alone = json.load(f)
    with folder(os.getcwd()) as top:
        for size, backend in ((1, None), (2, "native"), (4, "native"))[:2 if STAND_INS else 3]:
            if left() < 15 and not STAND_INS:
                skip(f"{size} rank(s)", f"{left():.0f} s are left")
                continue
            began = time.monotonic()
            found = start(size, top, backend)
            say(f"{size} rank(s): {time.monotonic() - began:.1f} s")
            if len(found) == size:
                look(f"{size} rank(s), back end {backend or 'default'}", found, alone)


def look(name, found, alone):
    size, first = len(found), found[0]
    say(f"{name}: " + json.dumps(first))
    for r, one in enumerate(found):
        same(one["named"], [], f"{name}: rank {r}: named tensors and collectives on the device")
    for what in KINDS:
        same(len({one[f"device {what}"]["digest"] for one in found}), 1,
             f"{name}: {what}: parameters are equal on all ranks")
    if size == 1:
        one_of_all(name, first, alone)
        return
    ok(all("differs" in one["disagreement"] for one in found), f"{name}: ranks that disagree are told",
       first["disagreement"])
    for what in KINDS:
        good = same(first[f"device {what}"]["digest"], first[f"copied {what}"]["digest"],
                    f"{name}: {what}: the same bits as of gradients that the program copies to the host")
        if good and what in ("none", "many"):
            figure(f"engine.step.{what}.{size}-ranks-one-gpu", first[f"device {what}"]["seconds"] * 1e3, "ms",
                   "copied-by-hand", first[f"copied {what}"]["seconds"] * 1e3)
    accuracy = first["device none"]["accuracy"]
    ok(STAND_INS or accuracy > 0.9, f"{name}: it learns ({accuracy:.3f})")


def one_of_all(name, found, alone):
    """With one rank, gradients must not change."""
    for what in ("none", "many"):
        mine, plain = found[f"device {what}"], alone[what]
        if same(mine["digest"], plain["digest"], f"{name}: {what}: the same as without us, bit by bit"):
            figure(f"engine.step.{what}.1-rank", mine["seconds"] * 1e3, "ms", "plain-torch", plain["seconds"] * 1e3)


def default_back_end():
    """Two ranks on one GPU with the default backend: both must print one clear error and not hang."""
    code = ("import torch, slurmdl.comm\nw = slurmdl.comm.init()\n"
            "x = torch.ones(8, device='cuda')\nprint(w.submit('x', x).wait())")
    if STAND_INS:
        say("two ranks on one GPU: see nccl.t")
        return
    for r, (status, text) in enumerate(ranks([sys.executable, "-c", code], 2, left(40), None)):
        last = text.strip().splitlines()[-1:] or [""]
        ok(status not in (0, 124) and "same GPU" in last[0], f"two ranks on one GPU: rank {r}: {last[0]}", status, text)


def alone(out):
    device = device_of(torch)
    reproducible()
    with open(out, "w") as f:
        json.dump({what: train(device, lambda o, m: o, passes=epochs(what, 1), make=make)
                   for what, make in (("none", net), ("many", mlp))}, f)


if sys.argv[1:2] == ["train"]:
    one_rank(*sys.argv[2:])
elif sys.argv[1:2] == ["alone"]:
    alone(sys.argv[2])
else:
    need_device()
    case(default_back_end)
    case(worlds)
    done()
