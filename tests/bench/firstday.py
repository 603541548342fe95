#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Make the tables of doc/first-day.md: from nothing to the first results, and what an error in all trials costs.

    python3 tests/bench/firstday.py [--rounds=5] [--source=.] [TOOL...]      # slurm-dl, submitit, optuna; default: all

Each tool is installed as its README says: slurm-dl from a clone of --source (default: use the dl in PATH and report no
build time), the others with pip in a virtual environment of their own. All run on one private cluster
(contrib/minicluster) of two nodes. The search has 8 trials of 0.1 s; the seconds from submission to all results are the
median and range over the rounds, which interleave the tools. The error is an import error in 12 trials, with 8 workers.
On a busy host, the ratios mean more than the seconds.
"""

import argparse
import glob
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

from benchlib import private_cluster

# Files of each tool; TOOLS below says which commands a user types and writes, how to run it, and where its attempts are
DL = """name = "f";
entrypoint = "python3 f.py {x}";
metrics = { pattern = "y = {y}"; };
searcher = { name = "random"; metric = "y"; max_trials = TRIALS; };
hyperparameters = { x = { type = "float"; minval = 0.0; maxval = 1.0; }; };
resources = { workers = 8; };
worker = { heartbeat = 1; lease = 60; };
"""
FUNCTION = """import sys, time
time.sleep(0.1)
print("y =", (float(sys.argv[1]) - 0.3) ** 2)
"""
SUBMITIT = """import time, submitit
def f(x):
    time.sleep(0.1)
    return (x - 0.3) ** 2
ex = submitit.AutoExecutor(folder="logs")
ex.update_parameters(slurm_partition="main", timeout_min=5, cpus_per_task=1, slurm_array_parallelism=8)
xs = [i / TRIALS for i in range(TRIALS)]
jobs = ex.map_array(f, xs)
print(min(zip([j.result() for j in jobs], xs)))
"""
STUDY = """import time, optuna
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
def f(trial):
    time.sleep(0.1)
    return (trial.suggest_float("x", 0, 1) - 0.3) ** 2
storage = JournalStorage(JournalFileBackend("study.log"))
optuna.create_study(study_name="f", storage=storage, load_if_exists=True).optimize(f, n_trials=1)
"""
ARRAY = """#!/bin/sh
#SBATCH --array=1-TRIALS --output=logs/%a
exec PYTHON study.py
"""
RESULT = """import optuna
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
study = optuna.load_study(study_name="f", storage=JournalStorage(JournalFileBackend("study.log")))
print(study.best_value, study.best_params)
"""
TOOLS = {
    "slurm-dl": {
        "typed": ["git clone", "autoreconf && ./configure && make install", "dl run"],
        "files": {"f.conf": DL, "f.py": FUNCTION},
        "written": ["f.conf"],
        "run": "dl run f.conf",
        "attempts": "f-0*/trials/*/a.*",
    },
    "submitit": {
        "typed": ["python3 -m venv", "pip install", "python3 f.py"],
        "files": {"f.py": SUBMITIT},
        "written": ["f.py"],
        "run": "PYTHON f.py",
        "attempts": "logs/*_log.err",
    },
    "optuna": {
        "typed": ["python3 -m venv", "pip install", "sbatch", "python3 result.py"],
        "files": {"study.py": STUDY, "job.sh": ARRAY, "result.py": RESULT},
        "written": ["study.py", "job.sh", "result.py"],
        "run": "mkdir -p logs && sbatch --wait --parsable job.sh >job && PYTHON result.py",
        "attempts": "logs/*",
    },
}


def shell(command, cwd=None, check=True):
    """Run a shell command and return how many seconds it took."""
    start = time.perf_counter()
    done = subprocess.run(["sh", "-c", command], cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=1800)
    if check and done.returncode:
        sys.exit(f"{command}: status {done.returncode}\n{done.stdout.decode(errors='replace')[-2000:]}")
    return time.perf_counter() - start


def size(folder):
    files = (os.lstat(os.path.join(d, f)) for d, _, names in os.walk(folder) for f in names)
    return sum(s.st_size for s in files) / 1e6


def install(name, home, source):
    """Install a tool, and return the table cell about it."""
    prefix = f"{home}/{name}"
    if name == "slurm-dl" and not source:
        return "was there"
    if name == "slurm-dl":
        seconds = shell(f"git clone -q '{source}' '{prefix}.src' && cd '{prefix}.src' && autoreconf -fi && ./configure --prefix='{prefix}' && make -j2 && make install")
        os.environ["PATH"] = f"{prefix}/bin:{os.environ['PATH']}"
        return f"built in {seconds:.0f} s, {size(prefix):.0f} MB"
    seconds = shell(f"python3 -m venv '{prefix}' && '{prefix}/bin/pip' install -q '{name}'")
    return f"`pip install`: {seconds:.0f} s, {size(prefix):.0f} MB"


def place(name, home, trials, fault):
    """Return a new directory with the tool's files, and the command to run."""
    folder = tempfile.mkdtemp(prefix=f"{name}-", dir=home)
    python = f"{home}/{name}/bin/python3"
    for file, text in TOOLS[name]["files"].items():
        text = text.replace("TRIALS", str(trials)).replace("PYTHON", python)
        if fault:
            text = text.replace("time.sleep(0.1)", "import nunpy")
        pathlib.Path(folder, file).write_text(text)
    return folder, TOOLS[name]["run"].replace("PYTHON", python)


def once(name, home):
    folder, command = place(name, home, 8, False)
    seconds = shell(command, folder)
    shutil.rmtree(folder)
    return seconds


def attempts(name, home):
    folder, command = place(name, home, 12, True)
    shell(command, folder, check=False)
    shell("until [ -z \"$(squeue --noheader)\" ]; do sleep 1; done")
    return len(glob.glob(f"{folder}/{TOOLS[name]['attempts']}"))


def measure(tools, home, rounds, source):
    installed = {t: install(t, home, source) for t in tools}
    times = {t: [] for t in tools}
    for _ in range(rounds):
        for t in tools:
            times[t].append(once(t, home))
    print("| | installed | commands | lines | seconds from submission to all results | attempts that an import error of 12 trials costs |")
    print("| --- | --- | --- | --- | --- | --- |")
    for t in tools:
        lines = sum(TOOLS[t]["files"][f].count("\n") for f in TOOLS[t]["written"])
        seconds = f"{statistics.median(times[t]):.1f} ({min(times[t]):.1f} to {max(times[t]):.1f})"
        print(f"| {t} | {installed[t]} | {len(TOOLS[t]['typed'])} | {lines} | {seconds} | {attempts(t, home)} of 12 |", flush=True)


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--source", default="")
    p.add_argument("tools", nargs="*", metavar="TOOL")
    a = p.parse_args()
    unknown = [t for t in a.tools if t not in TOOLS]
    if unknown or a.rounds < 1:
        p.error(f"no tool {unknown[0]!r}: {', '.join(TOOLS)}" if unknown else "--rounds must be 1 or more")
    with tempfile.TemporaryDirectory(prefix="firstday-") as home:
        os.chmod(home, 0o755)  # munged requires access for all
        os.environ["MINICLUSTER_DIR"] = home
        os.environ["XDG_STATE_HOME"] = f"{home}/state"
        with private_cluster("firstday", "--nodes=2", "--cpus=4"):
            measure(a.tools or list(TOOLS), home, a.rounds, os.path.abspath(a.source) if a.source else "")


main()
