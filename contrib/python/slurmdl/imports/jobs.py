# SPDX-License-Identifier: Apache-2.0
"""Training jobs of Kubernetes as jobs of dl job: TFJob, PyTorchJob, MPIJob, JAXJob, PaddleJob, XGBoostJob, Job.

A pod becomes a member of a role.  If a pod runs several ranks, or torchrun starts them, it becomes a node instead.
"""

import copy
import math
import re
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

from . import target
from .document import Node
from .table import NONE, Import, Table, changed, left, none, under, used

_STORAGE = "a job sees the file systems of its node: use a path there, or create a link to it"

# fmt: off
CONTAINER_ROWS = [
    used("image", "container", "without a command, the image's own program, as Apptainer runs it"),
    used("command command.** args args.**", "the command", "srun replaces mpirun and horovodrun; $(NAME) becomes ${NAME}"),
    used("env.*.name env.*.value", "environment.variables, or export in the command of a role"),
    left("env.*.valueFrom.** envFrom.**", "secrets and config maps: export the variable before dl starts"),
    used("resources.limits.* resources.requests.*", "gpus, cpus and memory of the role, or of resources", "the larger one; other resources are not converted"),
    none("resources.claims.**", "for the scheduling of Kubernetes"),
    used("workingDir", "cd"),
    used("volumeMounts.*.name volumeMounts.*.mountPath volumeMounts.*.readOnly volumeMounts.*.subPath", "container.binds", "hostPath: the same path; a claim: you must name its folder; emptyDir: /tmp"),
    left("volumeMounts.** volumeDevices.**", _STORAGE),
    none("name imagePullPolicy securityContext.** ports.** tty stdin stdinOnce", "specific to containers"),
    none("livenessProbe.** readinessProbe.** startupProbe.** terminationMessagePath terminationMessagePolicy", "srun notices when a task ends"),
    left("lifecycle.**", "add it to the command"),
]

POD_ROWS = [
    *under("spec.containers.*", CONTAINER_ROWS),
    none("apiVersion kind metadata.**", "names and labels of pods"),
    left("spec.initContainers.**", "put their commands before the role's command"),
    used("spec.volumes.*.hostPath.path spec.volumes.*.persistentVolumeClaim.claimName", "container.binds", "see volumeMounts"),
    none("spec.volumes.**", "for the storage of Kubernetes; see volumeMounts"),
    left("spec.nodeSelector.** spec.affinity.**", "resources.sbatch_args: --constraint, --partition or --gres=gpu:TYPE:N"),
    none("spec.tolerations.** spec.topologySpreadConstraints.** spec.schedulerName spec.resourceClaims.**", "Slurm does the scheduling"),
    left("spec.priorityClassName", "resources.qos"),
    none("spec.restartPolicy", "the restartPolicy of the replicas applies"),
    used("spec.activeDeadlineSeconds", "job.active_deadline"),
    none("spec.serviceAccountName spec.serviceAccount spec.securityContext.** spec.imagePullSecrets.** spec.dnsPolicy spec.dnsConfig.**", "a job runs as you, on the node's network"),
    none("spec.hostNetwork spec.hostIPC spec.hostPID spec.hostname spec.subdomain spec.enableServiceLinks spec.shareProcessNamespace", "a job runs as you, on the node's network"),
    none("spec.terminationGracePeriodSeconds", "KillWait of slurm.conf"),
]

_POLICY_ROWS = [
    used("cleanPodPolicy", "job.clean_up", "All and Running: running, which is the default; None: none"),
    used("ttlSecondsAfterFinished", "job.ttl_after_finished"),
    used("activeDeadlineSeconds", "job.active_deadline"),
    used("backoffLimit", "job.backoff_limit", "failures without progress count"),
    used("suspend", "job.suspend"),
    used("schedulingPolicy.minAvailable", "job.min_available", "for a job without roles; the members of roles start together"),
    none("schedulingPolicy.minResources schedulingPolicy.minResources.**", "the requests of the members apply"),
    none("managedBy", "specific to Kubernetes"),
    left("schedulingPolicy.scheduleTimeoutSeconds", "resources.sbatch_args: --deadline"),
    left("schedulingPolicy.queue", "resources.partition"),
    left("schedulingPolicy.priorityClass", "resources.qos"),
]

HEAD_ROWS = [
    none("apiVersion kind status status.**", "specific to Kubernetes"),
    used("metadata.name metadata.generateName", "name"),
    none("metadata.**", "namespaces, labels and annotations of Kubernetes"),
]

REPLICA_ROWS = [
    used("replicas", "job.roles: count; or resources.nodes_per_trial", "in tfReplicaSpecs, pytorchReplicaSpecs, mpiReplicaSpecs and so on"),
    used("restartPolicy", "restart_policy of the role, or of the job", "all members restart, because the others would wait for the one that ended; an Evaluator restarts alone"),
]
# fmt: on


