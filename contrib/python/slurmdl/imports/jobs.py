# SPDX-License-Identifier: Apache-2.0
"""Training jobs of Kubernetes as batch scripts: TFJob, PyTorchJob, MPIJob, JAXJob, PaddleJob, XGBoostJob, Job.

A pod becomes a task of srun; where the command is torchrun, a node.
"""

import math
import re
import shlex
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

from . import containers, target
from .document import Node
from .table import MAPPED, NONE, Import, Table, changed, left, none, plain_name, under, used

_STORAGE = "a job sees the file systems of its node: use a path there, or make a link to it"

# fmt: off
CONTAINER_ROWS = [
    used("image", "container; in a script pyxis or apptainer exec", "without a command: apptainer run"),
    used("command command.** args args.**", "the command", "mpirun, horovodrun: srun; $(NAME): ${NAME}"),
    used("env.*.name env.*.value", "export NAME=value"),
    left("env.*.valueFrom.** envFrom.**", "secrets and config maps: export it in the script, or before sbatch"),
    used("resources.limits.* resources.requests.*", "--gpus-per-task, --cpus-per-task, --mem", "the larger, of each role; other resources are not taken over"),
    none("resources.claims.**", "Kubernetes' scheduling"),
    used("workingDir", "cd"),
    used("volumeMounts.*.name volumeMounts.*.mountPath volumeMounts.*.readOnly volumeMounts.*.subPath", "container.binds; in a script --container-mounts or apptainer --bind", "hostPath: the same on the node; a claim: the folder of its name beside the file; emptyDir: /tmp"),
    left("volumeMounts.** volumeDevices.**", _STORAGE),
    none("name imagePullPolicy securityContext.** ports.** tty stdin stdinOnce", "of the container"),
    none("livenessProbe.** readinessProbe.** startupProbe.** terminationMessagePath terminationMessagePolicy", "srun knows when a task ends"),
    left("lifecycle.**", "write it into the script"),
]

POD_ROWS = [
    *under("spec.containers.*", CONTAINER_ROWS),
    none("apiVersion kind metadata.**", "names and labels of pods"),
    left("spec.initContainers.**", "write their commands into the script, before srun"),
    used("spec.volumes.*.hostPath.path spec.volumes.*.persistentVolumeClaim.claimName", "container.binds", "see volumeMounts"),
    none("spec.volumes.**", "Kubernetes' storage; see volumeMounts"),
    left("spec.nodeSelector.** spec.affinity.**", "sbatch --constraint, --partition or --gres=gpu:TYPE:N"),
    none("spec.tolerations.** spec.topologySpreadConstraints.** spec.schedulerName spec.resourceClaims.**", "Slurm's own scheduling"),
    left("spec.priorityClassName", "sbatch --qos"),
    none("spec.restartPolicy", "the restartPolicy of the replicas counts"),
    used("spec.activeDeadlineSeconds", "--time"),
    none("spec.serviceAccountName spec.serviceAccount spec.securityContext.** spec.imagePullSecrets.** spec.dnsPolicy spec.dnsConfig.**", "a job runs as you, on the node's network"),
    none("spec.hostNetwork spec.hostIPC spec.hostPID spec.hostname spec.subdomain spec.enableServiceLinks spec.shareProcessNamespace", "a job runs as you, on the node's network"),
    none("spec.terminationGracePeriodSeconds", "KillWait of slurm.conf"),
]

_POLICY_ROWS = [
    none("cleanPodPolicy ttlSecondsAfterFinished managedBy", "nothing of a job is left to be removed"),
    used("activeDeadlineSeconds", "--time"),
    used("backoffLimit", "a loop around srun"),
    used("suspend", "--hold"),
    none("schedulingPolicy.minAvailable schedulingPolicy.minResources schedulingPolicy.minResources.** schedulingPolicy.scheduleTimeoutSeconds", "Slurm starts all tasks of a job together"),
    left("schedulingPolicy.queue", "sbatch --partition"),
    left("schedulingPolicy.priorityClass", "sbatch --qos"),
]

HEAD_ROWS = [
    none("apiVersion kind status status.**", "Kubernetes' own"),
    used("metadata.name metadata.generateName", "--job-name"),
    none("metadata.**", "namespaces, labels and annotations of Kubernetes"),
]

