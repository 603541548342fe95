# SPDX-License-Identifier: Apache-2.0
"""TrainJobs of Kubeflow Trainer v2 as jobs of dl job; their runtimes are in the same file or folder, or Trainer's own."""

import functools
import os
from typing import Dict, List, Optional

from . import jobs
from .document import BadInput, Node, comes_with, read
from .jobs import CONTAINER_ROWS, HEAD_ROWS, POD_ROWS, Role, Substitute, Work
from .table import NONE, Import, Table, left, none, under, used

# fmt: off
TABLE = Table(
    "trainjob",
    "TrainJob of Kubeflow Trainer v2",
    [
        *HEAD_ROWS,
        used("spec.runtimeRef.name", "resources.framework", "a runtime in the same file or folder, or one of Trainer's own by name"),
        none("spec.runtimeRef.**", "specific to Kubernetes"),
        used("spec.trainer.numNodes", "resources.nodes_per_trial"),
        used("spec.trainer.numProcPerNode", "PET_NPROC_PER_NODE, resources.ranks_per_node"),
        left("spec.initializer.**", "download the data once, before the job: hf download, aws s3 cp"),
        used("spec.suspend", "job.suspend"),
        used("spec.activeDeadlineSeconds", "job.active_deadline"),
        none("spec.managedBy", "specific to Kubernetes"),
        used("spec.ttlSecondsAfterFinished", "job.ttl_after_finished"),
        none("spec.labels.** spec.annotations.** spec.runtimePatches.*.manager spec.runtimePatches.*.time", "names of Kubernetes"),
        none("spec.runtimePatches.*.trainingRuntimeSpec.template.spec.replicatedJobs.*.name", "names of Kubernetes"),
        none("spec.runtimePatches.*.trainingRuntimeSpec.template.metadata.** spec.runtimePatches.*.trainingRuntimeSpec.template.spec.replicatedJobs.*.template.metadata.**", "names and labels of pods"),
        left("spec.runtimePatches.** spec.podTemplateOverrides.** spec.podSpecOverrides.**", "add it to the command"),
    ],
    [
        *under("spec.trainer", [row._replace(path=row.path.replace("resources.", "resourcesPerNode.")) for row in CONTAINER_ROWS]),
        *under("spec.runtimePatches.*.trainingRuntimeSpec.template.spec.replicatedJobs.*.template.spec.template", POD_ROWS),
    ],
)

RUNTIME = Table(
    "runtime",
    "TrainingRuntime, ClusterTrainingRuntime",
    [
        *HEAD_ROWS,
        used("spec.mlPolicy.numNodes", "resources.nodes_per_trial"),
        used("spec.mlPolicy.torch spec.mlPolicy.jax spec.mlPolicy.xgboost spec.mlPolicy.mpi.mpiImplementation spec.mlPolicy.plainML", "resources.framework"),
        used("spec.mlPolicy.torch.numProcPerNode spec.mlPolicy.mpi.numProcPerNode", "PET_NPROC_PER_NODE, resources.ranks_per_node"),
        none("spec.mlPolicy.mpi.sshAuthMountPath spec.mlPolicy.mpi.runLauncherAsNode", "srun needs neither ssh nor a launcher"),
        left("spec.mlPolicy.torch.elasticPolicy.**", "job.min_available, or dl elastic"),
        used("spec.mlPolicy.flux spec.mlPolicy.flux.**", "srun", "instead of Flux"),
        none("spec.podGroupPolicy.**", "Slurm starts all tasks of a job together"),
        used("spec.template.spec.replicatedJobs.*.replicas", "resources.nodes_per_trial"),
        none("spec.template.spec.replicatedJobs.*.name spec.template.spec.replicatedJobs.*.dependsOn.** spec.template.spec.replicatedJobs.*.groupName", "names of Kubernetes; run a dataset initializer before the job"),
        used("spec.template.spec.replicatedJobs.*.template.spec.backoffLimit", "job.backoff_limit"),
        used("spec.template.spec.replicatedJobs.*.template.spec.parallelism spec.template.spec.replicatedJobs.*.template.spec.completions", "resources.nodes_per_trial"),
        none("spec.template.spec.replicatedJobs.*.template.metadata.** spec.template.metadata.**", "names and labels of pods"),
        none("spec.template.spec.network.** spec.template.spec.successPolicy.** spec.template.spec.failurePolicy.** spec.template.spec.startupPolicy.** spec.template.spec.coordinator.** spec.template.spec.replicatedJobs.*.template.spec.**", "for JobSet: srun starts and ends all tasks together"),
    ],
    under("spec.template.spec.replicatedJobs.*.template.spec.template", POD_ROWS),
)
# fmt: on

# Trainer's own runtimes, by the beginning of their names
_OWN = {
    "torch": "torchrun", "torchtune": "torchrun", "deepspeed": "mpi", "mlx": "mpi", "mpi": "mpi",
    "jax": "jax", "xgboost": "torch", "flux": "", "plainml": "", "megatron": "torchrun",
}  # fmt: skip
_POLICIES = {"torch": "torchrun", "mpi": "mpi", "jax": "jax", "xgboost": "torch", "flux": "", "plainML": ""}
_LAUNCHES = ("launcher", "node", "trainer")