class Kind(NamedTuple):
    """A kind of job: the key of its replicas, its framework, its roles in order, the name that its operator gives to the
    container that trains, and the default restartPolicy."""

    replicas: str
    framework: str
    roles: Tuple[str, ...]
    container: str
    restart: str
    every: bool = True  # without a chief, the job succeeds when all workers have (false: when the first one has)


KINDS = {
    "TFJob": Kind("tfReplicaSpecs", "tf", ("Chief", "Master", "PS", "Worker", "Evaluator"), "tensorflow", "Never", False),
    "PyTorchJob": Kind("pytorchReplicaSpecs", "torch", ("Master", "Worker"), "pytorch", "OnFailure"),
    "MPIJob": Kind("mpiReplicaSpecs", "mpi", ("Launcher", "Worker"), "mpi", "Never"),
    "JAXJob": Kind("jaxReplicaSpecs", "jax", ("Worker",), "jax", "Never"),
    "PaddleJob": Kind("paddleReplicaSpecs", "paddle", ("Master", "PS", "Worker"), "paddle", "OnFailure"),
    "XGBoostJob": Kind("xgbReplicaSpecs", "torch", ("Master", "Worker"), "xgboost", "Never"),
}

# fmt: off
_OWN = [
    *HEAD_ROWS,
    *under("spec.runPolicy", _POLICY_ROWS),
    used("spec.nprocPerNode spec.elasticPolicy.nProcPerNode", "PET_NPROC_PER_NODE, resources.ranks_per_node", "auto: the GPUs of the node"),
    changed("spec.elasticPolicy.minReplicas spec.elasticPolicy.maxReplicas", "job.min_available, resources.nodes_per_trial", "the number of nodes is fixed at the start; dl elastic can change it during the run"),
    used("spec.elasticPolicy.maxRestarts", "job.backoff_limit"),
    none("spec.elasticPolicy.**", "the plugin sets up the rendezvous; there is no autoscaler"),
    used("spec.slotsPerWorker", "resources.ranks_per_node, or job.roles: count"),
    used("spec.successPolicy", "job.success_policy"),
    used("spec.mainContainer", "selects the container whose command runs"),
    used("spec.launcherCreationPolicy", "-", "all members start together, once all their nodes are allocated"),
    left("spec.enableDynamicWorker", "if a worker fails, all restart; dl elastic continues with fewer"),
    none("spec.sshAuthMountPath spec.mpiImplementation", "srun needs no ssh"),
    used("spec.parallelism spec.completions", "job.roles: count", "for a Job"),
    used("spec.completionMode", "job.roles: count", "for a Job"),
    none("spec.podFailurePolicy.** spec.selector.** spec.manualSelector", "specific to Kubernetes"),
]

TABLE = Table(
    "job",
    "TFJob, PyTorchJob, MPIJob, JAXJob, PaddleJob, XGBoostJob, Job",
    [*_OWN, *under("spec.*ReplicaSpecs.*", REPLICA_ROWS)],
    [
        *_OWN,
        *[row for kind in KINDS.values() for row in under(f"spec.{kind.replicas}.*", [*REPLICA_ROWS, *under("template", POD_ROWS)])],
        *under("spec", _POLICY_ROWS),
        *under("spec.template", POD_ROWS),
    ],
)
# fmt: on


# ---- quantities


_UNITS = {
    "": 1.0,
    "m": 1e-3,
    "k": 1e3,
    "M": 1e6,
    "G": 1e9,
    "T": 1e12,
    "Ki": 2.0**10,
    "Mi": 2.0**20,
    "Gi": 2.0**30,
    "Ti": 2.0**40,
}

_VARIABLE = re.compile(r"[A-Za-z_]\w*", re.A)


def quantity(text: str) -> Optional[float]:
    match = re.fullmatch(r"\s*([\d.]+(?:[eE]\d+)?)([kKMGTm]i?|)\s*", text)
    return float(match.group(1)) * _UNITS[match.group(2)] if match and match.group(2) in _UNITS else None


def memory_text(size: float) -> str:
    """A number of bytes in the syntax of Slurm."""
    mega = math.ceil(size / 2**20)
    return f"{mega // 1024}G" if mega % 1024 == 0 else f"{mega}M"


# ---- mounts


class Mount(NamedTuple):
    """A directory of the node and its path in the container.  The directory of a claim is relative: its name."""

    source: str
    inside: str
    read_only: bool
    node: Node
    volume: Optional[Node]


_FOLDER = re.compile(r"/[^:,\x00-\x1f]*")


def _source(volume: Optional[Node]) -> str:
    if volume is None:
        return ""
    if volume.has("emptyDir"):
        return "/tmp"
    return volume.string("hostPath", "path") or volume.string("persistentVolumeClaim", "claimName")


