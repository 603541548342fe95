# SPDX-License-Identifier: Apache-2.0
"""Make one call of one of three ranks fail while they save a file together.

usage: rankfaults.py WRITER SHIM DIR CASES SEED

CASES: how many cases to run: one in which a save must fail, and others picked at random; 0: each call of two ranks,
in each way.  All ranks exit and report the same result of each save, every file with the name of a checkpoint is valid,
and the last acknowledged step can be restored.
"""
import collections
import os
import random
import shutil
import subprocess
import sys
import time

from save import verify_all

RANKS, STEPS, SECONDS = 3, 2, 60
FULL = ("ENOSPC", "EDQUOT", "EIO")
MODES = {"pwrite": (*FULL, "short"), "pwrite64": (*FULL, "short"), "write": (*FULL, "short"), "pread": ("EIO", "short"),
         "pread64": ("EIO", "short"), "read": ("EIO", "short"), "fallocate": FULL, "fallocate64": FULL}
PLACES = ("/ckpt", "/.ranks.")
CERTAIN = ("sync", 0, "pwrite", PLACES[0], 1, "ENOSPC")


def run_ranks(writer, top, how, hit=None, fault=None):
    """Exit statuses and output lines of the ranks; 'fault' is added to the environment of rank 'hit'."""
    procs = []
    for rank in range(RANKS):
        env = dict(os.environ, DL_RANK_TIMEOUT="8", **(fault if rank == hit else {}))
        with open(f"{top}/out.{rank}", "wb") as f:
            procs.append(subprocess.Popen([writer, "rank", f"{top}/run", str(RANKS), how, str(STEPS), str(rank)],
                                          stdout=f, stderr=subprocess.DEVNULL, env=env))
    end = time.monotonic() + SECONDS
    try:
        statuses = [p.wait(timeout=max(0.1, end - time.monotonic())) for p in procs]
    finally:
        for p in procs:
            p.kill()
    lines = []
    for rank in range(RANKS):
        with open(f"{top}/out.{rank}", encoding="utf-8") as f:
            lines.append(f.read().split("\n")[:-1])
    return statuses, lines


def outcomes(lines):
    return [x for x in lines if not x.startswith("restored")]


def fresh(top):
    shutil.rmtree(f"{top}/run", ignore_errors=True)
    os.mkdir(f"{top}/run")


def calls_of(writer, shim, top, how, rank):
    """How often the rank makes each call in each place if nothing fails."""
    fresh(top)
    log = f"{top}/calls"
    if os.path.exists(log):
        os.unlink(log)
    statuses, _ = run_ranks(writer, top, how, rank, {"LD_PRELOAD": shim, "FAULT_DIR": f"{top}/run", "FAULT_COUNT": log})
    assert statuses == [0] * RANKS, f"without faults: {statuses}"
    counts = collections.Counter()
    with open(log, encoding="utf-8") as f:
        for line in f:
            _, call, path = line.rstrip("\n").split(" ", 2)
            for place in PLACES:
                counts[call, place] += place in path
    return {k: n for k, n in counts.items() if n and k[0] not in ("opendir", "readdir", "readdir64", "close")}


def cases(writer, shim, top):
    found = []
    for how in ("sync", "async"):
        for rank in (0, 1):
            for (call, place), n in calls_of(writer, shim, top, how, rank).items():
                # how often a rank polls for a message varies from run to run
                most = min(n, 3) if place == PLACES[1] and call in ("open", "open64") else n
                found += [(how, rank, call, place, k, mode) for k in range(1, most + 1) for mode in MODES.get(call, ("ENOSPC", "EIO"))]
    return found


def try_case(writer, shim, top, case):
    how, rank, call, place, k, mode = case
    fresh(top)
    statuses, lines = run_ranks(writer, top, how, rank, {
        "LD_PRELOAD": shim, "FAULT_DIR": f"{top}/run", "FAULT_CALL": call, "FAULT_PATH": place, "FAULT_AT": str(k), "FAULT_MODE": mode})
    said = [outcomes(x) for x in lines]
    if 1 in statuses:  # a rank failed before it could save, so none has saved
        assert not any("saved" in x for one in said for x in one), f"{statuses}, {said}"
    else:
        assert said == [said[0]] * RANKS, f"the ranks differ: {said}"
    verify_all(top)
    saved = max([int(x.split()[1]) for x in said[0] if x.startswith("saved")] or [0])
    again, lines = run_ranks(writer, top, "sync")
    assert again == [0] * RANKS, f"{statuses}, {said}; and then {again}"
    restored = int(lines[0][0].split()[1])
    assert restored >= saved, f"restored {restored} of {saved}"
    return "failed" in "".join(x for one in said for x in one)


def main():
    writer, shim, top, count, seed = *sys.argv[1:4], int(sys.argv[4]), int(sys.argv[5])
    every = cases(writer, shim, top)
    chosen = every if count == 0 or count >= len(every) else [CERTAIN] + random.Random(seed).sample(every, count - 1)
    failed = 0
    for case in chosen:
        try:
            failed += try_case(writer, shim, top, case)
        except Exception as e:
            raise AssertionError(case) from e
    assert failed > 0, f"none of {len(chosen)} faults came to a save"
    print(f"{len(chosen)} faults of {len(every)}; {failed} runs with a save that failed")


main()
