# SPDX-License-Identifier: Apache-2.0
"""Shared by the fault benches: clean environments, and new experiments."""
import os
import subprocess
import tempfile


def work_folder(name):
    """Create a folder, with a TMPDIR inside it, so that the sockets of killed workers are removed, too."""
    work = tempfile.mkdtemp(prefix=f"dl-{name}.", dir=os.environ.get("TMPDIR", "/tmp"))
    os.environ["TMPDIR"] = f"{work}/tmp"
    os.mkdir(f"{work}/tmp")
    return work


def environment(**more):
    """Return this process's environment without variables of Slurm jobs, dl and the shim."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("SLURM_JOB", "SLURM_ARRAY", "DL_", "FAULT_"))}
    return {**env, **more}


def run(command, limit=200, **more):
    """Run a command. Return (status, output), with the status "no end" if it timed out."""
    try:
        p = subprocess.run(command, env=environment(**more), stdin=subprocess.DEVNULL, capture_output=True, text=True,
                           timeout=limit, errors="replace")
    except subprocess.TimeoutExpired:
        return "no end", ""
    return p.returncode, p.stdout + p.stderr


def create(work, conf):
    """Create an experiment in 'work' without workers: a fake sbatch drops the job. Return its folder."""
    for folder in ("bin", "fresh"):
        os.makedirs(f"{work}/{folder}", exist_ok=True)
    with open(f"{work}/bin/sbatch", "w") as f:
        f.write("#!/bin/sh\ncat >/dev/null\necho 1\n")
    os.chmod(f"{work}/bin/sbatch", 0o755)
    with open(f"{work}/faults.conf", "w") as f:
        f.write(conf)
    status, text = run(["dl", "run", "--detach", "--dir", f"{work}/fresh", f"{work}/faults.conf"],
                       PATH=f"{work}/bin:{os.environ['PATH']}")
    if status != 0:
        raise SystemExit(f"cannot make an experiment: status {status}: {text}")
    return next(word for word in text.split() if word.startswith(f"{work}/fresh/"))
