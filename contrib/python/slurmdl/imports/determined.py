# SPDX-License-Identifier: Apache-2.0
"""Experiments of Determined 0.37 and 0.38.  Keys with the same meaning have the same names in dl."""

import os
import re
import shlex
from typing import Any, Dict, List, Optional, Set, Tuple

from . import ranges, target
from .document import BadInput, Node, text_of
from .table import NONE, Import, Table, copied, itself, left, none, used

_CORE = "slurmdl.det runs scripts of the Core API, but not trial classes"

# fmt: off
TABLE = Table(
    "determined",
    "Determined experiment",
    [
        used("name", "name"),
        copied("description", "description"),
        used("entrypoint entrypoint.**", "entrypoint, resources.framework", "determined.launch.* is removed: srun starts the ranks; python3 -m slurmdl.det if the script imports determined"),
        copied("max_restarts", "max_restarts"),
        used("hyperparameters.**", "hyperparameters", "double becomes float; null is omitted"),
        used("searcher.name", "searcher.name", "see SEARCHERS"),
        copied("searcher.metric", "searcher.metric"),
        copied("searcher.smaller_is_better", "searcher.smaller_is_better"),
        used("searcher.max_trials", "searcher.max_trials"),
        used("searcher.max_length searcher.max_length.* searcher.max_time", "searcher.max_length"),
        used("searcher.time_metric", "a comment", "the unit of max_length"),
        copied("searcher.max_concurrent_trials", "searcher.max_concurrent_trials", "0: no limit"),
        used("searcher.mode", "searcher.mode"),
        used("searcher.divisor", "searcher.divisor"),
        used("searcher.max_rungs searcher.num_rungs", "searcher.max_rungs"),
        used("searcher.stop_once", "searcher.name", "true: stopping_asha"),
        left("searcher.bracket_rungs", "choose brackets by searcher.mode"),
        left("searcher.source_trial_id searcher.source_checkpoint_uuid", "dl fork continues from a trial's checkpoint"),
        none("searcher.budget searcher.train_stragglers searcher.unit", "for searchers that Determined has removed"),
        used("resources.slots_per_trial", "resources.slots_per_trial, resources.gpus_per_trial", "default 1"),
        used("resources.max_slots", "resources.workers", "with slots_per_trial"),
        copied("resources.resource_pool", "resources.partition"),
        used("resources.is_single_node", "resources.nodes_per_trial", "true: 1"),
        left("resources.priority", "sbatch --nice or a quality of service (resources.qos)"),
        none("resources.weight resources.native_parallel resources.agent_label", "Slurm does the scheduling"),
        none("resources.shm_size", "processes can use all of /dev/shm"),
        none("resources.devices resources.devices.**", "processes see the devices of the node"),
        used("environment.environment_variables.** environment.environment_variables", "environment.variables", "the first of cuda, gpu, rocm and cpu that the file has"),
        used("environment.image environment.image.**", "container", "the first of cuda, gpu, rocm and cpu that the file has"),
        none("environment.force_pull_image environment.registry_auth.**", "dl does not pull images"),
        none("environment.ports.** environment.proxy_ports.** environment.pod_spec.**", "there are no proxies and no pods"),
        none("environment.add_capabilities environment.drop_capabilities", "jobs have no privileges"),
        used("bind_mounts.*.host_path bind_mounts.*.container_path bind_mounts.*.read_only", "container.binds"),
        none("bind_mounts.*.propagation", "specific to Docker"),
        used("slurm.slots_per_node", "resources.gpus_per_node, resources.ranks_per_node"),
        copied("slurm.sbatch_args", "resources.sbatch_args"),
        left("slurm.gpu_type", "resources.sbatch_args = \"--gres=gpu:TYPE:N\" or --constraint"),
        none("pbs.**", "for PBS"),
        used("log_policies.**", "log_policies", "name, pattern (POSIX), action"),
        copied("reproducibility.experiment_seed", "reproducibility.experiment_seed"),
        copied("checkpoint_storage.save_experiment_best", "checkpoint_policy.save_experiment_best"),
        copied("checkpoint_storage.save_trial_best", "checkpoint_policy.save_trial_best"),
        copied("checkpoint_storage.save_trial_latest", "checkpoint_policy.save_trial_latest"),
        none("checkpoint_storage.**", "checkpoints are in the experiment's folder"),
        none("tensorboard_storage.**", "logs are in the experiment's folder; dl export --format=tensorboard"),
        left("checkpoint_policy", "the script decides when to save a checkpoint"),
        left("min_validation_period min_validation_period.*", "the script decides when to validate"),
        left("min_checkpoint_period min_checkpoint_period.*", "the script decides when to save a checkpoint"),
        left("perform_initial_validation", "the script decides when to validate"),
        none("scheduling_unit records_per_epoch", "the training script defines the unit of lengths"),
        none("optimizations.**", "for Determined's trial classes; no effect since 0.38"),
        none("profiling.**", "srun --dl-monitor samples every rank"),
        none("debug", "for Determined's own log"),
        left("data.**", "the script reads its own data: pass these as hyperparameters"),
        none("data_layer.**", "for Determined's cache of data sets"),
        used("preemption_timeout", "worker.grace"),
        left("labels.** labels", "dl label EXPERIMENT NAME, once it runs"),
        none("workspace project", "experiments are folders"),
        none("retention_policy.** internal.** security.** template", "for Determined's master"),
        left("integrations.**", "notify.webhook reports the end and failures"),
    ],
)
# fmt: on

