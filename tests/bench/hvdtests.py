# SPDX-License-Identifier: Apache-2.0
"""Horovod's own test files on slurmdl.hvd: how many of their tests pass.

    git clone https://github.com/horovod/horovod
    PYTHONPATH=SITE python3 tests/bench/hvdtests.py horovod --ranks 1,2,4
    ... --only allreduce,elastic --log FOLDER          # only these; keep the output of each rank

SITE has the package slurmdl; the tests need numpy, torch and packaging. Each test runs in new ranks, which are started
without a launcher, with RANK, WORLD_SIZE and MASTER_ADDR. The tests are unedited: here their `import horovod.torch`
imports slurmdl.hvd. Of Horovod's own code, only horovod/common/util.py is used. GPU tests skip themselves without a
GPU. The exit status is 1 if a test fails that is not in DIFFERENCES.
"""
import argparse
import collections
import importlib.util
import json
import os
import pathlib
import pickle
import random
import signal
import sys
import tempfile
import time
import traceback
import types
import unittest
import unittest.mock

FILES = (
    "parallel/test_torch.py",
    "parallel/test_adasum_pytorch.py",
    "parallel/test_common.py",
    "parallel/test_timeline.py",
    "parallel/test_process_sets_static.py",
    "single/test_torch_elastic.py",
)
# known failures, by number of ranks: differences documented in slurmdl/hvd/__init__.py, or faults of the test itself
DIFFERENCES = (
    ("test_broadcast_state_no_grad", lambda n: True, "broadcast_optimizer_state() makes no gradients"),
    ("test_horovod_join_allgather", lambda n: n > 1, "after join() of some ranks all-gathers of the others go on"),
    ("test_horovod_join_broadcast", lambda n: n > 1, "after join() of some ranks broadcasts of the others go on"),
    ("test_horovod_join_allreduce", lambda n: n == 1, "the test wants another rank to be the last that joins"),
    ("process_sets", lambda n: n == 1, "the set [0] is the world: a duplicate in Horovod, too"),
    ("prescale", lambda n: n not in (1, 2, 4, 8), "the test compares a half that is rounded with one that is not"),
    ("duplicate_name_error", lambda n: n > 1, "unsteady: with the others there, the first may be done before the second"),
    ("_barrier_op", lambda n: n > 1, "unsteady: 5 s of rank 0, measured by one that may begin later"),
    ("test_elastic_sampler", lambda n: n > 1, "the test expects of processed_num what Horovod's own code does not do"),
)


# ---- Horovod's modules


def stand_in(name, **members):
    module = types.ModuleType(name)
    module.__dict__.update(members)
    module.__path__ = []
    sys.modules[name] = module
    parent, _, last = name.rpartition(".")
    if parent:
        setattr(sys.modules[parent], last, module)
    return module


def in_thread(target, args=(), name=None, daemon=True, silent=False):
    import threading

    thread = threading.Thread(target=target, args=args, name=name, daemon=daemon)
    thread.start()
    return thread


def of_checkout(horovod, name):
    spec = importlib.util.spec_from_file_location(name, horovod / (name.replace(".", "/") + ".py"))
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def stand_ins(horovod):
    """Install fakes of Horovod's modules and of small packages that may be missing."""
    import slurmdl.hvd as hvd
    from slurmdl.hvd import world

    stand_in("horovod")
    stand_in("horovod.common")
    stand_in("horovod.common.exceptions", get_version_mismatch_message=None, HorovodVersionMismatchError=Exception,
             HorovodInternalError=hvd.HorovodInternalError)
    util = of_checkout(horovod, "horovod.common.util")
    util.gloo_built = lambda verbose=False: hvd.gloo_built()
    util.mpi_built = lambda verbose=False: hvd.mpi_built()
    util.extension_available = lambda name, verbose=False: name == "torch"
    stand_in("horovod.runner")
    stand_in("horovod.runner.util")
    stand_in("horovod.runner.util.threads", in_thread=in_thread)
    # ids of the process sets, which one test checks
    numbers = types.SimpleNamespace(_get_process_set_ids_and_ranks=lambda: {
        0: hvd.global_process_set.ranks, **{k: s.ranks for k, s in world._sets.items()}})
    everything = {k: v for k, v in vars(hvd).items() if not k.startswith("__")}
    operations = types.SimpleNamespace(_basics=numbers, **everything)
    for name in ("horovod.torch", "horovod.tensorflow"):
        stand_in(name, mpi_ops=operations, **everything)
        stand_in(f"{name}.mpi_ops", _basics=numbers, **everything)
    if not importlib.util.find_spec("cloudpickle"):
        sys.modules["cloudpickle"] = pickle
    if not importlib.util.find_spec("mock"):
        sys.modules["mock"] = unittest.mock
    if not importlib.util.find_spec("pytest"):
        mark = types.SimpleNamespace(skip=lambda reason: lambda f: f, skipif=unittest.skipIf)
        stand_in("pytest", mark=mark)


