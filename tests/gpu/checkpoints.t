#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# case: order 10, seconds 150
"""Checkpoints of a PyTorch model and of plain device memory: compare the speed with others, check every byte, kill 100
times."""

import os
import random
import signal
import sys
import threading
import time

import c_interface
from gpu import (STAND_INS, case, device_of, done, figure, finish, folder, median, need, need_device, ok, same, say, skip)

numpy, torch, slurmdl = need("numpy", "torch", "slurmdl")
import slurmdl.torch  # noqa: E402

device = None  # set late: CUDA must not be initialized before fork()
DISK, SHM = os.getcwd(), "/dev/shm"
ROUNDS = 1 if STAND_INS else 2


def model_and_optimizer(seed=1, fill=True):
    """Return a model and Adam after one step, so that its moments exist."""
    torch.manual_seed(seed)
    d, layers = (32, 2) if STAND_INS else (1024, 12)
    block = torch.nn.TransformerEncoderLayer(d, 4 if STAND_INS else 16, 4 * d, batch_first=True, device=device)
    model = torch.nn.TransformerEncoder(block, layers, enable_nested_tensor=False).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    if fill:
        step(model, optimizer)
    return model, optimizer


def step(model, optimizer, batch=8, length=64):
    d = next(model.parameters()).shape[-1]
    x = torch.randn(2 if STAND_INS else batch, 8 if STAND_INS else length, d, device=device)
    optimizer.zero_grad()
    model(x).square().mean().backward()
    optimizer.step()


def tensors_of(model, optimizer):
    """Return all tensors of a checkpoint by name."""
    named = dict(model.state_dict())
    for i, state in optimizer.state_dict()["state"].items():
        named.update({f"{i}.{k}": v for k, v in state.items() if torch.is_tensor(v)})
    return named


def bits(t):
    return t.detach().contiguous().reshape(-1).view(torch.uint8)


def differing(a, b):
    return [k for k in a if k not in b or a[k].dtype != b[k].dtype or a[k].shape != b[k].shape
            or not torch.equal(bits(a[k]).to(device), bits(b[k]).to(device))]


def timed(f):
    finish(torch)
    t = time.monotonic()
    f()
    finish(torch)
    return time.monotonic() - t


# ---- baselines and other libraries


class Pinned:
    """Baseline: copy the same bytes to pinned memory and write them to a file."""

    def __init__(self, tensors):
        self.tensors = [bits(t) for t in tensors.values()]
        self.n = sum(t.numel() for t in self.tensors)
        whole = (self.n + 4095) // 4096 * 4096
        self.host = torch.empty(whole + 4096, dtype=torch.uint8, pin_memory=not STAND_INS)
        start = -self.host.data_ptr() % 4096
        self.host = self.host[start:start + whole]

    def copy(self):
        at = 0
        for t in self.tensors:
            self.host[at:at + t.numel()].copy_(t, non_blocking=True)
            at += t.numel()
        finish(torch)

    def write(self, path):
        view = memoryview(self.host.numpy())
        try:
            fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_DIRECT, 0o600)
        except OSError:
            fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        at = 0
        while at < len(view):
            at += os.write(fd, view[at:at + (8 << 20)])
        os.fsync(fd)
        os.close(fd)

    def read(self, path):
        """Read the file and copy it back to the device."""
        with open(path, "rb", buffering=0) as f:
            view, at = memoryview(self.host.numpy()), 0
            while at < len(view):
                got = f.readinto(view[at:at + (8 << 20)])
                if not got:
                    break
                at += got
        at = 0
        for t in self.tensors:
            t.copy_(self.host[at:at + t.numel()], non_blocking=True)
            at += t.numel()
        finish(torch)


def torch_save(state, path):
    torch.save(state, path)
    fd = os.open(path, os.O_RDONLY)
    os.fsync(fd)
    os.close(fd)


def async_saver():
    """Return torch's asynchronous save: a function of state and path that returns a future."""
    import torch.distributed as dist
    import torch.distributed.checkpoint as dcp

    if not dist.is_initialized():
        store = os.path.join(DISK, f"store.{os.getpid()}")
        dist.init_process_group("cpu:gloo" if STAND_INS else "cpu:gloo,cuda:nccl", init_method=f"file://{store}",
                                rank=0, world_size=1)
    options = {}
    try:
        from torch.distributed.checkpoint.staging import BlockingAsyncStager

        options["async_stager"] = BlockingAsyncStager(cache_staged_state_dict=True)
    except (ImportError, TypeError) as error:
        say(f"async_save with its own stager: {error}")

    def save(state, path):
        answer = dcp.async_save(state, checkpoint_id=path, **options)
        return getattr(answer, "upload_completion", answer)

    return save


# ---- speed