def _mount(one: Import, mount: Node, volume: Optional[Node]) -> Optional[Mount]:
    source, inside, part = _source(volume), one.text(mount, "mountPath"), one.text(mount, "subPath")
    only = one.truth(mount, "readOnly") is True
    one.take(mount, "name")
    if inside == "/dev/shm":
        one.mark(mount, NONE, "processes can use all of /dev/shm")
        return None
    known = _FOLDER.fullmatch(source) or re.fullmatch(r"\w[\w.-]*", source, re.A)
    if not known or not _FOLDER.fullmatch(inside) or not _FOLDER.fullmatch(f"/{part}") or ".." in part.split("/"):
        if volume is not None and (volume.has("hostPath") or volume.has("persistentVolumeClaim")):
            one.open(volume, "see volumeMounts")
        one.open(mount, "not a hostPath, claim or emptyDir: a job sees the file systems of its node, so use a path there")
        return None
    return Mount(source + (f"/{part}" if part else ""), inside, only, mount, volume)


def _mounts(one: Import, template: Node, container: Node) -> List[Mount]:
    """The mounts of a container; its pod declares their volumes."""
    volumes = dict(template.items("spec", "volumes"))
    mounts = (_mount(one, mount, volumes.get(name)) for name, mount in container.items("volumeMounts"))
    return [mount for mount in mounts if mount]


def _take_volume(one: Import, mount: Mount) -> None:
    """The volume was understood: it is bound into the container."""
    for path in (("name",), ("hostPath", "path"), ("persistentVolumeClaim", "claimName")):
        one.take(mount.volume, *path)


def _place_of(mount: Mount) -> str:
    return f":{mount.inside}" + (":ro" if mount.read_only else "")


def binds_of(one: Import, mounts: Sequence[Mount]) -> List[str]:
    """The values of container.binds, in which a path cannot be relative."""
    for mount in mounts:
        if mount.source[0] != "/":
            one.open(mount.volume, "see volumeMounts")
            one.open(mount.node, f'replace the claim by a folder: container.binds = "/FOLDER{_place_of(mount)}"')
        else:
            _take_volume(one, mount)
    return [mount.source + _place_of(mount) for mount in mounts if mount.source[0] == "/"]


# ---- what a pod runs


class Role:
    """A role of a job: what its pods run, and what each of them needs."""

    def __init__(self, name: str, replicas: int) -> None:
        self.name, self.replicas = name, replicas
        self.words: List[str] = []
        self.env: Dict[str, str] = {}
        self.gpus, self.cpus, self.memory = 0, 0, 0.0
        self.folder = ""
        self.image = ""
        self.mounts: List[Mount] = []
        self.command = False  # whether the container has a command; otherwise, the image's own program runs
        self.container: Optional[Node] = None
        self.spec: Optional[Node] = None  # of a role of a training job
        self.restart = "on_failure"

    @property
    def needs(self) -> Tuple[int, int, float]:
        return self.gpus, self.cpus, self.memory


Substitute = Callable[[str], str]


def _resources(one: Import, role: Role, container: Node) -> None:
    for which in ("requests", "limits"):
        for name, node in container.items("resources", which):
            size = quantity(one.text(node))
            if size is None:
                one.open(node, f"'{node.text}' is not a quantity")
            elif name != "cpu" and name != "memory" and size != int(size):
                one.open(node, f"'{node.text}' is not a whole number of {name}")
            elif name.endswith("/gpu") or name.startswith(("nvidia.com/mig", "gpu.intel.com/")):
                role.gpus = max(role.gpus, math.ceil(size))
            elif name == "cpu":
                role.cpus = max(role.cpus, math.ceil(size))
                if size != math.ceil(size):
                    one.changed(node, f"Slurm allocates whole cores: {math.ceil(size)}")
            elif name == "memory":
                role.memory = max(role.memory, size)
            else:
                one.open(node, f"use sbatch --gres, if Slurm has {name}")


def read_container(one: Import, role: Role, container: Node, substitute: Substitute = str) -> None:
    """Read the command, the variables and the resources of a container."""
    role.container = container
    command = list(one.texts(container, "command") or ())
    words = command + list(one.texts(container, "args") or ())
    role.command = role.command or bool(command)
    role.words = [substitute(word) for word in words] or role.words
    role.image = one.text(container, "image") or role.image
    role.folder = one.text(container, "workingDir") or role.folder
    for name, variable in one.unique(container, "env").items():
        one.take(variable, "name")
        if not _VARIABLE.fullmatch(name):
            one.open(variable, "not a valid name of a variable")
        elif variable.has("value") or not variable.has("valueFrom"):
            value = variable.get("value")
            if value is not None and isinstance(value.value, (dict, list)):
                one.open(value, "not a string")
            else:
                one.take(value)
                role.env[name] = substitute(variable.string("value"))
    _resources(one, role, container)


def read_pod(
    one: Import, role: Role, template: Optional[Node], substitute: Substitute = str, primary: str = ""
) -> None:
    """Read the container of a pod that trains: the one called 'primary', or the first."""
    given = template.items("spec", "containers") if template is not None else []
    used_name, chosen = next((c for c in given if c[0] == primary), given[0] if given else ("", None))
    for _, container in given:
        if container is not chosen:
            one.open(container, f"only the container {used_name[:60]} of the pod runs: start this one's command in the script")
    if chosen is not None:
        read_container(one, role, chosen, substitute)
        role.mounts = _mounts(one, template, chosen) if template is not None else []


