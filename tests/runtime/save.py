# SPDX-License-Identifier: Apache-2.0
"""Kill ranks while they save, and make each file-system call of a save fail.

usage: save.py kill WRITER DIR KILLS SEED | faults WRITER SHIM DIR
"""
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

ERRORS = ("ENOSPC", "EDQUOT", "EIO")


def command(writer, top, ranks, how, steps):
    return [writer, "ranks", f"{top}/run", str(ranks), how, str(steps)]


def steps_of(path):
    """The step that was restored, and the last step that was acknowledged."""
    with open(path) as f:
        lines = f.read().split("\n")[:-1]
    restored = [int(x.split()[1]) for x in lines if x.startswith("restored")]
    saved = [int(x) for x in lines if x.isdigit()]
    return (restored or [None])[0], max(saved or [0])


def verify_all(top):
    """Verify every file with the name of a checkpoint; return their paths."""
    named = []
    for where, _, names in os.walk(top):
        named += [f"{where}/{n}" for n in names if n.endswith(".h5") and n[0] != "." and where.endswith("/ckpt")]
    if named:
        subprocess.run(["dl", "ckpt", "verify", *named], check=True, stdout=subprocess.DEVNULL)
    return named


def kill_some(writer, top, ranks, how, kills, rng):
    best = saved_all = 0
    for k in range(kills):
        out = f"{top}/out"
        with open(out, "wb") as f:
            p = subprocess.Popen(command(writer, top, ranks, how, 0), stdout=f, start_new_session=True)
            end = time.monotonic() + 200
            while k % 2 and steps_of(out)[1] <= best and p.poll() is None and time.monotonic() < end:
                time.sleep(0.005)  # every second kill comes after a save, however slow the machine is
            time.sleep(rng.uniform(0.01, 0.15))
            assert p.poll() is None, f"kill {k}: the ranks ended with {p.returncode}"
            os.killpg(p.pid, signal.SIGKILL)
            p.wait(timeout=300)
        restored, saved = steps_of(out)
        if restored is not None:
            assert restored >= best, f"kill {k}: restored {restored}, but {best} was acknowledged"
        saved_all += saved > best
        best = max(best, saved)
        if k % 10 == 9:
            verify_all(top)
            for a in sorted(os.listdir(f"{top}/run"), key=lambda n: int(n[2:]) if n[2:].isdigit() else -1)[:-3]:
                if a.startswith("a."):  # keep the newest three, to save space
                    shutil.rmtree(f"{top}/run/{a}", ignore_errors=True) if not holds(f"{top}/run/{a}", best) else None
    verify_all(top)
    assert saved_all * 4 > kills, f"only {saved_all} of {kills} came to save"
    shutil.rmtree(f"{top}/run")
    print(f"{ranks} ranks, {how}: {kills} kills, steps up to {best}, nothing lost")


def holds(attempt, step):
    names = os.listdir(f"{attempt}/ckpt") if os.path.isdir(f"{attempt}/ckpt") else []
    return any(n[:-3].isdigit() and int(n[:-3]) >= step for n in names if n.endswith(".h5"))


def kill(writer, top, kills, seed):
    rng = random.Random(seed)
    for ranks in (1, 4):
        for how in ("sync", "async"):
            kill_some(writer, top, ranks, how, kills, rng)


def one_run(writer, shim, top, how, fault):
    os.makedirs(f"{top}/run")
    env = dict(os.environ, LD_PRELOAD=shim, FAULT_DIR=f"{top}/run", **fault)
    with open(f"{top}/out", "wb") as f:
        p = subprocess.run(command(writer, top, 1, how, 3), stdout=f, stderr=subprocess.DEVNULL, env=env, timeout=300)
    return p.returncode


def one_fault(writer, shim, top, how, call, error):
    n, name, path = call
    status = one_run(writer, shim, top, how, {"FAULT_AT": n, "FAULT_MODE": error})
    restored, saved = steps_of(f"{top}/out")
    files = verify_all(top)
    newest = max((int(os.path.basename(x)[:-3]) for x in files), default=0)
    # Every acknowledged step must be on disk.  An asynchronous error also ends the wait for later saves, so more may
    # be there.  Status 1: the restore could not list the directory, so the run never saved.
    refused = status == 1 and restored is None and name == "open" and path.endswith("/ckpt")
    assert (status in (0, 4) or refused) and newest >= saved, f"{how}, call {n} {name} {path}, {error}: {status}, {saved}, {files}"
    shutil.rmtree(top)


def faults(writer, shim, top):
    """Save three times, and make each call under ckpt/ fail once in each way; four runs share the wait for the disk."""
    with ThreadPoolExecutor(4) as pool:
        tries = []
        for how in ("sync", "async"):
            assert one_run(writer, shim, f"{top}/{how}", how, {"FAULT_COUNT": f"{top}/calls.{how}"}) == 0
            with open(f"{top}/calls.{how}") as f:
                calls = [x.split(" ", 2) for x in f.read().split("\n")[:-1]]
            calls = [c for c in calls if "/ckpt" in c[2] and c[1] not in ("read", "pread", "pread64", "opendir")]
            tries += [pool.submit(one_fault, writer, shim, f"{top}/{how}.{c[0]}.{e}", how, c, e) for c in calls for e in ERRORS]
        for t in tries:
            t.result()
    assert len(tries) > 50, len(tries)
    print(f"{len(tries)} faults")


def main():
    if sys.argv[1] == "kill":
        kill(sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5]))
    else:
        faults(*sys.argv[2:5])


if __name__ == "__main__":
    main()