def speed(top, where, rounds):
    model, optimizer = model_and_optimizer()
    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
    named = tensors_of(model, optimizer)
    n = sum(t.numel() * t.element_size() for t in named.values())
    gb, gib = n / 1e9, n / 2**30
    say(f"{where}: {len(named)} tensors, {gib:.3f} GiB")
    times = {}

    def note(name, seconds):
        times.setdefault(name, []).append(seconds)

    plain = Pinned(named)
    saver = None
    try:
        saver = async_saver()
    except Exception as error:
        say(f"torch.distributed.checkpoint: {type(error).__name__}: {error}")
    with folder(top) as here:
        handle = slurmdl.init(os.path.join(here, "run"))
        parts = dict(model=model, optimizer=optimizer)
        slurmdl.torch.save_model(handle, 0, wait=False, **parts)  # allocates the staging memory
        handle.wait()
        for i in range(rounds):
            os.sync()
            t = timed(plain.copy)
            note("copy", t)
            note("plain", t + timed(lambda: plain.write(os.path.join(here, "plain"))))
            os.sync()
            began = time.monotonic()
            note("sync", timed(lambda i=i: slurmdl.torch.save_model(handle, 10 * i + 1, **parts)))
            handle.wait()
            note("sync.verified", time.monotonic() - began)
            os.sync()
            began = time.monotonic()
            note("async.stall", timed(lambda i=i: slurmdl.torch.save_model(handle, 10 * i + 2, wait=False, **parts)))
            appears(os.path.join(handle.dir, "ckpt", f"{10 * i + 2:08d}.h5"))
            note("async.saved", time.monotonic() - began)
            handle.wait()
            note("async.verified", time.monotonic() - began)
            os.sync()
            note("torch.save", timed(lambda: torch_save(state, os.path.join(here, "t.pt"))))
            if saver:
                try:
                    os.sync()
                    began = time.monotonic()
                    future = saver(state, os.path.join(here, f"dcp{i}"))
                    note("dcp.stall", time.monotonic() - began)
                    future.result()
                    note("dcp.whole", time.monotonic() - began)
                except Exception as error:
                    say(f"async_save: {type(error).__name__}: {error}")
                    saver = None
        last = handle.dir
        handle.close()
        restores(here, last, named, plain, note, rounds)
    m = {k: median(v) for k, v in times.items()}
    say(f"{where}: " + ", ".join(f"{k} {' '.join(f'{t:.3f}' for t in v)}" for k, v in times.items()))
    tell(where, m, gb, gib)


def appears(path):
    """Wait until a checkpoint is safe: only then does it get its name. wait() would also wait for the read-back."""
    while not os.path.exists(path):
        time.sleep(0.002)


def in_page_cache(paths, wanted):
    """Load all files into the page cache, or drop all: some writers bypass the cache, and the comparison must be
    fair."""
    for path in paths:
        with open(path, "rb", buffering=0) as f:
            os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_SEQUENTIAL if wanted else os.POSIX_FADV_DONTNEED)
            while wanted and f.read(32 << 20):
                pass


def restores(here, last, named, plain, note, rounds):
    """Restore into a model with other values: from the disk once, then from the page cache."""
    folder_of = os.path.join(last, "ckpt")
    newest = max(name for name in os.listdir(folder_of) if name.endswith(".h5"))
    files = [os.path.join(folder_of, newest), os.path.join(here, "t.pt"), os.path.join(here, "plain")]
    for i in range(-1 if here.startswith(DISK) else 0, rounds):
        in_page_cache(files, i >= 0)
        cold = ".cold" if i < 0 else ""
        other, moments = model_and_optimizer(seed=7)
        handle = slurmdl.init(os.path.join(here, "run"))
        found = []
        note("restore" + cold, timed(lambda: found.append(slurmdl.torch.restore_model(handle, model=other,
                                                                                       optimizer=moments))))
        handle.close()
        if i <= 0:
            ok(found[0] is not None, "the newest checkpoint is found", found, os.listdir(os.path.dirname(last)))
            same(differing(named, tensors_of(other, moments)), [], "every bit of the model and its moments is restored")

        def load():
            s = torch.load(os.path.join(here, "t.pt"), map_location=device)
            other.load_state_dict(s["model"])
            moments.load_state_dict(s["optimizer"])

        note("torch.load" + cold, timed(load))
        note("plain.read" + cold, timed(lambda: plain.read(os.path.join(here, "plain"))))


