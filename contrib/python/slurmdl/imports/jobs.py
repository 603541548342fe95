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
from .table import MAPPED, Import, Table, changed, left, none, plain_name, under, used

_STORAGE = "a job sees the file systems of its node: use a path there, or make a link to it"

# fmt: off
CONTAINER_ROWS = [
    used("image", "container; in a script pyxis or apptainer exec", "without a command: apptainer run"),
    used("command command.** args args.**", "the command", "mpirun, horovodrun: srun; $(NAME): ${NAME}"),
    used("env.*.name env.*.value", "export NAME=value"),
    left("env.*.valueFrom.** envFrom.**", "secrets and config maps: export it in the script, or before sbatch"),
    used("resources.limits.* resources.requests.*", "--gpus-per-task, --cpus-per-task, --mem", "the larger; other resources are not taken over"),
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
    used("spec.volumes.*.name spec.volumes.*.hostPath.path spec.volumes.*.persistentVolumeClaim.claimName", "container.binds", "see volumeMounts"),
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
    used("replicas", "--ntasks, --dl-roles", "of tfReplicaSpecs, pytorchReplicaSpecs, mpiReplicaSpecs and so on"),
    changed("restartPolicy", "a loop around srun", "all ranks begin again, not one; Never: --no-requeue"),
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
    none("spec.mainContainer spec.successPolicy spec.enableDynamicWorker spec.sshAuthMountPath spec.mpiImplementation spec.launcherCreationPolicy", "srun ends with its tasks, and needs no ssh"),
    used("spec.parallelism spec.completions", "--ntasks", "of a Job"),
    none("spec.completionMode spec.podFailurePolicy.** spec.selector.** spec.manualSelector", "Kubernetes' own"),
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


Substitute = Callable[[str], str]


def _resources(one: Import, role: Role, container: Node) -> None:
    for which in ("requests", "limits"):
        for name, node in container.items("resources", which):
            size = quantity(node.text)
            if size is None:
                one.open(node, f"'{node.text}' is no quantity")
            elif name.endswith("/gpu") or name.startswith(("nvidia.com/mig", "gpu.intel.com/")):
                role.gpus = max(role.gpus, math.ceil(size))
            elif name == "cpu":
                role.cpus = max(role.cpus, math.ceil(size))
            elif name == "memory":
                role.memory = max(role.memory, size)
            else:
                one.open(node, f"sbatch --gres, if Slurm has {name}")


def _listed(container: Node, name: str) -> List[str]:
    node = container.get(name)
    values = node.value if node is not None and isinstance(node.value, list) else [node] if node is not None else []
    return [v.text for v in values]


def read_container(one: Import, role: Role, container: Node, substitute: Substitute = str) -> None:
    """The command, the variables and the needs of a container."""
    role.container = container
    command = _listed(container, "command")
    words = command + _listed(container, "args")
    role.command = role.command or bool(command)
    role.words = [substitute(word) for word in words] or role.words
    role.image = container.string("image") or role.image
    role.folder = container.string("workingDir") or role.folder
    for name, variable in container.items("env"):
        if not _VARIABLE.fullmatch(name):
            one.open(variable, "no name of a variable")
        elif variable.has("value") or not variable.has("valueFrom"):
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

    @property
    def main(self) -> Role:
        """The role whose command counts: the first with a command."""
        return next((role for role in self.roles if role.words), self.roles[0])

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
            if values and values[0].isdigit():
                work.roles[-1].replicas, work.per_pod = int(values[0]), 1
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
    work.per_pod = node.integer("spec", "slotsPerWorker", least=1) or 1
    launcher.words = launcher.words or workers.words
    _without_mpirun(one, work, launcher)
    if workers is not launcher:
        workers.words, workers.env = launcher.words, {**workers.env, **launcher.env}
        workers.container, workers.command = launcher.container, True
        work.roles = [workers]


def _policy(work: Work, node: Node) -> None:
    for place in (("spec", "runPolicy"), ("spec",)):
        seconds, limit = (node.integer(*place, name) for name in ("activeDeadlineSeconds", "backoffLimit"))
        work.seconds = work.seconds if seconds is None else seconds
        work.tries = work.tries if limit is None else limit
        work.hold = work.hold or node.plain(*place, "suspend") is True


def _elastic(work: Work, node: Node) -> None:
    policy = node.get("spec", "elasticPolicy")
    if policy is None:
        return
    least, most, restarts = (policy.integer(name) for name in ("minReplicas", "maxReplicas", "maxRestarts"))
    if least is not None and most is not None and len(work.roles) == 1 and 0 < least <= most:
        work.roles[0].replicas, work.most = least, most
    work.tries = work.tries if restarts is None else restarts


def _replicas(node: Node) -> int:
    value = node.integer("replicas", least=0)
    return 1 if value is None else value


def work_of(one: Import, node: Node, substitute: Substitute = str, primary: str = "") -> Work:
    """What a job of one of the KINDS, or a plain Job, runs."""
    kind = KINDS.get(node.string("kind"))
    if kind is None:
        role = Role("Worker", 1)
        for name in ("completions", "parallelism"):
            role.replicas = node.integer("spec", name, least=1) or role.replicas
        read_pod(one, role, node.get("spec", "template"), substitute, primary)
        work = Work("", [role])
        _policy(work, node)
        return work
    given = dict(node.items("spec", kind.replicas))
    names = sorted(given, key=lambda n: kind.roles.index(n) if n in kind.roles else len(kind.roles))
    roles = []
    policies = set()
    for name in names:
        role = Role(name, _replicas(given[name]))
        read_pod(one, role, given[name].get("template"), substitute, primary)
        policies.add(given[name].string("restartPolicy"))
        if given[name].string("restartPolicy") == "Never":
            one.mark(given[name].get("restartPolicy"), MAPPED, "")
        if name not in kind.roles:
            one.open(given[name], f"a {node.string('kind')} has no role {name}: {', '.join(kind.roles)}")
        elif role.replicas:
            roles.append(role)
    work = Work(kind.framework, roles or [Role("Worker", 1)])
    work.restarts = policies != {"Never"}
    each = node.plain("spec", "nprocPerNode", default=node.plain("spec", "elasticPolicy", "nProcPerNode", default=1))
    work.per_pod = int(each) if str(each).isdigit() and int(each) > 0 else 1
    if work.restarts and policies - {""}:
        work.tries = 3
    _policy(work, node)
    _elastic(work, node)
    if kind.framework == "mpi":
        _mpi(one, work, node)
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


def _command(work: Work) -> str:
    """The program behind srun, or of each role."""
    missing = "./PROGRAM"
    texts = {role.name: shell_line(role.words) or missing for role in work.roles}
    if work.by_image:
        return ""
    if len(set(texts.values())) == 1:
        return next(iter(texts.values()))
    cases = " ".join(f"{name.lower()}) exec {text};;" for name, text in texts.items())
    return "bash -c " + shlex.quote(f"case $DL_ROLE in {cases} esac")


def roles_text(work: Work) -> str:
    """--dl-roles, where the framework or the commands need them."""
    needed = work.framework in ("tf", "paddle") or len({tuple(role.words) for role in work.roles}) > 1
    if len(work.roles) == 1 or not needed:
        return ""
    return ",".join(f"{role.name.lower()}:{role.replicas * work.per_pod}" for role in work.roles)


def _options(work: Work) -> List[str]:
    gpus, cpus, memory = (work.most_of(need) for need in ("gpus", "cpus", "memory"))
    framework = "torchrun" if work.framework in ("torch", "torchrun") and work.by_torchrun else work.framework
    options = []
    if framework == "torchrun" or work.most or work.per_pod > 1:
        nodes = f"{work.pods}-{work.most}" if work.most > work.pods else str(work.pods)
        tasks = 1 if framework == "torchrun" else work.per_pod
        options += [f"--nodes={nodes}", f"--ntasks-per-node={tasks}"]
        options += [f"--gpus-per-node={gpus}"] if gpus else []
        options += [f"--cpus-per-task={max(cpus // tasks, 1)}"] if cpus else []
        options += [f"--mem={memory_text(memory)}"] if memory else []
    else:
        options += [f"--ntasks={work.pods}"]
        options += [f"--gpus-per-task={gpus}"] if gpus else []
        options += [f"--cpus-per-task={cpus}"] if cpus else []
        options += [f"--mem-per-cpu={memory_text(memory / max(cpus, 1))}"] if memory else []
    if framework:
        options.append(f"--dl={framework}")
    if roles_text(work):
        options.append(f"--dl-roles={roles_text(work)}")
    if work.seconds:
        options.append(f"--time={max(math.ceil(work.seconds / 60), 1)}")
    return options + (["--hold"] if work.hold else []) + ([] if work.restarts else ["--no-requeue"])


def script_text(one: Import, work: Work, source: str) -> str:
    """The batch script."""
    own = shell_line(work.main.words) if work.by_image else None
    container = containers.script_lines(one, work.main.image, work.main.mounts, own)
    lines = ["#!/bin/bash", f"#SBATCH --job-name={plain_name(work.name or one.name)[:100]}"]
    lines += [f"#SBATCH {option}" for option in _options(work)]
    lines += [*target.header(one, source), ""]
    env: Dict[str, str] = {}
    for role in reversed(work.roles):
        env.update(role.env)
    each = work.per_pod
    if work.framework in ("torch", "torchrun") and work.by_torchrun and each > 1:
        env["PET_NPROC_PER_NODE"] = str(each)
    lines += [f"export {variable}={target.shell_word(value, target.bash_quote)}" for variable, value in env.items()]
    lines += container
    if work.main.folder:
        lines.append(f"cd -- {target.bash_quote(work.main.folder)} || exit")
    start = [] if work.direct else ["srun"]
    if start:
        start += ["--kill-on-bad-exit=1"] if work.pods * each > 1 or work.most else []
        start += ["--mpi=pmix"] if work.framework == "mpi" else []
        start += ['"${pyxis[@]}"'] if work.main.image else []
    start += ['"${inside[@]}"'] if work.main.image else []
    command = " ".join([*start, _command(work)]).rstrip()
    if not work.tries:
        lines.append(command)
    else:
        lines += [f"tries={work.tries}  # after a failure all ranks begin again", f"until {command}; do"]
        lines += ["    status=$?", '    [ $((tries -= 1)) -ge 0 ] || exit "$status"', "done"]
    return "\n".join(lines) + "\n"


def missing(one: Import, work: Work) -> None:
    """The program of an image is not in the file."""
    for role in work.roles:
        if not role.words and role.container is not None and not work.by_image:
            one.open(role.container.get("image"), "the image's own program runs: name it in place of ./PROGRAM")


def knows(node: Node) -> bool:
    return node.has("apiVersion") and (node.string("kind") in KINDS or node.string("kind") == "Job")


def convert(node: Node, name: str, program: str = "") -> List[Import]:
    one = Import(TABLE, node, plain_name(node.string("metadata", "name") or name))
    work = work_of(one, node)
    work.name = one.name
    missing(one, work)
    one.script = script_text(one, work, node.file.rpartition("/")[2])
    return [one]
