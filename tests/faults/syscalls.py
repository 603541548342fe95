# SPDX-License-Identifier: Apache-2.0
"""Let each file-system call of a worker crash it, or fail, once.

usage: syscalls.py SHIM                      all calls, all modes (slow)
       syscalls.py SHIM --cases=N [--seed=S] N random cases
       syscalls.py SHIM --only=REGEX     matching cases, e.g. "ENOSPC .*/log/" or "before link "
       syscalls.py SHIM --case=CALL,MODE[,nolink]   one case; keep its folder
       (from the build folder: python3 tests/faults/syscalls.py tests/faults/.libs/shim.so)

SHIM is the library built from shim.c.  The bench creates an experiment of two
trials.  For each call and mode, `dl worker` runs on a fresh copy of it under the
shim, and then a second worker without the shim completes it.  check.py must find
the copy sound, and its results must be the same as without faults.  A worker
must end in time, and with a documented exit status.
"""
import os
import random
import re
import shutil
import sys
import time

import check
from bench import create, run, work_folder

MODES = ["before", "after", "EIO", "ENOSPC", "EDQUOT", "ESTALE", "EINTR", "EACCES", "lost", "again", "short"]
CRASHED = 137
STATUSES = {0, 7, 75, 8}        # dl(1), EXIT STATUS
CALLS = {"lost": r"(open|open64|link|symlink|unlink|rmdir|rename|mkdir)$",
         "short": r"(p?read|p?write)(64)?$"}
CALLS["again"] = CALLS["lost"]

CONF = """
name = "faults";
entrypoint = "echo loss=0.$DL_TRIAL$DL_LENGTH";
searcher = { name = "grid"; metric = "loss"; max_length = 3; };
metrics = { pattern = "loss={loss}"; };
hyperparameters = { x = { type = "int"; minval = 1; maxval = 2; count = 2; }; };
resources = { workers = 1; };
reproducibility = { experiment_seed = 1; };
worker = { heartbeat = 1; lease = 4; grace = 2; };
max_restarts = 5;
"""


class Bench:
    def __init__(self, shim, work):
        self.shim = os.path.abspath(shim)
        self.work = work
        self.fresh = create(work, CONF)
        self.done = 0
        self.hits = 0
        self.wrong = []
        self.sum = None

    def calls(self, nolink):
        """Return the calls of a run without faults."""
        folder, status, text, log = self.worker(0, "", nolink)
        problem = self.judge(folder)
        if status or problem:
            sys.exit(f"the run without faults: status {status}: {text}{problem}")
        return [line.split(" ", 1)[1] for line in log.splitlines()]

    def worker(self, n, mode, nolink):
        folder, log = f"{self.work}/case", f"{self.work}/calls"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(self.fresh, folder, symlinks=True)
        if os.path.exists(log):
            os.unlink(log)
        more = {"FAULT_NOLINK": "1"} if nolink else {}
        status, text = run(["dl", "worker", "--slot", "bench", folder], LD_PRELOAD=self.shim, FAULT_DIR=folder,
                           FAULT_AT=str(n), FAULT_MODE=mode, FAULT_COUNT=log,
                           ASAN_OPTIONS="verify_asan_link_order=0:detect_leaks=0", **more)
        with open(log) as f:
            return folder, status, text, f.read()

    def judge(self, folder):
        """Return what is wrong with an experiment that should be complete."""
        c = check.judge(folder, trials=2)
        if c.problems:
            return "\n" + c.verdict()
        self.sum = self.sum or c.sum()
        return "" if c.sum() == self.sum else "\n".join(["other results than without faults:"] + c.table())

    def case(self, n, mode, nolink):
        folder, status, text, log = self.worker(n, mode, nolink)
        hit = re.search("^hit (.*)$", log, re.M)
        problem = ""
        if status not in STATUSES and not (status == CRASHED and mode in ("before", "after")):
            problem = f"the worker ended with {status}: {text}"
        if status and status != CRASHED and not text:
            problem = f"the worker ended with {status} and without a word"
        status, text = run(["dl", "worker", "--slot", "bench", folder])
        if status:
            problem += f"the clean worker ended with {status}: {text}"
        problem += self.judge(folder)
        self.done += 1
        self.hits += hit is not None
        if problem:
            self.wrong.append((n, mode, nolink))
            print(f"case {n},{mode}{',nolink' * nolink} ({hit.group(1) if hit else 'no hit'}): {problem}", flush=True)


def parse(args):
    options = dict(re.fullmatch(r"--(cases|seed|case|only)=(.+)", a).groups() for a in args[1:])
    return args[0], options


def main():
    try:
        shim, options = parse(sys.argv[1:])
    except (AttributeError, IndexError):
        print(__doc__.strip(), file=sys.stderr)
        sys.exit(2)
    work = work_folder("syscalls")
    seed = int(options.get("seed", random.randrange(1 << 30)))
    bench = Bench(shim, work)
    start = time.time()
    names = {nolink: bench.calls(nolink) for nolink in (False, True)}
    cases = [(n, mode, nolink) for nolink in names for n, name in enumerate(names[nolink], 1) for mode in MODES
             if re.match(CALLS.get(mode, ""), name.split()[0])
             and re.search(options.get("only", ""), f"{mode} {name}")]
    if "case" in options:
        n, mode, *nolink = options["case"].split(",")
        cases = [(int(n), mode, bool(nolink))]
    elif "cases" in options:
        cases = random.Random(seed).sample(cases, min(int(options["cases"]), len(cases)))
    try:
        for case in cases:
            bench.case(*case)
    except KeyboardInterrupt:
        print("interrupted: %d cases were left" % (len(cases) - bench.done))
    print("syscalls: seed %d: %d calls, %d without hard links; %d cases, %d hit, %d wrong; %.0f s"
          % (seed, len(names[False]), len(names[True]), bench.done, bench.hits, len(bench.wrong), time.time() - start))
    if "case" in options:
        print(work)
    else:
        shutil.rmtree(work)
    sys.exit(1 if bench.wrong or not bench.hits else 0)


main()