def tests_of(path):
    """Yield (name, class) of the tests in a file, in order."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    for case in vars(module).values():
        if isinstance(case, type) and issubclass(case, unittest.TestCase):
            for name in vars(case):
                if name.startswith("test"):
                    yield name, case


# ---- one test


def rank_main(case, name, rank, size, port, secret, folder):
    """Run a test as a rank, and write (outcome, why) to a file."""
    out = os.open(folder / f"log.{rank}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
    os.dup2(out, 1)
    os.dup2(out, 2)
    os.environ.update(
        RANK=str(rank), WORLD_SIZE=str(size), LOCAL_RANK=str(rank), LOCAL_WORLD_SIZE=str(size), MASTER_ADDR="127.0.0.1",
        MASTER_PORT=str(port), DL_SECRET=secret, DL_COMM_TIMEOUT="60", HOROVOD_RANK=str(rank), HOROVOD_SIZE=str(size),
        HOROVOD_LOCAL_RANK=str(rank), HOROVOD_LOCAL_SIZE=str(size))
    result = unittest.TestResult()
    case(name).run(result)
    bad = result.errors + result.failures
    if bad:
        print(bad[0][1], flush=True)
        outcome = "failed", bad[0][1].strip().splitlines()[-1]
    else:
        outcome = ("skipped", result.skipped[0][1]) if result.skipped else ("passed", "")
    (folder / f"outcome.{rank}").write_text(json.dumps(outcome))


def start(case, name, rank, *about):
    sys.stdout.flush()
    pid = os.fork()
    if pid:
        return pid
    try:
        rank_main(case, name, rank, *about)
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    sys.exit()


def wait_for(pids, seconds):
    """Wait for all processes; kill those that take too long. Return whether all ended in time."""
    left, until = set(pids), time.monotonic() + seconds
    while left and time.monotonic() < until:
        left -= {pid for pid in left if os.waitpid(pid, os.WNOHANG)[0]}
        time.sleep(0.01)
    for pid in left:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    return not left


def run(case, name, size, seconds, folder):
    """Run a test on all ranks. Return the worst (outcome, why)."""
    folder.mkdir(parents=True, exist_ok=True)
    # below the kernel's ephemeral ports
    port, secret = random.randrange(10000, 19990), os.urandom(16).hex()
    pids = [start(case, name, rank, size, port, secret, folder) for rank in range(size)]
    if not wait_for(pids, seconds):
        return "failed", f"a rank had not ended after {seconds:.0f} s"
    every = []
    for rank in range(size):
        path = folder / f"outcome.{rank}"
        every.append(tuple(json.loads(path.read_text())) if path.exists() else ("failed", f"rank {rank} died"))
    for outcome in ("failed", "passed", "skipped"):
        found = [e for e in every if e[0] == outcome]
        if found:
            return found[0]
    return "failed", "no rank"


def difference(name, size):
    return next((why for part, at, why in DIFFERENCES if part in name and at(size)), None)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("horovod", type=pathlib.Path, help="a checkout of Horovod")
    p.add_argument("--ranks", default="1,2,4")
    p.add_argument("--only", default="", help="words, of which a test's name, or its file's, has one")
    p.add_argument("--seconds", type=float, default=180, help="of a test")
    p.add_argument("--log", type=pathlib.Path, help="a folder for the output of the ranks")
    a = p.parse_args()
    stand_ins(a.horovod)
    import torch

    torch.set_num_threads(1)
    # the tests try every torch optimizer with one-dimensional parameters, which the newer Muon does not support
    if hasattr(torch.optim, "Muon"):
        torch.optim.Muon.__module__ = "not tried"
    words = [w for w in a.only.split(",") if w]
    folder = a.log or pathlib.Path(tempfile.mkdtemp(prefix="hvdtests."))
    print(f"# torch {torch.__version__}, {os.cpu_count()} cores; output of the ranks: {folder}")
    unexpected = 0
    for file in FILES:
        tests = list(tests_of(a.horovod / "test" / file))
        for size in map(int, a.ranks.split(",")):
            count = collections.Counter()
            for name, case in tests:
                if words and not any(w in name or w in file for w in words):
                    continue
                outcome, why = run(case, name, size, a.seconds, folder / f"{size}" / f"{file}.{name}")
                known = difference(name, size) if outcome == "failed" else None
                count[outcome if known is None else "known"] += 1
                if outcome == "failed":
                    print(f"#   {name}, {size} ranks: {why[:200]}{f' ({known})' if known else ''}", flush=True)
            if count:
                ran = sum(count.values()) - count["skipped"]
                print(f"{file}, {size} ranks: {ran} run, {count['passed']} passed, {count['known']} fail by a difference, "
                      f"{count['failed']} failed; {count['skipped']} skipped themselves", flush=True)
            unexpected += count["failed"]
    sys.exit(unexpected > 0)


if __name__ == "__main__":
    main()