# the searcher of dl for one of theirs: if trials are stopped (0.38), and if they are promoted
_SEARCHERS = {
    "adaptive_asha": ("stopping_asha", "adaptive_asha"),
    "async_halving": ("stopping_asha", "asha"),
    "adaptive": ("adaptive_asha", "adaptive_asha"),
    "adaptive_simple": ("adaptive_asha", "adaptive_asha"),
    "sync_halving": ("halving", "halving"),
    "single": ("single", "single"),
    "random": ("random", "random"),
    "grid": ("grid", "grid"),
}
_HALVING = ("adaptive_asha", "asha", "stopping_asha", "halving")

_LAUNCHERS = {"torch_distributed": "torch", "deepspeed": "deepspeed", "horovod": "horovod", "tensorflow": "tf"}


def knows(node: Node) -> bool:
    return node.has("searcher", "name") and not node.has("apiVersion")


# ---- hyperparameters


_TYPES = itself("const categorical int double log")


def _range(one: Import, node: Node) -> Dict[str, Any]:
    kind = one.word(node, "type", known=_TYPES)
    if kind is None:
        raise ValueError(f"unknown type '{node.string('type')}'")
    if kind == "const":
        if not node.has("val"):
            raise ValueError("val is missing")
        return ranges.constant(one.take(node, "val").plain())  # type: ignore[union-attr]
    if kind == "categorical":
        return ranges.choice(one.values(node, "vals"))
    low, high = (one.need(node, name, kind == "int") for name in ("minval", "maxval"))
    count = one.whole(node, "count", least=1)
    if kind == "int":
        return ranges.integer(low, high, count=count)
    if kind == "double":
        return ranges.real(low, high, count=count)
    if low > high:
        raise ValueError(f"{low:g} to {high:g} is not a range")
    base = one.real(node, "base", above=0)
    log = {"minval": float(low), "maxval": float(high), "base": None if base is None else float(base), "count": count}
    return {"type": "log", **{name: value for name, value in log.items() if value is not None}}


def space(one: Import, node: Node) -> Dict[str, Any]:
    """The group `hyperparameters`, nested as in the file."""
    made = {}
    entries = node.items()
    names = ranges.names_of([name.replace(".", "_") for name, _ in entries])
    for name, value in entries:
        ours = names[name.replace(".", "_")]
        found: Any = None
        if value.has("type"):
            try:
                found = _range(one, value)
            except (KeyError, TypeError, ValueError) as error:
                one.open(value, f"not a valid range: {error}")
        elif isinstance(value.value, dict) and value.value:
            found = space(one, value)
        else:
            found = value.plain()
            if found is not None:
                one.take(value)
        if ours != name and found is not None:
            one.changed(value, f"it is called {ours} here")
        if found is not None:
            made[ours] = found
    return made


# ---- searcher


def _length(one: Import, searcher: Node) -> Tuple[Optional[int], str]:
    """(the length of a full training, its unit)."""
    given = searcher.get("max_length")
    unit = one.text(searcher, "time_metric")
    if given is not None and isinstance(given.value, dict):
        entries = given.items()
        return (one.whole(given, entries[0][0], least=1), entries[0][0]) if entries else (None, "")
    length = one.whole(searcher, "max_length", least=1)
    time = one.whole(searcher, "max_time", least=1)
    return (time if length is None else length), unit