REPLICA_ROWS = [
    used("replicas", "--ntasks, --dl-roles; hetjob where the roles need other resources", "of tfReplicaSpecs, pytorchReplicaSpecs, mpiReplicaSpecs and so on"),
    changed("restartPolicy", "a loop around srun", "all ranks begin again, not one; ExitCode: from status 128 on; Never: --no-requeue"),
]
# fmt: on


class Kind(NamedTuple):
    """A kind of job: where its replicas are, its framework for --dl, its roles in their order."""

    replicas: str
    framework: str
    roles: Tuple[str, ...]


KINDS = {
    "TFJob": Kind("tfReplicaSpecs", "tf", ("Chief", "Master", "PS", "Worker", "Evaluator")),
    "PyTorchJob": Kind("pytorchReplicaSpecs", "torch", ("Master", "Worker")),
    "MPIJob": Kind("mpiReplicaSpecs", "mpi", ("Launcher", "Worker")),
    "JAXJob": Kind("jaxReplicaSpecs", "jax", ("Worker",)),
    "PaddleJob": Kind("paddleReplicaSpecs", "paddle", ("Master", "PS", "Worker")),
    "XGBoostJob": Kind("xgbReplicaSpecs", "torch", ("Master", "Worker")),
}

# fmt: off
_OWN = [
    *HEAD_ROWS,
    *under("spec.runPolicy", _POLICY_ROWS),
    used("spec.nprocPerNode spec.elasticPolicy.nProcPerNode", "PET_NPROC_PER_NODE, --ntasks-per-node", "auto: the GPUs of the node"),
    changed("spec.elasticPolicy.minReplicas spec.elasticPolicy.maxReplicas", "--nodes=MIN-MAX", "the number of nodes is that of the start; dl elastic changes it while it runs"),
    used("spec.elasticPolicy.maxRestarts", "a loop around srun"),
    none("spec.elasticPolicy.**", "the plugin sets the rendezvous; no autoscaler"),
    used("spec.slotsPerWorker", "--ntasks"),
    used("spec.successPolicy", "the end of the step", "of a TFJob with parameter servers or an evaluator: the chief's end, or that of worker 0, ends it"),
    none("spec.mainContainer spec.enableDynamicWorker spec.sshAuthMountPath spec.mpiImplementation spec.launcherCreationPolicy", "srun ends with its tasks, and needs no ssh"),
    used("spec.parallelism spec.completions", "--ntasks", "of a Job"),
    used("spec.completionMode", "--ntasks", "of a Job"),
    none("spec.podFailurePolicy.** spec.selector.** spec.manualSelector", "Kubernetes' own"),
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
    """Bytes as Slurm has them."""
    mega = math.ceil(size / 2**20)
    return f"{mega // 1024}G" if mega % 1024 == 0 else f"{mega}M"


# ---- what a pod runs


class Role:
    """A kind of pods of a job: what they run, and what each needs."""

    def __init__(self, name: str, replicas: int) -> None:
        self.name, self.replicas = name, replicas
        self.words: List[str] = []
        self.env: Dict[str, str] = {}
        self.gpus, self.cpus, self.memory = 0, 0, 0.0
        self.folder = ""
        self.image = ""
        self.mounts: List[containers.Mount] = []
        self.command = False  # that of its container; else the image's own program runs
        self.container: Optional[Node] = None

    @property
    def needs(self) -> Tuple[int, int, float]:
        return self.gpus, self.cpus, self.memory


Substitute = Callable[[str], str]


def _resources(one: Import, role: Role, container: Node) -> None:
    for which in ("requests", "limits"):
        for name, node in container.items("resources", which):
            size = quantity(one.text(node))
            if size is None:
                one.open(node, f"'{node.text}' is no quantity")
            elif name != "cpu" and name != "memory" and size != int(size):
                one.open(node, f"'{node.text}' is no number of {name}")
            elif name.endswith("/gpu") or name.startswith(("nvidia.com/mig", "gpu.intel.com/")):
                role.gpus = max(role.gpus, math.ceil(size))
            elif name == "cpu":
                role.cpus = max(role.cpus, math.ceil(size))
                if size != math.ceil(size):
                    one.changed(node, f"whole cores: {math.ceil(size)}")
            elif name == "memory":
                role.memory = max(role.memory, size)
            else:
                one.open(node, f"sbatch --gres, if Slurm has {name}")


def read_container(one: Import, role: Role, container: Node, substitute: Substitute = str) -> None:
    """The command, the variables and the needs of a container."""
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
            one.open(variable, "no name of a variable")
        elif variable.has("value") or not variable.has("valueFrom"):
            value = variable.get("value")
            if value is not None and isinstance(value.value, (dict, list)):
                one.open(value, "no text")
            else:
                one.take(value)
                role.env[name] = substitute(variable.string("value"))
    _resources(one, role, container)


def read_pod(
    one: Import, role: Role, template: Optional[Node], substitute: Substitute = str, primary: str = ""
) -> None:
    """The container of a pod that trains: that of the name 'primary', else the first."""
    given = template.items("spec", "containers") if template is not None else []
    chosen = next((c for name, c in given if name == primary), given[0][1] if given else None)
    for _, container in given:
        if container is not chosen:
            one.open(container, "a second container of a pod: write its command into the script")
    if chosen is not None:
        read_container(one, role, chosen, substitute)
        role.mounts = containers.read(one, template, chosen) if template is not None else []


# ---- a job


class Work:
    """A job: its roles, and how their processes are started."""

    def __init__(self, framework: str, roles: List[Role]) -> None:
        self.framework, self.roles = framework, roles
        self.name = ""
        self.per_pod = 1  # processes
        self.seconds = 0
        self.tries = 0
        self.hold = False
        self.most = 0  # nodes, at most
        self.direct = False  # the command starts the ranks by itself
        self.restarts = True
        self.exit_code = False  # only a status from 128 on is tried again
        self.ends = ""  # the role whose end is that of the step: "chief", or "worker" for worker 0

    @property
    def main(self) -> Role:
        """The role whose command counts: the first with a command."""
        return next((role for role in self.roles if role.words), self.roles[0])

    @property
    def folder(self) -> str:
        """That of all roles, where it is one."""
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
        """Whether the image's own program runs, with the same arguments in all pods."""
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
    """The number of ranks that mpirun starts, in the slots of the workers."""
    workers, line = work.roles[-1], role.container.line if role.container else 0
    slots = workers.replicas * work.per_pod
    if not text.isdigit() or int(text) < 1:
        one.say(line, f"mpirun -np {text[:40]}: no number; {slots} ranks, as the workers have slots")
    elif int(text) % max(workers.replicas, 1) == 0 and workers.replicas:
        work.per_pod = int(text) // workers.replicas
        if int(text) != slots:
            one.say(line, f"mpirun -np {text}: so many ranks, and not one for each of {slots} slots")
    elif int(text) != slots:
        one.say(line, f"mpirun -np {text} and {workers.replicas} workers: one task for each rank, each with what a worker has")
        workers.replicas, work.per_pod = int(text), 1


def _without_mpirun(one: Import, work: Work, role: Role) -> None:
    """srun starts the ranks: the program behind mpirun, and what its options mean for it."""
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
        one.say(line, f"options of mpirun that srun has no use for: {', '.join(dropped)}")
    for name in [name for name in role.env if not _VARIABLE.fullmatch(name)]:
        one.say(line, f"{name[:40]}: no name of a variable")
        del role.env[name]


def _mpi(one: Import, work: Work, node: Node) -> None:
    """Launcher and workers: the launcher's program runs in the workers."""
    launcher, workers = work.roles[0], work.roles[-1]
    work.per_pod = one.whole(node, "spec", "slotsPerWorker", least=1) or 1
    launcher.words = launcher.words or workers.words
    _without_mpirun(one, work, launcher)
    if workers is not launcher:
        theirs, own = workers.container, launcher.container
        for name in ("command", "args") if theirs is not None and own is not None else ():
            if theirs.get(name) is not own.get(name):  # type: ignore[union-attr]
                one.mark(theirs.get(name), NONE, "srun needs no sshd")  # type: ignore[union-attr]
        if own is not None and theirs is not own:
            one.mark(own.get("resources"), NONE, "srun needs no launcher")
        workers.words, workers.env = launcher.words, {**workers.env, **launcher.env}
        workers.container, workers.command = launcher.container, True
        work.roles = [workers]


def _policy(one: Import, work: Work, node: Node) -> None:
    for place in (("spec", "runPolicy"), ("spec",)):
        seconds = one.whole(node, *place, "activeDeadlineSeconds", least=1)
        limit = one.whole(node, *place, "backoffLimit", least=0)
        work.seconds = work.seconds if seconds is None else seconds
        work.tries = work.tries if limit is None else limit
        work.hold = one.truth(node, *place, "suspend") is True or work.hold


def processes(one: Import, node: Node, *path: str) -> Optional[int]:
    """The processes of a pod: a number, or auto and gpu, which are those that torchrun and the plugin take."""
    found = node.get(*path)
    if found is None or found.value is None:
        return None
    if isinstance(found.value, str) and found.text in ("auto", "gpu"):
        one.take(found)
        return None
    if not isinstance(found.value, (dict, list, bool)) and re.fullmatch("[1-9][0-9]{0,5}", found.text):
        one.take(found)
        return int(found.text)
    one.open(found, f"'{found.text[:40]}' is no number of processes: one for each pod")
    return None


def _elastic(one: Import, work: Work, node: Node) -> None:
    policy = node.get("spec", "elasticPolicy")
    if policy is None:
        return
    least, most = (one.whole(policy, name, least=1) for name in ("minReplicas", "maxReplicas"))
    restarts = one.whole(policy, "maxRestarts", least=0)
    if least is not None and most is not None and len(work.roles) == 1 and least <= most:
        work.roles[0].replicas, work.most = least, most
    elif least is not None or most is not None:
        for name in ("minReplicas", "maxReplicas"):
            one.open(policy.get(name), "a range of nodes is of one role, and has both ends: the replicas count")
    work.tries = work.tries if restarts is None else restarts


def _replicas(one: Import, node: Node) -> int:
    value = one.whole(node, "replicas", least=0)
    if value is None and node.has("replicas") and node.plain("replicas") is not None:
        one.refuse(node.get("replicas") or node, f"replicas: '{node.string('replicas')}' is no number")
    return 1 if value is None else value


def _primary(one: Import, node: Node, primary: str) -> None:
    """Say that no pod has the container whose command counts."""
    specs = [node.get("spec"), *(n for key in KINDS.values() for _, n in node.items("spec", key.replicas))]
    given = [name for spec in specs if spec for name, _ in spec.items("template", "spec", "containers")]
    if primary and given and primary not in given:
        one.say(node.line, f"there is no container {primary}: the first of each pod is taken")


def _job(one: Import, node: Node, substitute: Substitute, primary: str) -> Work:
    """A plain Job of Kubernetes."""
    role = Role("Worker", 1)
    several, at_once = (one.whole(node, "spec", name, least=1) for name in ("completions", "parallelism"))
    role.replicas = several or at_once or 1
    if several and at_once and at_once < several:
        one.changed(node.get("spec", "parallelism"), f"all {several} run at once; a job array has --array=1-{several}%{at_once}")
    if one.word(node, "spec", "completionMode", known={"NonIndexed": False, "Indexed": True}):
        one.changed(node.get("spec", "completionMode"), "JOB_COMPLETION_INDEX is not set: it is $SLURM_PROCID")
    read_pod(one, role, node.get("spec", "template"), substitute, primary)
    _primary(one, node, primary)
    work = Work("", [role])
    _policy(one, work, node)
    return work


_RESTARTS = {name: name for name in ("Always", "OnFailure", "ExitCode", "Never")}


def _restarts(one: Import, work: Work, policies: Dict[str, Optional[Node]]) -> None:
    """What the restartPolicy of each role means for the whole step."""
    given = {name: one.word(node, known=_RESTARTS) for name, node in policies.items()}
    kinds = set(given.values())
    work.restarts = kinds != {"Never"}
    work.exit_code = "ExitCode" in kinds and not kinds & {"Always", "OnFailure"}
    if work.restarts and kinds - {None, "Never"}:
        work.tries = 3
    for name, kind in given.items():
        if kind == "Never" and not work.restarts:
            one.mark(policies[name], MAPPED, "")
        elif kind == "Never":
            one.changed(policies[name], f"a {name} that fails begins again, too, with all ranks")
        elif kind == "ExitCode" and not work.exit_code:
            one.changed(policies[name], "each status is tried again, as of the other roles")


def _end(one: Import, work: Work, node: Node) -> None:
    """When a TFJob ends whose parameter servers, or evaluator, would serve for ever."""
    policy = one.word(node, "spec", "successPolicy", known={"": "", "Default": "", "AllWorkers": "AllWorkers"})
    serve = [role.name for role in work.roles if role.name in ("PS", "Evaluator")]
    if not serve or node.string("kind") not in ("TFJob", "PaddleJob"):
        return
    names = [role.name for role in work.roles]
    chief = next((name for name in ("Chief", "Master") if name in names), "")
    every = policy == "AllWorkers" or node.string("kind") == "PaddleJob" and not chief
    if work.by_image or every or not (chief or "Worker" in names):
        how = "the end of all workers" if every else "the end of the chief"
        one.open(node.get("spec", "successPolicy"), f"{how} does not end the step")
        one.say(
            node.line,
            f"{how} does not end the step: if {' and '.join(serve)} serve for ever, it ends at --time or by scancel",
        )
        return
    work.ends = chief.lower() or "worker"


def work_of(one: Import, node: Node, substitute: Substitute = str, primary: str = "") -> Work:
    """What a job of one of the KINDS, or a plain Job, runs."""
    kind = KINDS.get(node.string("kind"))
    if kind is None:
        return _job(one, node, substitute, primary)
    given = dict(node.items("spec", kind.replicas))
    names = sorted(given, key=lambda n: kind.roles.index(n) if n in kind.roles else len(kind.roles))
    roles = []
    for name in names:
        role = Role(name, _replicas(one, given[name]))
        read_pod(one, role, given[name].get("template"), substitute, primary)
        if name not in kind.roles:
            one.open(given[name], f"a {node.string('kind')} has no role {name}: {', '.join(kind.roles)}")
        elif role.replicas:
            roles.append(role)
    if not roles:
        one.refuse(node, f"a {node.string('kind')} without replicas: {kind.replicas} has none of {', '.join(kind.roles)}")
    work = Work(kind.framework, roles)
    _restarts(one, work, {name: given[name].get("restartPolicy") for name in names})
    elastic = processes(one, node, "spec", "elasticPolicy", "nProcPerNode")
    work.per_pod = processes(one, node, "spec", "nprocPerNode") or elastic or 1
    _policy(one, work, node)
    _elastic(one, work, node)
    if kind.framework == "mpi":
        _mpi(one, work, node)
    _end(one, work, node)
    _primary(one, node, primary)
    _warn(one, node)
    return work


def _warn(one: Import, node: Node) -> None:
    if node.string("kind") == "PyTorchJob":
        one.say(
            node.line,
            "RANK and WORLD_SIZE count processes here; a PyTorchJob sets RANK to the pod's number, which is wrong with several processes in a pod",
        )
    if node.string("kind") == "XGBoostJob":
        one.say(
            node.line,
            "MASTER_ADDR, MASTER_PORT, RANK and WORLD_SIZE are set; WORKER_ADDRS and WORKER_PORT of LightGBM are not",
        )


# ---- the batch script


def shell_line(words: List[str]) -> str:
    return " ".join(target.shell_word(word, target.bash_quote) for word in words)


ENDED = 200  # the status by which a role ends the step
# srun's status is that of a task that a signal ended, if there is one: the others end by themselves when the step ends.
# One that fails at once waits until they, too, have set their traps.
# Signals reach the program too, which may save; the shell waits for it.
RUN = (
    'run () { trap t=1 TERM; trap : USR1 USR2; "$@" & p=$!; while wait $p; s=$?; kill -0 $p 2>/dev/null; do :; done; '
    '[ "$s$t" = 0 ] || [ "$t" ] || [ $SECONDS -ge 10 ] || sleep 10; }; '
)


def _script_of(work: Work, role: Role, common: Dict[str, str], several: bool) -> str:
    """What a role runs."""
    own = {name: value for name, value in role.env.items() if common.get(name) != value}
    text = "".join(f"export {name}={target.shell_word(value, target.bash_quote)}; " for name, value in own.items())
    if role.folder and not work.folder:
        text += f"cd -- {target.bash_quote(role.folder)} && "
    command = shell_line(role.words) or "./PROGRAM"
    others = '[ -z "$t" ] || s=0; exit $s'
    if work.ends == role.name.lower():
        this = '"$s$t:$DL_ROLE_INDEX" = 0:0' if work.ends == "worker" else '"$s$t" = 0'
        return f"{text}run {command}; [ {this} ] && exit {ENDED}; {others if work.ends == 'worker' else 'exit $s'}"
    if work.ends:
        return f"{text}run {command}; {others}"
    return text + ("exec " if several or text else "") + command


def _command(work: Work, common: Dict[str, str]) -> str:
    """The program behind srun, or of each role."""
    if work.by_image:
        return ""
    texts = {role.name: _script_of(work, role, common, True) for role in work.roles}
    if len(set(texts.values())) == 1 and not work.ends:
        return _script_of(work, work.roles[0], common, False)
    cases = " ".join(f"{name.lower()}) {text};;" for name, text in texts.items())
    return "bash -c " + shlex.quote((RUN if work.ends else "") + f"case $DL_ROLE in {cases} esac")


def roles_text(work: Work) -> str:
    """--dl-roles, where the framework or the commands need them."""
    needed = work.framework in ("tf", "paddle") or len({(tuple(r.words), tuple(r.env.items())) for r in work.roles}) > 1
    if len(work.roles) == 1 or not needed:
        return ""
    return ",".join(f"{role.name.lower()}:{role.replicas * work.per_pod}" for role in work.roles)


def _components(work: Work) -> List[List[Role]]:
    """The roles, those that need the same and are beside each other together: of several, components of a hetjob."""
    found: List[List[Role]] = []
    for role in work.roles:
        if found and found[-1][0].needs == role.needs:
            found[-1].append(role)
        else:
            found.append([role])
    return found


def _shape(work: Work, roles: List[Role], framework: str, least: int = 0) -> List[str]:
    """The tasks of some roles and what each needs; 'least' CPUs where the file names none."""
    gpus, cpus, memory = roles[0].needs
    cpus = cpus or least
    pods = sum(role.replicas for role in roles)
    options = []
    if framework == "torchrun" or work.most or work.per_pod > 1:
        nodes = f"{pods}-{work.most}" if work.most > pods else str(pods)
        tasks = 1 if framework == "torchrun" else work.per_pod
        options += [f"--nodes={nodes}", f"--ntasks-per-node={tasks}"]
        options += [f"--gpus-per-node={gpus}"] if gpus else []
        options += [f"--cpus-per-task={max(cpus // tasks, 1)}"] if cpus else []
        options += [f"--mem={memory_text(memory)}"] if memory else []
    else:
        options += [f"--ntasks={pods}"]
        options += [f"--gpus-per-task={gpus}"] if gpus else []
        options += [f"--cpus-per-task={cpus}"] if cpus else []
        options += [f"--mem-per-cpu={memory_text(memory / max(cpus, 1))}"] if memory else []
    return options


def _framework(work: Work) -> str:
    return "torchrun" if work.framework in ("torch", "torchrun") and work.by_torchrun else work.framework


def _plugin(work: Work) -> List[str]:
    """The options of the plugin."""
    framework, roles = _framework(work), roles_text(work)
    return ([f"--dl={framework}"] if framework else []) + ([f"--dl-roles={roles}"] if roles else [])


def _options(work: Work) -> List[str]:
    """The lines of #SBATCH, without it."""
    time = [f"--time={max(math.ceil(work.seconds / 60), 1)}"] if work.seconds else []
    rest = time + (["--hold"] if work.hold else []) + ([] if work.restarts else ["--no-requeue"])
    components = _components(work)
    if len(components) == 1:
        return [*_shape(work, components[0], _framework(work)), *_plugin(work), *rest]
    # srun of Slurm 25.11 wants the CPUs of all components or of none
    least = int(any(component[0].needs[1] for component in components))
    lines: List[str] = []
    for component in components:
        lines += ["hetjob"] if lines else []
        lines += [*_shape(work, component, _framework(work), least), *rest]
    return lines


def _differs(one: Import, work: Work) -> None:
    """What of a role is not its own in one step."""
    for role in work.roles:
        if role is work.main or role.container is None or role.container is work.main.container:
            continue
        if role.image != work.main.image:
            one.open(role.container.get("image"), f"all roles run in one image, that of {work.main.name}")
        if [m[:3] for m in role.mounts] != [m[:3] for m in work.main.mounts]:
            one.open(role.container.get("volumeMounts"), f"all roles have the mounts of {work.main.name}")


def script_text(one: Import, work: Work, source: str) -> str:
    """The batch script."""
    _differs(one, work)
    own = shell_line(work.main.words) if work.by_image else None
    container = containers.script_lines(one, work.main.image, work.main.mounts, own)
    lines = ["#!/bin/bash", f"#SBATCH --job-name={plain_name(work.name or one.name)[:100]}"]
    lines += [f"#SBATCH {option}" for option in _options(work)]
    lines += [*target.header(one, source), ""]
    env = {n: v for n, v in work.main.env.items() if work.by_image or all(role.env.get(n) == v for role in work.roles)}
    common = dict(env)
    each = work.per_pod
    if work.framework in ("torch", "torchrun") and work.by_torchrun and each > 1:
        env["PET_NPROC_PER_NODE"] = str(each)
    lines += [f"export {variable}={target.shell_word(value, target.bash_quote)}" for variable, value in env.items()]
    lines += container
    if work.folder:
        lines.append(f"cd -- {target.bash_quote(work.folder)} || exit")
    start = [] if work.direct else ["srun"]
    components = len(_components(work))
    if start:
        start += [f"--het-group=0-{components - 1}", *_plugin(work)] if components > 1 else []
        start += ["--kill-on-bad-exit=1"] if work.pods * each > 1 or work.most else []
        start += ["--mpi=pmix"] if work.framework == "mpi" else []
        start += ['"${pyxis[@]}"'] if work.main.image else []
    start += ['"${inside[@]}"'] if work.main.image else []
    command = " ".join([*start, _command(work, common)]).rstrip()
    if work.ends:
        who = "worker 0" if work.ends == "worker" else f"the {work.ends}"
        lines += ["train () {", f"    {command}", "    status=$?"]
        lines += [f'    [ "$status" -ne {ENDED} ] || status=0  # {who} has ended, and so the others were', '    return "$status"', "}"]
        command = "train"
    if not work.tries:
        lines.append(command)
    else:
        lines += [f"tries={work.tries}  # after a failure all ranks begin again", f"until {command}; do", "    status=$?"]
        lines += ['    [ "$status" -ge 128 ] || exit "$status"  # restartPolicy ExitCode'] if work.exit_code else []
        lines += ['    [ $((tries -= 1)) -ge 0 ] || exit "$status"', "done"]
    return "\n".join(lines) + "\n"


def missing(one: Import, work: Work) -> None:
    """The program of an image is not in the file."""
    for role in work.roles:
        if not role.words and role.container is not None and not work.by_image:
            one.open(role.container.get("image"), "the image's own program runs: name it in place of ./PROGRAM")


def knows(node: Node) -> bool:
    return node.has("apiVersion") and (node.string("kind") in KINDS or node.string("kind") == "Job")


def named_by(one: Import, node: Node, default: str) -> None:
    """The name of a document of Kubernetes."""
    given = next((node.get("metadata", key) for key in ("name", "generateName") if node.string("metadata", key)), None)
    one.set_name(given, default)
    one.name = one.keys.pop("name")


def convert(node: Node, name: str, program: str = "") -> List[Import]:
    one = Import(TABLE, node, name)
    named_by(one, node, name)
    work = work_of(one, node)
    work.name = one.name
    missing(one, work)
    one.script = script_text(one, work, node.file.rpartition("/")[2])
    return [one]
