# SPDX-License-Identifier: Apache-2.0
"""Determined's ClusterInfo, from the environment of a trial of `dl run`."""

import itertools
import os
import re
import shutil
import socket
import subprocess
from typing import Any, Dict, List, Optional

from .. import _slurmdl
from ..hparams import HParams
from .storage import storage_id_of

_ANY_STEP = 2**63 - 1


def _lines(*command: str) -> List[str]:
    """The output lines of a program; none if it is missing or fails."""
    if shutil.which(command[0]) is None:
        return []
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, timeout=60)
    return done.stdout.split("\n")[:-1] if done.returncode == 0 else []


def _numbers(ranges: str) -> List[str]:
    numbers = []
    for part in ranges.split(","):
        low, _, high = part.partition("-")
        numbers += [str(n).zfill(len(low)) for n in range(int(low), int(high or low) + 1)]
    return numbers


def _hosts(nodes: str) -> List[str]:
    """The hosts of a list in Slurm's syntax, such as "gpu-a[001-010,12],x3"."""
    hosts = []
    for name in re.findall(r"(?:[^,\[]|\[[^\]]*\])+", nodes):
        parts = re.split(r"\[([^\]]*)\]", name)  # the odd ones are ranges
        hosts += ["".join(p) for p in itertools.product(*(_numbers(p) if i % 2 else [p] for i, p in enumerate(parts)))]
    return hosts


class TrialInfo:
    """The trial: its number, seed and hyperparameters."""

    def __init__(self) -> None:
        name = os.environ.get("DL_EXPERIMENT_DIR", "").rstrip("/")
        number = re.search(r"-(\d+)$", name)
        self.trial_id = int(os.environ.get("DL_TRIAL") or 0)
        self.experiment_id = int(number.group(1)) if number else 0
        self.trial_seed = int(os.environ.get("DL_SEED") or 0)
        self.hparams: Dict[str, Any] = HParams.of_environment().as_dict()


class ClusterInfo:
    """The result of get_cluster_info()."""

    task_type = "TRIAL"

    def __init__(self) -> None:
        self.trial = TrialInfo()
        self.cluster_id = os.environ.get("SLURM_CLUSTER_NAME", "local")
        self.agent_id = socket.gethostname()
        self.task_id = os.environ.get("DL_EXPERIMENT", "trial") + f".{self.trial.trial_id}"
        self.allocation_id = os.environ.get("SLURM_JOB_ID", "0") + "." + os.environ.get("DL_ATTEMPT", "1")
        self.user_data: Dict[str, Any] = {}

    @property
    def latest_checkpoint(self) -> Optional[str]:
        """The storage_id from which the trial resumes: its own newest checkpoint that verifies, else that of the trial
        from which the searcher or a fork starts it."""
        own = os.environ.get("DL_TRIAL_DIR") or os.environ.get("DL_RUN_DIR") or "slurmdl"
        prefer = int(os.environ.get("DL_CHECKPOINT_ATTEMPT") or 0)
        found = _slurmdl.find_checkpoint(own, _ANY_STEP, prefer)
        other, attempt = os.path.split(os.environ.get("DL_CHECKPOINT_DIR", ""))
        if found is None and re.fullmatch(r"a\.\d+", attempt):
            length = int(os.environ.get("DL_CHECKPOINT_LENGTH") or 0)
            found = _slurmdl.find_checkpoint(other, length, int(attempt[2:]))
        return storage_id_of(found[0], own) if found else None

    @property
    def container_addrs(self) -> List[str]:
        """The hosts of the step, or of the job."""
        return _hosts(os.environ.get("SLURM_STEP_NODELIST") or os.environ.get("SLURM_JOB_NODELIST") or "127.0.0.1")

    @property
    def container_rank(self) -> int:
        return int(os.environ.get("SLURM_NODEID") or 0)

    @property
    def container_slot_counts(self) -> List[int]:
        return [len(self.slot_ids)] * len(self.container_addrs)

    @property
    def slot_ids(self) -> List[int]:
        """The GPUs of this process; without GPUs one slot, 0."""
        devices = [d for d in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if d.strip()]
        return list(range(max(1, len(devices))))

    @property
    def gpu_uuids(self) -> List[str]:
        return [line.strip() for line in _lines("nvidia-smi", "--query-gpu=uuid", "--format=csv,noheader")]

    def __getattr__(self, name: str) -> Any:
        if name in ("master_url", "session_token", "master_cert_name", "master_cert_file"):
            raise AttributeError(f"ClusterInfo.{name} is not offered by slurmdl.det: there is no master")
        raise AttributeError(f"ClusterInfo has no attribute {name!r}")


def get_cluster_info() -> Optional[ClusterInfo]:
    """None outside of `dl run`, of Slurm jobs and of trials run by hand (DL_LENGTH, DL_HP_NAME)."""
    known = ("DL_TRIAL", "DL_LENGTH", "SLURM_JOB_ID")
    if any(name in os.environ for name in known) or any(name.startswith("DL_HP_") for name in os.environ):
        return ClusterInfo()
    return None