def _searcher(one: Import) -> None:
    searcher = one.node.get("searcher") or one.node
    pair = one.word(searcher, "name", known=_SEARCHERS)
    stops = searcher.has("max_time") or one.truth(searcher, "stop_once") is True
    ours = pair[0 if stops else 1] if pair else None
    theirs = searcher.string("name")
    one.set_searcher(ours, searcher.get("name"), f"'{theirs}' runs a program that chooses the points: use searcher custom, dl-search-server(1)")
    if ours == "stopping_asha":
        one.changed(
            searcher.get("name"),
            "trials stop at rungs, as in 0.38, in one bracket; adaptive_asha promotes them from checkpoints instead",
        )
    length, unit = _length(one, searcher)
    if length is not None and (ours in _HALVING or length > 1):
        one.set("searcher.max_length", length, f"{unit} in the file; here the training script defines the unit" if unit else "")
    elif ours in _HALVING:
        one.guess("searcher.max_length", 100, "the file has no length of a full training")
    trials = one.whole(searcher, "max_trials", least=1)
    if ours not in ("single", "grid"):
        one.set("searcher.max_trials", trials)
        if trials is None:
            one.guess("searcher.max_trials", 10, "the file has none")
    divisor = one.real(searcher, "divisor", above=1)
    rungs = one.whole(searcher, "max_rungs", least=1) or one.whole(searcher, "num_rungs", least=1)
    mode = one.word(searcher, "mode", known=itself("aggressive standard conservative"))
    if ours in _HALVING:
        one.set("searcher.divisor", divisor)
        one.set("searcher.max_rungs", rungs)
    if ours == "adaptive_asha":
        one.set("searcher.mode", mode)
    for name in ("divisor", "max_rungs", "num_rungs", "mode", "max_trials"):
        if searcher.has(name) and ours and f"searcher.{name.replace('num_', 'max_')}" not in one.keys:
            one.mark(searcher.get(name), NONE, f"{ours} does not have this setting")
    if one.keys.get("searcher.max_concurrent_trials") is not None and ours == "single":
        del one.keys["searcher.max_concurrent_trials"]
    if "searcher.metric" not in one.keys:
        one.guess("searcher.metric", "loss", "the file has none")


# ---- command and resources


def _command(one: Import) -> str:
    """Set the entrypoint, without Determined's launchers.  Returns the framework of the ranks."""
    node = one.node.get("entrypoint")
    words: List[str] = []
    if node is not None:
        try:
            words = list(one.texts(node) or ()) if isinstance(node.value, list) else shlex.split(one.text(node))
        except ValueError:
            words = ["sh", "-c", node.text]
    text = " ".join(words)
    found = re.search(r"(?:^|(?<!\S)\S*python3? )-m determined\.launch\.(\w+)\s+", text)
    trial = re.search(r"(?:^|--trial )([\w.]+:\w+)", text)
    if trial or not words:
        module = trial.group(1).split(":")[0].replace(".", "/") if trial else "train"
        one.set("entrypoint", f"python3 {module}.py", "write this script: Determined's harness ran the trial class")
        if node is not None:
            one.open(node, f"'{text}' is a trial class: {_CORE}")
        else:
            one.say(0, "the file has no entrypoint")
    else:
        if found:
            words = _unlaunched(words)
        if found or node is None or isinstance(node.value, list):
            target.put_entrypoint(one, _with_core(one, "\x1f".join(words)).split("\x1f"))
        else:
            made, constants = target.shield([_with_core(one, node.text)])
            one.keys.setdefault("hyperparameters", {}).update(constants)
            one.set("entrypoint", made[0])
    return _LAUNCHERS.get(found.group(1), "torch") if found else ""


# a Python script or module in a command: a string, or words joined by \x1f, which \s matches
_SCRIPT = re.compile(r"(?<!\S)(\S*python[\d.]*(?:\s+-[uOBEsIv]+)*)(\s+)(-m\s+[\w.]+|[^\s-]\S*\.py)(?!\S)")


def _imports_determined(path: str) -> Optional[bool]:
    """Whether a script, or a module beside it that it imports, imports determined; None if it does not exist."""
    folder, queue = os.path.dirname(path), [path]
    seen: Set[str] = set()
    while queue and len(seen) < 100:
        file = queue.pop()
        seen.add(file)
        try:
            text = text_of(file)
        except BadInput:
            continue
        found = re.findall(r"^[ \t]*(?:import|from)[ \t]+([\w., ]+)", text, re.M)
        names = [re.split(r"\W", name.strip())[0] for group in found for name in group.split(",")]
        if "determined" in names:
            return True
        queue += {os.path.join(folder, f"{name}.py") for name in names if name} - seen
    return False if os.path.isfile(path) else None


def _with_core(one: Import, command: str) -> str:
    """Insert slurmdl.det before each script that imports determined."""

    def add(match: "re.Match[str]") -> str:
        python, space, what = match.groups()
        name = what[2:].strip().replace(".", "/") + ".py" if what.startswith("-m") else what
        uses = _imports_determined(os.path.join(os.path.dirname(one.node.file), name))
        if uses:
            return space.join([python, "-m", "slurmdl.det", what])
        if uses is None:
            plain = what.replace("\x1f", " ")
            one.comments["entrypoint"] = f"{name} was not found: if it imports determined, run python3 -m slurmdl.det {plain}"
        return match.group()

    return _SCRIPT.sub(add, command)


