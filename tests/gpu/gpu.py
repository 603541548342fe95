# SPDX-License-Identifier: Apache-2.0
"""Helpers of the cases: TAP and figures, the GPU or its fake, ranks as processes, programs with a time limit."""

import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import traceback

STAND_INS = os.environ.get("DL_GPU_STAND_INS") == "1"
PATIENCE = 8 if STAND_INS else 1  # a host without a GPU may be busy, but its time is not scarce
HERE = os.path.dirname(os.path.abspath(__file__))
_count = 0
_failed = 0


def say(*lines):
    for text in lines:
        for line in str(text).splitlines():
            print("#", line[:1000], flush=True)


def ok(condition, name, *about):
    """Report a check; print 'about' if it failed."""
    global _count, _failed
    _count += 1
    print(("ok" if condition else "not ok"), _count, "-", name, flush=True)
    if not condition:
        _failed += 1
        say(*about)
    return bool(condition)


def same(found, wanted, name):
    return ok(found == wanted, name, f"     got: {found!r}", f"expected: {wanted!r}")


def skip(name, why):
    global _count
    _count += 1
    print(f"ok {_count} - {name} # SKIP {why}", flush=True)


def figure(name, value, unit, peer=None, peer_value=None):
    words = ["# figure", name, f"{value:.4g}", unit]
    if peer is not None:
        words += [peer, f"{peer_value:.4g}"]
    print(*words, flush=True)


def case(f, *args):
    """Run a part of a case. An exception counts as a failed check, and the other parts still run."""
    began = time.monotonic()
    say(f"{f.__name__} begins, {began - _began:.1f} s after the case has")
    try:
        f(*args)
    except BaseException as error:  # noqa: B902
        ok(False, f"{f.__name__}: {type(error).__name__}", traceback.format_exc())
        if isinstance(error, KeyboardInterrupt):
            raise
    say(f"{f.__name__}: {time.monotonic() - began:.1f} s")


def done():
    print(f"1..{_count}", flush=True)
    sys.stdout.flush()
    os._exit(1 if _failed else 0)  # do not wait for hanging threads of libraries


def skip_all(why):
    print(f"1..0 # SKIP {why}", flush=True)
    sys.exit(0)


def need(*modules):
    """Import and return modules. Skip all if one is missing."""
    import importlib

    found = []
    for name in modules:
        try:
            found.append(importlib.import_module(name))
        except ImportError as error:
            skip_all(f"no {name}: {error}")
    return found


def need_device():
    """Skip all if torch sees no GPU."""
    status, out = (0, "True") if STAND_INS else run([sys.executable, "-c", "import torch; print(torch.cuda.is_available())"], 60)
    if status or "True" not in out:
        skip_all(f"torch sees no CUDA device: {out.strip()[-200:]}")


def median(values):
    return statistics.median(values)


class folder:
    """A temporary directory below 'top'."""

    def __init__(self, top=None):
        self.top = top

    def __enter__(self):
        self.path = tempfile.mkdtemp(prefix="dl-gpu.", dir=self.top)
        return self.path

    def __exit__(self, *about):
        shutil.rmtree(self.path, ignore_errors=True)


_began = time.monotonic()


def left(most=3600):
    """Return how many seconds this case still has, with a reserve for its end, but at most 'most'."""
    return max(min(most * PATIENCE, float(os.environ.get("DL_GPU_SECONDS", most)) - (time.monotonic() - _began) - 5), 1)


def run(command, seconds=60, **options):
    """Run a program and return (status, output). Kill it after the time limit; the status is then 124."""
    options.setdefault("stdin", subprocess.DEVNULL)
    p = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                         start_new_session=True, **options)
    try:
        out, _ = p.communicate(timeout=seconds * PATIENCE)
        return p.returncode, out
    except subprocess.TimeoutExpired:
        os.killpg(p.pid, 9)
        out, _ = p.communicate()
        return 124, out


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def ranks(command, size, seconds=120, backend="native", **more):
    """Start 'size' ranks of a program on this host. Return their (status, output) by rank."""
    port = free_port()
    processes, ends = [], []
    for r in range(size):
        env = dict(os.environ, RANK=str(r), WORLD_SIZE=str(size), LOCAL_RANK=str(r), LOCAL_WORLD_SIZE=str(size),
                   MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), DL_COMM_ADDRESS=f"127.0.0.1:{port}",
                   DL_COMM_BOOTSTRAP="tcp", OMP_NUM_THREADS="1", **more)
        env.pop("DL_COMM_BACKEND", None)
        if backend:
            env["DL_COMM_BACKEND"] = backend
        out = tempfile.TemporaryFile("w+", errors="replace")
        processes.append((subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL, stdout=out,
                                           stderr=subprocess.STDOUT, start_new_session=True), out))
    deadline = time.monotonic() + seconds * PATIENCE
    for p, out in processes:
        try:
            status = p.wait(max(deadline - time.monotonic(), 0.1))
        except subprocess.TimeoutExpired:
            os.killpg(p.pid, 9)
            p.wait()
            status = 124
        out.seek(0)
        ends.append((status, out.read()))
        out.close()
    return ends


def device_of(torch):
    """Return the device for tensors: "cpu" with fakes, else the GPU. Skip all if there is none."""
    if STAND_INS:
        return torch.device("cpu")
    if not torch.cuda.is_available():
        skip_all("torch sees no CUDA device")
    return torch.device("cuda", 0)


def finish(torch):
    if not STAND_INS:
        torch.cuda.synchronize()


def digits():
    """Return (images / 16, labels) of scikit-learn's digits. With fakes and without scikit-learn, generate similar
    data."""
    import numpy

    try:
        from sklearn.datasets import load_digits

        d = load_digits()
        return (d.data / 16).astype("f4"), d.target.astype("i8")
    except ImportError:
        if not STAND_INS:
            raise
        rng = numpy.random.default_rng(1)
        y = rng.integers(0, 10, 512)
        x = rng.random((512, 64), dtype="f4") * 0.3
        for k in range(6):
            x[numpy.arange(512), y * 6 + k] += 0.7
        return x, y.astype("i8")


def relay(name, command, seconds, **options):
    """Run a program that prints TAP, and report its checks as ours."""
    status, out = run(command, seconds, **options)
    for line in out.splitlines():
        word = line.partition(" - ")[2]
        if line.startswith("ok ") and " # SKIP " in word:
            skip(f"{name}: {word.partition(' # SKIP ')[0]}", word.partition(" # SKIP ")[2])
        elif line.startswith(("ok ", "not ok ")):
            ok(line.startswith("ok "), f"{name}: {word}")
        elif line.startswith("# figure "):
            print(line, flush=True)
        elif not line.startswith("1.."):
            say(line[2:] if line.startswith('# ') else line)
    same(status, 0, f"{name}: ends")
