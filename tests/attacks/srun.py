#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A stand-in for srun that runs the ranks of a step on this machine."""
import os
import signal
import subprocess
import sys
import time

words = sys.argv[1:]
tasks = 1
while words[0].startswith("--"):
    word = words.pop(0)
    if word.startswith("--ntasks="):
        tasks = int(word[9:])
    elif word == "--nodelist":
        words.pop(0)
ranks = []


def end(status):
    for rank in ranks:
        if rank.poll() is None:
            rank.kill()
    os._exit(status)


def forward(number, _):
    for rank in ranks:
        if rank.poll() is None:
            rank.send_signal(number)


signal.signal(signal.SIGTERM, lambda number, _: end(143))
signal.signal(signal.SIGUSR2, forward)
for number in range(tasks):
    env = dict(os.environ, SLURM_PROCID=str(number), SLURM_LOCALID=str(number), SLURM_STEP_ID=str(os.getpid()), SLURMD_NODENAME="n1",
               SLURM_NTASKS=str(tasks), SLURM_STEP_NUM_TASKS=str(tasks), SLURM_NODEID="0", SLURM_STEP_NUM_NODES="1")
    ranks.append(subprocess.Popen(["sh", "-c", 'export SLURM_TASK_PID=$$; exec "$@"', "sh", *words], env=env))
while any(rank.poll() is None for rank in ranks):
    if any(rank.poll() for rank in ranks):
        time.sleep(0.3)
        end(max(abs(rank.poll() or 0) for rank in ranks))
    time.sleep(0.05)