def tell(where, m, gb, gib):
    p = f"checkpoint.{where}"
    figure(f"{p}.copy-to-pinned", gb / m["copy"], "GB/s")
    for name in ("sync", "async.saved"):
        figure(f"{p}.{name}", gb / m[name], "GB/s", "copy-and-write", gb / m["plain"])
        figure(f"{p}.{name}", gb / m[name], "GB/s", "torch.save", gb / m["torch.save"])
    figure(f"{p}.async.verified", gb / m["async.verified"], "GB/s", "sync.verified", gb / m["sync.verified"])
    figure(f"{p}.async.stall", m["async.stall"] / gib, "s/GiB", "copy-to-pinned", m["copy"] / gib)
    if "dcp.whole" in m:
        figure(f"{p}.async.saved", gb / m["async.saved"], "GB/s", "torch.dcp.async_save", gb / m["dcp.whole"])
        figure(f"{p}.async.stall", m["async.stall"] / gib, "s/GiB", "torch.dcp.async_save", m["dcp.stall"] / gib)
    for cold in ("", ".cold"):
        if "restore" + cold in m:
            figure(f"{p}.restore{cold}", gb / m["restore" + cold], "GB/s", "torch.load", gb / m["torch.load" + cold])
            figure(f"{p}.restore{cold}", gb / m["restore" + cold], "GB/s", "read-and-copy", gb / m["plain.read" + cold])