@functools.lru_cache(None)
def _runtimes(file: str) -> Dict[str, Node]:
    """The runtimes in a file and in its folder; those of the file take precedence."""
    found: Dict[str, Node] = {}
    folder = os.path.dirname(file) or "."
    try:
        names = sorted(n for n in os.listdir(folder) if n.endswith((".yaml", ".yml")))[:200]
    except OSError:
        names = []
    for path in [*(os.path.join(folder, n) for n in names), file]:
        try:
            documents = read(path) if comes_with(file, path) else []
        except (BadInput, OSError):
            continue
        found.update(
            {d.string("metadata", "name"): d for d in documents if d.string("kind").endswith("TrainingRuntime")}
        )
    return found


def _framework(one: Import, work: Work, node: Node, runtime: Optional[Node]) -> None:
    name = node.string("spec", "runtimeRef", "name")
    if runtime is None:
        known = next((framework for start, framework in _OWN.items() if name.startswith(start)), None)
        work.framework = known or ""
        if known is None:
            one.open(
                node.get("spec", "runtimeRef", "name"), f"no TrainingRuntime '{name}' in this file or its folder"
            )
        one.take(node, "spec", "runtimeRef", "name")
        return
    one.take(node, "spec", "runtimeRef", "name")
    policies = runtime.get("spec", "mlPolicy")
    for policy, framework in _POLICIES.items():
        if policies is not None and policies.has(policy):
            work.framework = framework
            one.take(policies, policy, "mpiImplementation")
            if policies.plain(policy) in (None, {}):
                one.take(policies, policy)
            work.per_pod = jobs.processes(one, policies, policy, "numProcPerNode") or 1
    work.roles[0].replicas = one.whole(policies, "numNodes", least=1) or 1


def _runtime_pods(one: Import, role: Role, runtime: Node, substitute: Substitute) -> None:
    for name, job in runtime.items("spec", "template", "spec", "replicatedJobs"):
        pod = job.get("template", "spec", "template")
        if name in _LAUNCHES and pod is not None:
            words = role.words
            jobs.read_pod(one, role, pod, substitute, "node")
            if any("sshd" in word for word in role.words):
                role.words = words
        elif pod is not None:
            one.open(pod, f"{name} runs before the training: run it before the job")


def work_of(one: Import, node: Node, substitute: Substitute = str) -> Work:
    """Read a TrainJob and its runtime."""
    role = Role("Worker", 1)
    work = Work("torchrun", [role])
    runtimes = _runtimes(node.file)
    runtime = runtimes.get(node.string("spec", "runtimeRef", "name"))
    if runtime is not None:
        one.also(RUNTIME, runtime)
        one.take(runtime, "metadata", "name")
        _runtime_pods(one, role, runtime, substitute)
    _framework(one, work, node, runtime)
    trainer = node.get("spec", "trainer")
    if trainer is not None:
        policies = (runtime.get("spec", "mlPolicy") if runtime is not None else None) or Node("", 0, {})
        for name, groups in (("numNodes", [policies]), ("numProcPerNode", [group for _, group in policies.items()])):
            for group in groups if trainer.has(name) else ():
                one.mark(group.get(name), NONE, "the TrainJob overrides it")
        renamed = {("resources" if k == "resourcesPerNode" else k): v for k, v in trainer.items()}
        jobs.read_container(one, role, Node(node.file, trainer.line, renamed), substitute)
        role.replicas = one.whole(trainer, "numNodes", least=1) or role.replicas
        work.per_pod = jobs.processes(one, trainer, "numProcPerNode") or work.per_pod
    if work.framework == "mpi":
        jobs._without_mpirun(one, work, role)
    if work.framework == "torchrun" and not work.by_torchrun:
        work.framework = "torch"
    work.seconds = one.whole(node, "spec", "activeDeadlineSeconds", least=1) or 0
    work.ttl = one.whole(node, "spec", "ttlSecondsAfterFinished", least=0)
    work.success = "all_workers"
    work.hold = one.truth(node, "spec", "suspend") is True
    return work


def knows(node: Node) -> bool:
    return node.has("apiVersion") and node.string("kind") == "TrainJob"


def knows_runtime(node: Node) -> bool:
    return node.has("apiVersion") and node.string("kind").endswith("TrainingRuntime")


def convert(node: Node, name: str, program: str = "") -> List[Import]:
    one = Import(TABLE, node, name)
    jobs.named_by(one, node, name)
    work = work_of(one, node)
    work.name = one.name
    jobs.missing(one, work)
    jobs.put_job(one, work)
    return [one]


def convert_runtime(node: Node, name: str, program: str = "") -> List[Import]:
    """A runtime alone is not a job; TrainJobs refer to it."""
    return []