# ---- a job


class Work:
    """A job: its roles, and how their processes start."""

    def __init__(self, framework: str, roles: List[Role]) -> None:
        self.framework, self.roles = framework, roles
        self.name = ""
        self.per_pod = 1  # processes
        self.seconds = 0
        self.tries = 0
        self.backoff: Optional[int] = None
        self.ttl: Optional[int] = None
        self.clean_up = ""
        self.hold = False
        self.least: Optional[Node] = None  # minAvailable
        self.most = 0  # maximum number of nodes
        self.direct = False  # the command itself starts the ranks
        self.success = ""
        self.total = 0  # members, before roles are merged
        self.ends = ""  # the role that ends a TFJob whose parameter servers would run forever

    @property
    def restarts(self) -> bool:
        return any(role.restart != "never" for role in self.roles)

    @property
    def main(self) -> Role:
        """The role whose command runs: the first with a command."""
        return next((role for role in self.roles if role.words), self.roles[0])

    @property
    def folder(self) -> str:
        """The working directory, if all roles have the same."""
        return self.main.folder if self.by_image or len({role.folder for role in self.roles}) == 1 else ""

    @property
    def pods(self) -> int:
        return sum(role.replicas for role in self.roles)

    @property
    def by_torchrun(self) -> bool:
        words = self.main.words
        text = " ".join(words)
        return bool(re.search(r"(^|[\s/])torchrun(\s|$)|-m torch\.distributed\.(run|launch)\b", text))

    @property
    def by_image(self) -> bool:
        """Whether all pods run the image's own program with the same arguments."""
        same = len({tuple(role.words) for role in self.roles}) == 1
        return same and bool(self.main.image) and not any(role.command for role in self.roles)

    def most_of(self, need: str) -> Any:
        return max(getattr(role, need) for role in self.roles)


_MPI_ARGUMENTS = {
    **dict.fromkeys("-bind-to --bind-to -map-by --map-by -H -host --host -hostfile --hostfile -f -N -ppn".split(), 1),
    **dict.fromkeys("--min-np --max-np --host-discovery-script --network-interface -p --ssh-port".split(), 1),
    **dict.fromkeys("-mca --mca -genv --prtemca --pmixmca".split(), 2),
    **dict.fromkeys("-np -n -c --np --num-proc -x".split(), 1),
}


def _ranks(one: Import, work: Work, role: Role, text: str) -> None:
    """Set the number of ranks in each pod from the -np option of mpirun."""
    workers, line = work.roles[-1], role.container.line if role.container else 0
    slots = workers.replicas * work.per_pod
    if role is workers:
        workers.replicas, work.per_pod = (int(text) if text.isdigit() and int(text) else 1), 1
    elif not text.isdigit() or int(text) < 1:
        one.say(line, f"mpirun -np {text[:40]}: not a number; using one rank for each of the {slots} slots of the workers")
    elif int(text) % max(workers.replicas, 1) == 0 and workers.replicas:
        work.per_pod = int(text) // workers.replicas
        if int(text) != slots:
            one.say(line, f"mpirun -np {text}: {text} ranks, although the workers have {slots} slots")
    elif int(text) != slots:
        one.say(line, f"mpirun -np {text} with {workers.replicas} workers: one task for each rank, each with the resources of a worker")
        workers.replicas, work.per_pod = int(text), 1


def _without_mpirun(one: Import, work: Work, role: Role) -> None:
    """Replace mpirun, because srun starts the ranks: keep its program, and convert its options."""
    if not role.words or role.words[0].rpartition("/")[2] not in ("mpirun", "mpiexec", "horovodrun"):
        work.direct = bool(re.search(r"\b(mpirun|mpiexec|horovodrun)\b", " ".join(role.words)))
        return
    rest = role.words[1:]
    dropped = []
    while rest and rest[0].startswith("-"):
        option, values = rest[0], rest[1 : 1 + _MPI_ARGUMENTS.get(rest[0], 0)]
        rest = rest[1 + len(values) :]
        if option in ("-np", "-n", "-c", "--np", "--num-proc"):
            _ranks(one, work, role, values[0] if values else "")
        elif option == "-x" and values and "=" in values[0]:
            name, _, value = values[0].partition("=")
            role.env[name] = value
        elif option in ("-mca", "--mca") and len(values) == 2:
            role.env[f"OMPI_MCA_{values[0]}"] = values[1]
        elif option == "-genv" and len(values) == 2:
            role.env[values[0]] = values[1]
        elif option not in ("-x", "--allow-run-as-root"):
            dropped.append(" ".join([option, *values]))
    role.words = rest
    line = role.container.line if role.container else 0
    if dropped:
        one.say(line, f"dropped options of mpirun that srun does not need: {', '.join(dropped)}")
    for name in [name for name in role.env if not _VARIABLE.fullmatch(name)]:
        one.say(line, f"{name[:40]}: not a valid name of a variable")
        del role.env[name]