def training():
    """Measure how much time a training loop loses for each asynchronous checkpoint."""
    model, optimizer = model_and_optimizer()
    parts = dict(model=model, optimizer=optimizer)
    n = sum(t.numel() * t.element_size() for t in tensors_of(model, optimizer).values())
    steps, every = (6, 3) if STAND_INS else (40, 20)

    def loop(handle):
        finish(torch)
        t = time.monotonic()
        for i in range(1, steps + 1):
            step(model, optimizer, 16, 256)
            if handle is not None and i % every == 0:
                slurmdl.torch.save_model(handle, i, wait=False, **parts)
        finish(torch)
        return time.monotonic() - t

    with folder(SHM) as top:
        handle = slurmdl.init(os.path.join(top, "run"))
        slurmdl.torch.save_model(handle, 0, wait=False, **parts)
        handle.wait()
        loop(None)
        without, with_saves = [], []
        for _ in range(ROUNDS):
            without.append(loop(None))
            with_saves.append(loop(handle))
            handle.wait()
        handle.close()
    lost = (median(with_saves) - median(without)) / (steps // every)
    say(f"training: {steps} steps without {without}, with {steps // every} checkpoints {with_saves}")
    figure("checkpoint.training.lost-by-each", lost / (n / 2**30), "s/GiB")
    ok(True, f"a loop of {steps} steps with checkpoints of {n / 2**30:.2f} GiB while it trains")


# ---- every byte


def types():
    """Save random bits of every type and restore them into other tensors; open the file with h5py."""
    names = ["bfloat16", "float16", "float32", "float64", "int8", "uint8", "int16", "int32", "int64", "bool",
             "complex64", "complex128", "float8_e4m3fn", "float8_e5m2", "uint16", "uint32", "uint64"]
    names = [n for n in names if hasattr(torch, n)]
    rng = numpy.random.default_rng(3)
    given = {}
    for k, name in enumerate(names):
        dtype = getattr(torch, name)
        shape = (37 + k, 1001) if k % 2 else (1 + 4099 * k,)
        size = torch.empty(0, dtype=dtype).element_size()
        raw = rng.integers(0, 2 if name == "bool" else 256, int(numpy.prod(shape)) * size, dtype="u1")
        given[name] = torch.from_numpy(raw).to(device).view(dtype).reshape(shape)
    given["empty"] = torch.empty((0, 3), device=device)
    given["scalar"] = torch.tensor(2.5, device=device)
    with folder(SHM) as top:
        for how in ("sync", "async"):
            wanted = {name: t.clone() for name, t in given.items()}
            handle = slurmdl.init(os.path.join(top, how))
            for name, t in given.items():
                handle.protect(f"t/{name}", t)
            if how == "sync":
                handle.save(5)
            else:
                handle.save_async(5)
                for t in given.values():  # writes after the call must not reach the checkpoint
                    bits(t).fill_(1)
            handle.wait()
            path = os.path.join(handle.dir, "ckpt", "00000005.h5")
            handle.close()
            got = {name: torch.empty_like(t) for name, t in given.items()}
            again = slurmdl.init(os.path.join(top, how))
            for name, t in got.items():
                bits(t).fill_(1)
                again.protect(f"t/{name}", t)
            same(again.restore(), 5, f"{how}: restored")
            again.close()
            wrong = [n for n in given if not torch.equal(bits(got[n]), bits(wanted[n]))]
            same(wrong, [], f"{how}: every bit of {len(given)} tensors of all types")
        opened(path, wanted)


def opened(path, wanted):
    try:
        import h5py
    except ImportError as error:
        skip("h5py opens the file", str(error))
        return
    with h5py.File(path, "r") as f:
        for name in ("float32", "int64", "float16"):
            ok((f[f"t/{name}"][()].tobytes() == bits(wanted[name]).cpu().numpy().tobytes()), f"h5py reads {name}",
               f[f"t/{name}"])
        for name in ("bfloat16", "float8_e4m3fn"):
            if name in f["t"]:
                say(f"h5py: {name}: {f['t'][name].dtype}, {f['t'][name].shape}")


# ---- kills


KILLS, CHAINS = (6, 2) if STAND_INS else (100, 10)
MIB = 1 if STAND_INS else 48


def expected(n):
    """Return the state of step n, which any process can compute."""
    i = torch.arange(MIB << 18, dtype=torch.int64, device=device)
    return (((i * 2654435761 + n * 40503) >> 7) & 0xFFFFFF).to(torch.float32), i[: 1 << 16] * n


def victim(path, pipe):
    """Restore and compare, then save until killed. Write what was restored and what is acknowledged to the pipe."""
    global device
    device = device_of(torch)

    def tell_parent(text):
        os.write(pipe, (text + "\n").encode())

    handle = slurmdl.init(path)
    a, b = (x.clone() for x in expected(0))
    handle.protect("a", a)
    handle.protect("b", b)
    at = handle.restore()
    if at is not None:
        want = expected(at)
        same_bits = torch.equal(bits(a), bits(want[0])) and torch.equal(bits(b), bits(want[1]))
        tell_parent(f"restored {at} {'equal' if same_bits else 'DIFFERENT'}")
    else:
        tell_parent("restored -1 equal")
    at = (at or 0) + 1
    while True:
        for x, value in zip((a, b), expected(at)):
            x.copy_(value)
        finish(torch)
        if at % 2:
            handle.save(at)
            tell_parent(f"acknowledged {at}")
        else:
            handle.save_async(at)
            if at % 4 == 0:
                handle.wait()
                tell_parent(f"acknowledged {at}")
        at += 1


def life(path, rng, last, once=False):
    """Start a victim and kill it at a random moment. Return (restored step, whether its bits are equal, last
    acknowledged step, errors)."""
    r, w = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(r)
            victim(path, w)
        except BaseException as error:  # noqa: B902
            os.write(w, f"error {type(error).__name__}: {error}\n".replace("\n", " ").encode() + b"\n")
        os._exit(3)
    os.close(w)
    said, acknowledged, restored, good = [], last, None, None
    with os.fdopen(r) as lines:
        first = lines.readline().split()
        if first[:1] == ["restored"]:
            restored, good = int(first[1]), first[2] == "equal"
            timer = threading.Timer(0 if once else rng.uniform(0.02, 0.2 if STAND_INS else 0.8), os.kill,
                                    (pid, signal.SIGKILL))
            timer.start()
            for line in lines:
                said.append(line.strip())
                if line.startswith("acknowledged ") and line.endswith("\n"):
                    acknowledged = int(line.split()[1])
            timer.join()
        else:
            said = [" ".join(first)]
    os.waitpid(pid, 0)
    return restored, good, acknowledged, [s for s in said if s.startswith("error")]


def chain(path, seed, kills, found):
    rng, last = random.Random(seed), -1
    for k in range(kills + 1):
        restored, good, acknowledged, errors = life(path, rng, last, once=k == kills)
        found.append((restored is not None and restored >= last, good, errors, restored, last))
        if errors or restored is None:
            break
        last = max(acknowledged, restored)


def kill_all():
    """Call this before the process uses CUDA, which does not survive a fork."""
    with folder(DISK) as top:
        found = [[] for _ in range(CHAINS)]
        threads = [threading.Thread(target=chain, args=(os.path.join(top, f"run{c}"), c, KILLS // CHAINS, found[c]))
                   for c in range(CHAINS)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        lives = [x for one in found for x in one]
        say(*[f"{x}" for x in lives if not (x[0] and x[1]) or x[2]])
        same(len(lives), KILLS + CHAINS, f"{KILLS} SIGKILLs while saving, each followed by a restart")
        ok(all(x[0] for x in lives), "each time a checkpoint as new as the newest acknowledged one is restored")
        ok(all(x[1] for x in lives), "each time bit by bit")
        newest = max((x[3] or 0) for x in lives) if lives else 0
        ok(newest > 0, f"the checkpoints were of up to step {newest}")


def main():
    global device
    need_device()
    case(kill_all)
    case(c_interface.in_own_process)
    device = device_of(torch)
    if not STAND_INS:
        torch.backends.cuda.matmul.allow_tf32 = True
    case(types)
    case(speed, SHM, "shm", ROUNDS)
    case(speed, DISK, "disk", min(ROUNDS, 2))
    case(training)
    done()


main()