def _unlaunched(words: List[str]) -> List[str]:
    """The words without `python3 -m determined.launch.NAME [options] [--]`."""
    at = next(i for i, word in enumerate(words) if word.startswith("determined.launch."))
    after = at + 1
    while after < len(words) and words[after].startswith("-"):
        takes = words[after] not in ("--", "--autohorovod") and "=" not in words[after]
        after += 2 if takes and after + 1 < len(words) and not words[after + 1].startswith("python") else 1
    return words[: max(at - 2, 0)] + words[after:]


def _slots(one: Import, framework: str) -> None:
    slots, node = one.node.plain("resources", "slots_per_trial"), one.node.get("resources", "slots_per_trial")
    each = one.whole(one.node, "slurm", "slots_per_node", least=1)
    single = one.truth(one.node, "resources", "is_single_node")
    if slots is None:
        one.set("resources.slots_per_trial", 1, "Determined's default: a slot is a GPU")
    elif one.whole(node, least=0) is None:
        pass
    elif each and isinstance(each, int) and slots and slots % each == 0:
        one.set("resources.slots_per_trial", slots)
        one.set("resources.gpus_per_node", each)
        one.set("resources.ranks_per_node", each if framework else None)
    elif slots > 1 and framework and not single:
        one.set("resources.gpus_per_trial", slots, "dl run chooses the number of nodes; one rank for each GPU")
    else:
        one.set("resources.slots_per_trial", slots)
        if slots > 1 and framework:
            one.set("resources.ranks_per_node", slots)
    if framework:
        one.set("resources.framework", framework)
    most = one.whole(one.node, "resources", "max_slots", least=1)
    if most is not None:
        each = slots if isinstance(slots, int) and slots > 0 else 1
        one.set("resources.workers", max(most // each, 1), f"max_slots {most}")


def _environment(one: Import) -> None:
    node = one.node.get("environment", "environment_variables")
    if node is not None and isinstance(node.value, dict):
        kinds = [kind for kind in ("cuda", "gpu", "rocm", "cpu") if node.has(kind)]
        for kind in kinds[1:]:
            one.open(node.get(kind), f"the variables of {kinds[0]} are used instead")
        node = node.get(kinds[0]) if kinds else None
    if node is not None and isinstance(node.value, list):
        one.take(node)
    for _, given in node.items() if node is not None and isinstance(node.value, list) else ():
        text = one.text(given)
        name, mark, value = text.partition("=")
        if not mark or not one.variable(name, value):
            one.open(node, f"'{text[:40]}' is not NAME=VALUE with a NAME that begins with a letter")


def _binds(one: Import, image: Optional[Node]) -> List[str]:
    made = []
    for _, bind in one.node.items("bind_mounts"):
        host, inside = one.text(bind, "host_path"), one.text(bind, "container_path")
        only = one.truth(bind, "read_only") is True
        if image is None and host == inside and host:
            pass  # the path is the same in a job
        elif image is None or not host.startswith("/") or ":" in host + inside:
            one.open(bind, "a job sees the file systems of its node: use host_path in the script")
        else:
            made.append(f"{host}:{inside}" + (":ro" if only else ""))
    return made


def _policies(one: Import) -> None:
    made = []
    known = itself("exclude_node cancel_retries")
    for _, policy in one.node.items("log_policies"):
        inside = policy.has("action", "type")
        kind = one.word(policy, *(("action", "type") if inside else ("action",)), known=known)
        pattern = one.text(policy, "pattern")
        keys = {"name": one.text(policy, "name") or pattern, "pattern": pattern}
        made.append({**keys, **({"action": kind} if kind else {})})
        if policy.has("action") and kind is None:
            one.open(policy.get("action"), "the actions are exclude_node and cancel_retries; without one, dl only shows the line")
    one.set("log_policies", tuple(made) or None)


def convert(node: Node, name: str, program: str = "") -> List[Import]:
    one = Import(TABLE, node, name)
    one.set_name(node.get("name"), name)
    hyperparameters = node.get("hyperparameters")
    if hyperparameters is not None and isinstance(hyperparameters.value, dict):
        one.keys["hyperparameters"] = space(one, hyperparameters)
    _searcher(one)
    _slots(one, _command(one))
    _environment(one)
    _policies(one)
    image = node.get("environment", "image")
    if image is not None and isinstance(image.value, dict):
        kinds = [kind for kind in ("cuda", "gpu", "rocm", "cpu") if image.has(kind)]
        chosen = image.get(kinds[0]) if kinds else None
        for kind in kinds[1:]:
            one.open(image.get(kind), f"the image of {kinds[0]} is used instead")
    else:
        chosen = image
    one.image(chosen, _binds(one, chosen))
    if chosen is not None and "slurmdl.det" in one.keys["entrypoint"]:
        one.changed(chosen, "its Python needs the package slurmdl: install it in the image, or remove container")
    one.set("worker.grace", one.whole(node, "preemption_timeout", least=1, most=3600))
    return [one]