def _mpi(one: Import, work: Work, node: Node) -> None:
    """Merge launcher and workers: the launcher's program runs in the workers, or in place of the first one."""
    launcher, workers = work.roles[0], work.roles[-1]
    work.per_pod = one.must(one.whole, node, "spec", "slotsPerWorker", least=1) or 1
    launcher.words = launcher.words or workers.words
    _without_mpirun(one, work, launcher)
    work.success = "" if work.direct else "all_workers"
    if workers is launcher:
        return
    theirs, own = workers.container, launcher.container
    for name in ("command", "args") if theirs is not None and own is not None else ():
        if theirs.get(name) is not own.get(name):  # type: ignore[union-attr]
            one.mark(theirs.get(name), NONE, "srun needs no sshd")  # type: ignore[union-attr]
    if own is not None and theirs is not own:
        one.mark(own.get("resources"), NONE, "the launcher runs on a node of the workers")
    if workers.restart != launcher.restart and workers.spec is not None:
        one.changed(workers.spec.get("restartPolicy"), "that of the launcher applies to all ranks")
    workers.words, workers.env = launcher.words, {**workers.env, **launcher.env}
    workers.container, workers.command = launcher.container, True
    workers.folder, workers.restart = launcher.folder or workers.folder, launcher.restart
    work.roles = [workers]


_CLEAN = {"All": "running", "Running": "running", "None": "none"}


def _policy(one: Import, work: Work, node: Node) -> None:
    for place in (("spec", "runPolicy"), ("spec",)):
        seconds = one.must(one.whole, node, *place, "activeDeadlineSeconds", least=1)
        limit = one.must(one.whole, node, *place, "backoffLimit", least=0)
        work.seconds = work.seconds if seconds is None else seconds
        work.tries = work.tries if limit is None else limit
        work.backoff = work.backoff if limit is None else limit
        ttl = one.must(one.whole, node, *place, "ttlSecondsAfterFinished", least=0)
        work.ttl = work.ttl if ttl is None else ttl
        work.clean_up = one.must(one.word, node, *place, "cleanPodPolicy", known=_CLEAN) or work.clean_up
        work.hold = one.must(one.truth, node, *place, "suspend") is True or work.hold
        if one.must(one.whole, node, *place, "schedulingPolicy", "minAvailable", least=1) is not None:
            work.least = node.get(*place, "schedulingPolicy", "minAvailable")


def processes(one: Import, node: Node, *path: str) -> Optional[int]:
    """The processes of a pod; None for auto and gpu, which are the defaults of torchrun and the plugin."""
    found = node.get(*path)
    if found is None or found.value is None:
        return None
    if isinstance(found.value, str) and found.text in ("auto", "gpu"):
        one.take(found)
        return None
    if not isinstance(found.value, (dict, list, bool)) and re.fullmatch("[1-9][0-9]{0,5}", found.text):
        one.take(found)
        return int(found.text)
    one.open(found, f"'{found.text[:40]}' is not a number of processes: using one for each pod")
    return None


def _elastic(one: Import, work: Work, node: Node) -> None:
    policy = node.get("spec", "elasticPolicy")
    if policy is None:
        return
    least, most = (one.must(one.whole, policy, name, least=1) for name in ("minReplicas", "maxReplicas"))
    restarts = one.must(one.whole, policy, "maxRestarts", least=0)
    if least is not None and most is not None and len(work.roles) == 1 and least <= most:
        work.roles[0].replicas, work.most = least, most
        one.say(policy.line, f"the job starts with {least} to {most} nodes, as many as are free, and keeps that number")
    elif least is not None or most is not None:
        for name in ("minReplicas", "maxReplicas"):
            one.open(policy.get(name), "a range of nodes needs a single role and both ends: the number of replicas applies")
    if restarts is not None:
        work.tries, work.backoff = restarts, max(restarts, work.backoff or 0)
    if not any(role.name == "Master" for role in work.roles):
        work.success = "any"  # as in the operator


def _replicas(one: Import, node: Node) -> int:
    value = one.must(one.whole, node, "replicas", least=0)
    return 1 if value is None else value


def _empty(one: Import, node: Node, kind: Kind, name: str, given: Dict[str, Node]) -> None:
    """Report a role without replicas.  If its members decide when the job ends, the job would be another without them."""
    deciding = [n for n in given if n in ("Chief", "Master", "Launcher")] or ["Worker"]
    if name in deciding:
        one.refuse(
            given[name].get("replicas") or node,
            f"replicas: 0: the {name} decides when a {node.string('kind')} ends: give it a replica, or remove the role",
        )
    one.changed(given[name].get("replicas"), f"a role must have members: the job has no {name}")


def _primary(one: Import, node: Node, primary: str) -> None:
    """Report that no pod has the container whose command should run."""
    specs = [node.get("spec"), *(n for key in KINDS.values() for _, n in node.items("spec", key.replicas))]
    given = [name for spec in specs if spec for name, _ in spec.items("template", "spec", "containers")]
    if primary and given and primary not in given:
        one.say(node.line, f"there is no container {primary}: using the first one of each pod")


def _job(one: Import, node: Node, substitute: Substitute, primary: str) -> Work:
    """A plain Job of Kubernetes."""
    role = Role("Worker", 1)
    several, at_once = (one.must(one.whole, node, "spec", name, least=1) for name in ("completions", "parallelism"))
    role.replicas = several or at_once or 1
    if several and at_once and at_once < several:
        one.changed(node.get("spec", "parallelism"), f"all {several} run at once; for a limit, use a job array: --array=1-{several}%{at_once}")
    if one.word(node, "spec", "completionMode", known={"NonIndexed": False, "Indexed": True}):
        one.changed(node.get("spec", "completionMode"), "JOB_COMPLETION_INDEX is not set: use $SLURM_PROCID")
    read_pod(one, role, node.get("spec", "template"), substitute, primary)
    _primary(one, node, primary)
    work = Work("", [role])
    _policy(one, work, node)
    role.restart = one.must(one.word, node, "spec", "template", "spec", "restartPolicy", known=_RESTARTS) or "on_failure"
    role.restart = "on_failure" if role.restart == "never" and work.backoff != 0 else role.restart  # Kubernetes creates new pods
    work.backoff = 6 if work.backoff is None else work.backoff
    work.success = "all_workers"
    return work


_RESTARTS = {"Always": "always", "OnFailure": "on_failure", "ExitCode": "exit_code", "Never": "never"}


def _restarts(one: Import, work: Work, kind: Kind, replicas: Dict[str, Node]) -> None:
    """Set the restartPolicy of each role."""
    given = {name: one.must(one.word, node, "restartPolicy", known=_RESTARTS) for name, node in replicas.items()}
    for role in work.roles:
        role.restart = given.get(role.name) or _RESTARTS[kind.restart]
    if any(policy and policy != "never" for policy in given.values()):
        work.tries = 3


def _end(one: Import, work: Work, node: Node, kind: Kind) -> None:
    """Set the role that ends the job."""
    policy = one.must(one.word, node, "spec", "successPolicy", known={"": "", "Default": "", "AllWorkers": "all_workers"})
    names = [role.name for role in work.roles]
    chief = next((name for name in names if name in ("Chief", "Master")), "")
    work.success = policy or work.success or ("" if chief or not kind.every else "all_workers")
    if not {"PS", "Evaluator"}.isdisjoint(names):
        work.ends = chief.lower() or ("workers" if work.success == "all_workers" else "worker")


def work_of(one: Import, node: Node, substitute: Substitute = str, primary: str = "") -> Work:
    """Read a job of one of the KINDS, or a plain Job."""
    kind = KINDS.get(node.string("kind"))
    if kind is None:
        return _job(one, node, substitute, primary)
    main = primary or one.text(node, "spec", "mainContainer")
    one.word(node, "spec", "launcherCreationPolicy", known={"AtStartup": 1, "WaitForWorkersReady": 1})
    cases = {name.lower(): name for name in kind.roles}  # the operators accept names in any case
    given = {cases.get(name.lower(), name): spec for name, spec in node.items("spec", kind.replicas)}
    names = sorted(given, key=lambda n: kind.roles.index(n) if n in kind.roles else len(kind.roles))
    roles = []
    for name in names:
        role = Role(name, _replicas(one, given[name]))
        role.spec = given[name]
        read_pod(one, role, given[name].get("template"), substitute, main or kind.container)
        if name not in kind.roles:
            one.open(given[name], f"a {node.string('kind')} has no role {name}: must be one of {', '.join(kind.roles)}")
        elif role.replicas:
            roles.append(role)
        else:
            _empty(one, node, kind, name, given)
    if not roles:
        one.refuse(node, f"this {node.string('kind')} has no replicas: {kind.replicas} contains none of {', '.join(kind.roles)}")
    work = Work(kind.framework, roles)
    _restarts(one, work, kind, {name: given[name] for name in names})
    elastic = processes(one, node, "spec", "elasticPolicy", "nProcPerNode")
    work.per_pod = processes(one, node, "spec", "nprocPerNode") or elastic or 1
    _policy(one, work, node)
    _elastic(one, work, node)
    if kind.framework == "mpi":
        _mpi(one, work, node)
        if node.string("apiVersion").endswith("v2beta1") and work.backoff != 0:
            # there the launcher is a Job, which creates new pods regardless of their restartPolicy
            work.roles[0].restart = "on_failure" if work.roles[0].restart == "never" else work.roles[0].restart
            work.backoff = 6 if work.backoff is None else work.backoff
    _end(one, work, node, kind)
    _primary(one, node, main)
    _warn(one, node)
    return work


def _warn(one: Import, node: Node) -> None:
    if node.string("kind") == "PyTorchJob":
        one.say(
            node.line,
            "RANK and WORLD_SIZE count processes here; a PyTorchJob sets RANK to the number of the pod, which is wrong if a pod has several processes",
        )
    if node.string("kind") == "XGBoostJob":
        one.say(
            node.line,
            "MASTER_ADDR, MASTER_PORT, RANK and WORLD_SIZE are set, but not LightGBM's WORKER_ADDRS and WORKER_PORT",
        )


# ---- the experiment file


def _time_text(seconds: int) -> str:
    minutes, rest = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours // 24}-{hours % 24:02}:{minutes:02}:{rest:02}" if hours >= 24 else f"{hours}:{minutes:02}:{rest:02}"


def roles_text(work: Work) -> str:
    """The value of --dl-roles; empty if neither the framework nor the commands need roles."""
    needed = work.framework in ("tf", "paddle") or len({(tuple(r.words), tuple(r.env.items())) for r in work.roles}) > 1
    if len(work.roles) == 1 or not needed:
        return ""
    return ",".join(f"{role.name.lower()}:{role.replicas * work.per_pod}" for role in work.roles)


def _framework(work: Work) -> str:
    return "torchrun" if work.framework in ("torch", "torchrun") and work.by_torchrun else work.framework


def _words(work: Work, role: Role) -> List[str]:
    if work.by_image:
        return [IMAGE_PROGRAM, *role.words]
    return role.words or ["./PROGRAM"]


# the variables that the operator sets for JAX, from those of the plugin
_JAX = (
    "export COORDINATOR_ADDRESS=${JAX_COORDINATOR_ADDRESS%:*} COORDINATOR_PORT=$JAX_COORDINATOR_PORT "
    "NUM_PROCESSES=$JAX_NUM_PROCESSES PROCESS_ID=$JAX_PROCESS_ID; "
)
IMAGE_PROGRAM = "/.singularity.d/runscript"  # Apptainer puts it into each image, to start the image's own program


def _variables(one: Import, work: Work) -> List[Dict[str, str]]:
    """Set the variables that all roles share for the experiment.  Returns the others for each role."""
    first = work.roles[0].env
    shared = {n: v for n, v in first.items() if all(role.env.get(n) == v for role in work.roles) and "$(" not in v}
    shared = {n: v for n, v in shared.items() if one.variable(n, v)}
    return [{n: v for n, v in role.env.items() if n not in shared} for role in work.roles]


def _commands(one: Import, work: Work) -> List[str]:
    """The shell command of each role."""
    words = [_words(work, role) for role in work.roles]
    made, constants = target.shield([word for list in words for word in list])
    one.keys.setdefault("hyperparameters", {}).update(constants)
    texts = []
    for role, own, env in zip(work.roles, words, _variables(one, work)):
        text = _JAX if work.framework == "jax" and work.total > 1 else ""
        text += "".join(f"export {n}={target.shell_word(v)}; " for n, v in env.items())
        text += f"cd {target.quoted([role.folder])} && " if role.folder else ""
        texts.append(text + ("exec " if text else "") + target.shell_words(made[: len(own)]))
        made = made[len(own) :]
    return texts


def _like_main(one: Import, main: Role, role: Role) -> None:
    """Report what a role has in its own way, although all nodes are alike."""
    if role.container is None or role.spec is None or role is main:
        return
    if role.restart != main.restart:
        one.open(role.spec.get("restartPolicy"), f"all nodes have the restartPolicy of {main.name}")
    if role.folder != main.folder:
        one.open(role.container.get("workingDir"), f"all nodes have the workingDir of {main.name}")
    for name, variable in one.unique(role.container, "env").items():
        if name in role.env and role.env[name] != main.env.get(name):
            one.open(variable.get("value") or variable, f"all nodes have the variables of {main.name}")


def _as_nodes(one: Import, work: Work, framework: str) -> None:
    """Convert each pod to a node with its ranks, or with torchrun, which starts them."""
    gpus, cpus, memory = (work.most_of(need) for need in ("gpus", "cpus", "memory"))
    ranks = 1 if framework == "torchrun" else work.per_pod
    if len({role.needs for role in work.roles}) > 1 and len(work.roles) > 1:
        one.say(0, "the roles need different resources: each node gets the largest amounts")
    if len({tuple(role.words) for role in work.roles}) > 1:
        one.say(0, f"all roles run the command of {work.main.name}: for others, choose by $SLURM_PROCID in a script")
    for role in work.roles:
        _like_main(one, work.main, role)
    if work.success == "any":
        one.say(one.node.line, "the job succeeds when all of its processes have exited with status 0, not when the first one has")
    work.roles = [work.main]
    nodes = work.most or work.total
    one.set("resources.nodes_per_trial", nodes if nodes > 1 else None)
    one.set("resources.ranks_per_node", ranks if ranks > 1 else None)
    one.set("resources.gpus_per_node", gpus or None)
    one.set("resources.cpus_per_trial", max(cpus // ranks, 1) if cpus else None)
    one.set("resources.memory", memory_text(memory) if memory else None)
    least = work.total if work.most > work.total else work.least.value if work.least is not None else nodes
    if least > nodes:
        one.open(work.least, f"the job has only {nodes} pods")
    elif least < nodes:
        one.set("job.min_available", least * ranks)
    one.set("job.restart_policy", work.main.restart if work.main.restart != "on_failure" else None)
    one.set("entrypoint", _commands(one, work)[0])


def _as_roles(one: Import, work: Work) -> None:
    """Convert each pod to a member of its role."""
    roles = []
    for role, command in zip(work.roles, _commands(one, work)):
        gpus, cpus, memory = role.needs
        own = {"name": role.name.lower(), "count": role.replicas, "command": command, "cpus": cpus, "gpus": gpus,
               "memory": memory_text(memory) if memory else "",
               "restart_policy": role.restart if role.restart != "on_failure" else ""}  # fmt: skip
        roles.append({n: v for n, v in own.items() if v and not (n == "count" and v == 1)})
    one.set("job.roles", roles)
    one.set("job.success_policy", work.success or None)
    if work.least is not None and work.least.value != work.total:
        one.changed(work.least, f"all {work.total} members start together")


def put_job(one: Import, work: Work) -> None:
    """Set the keys of the experiment file."""
    framework = _framework(work)
    one.set("name", one.name)
    one.set("working_folder", "trial", "a restart finds the files of the earlier attempt")
    for role in work.roles:
        if role.container is None or role.container is work.main.container or role is work.main:
            continue
        if role.image != work.main.image:
            one.open(role.container.get("image"), f"all roles run in the image of {work.main.name}")
        if [m[:3] for m in role.mounts] != [m[:3] for m in work.main.mounts]:
            one.open(role.container.get("volumeMounts"), f"all roles get the mounts of {work.main.name}")
    work.total = work.pods
    one.set("resources.framework", framework if framework and max(work.most, work.total) * work.per_pod > 1 else None)
    if framework == "mpi":
        one.variable("SLURM_MPI_TYPE", "pmix")
    if work.per_pod > 1 and framework == "torchrun":
        one.variable("PET_NPROC_PER_NODE", str(work.per_pod))
    if framework == "mpi" and work.direct:
        _launcher(work)
    if work.by_image:
        line = work.main.container.line if work.main.container is not None else 0
        one.say(line, f"{IMAGE_PROGRAM} starts the image's own program in Apptainer; for another runtime, name the program")
    image = work.main.container.get("image") if work.main.container is not None else None
    one.image(image, binds_of(one, work.main.mounts))
    one.set("job.backoff_limit", work.backoff if work.restarts or not work.backoff else None)
    if work.backoff and not work.restarts:
        one.say(one.node.line, "backoffLimit has no effect, because restartPolicy is Never")
    one.set("job.active_deadline", _time_text(work.seconds) if work.seconds else None)
    one.set("job.clean_up", "none" if work.clean_up == "none" else None)
    one.set("job.ttl_after_finished", work.ttl)
    one.set("job.suspend", True if work.hold else None)
    shaped = framework == "torchrun" or work.per_pod > 1 or bool(work.most)
    if shaped or (work.total == 1 and len(work.roles) == 1):
        _as_nodes(one, work, framework)
    else:
        _as_roles(one, work)
    if not any(key.startswith("job.") for key in one.keys):
        one.keys.setdefault("job", {})


def _launcher(work: Work) -> None:
    """The launcher starts the ranks itself: it runs in the first slot, and idle members hold the others for it."""
    workers = work.roles[-1]
    slots = workers.replicas * work.per_pod
    launcher = copy.copy(workers)
    launcher.name, launcher.replicas = "Launcher", 1
    launcher.cpus, launcher.gpus = max(workers.cpus // work.per_pod, 1), workers.gpus // work.per_pod
    launcher.memory = workers.memory / work.per_pod
    work.roles, work.per_pod = [launcher], 1
    if slots > 1:
        others = Role("Worker", slots - 1)
        others.gpus, others.cpus, others.memory = launcher.needs
        others.words, others.restart = ["sleep", "infinity"], launcher.restart
        work.roles.append(others)
    work.total = slots


def missing(one: Import, work: Work) -> None:
    """Report that the file does not name the program of an image."""
    for role in work.roles:
        if not role.words and role.container is not None and not work.by_image:
            one.open(role.container.get("image"), "the file does not name the image's own program: put it in place of ./PROGRAM")


def knows(node: Node) -> bool:
    return node.has("apiVersion") and (node.string("kind") in KINDS or node.string("kind") == "Job")


def named_by(one: Import, node: Node, default: str) -> None:
    """Set the name from the metadata of a Kubernetes document."""
    given = next((node.get("metadata", key) for key in ("name", "generateName") if node.string("metadata", key)), None)
    one.set_name(given, default)
    one.name = one.keys.pop("name")


def convert(node: Node, name: str, program: str = "") -> List[Import]:
    one = Import(TABLE, node, name)
    named_by(one, node, name)
    work = work_of(one, node)
    work.name = one.name
    missing(one, work)
    put_job(one, work)
    return [one]
