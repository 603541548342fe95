# SPDX-License-Identifier: Apache-2.0
"""Experiments of Katib, whose trials are Jobs or training jobs of Kubernetes."""

import math
import re
from typing import Any, Dict, List, Optional, Tuple

from . import containers, jobs, ranges, target, trainjob
from .document import MAX_KEY, Node
from .jobs import Work
from .table import MAPPED, NONE, Import, Row, Table, changed, copied, left, none, plain_name, under, used


def _in_experiment(rows: List[Row]) -> List[Row]:
    """The rows of a batch script for the keys of an experiment."""
    keys = {
        "--ntasks, --dl-roles": "resources.nodes_per_trial, gpus_per_trial",
        "--gpus-per-task, --cpus-per-task, --mem": "resources.slots_per_trial, cpus_per_trial, memory",
        "export NAME=value": "environment.variables", "container; in a script pyxis or apptainer exec": "container",
        "container.binds; in a script --container-mounts or apptainer --bind": "container.binds", "--time": "resources.time",
        "--dl": "resources.framework", "--nodes": "resources.nodes_per_trial", "the command": "entrypoint",
    }  # fmt: skip
    made = []
    for row in rows:
        if row.path.startswith("spec.suspend") or row.to in ("cd", "--hold"):
            row = left(row.path, "not in an experiment")
        if row.to == "a loop around srun":
            row = row._replace(
                to="max_restarts", remark="a trial that fails is tried again, all its ranks; Never: max_restarts = 0"
            )
        made.append(row._replace(to=keys.get(row.to, row.to)))
    return made


_SETTINGS = "spec.algorithm.algorithmSettings"


def _setting(names: str, to: str, remark: str = "") -> Row:
    path = " ".join(f"{_SETTINGS}.{name}.name {_SETTINGS}.{name}.value" for name in names.split())
    return used(path, to, remark) if to else left(path, remark)


# fmt: off
TABLE = Table(
    "katib",
    "Katib Experiment",
    [
        none("apiVersion kind status status.**", "Kubernetes' own"),
        used("metadata.name metadata.generateName", "name"),
        none("metadata.**", "namespaces, labels and annotations of Kubernetes"),
        used("spec.objective.type", "searcher.smaller_is_better"),
        copied("spec.objective.goal", "searcher.goal"),
        copied("spec.objective.objectiveMetricName", "searcher.metric"),
        used("spec.objective.additionalMetricNames", "metrics.format", "all that is found is logged; shown, not searched"),
        used("spec.objective.metricStrategies.*.name spec.objective.metricStrategies.*.value", "searcher.summary", "of the objective: min, max, latest (last); without one best, as in Katib"),
        used("spec.algorithm.algorithmName", "searcher.name", "see SEARCHERS"),
        _setting("random_state", "reproducibility.experiment_seed"),
        _setting("n_population popsize", "searcher.population"),
        _setting("eta", "searcher.divisor", "of hyperband"),
        _setting("r_l", "searcher.max_length", "of hyperband"),
        _setting("resource_name", "{length} in the entrypoint", "of hyperband: the parameter is the length, and not searched"),
        none(f"{_SETTINGS}.suggestion_trial_dir.name {_SETTINGS}.suggestion_trial_dir.value", "trials hand over checkpoints by the experiment's folder"),
        _setting("*", "", "a setting of Katib's own implementation"),
        changed("spec.earlyStopping.algorithmName", "searcher.name", "Katib's medianstop takes the mean of averages, and compares once; searcher median takes the median, at every step"),
        used("spec.earlyStopping.algorithmSettings.start_step.name spec.earlyStopping.algorithmSettings.start_step.value", "searcher.min_length"),
        left("spec.earlyStopping.**", "searcher median decides by all trials that have ended"),
        used("spec.parallelTrialCount", "searcher.max_concurrent_trials, resources.workers"),
        used("spec.maxTrialCount", "searcher.max_trials"),
        changed("spec.maxFailedTrialCount", "max_failed", "with more failed trials the experiment is partial (status 12); it goes on"),
        none("spec.resumePolicy", "every experiment can be resumed and continued"),
        used("spec.parameters.*.name spec.parameters.*.parameterType", "hyperparameters"),
        used("spec.parameters.*.feasibleSpace.*", "hyperparameters", "min, max, step, list, distribution: normal has the deviation (max - min) / 6, as in Katib"),
        left("spec.nasConfig.**", "no search of architectures: describe it by hyperparameters with when"),
        used("spec.metricsCollectorSpec.collector.kind", "metrics.format, metrics.file", "StdOut, File; TensorFlowEvent: python -m slurmdl"),
        used("spec.metricsCollectorSpec.source.filter.metricsFormat", "metrics.pattern", "two groups: a name and its value"),
        used("spec.metricsCollectorSpec.source.fileSystemPath.format", "metrics.format", "JSON or TEXT"),
        used("spec.metricsCollectorSpec.source.fileSystemPath.path spec.metricsCollectorSpec.source.fileSystemPath.kind", "metrics.file", "{attempt_dir} in the entrypoint"),
        left("spec.metricsCollectorSpec.**", "metrics are read from the output, or logged by slurmdl"),
        used("spec.trialTemplate.trialParameters.*.*", "{NAME} in the entrypoint", "name, reference; the description is the parameter's"),
        used("spec.trialTemplate.primaryContainerName", "entrypoint", "the container whose command is taken"),
        none("spec.trialTemplate.retain spec.trialTemplate.primaryPodLabels.** spec.trialTemplate.successCondition spec.trialTemplate.failureCondition", "the exit status says how a trial ended"),
        left("spec.trialTemplate.configMap.**", "the trial's command is not in the file: paste the template as trialSpec"),
        left("spec.trialTemplate.trialSpec.**", "trials are Jobs, training jobs or TrainJobs: a workflow is dl flow"),
    ],
    [
        none("spec.trialTemplate.trialSpec.spec.template.spec.restartPolicy", "backoffLimit counts"),
        *under("spec.trialTemplate.trialSpec", _in_experiment(jobs.TABLE.matched)),
        *under("spec.trialTemplate.trialSpec", _in_experiment(trainjob.TABLE.matched)),
    ],
)
# fmt: on

_SEARCHERS = {
    "random": "random", "grid": "grid", "tpe": "tpe", "multivariate-tpe": "tpe", "bayesianoptimization": "gp",
    "cmaes": "cmaes", "sobol": "sobol", "hyperband": "hyperband", "pbt": "pbt",
}  # fmt: skip
_SAMPLERS = ("random", "sobol", "tpe", "gp", "cmaes")


def knows(node: Node) -> bool:
    return node.string("kind") == "Experiment" and node.has("apiVersion")


# ---- the space


def _number(node: Node, name: str) -> Optional[float]:
    text = node.string("feasibleSpace", name)
    value = ranges.number(text) if text else None
    if isinstance(value, str):
        raise ValueError(f"'{value}' is no number")
    return value


def _normal(low: float, high: float, log: bool) -> Dict[str, Any]:
    """Katib's normal: around the middle, with a sixth of the range."""
    if log:
        return {"deviation": (math.log10(high) - math.log10(low)) / 6, "mean": math.sqrt(low * high)}
    return {"deviation": (high - low) / 6}


def _ranged(one: Import, node: Node, kind: str) -> Dict[str, Any]:
    low, high, step = (_number(node, name) for name in ("min", "max", "step"))
    if low is None or high is None:
        raise ValueError("min and max are missing")
    distribution = node.string("feasibleSpace", "distribution").lower()
    log, normal = distribution.startswith("log"), distribution.endswith("normal")
    if kind == "int":
        if normal and log:
            one.changed(
                node.get("feasibleSpace", "distribution"), "an integer has a logarithmic range or a deviation, not both"
            )
            normal = False
        more = _normal(low, high, False) if normal else {}
        return ranges.integer(low, high, log=log, step=None if step is None else int(step), **more)
    if log and step:
        one.changed(node.get("feasibleSpace", "step"), "a logarithmic range of floats has no step")
        step = None
    return ranges.real(low, high, log=log, step=step, **(_normal(low, high, log) if normal else {}))


def _parameter(one: Import, node: Node) -> Optional[Dict[str, Any]]:
    kind = node.string("parameterType")
    try:
        if kind in ("int", "double"):
            return _ranged(one, node, kind)
        if kind in ("discrete", "categorical"):
            values = [v.text for v in getattr(node.get("feasibleSpace", "list"), "value", None) or []]
            return ranges.choice([ranges.number(v) for v in values] if kind == "discrete" else values)
    except (TypeError, ValueError, AttributeError) as error:
        one.open(node, f"no {kind}: {error}")
        return None
    one.open(node, f"there is no parameterType '{kind}'")
    return None


# ---- the searcher


def _settings(node: Node, where: str) -> Dict[str, Any]:
    return {name: ranges.number(n.string("value")) for name, n in node.items("spec", where, "algorithmSettings")}


def _searcher(one: Import, node: Node) -> str:
    """The searcher; returns the parameter that is hyperband's length."""
    theirs, given = node.string("spec", "algorithm", "algorithmName"), _settings(node, "algorithm")
    ours = _SEARCHERS.get(theirs, "random")
    resource = ""
    one.set("searcher.name", ours)
    if theirs not in _SEARCHERS:
        one.open(
            node.get("spec", "algorithm", "algorithmName"), f"there is no searcher like '{theirs}'; random stands here"
        )
    if ours in ("cmaes", "pbt"):
        population = given.get("n_population", given.get("popsize"))
        one.set("searcher.population", population if isinstance(population, int) else None)
    if ours == "pbt":
        one.set("searcher.max_length", 10, "generations: the file does not name their number")
        one.set("searcher.min_length", 1)
        one.say(node.get("spec", "algorithm").line, "Katib's pbt does not copy the checkpoint of the trial that it copies; here {resume_dir} has it")  # type: ignore[union-attr]
    if ours == "hyperband":
        length, eta = given.get("r_l"), given.get("eta")
        one.set("searcher.max_length", max(int(length), 1) if isinstance(length, (int, float)) else 9)
        one.set("searcher.divisor", float(eta) if isinstance(eta, (int, float)) and eta > 1 else None)
        resource = str(given.get("resource_name", ""))
    if isinstance(given.get("random_state"), int):
        one.set("reproducibility.experiment_seed", given["random_state"])
    _early(one, node, ours)
    return resource


def _early(one: Import, node: Node, ours: str) -> None:
    early = node.get("spec", "earlyStopping")
    if early is None:
        return
    if early.string("algorithmName") != "medianstop" or ours not in _SAMPLERS:
        one.open(early, "no such early stopping beside this algorithm")
        return
    one.set("searcher.name", "median")
    one.set("searcher.sampler", ours)
    one.set("searcher.max_length", 100, "steps that a full training logs: the file does not name their number")
    start = _settings(node, "earlyStopping").get("start_step")
    one.set("searcher.min_length", start if isinstance(start, int) and start > 0 else None)


def _objective(one: Import, node: Node) -> None:
    smaller = node.string("spec", "objective", "type") != "maximize"
    one.set("searcher.smaller_is_better", smaller)
    metric = node.string("spec", "objective", "objectiveMetricName")
    strategies = {name: n.string("value") for name, n in node.items("spec", "objective", "metricStrategies")}
    summary = {"latest": "last", "min": "min", "max": "max"}.get(strategies.get(metric, ""), "best")
    one.set("searcher.summary", summary)
    for name, strategy in node.items("spec", "objective", "metricStrategies"):
        if name != metric:
            one.mark(strategy, NONE, "it is not searched")


def _counts(one: Import, node: Node) -> None:
    trials = node.plain("spec", "maxTrialCount")
    if one.keys["searcher.name"] not in ("grid", "hyperband", "pbt"):
        one.set(
            "searcher.max_trials", trials if isinstance(trials, int) else 100, "" if trials else "the file names none"
        )
    elif trials is not None:
        one.mark(node.get("spec", "maxTrialCount"), NONE, f"{one.keys['searcher.name']} sets the number itself")
    one.set("resources.workers", node.integer("spec", "parallelTrialCount", least=1))
    one.set("max_failed", node.integer("spec", "maxFailedTrialCount"))


# ---- metrics


def _filter(format: str) -> Optional[str]:
    """Katib's expression with a group for the name and one for the value, for metrics.pattern."""
    try:
        groups = re.compile(format).groups
    except re.error:
        return None
    if groups < 2 or "(?" in format or re.search(r"[*+?}]\?", format):
        return None
    # where {name} is a number, and no brace begins a text
    return re.sub(r"(?<!\\)\{(?![0-9])", r"\\{", format)


def _metrics(one: Import, node: Node) -> None:
    spec = node.get("spec", "metricsCollectorSpec") or Node(node.file, node.line, {})
    kind = spec.string("collector", "kind", default="StdOut")
    filters = spec.get("source", "filter", "metricsFormat")
    if filters is not None and isinstance(filters.value, list):
        patterns = [pattern for f in filters.value for pattern in [_filter(f.text)] if pattern]
        one.set("metrics.pattern", tuple(patterns) or None)
        if len(patterns) < len(filters.value):
            one.open(filters, "not two groups, a name and a number, or what POSIX lacks: write metrics.pattern")
    elif kind != "TensorFlowEvent":
        json = spec.string("source", "fileSystemPath", "format") == "JSON"
        one.set("metrics.format", "json" if json else "text")
    if kind not in ("StdOut", "File", "TensorFlowEvent"):
        one.open(spec, "metrics are read from the output, or logged by slurmdl")


# ---- the trial


_META = re.compile(r"\$\{trialSpec\.(Name|Namespace|Kind|APIVersion|(?:Labels|Annotations)\[([^\]]*)\])\}")


def _references(one: Import, node: Node, names: Dict[str, str], resource: str) -> Dict[str, str]:
    """What each ${trialParameters.NAME} stands for."""
    spec = node.get("spec", "trialTemplate", "trialSpec") or node
    found = {}
    for name, parameter in node.items("spec", "trialTemplate", "trialParameters"):
        to = parameter.string("reference")
        meta = _META.fullmatch(to)
        if meta and meta.group(1) == "Name":
            found[name] = one.name + "-" + target.place("trial")
        elif meta:
            group, _, _ = meta.group(1).partition("[")
            place = {"Namespace": ("metadata", "namespace"), "Kind": ("kind",), "APIVersion": ("apiVersion",)}
            labels = ("metadata", group.lower(), meta.group(2) or "")
            found[name] = spec.string(*place.get(group, labels))
        elif to == resource and resource:
            found[name] = target.place("length")
        elif to in names:
            found[name] = target.place(names[to])
        else:
            one.open(parameter, f"there is no parameter '{to}'")
        if len(found.get(name, "")) > MAX_KEY:
            raise ValueError(f"{to} has more than {MAX_KEY} characters")
    return found


def _work(one: Import, node: Node, references: Dict[str, str]) -> Optional[Work]:
    spec = node.get("spec", "trialTemplate", "trialSpec")
    if spec is None:
        return None

    def substitute(text: str) -> str:
        return re.sub(r"\$\{trialParameters\.([\w-]+)\}", lambda m: references.get(m.group(1), m.group()), text)

    if trainjob.knows(spec):
        return trainjob.work_of(one, spec, substitute)
    if not jobs.knows(spec):
        return None
    return jobs.work_of(one, spec, substitute, node.string("spec", "trialTemplate", "primaryContainerName"))


def resources_of(one: Import, work: Work) -> None:
    """The keys of resources for a job's pods."""
    gpus, cpus, memory = (work.most_of(need) for need in ("gpus", "cpus", "memory"))
    ranks = work.pods * work.per_pod
    torchrun = work.by_torchrun
    if gpus and ranks > 1 and not torchrun and work.per_pod == 1:
        one.set("resources.gpus_per_trial", work.pods * gpus, "dl run finds the nodes; one rank for each GPU")
    else:
        one.set(f"resources.{'gpus_per_node' if work.pods > 1 else 'slots_per_trial'}", gpus or None)
        if ranks > 1:
            one.set("resources.nodes_per_trial", work.pods)
            one.set("resources.ranks_per_node", None if torchrun or work.per_pod == 1 else work.per_pod)
    one.set("resources.cpus_per_trial", cpus or None)
    one.set("resources.memory", jobs.memory_text(memory) if memory else None)
    framework = "torchrun" if work.framework == "torch" and torchrun else work.framework
    if framework and ranks > 1:
        one.set("resources.framework", framework)
    if jobs.roles_text(work) and ranks > 1:
        one.set("resources.sbatch_args", (f"--dl-roles={jobs.roles_text(work)}",))
    if work.seconds:
        minutes = max(math.ceil(work.seconds / 60), 1)
        one.set("resources.time", str(minutes), "minutes, of an array task, which may train several trials")


def _put_command(one: Import, node: Node, words: List[str]) -> None:
    """The command of a trial, with what reads its metrics where they are not in the output."""
    source = node.get("spec", "metricsCollectorSpec", "source", "fileSystemPath")
    kind = node.string("spec", "metricsCollectorSpec", "collector", "kind")
    path = source.string("path") if source is not None else ""
    own = target.place("attempt_dir") + "/" + path.rstrip("/").rpartition("/")[2]
    is_there = bool(path) and any(path.rstrip("/") in word for word in words)
    if is_there:
        words = [word.replace(path.rstrip("/"), own) for word in words]
    if kind == "TensorFlowEvent" and re.match(r"(.*/)?python[\d.]*$", words[0]):
        words = [words[0], "-m", "slurmdl", *words[1:]]
    elif source is not None and not is_there:
        one.open(source, "the command does not name the file: print the metrics, or log them by slurmdl")
    if kind == "File" and is_there:
        one.set("metrics.file", own.rpartition("/")[2])
    target.put_entrypoint(one, words)


def _trial(one: Import, node: Node, names: Dict[str, str], resource: str) -> None:
    work = _work(one, node, _references(one, node, names, resource))
    if work is None or not work.main.words:
        one.set("entrypoint", "./PROGRAM", "write the command of a trial here, with {NAME} for its hyperparameters")
        if work is not None and work.main.container is not None:
            one.open(work.main.container.get("image"), "the image's own program runs: name it in place of ./PROGRAM")
        return
    _put_command(one, node, work.main.words)
    others = [role.name for role in work.roles if role.words and role.words != work.main.words]
    if others:
        one.say(
            0,
            f"the command of {work.main.name} is taken; that of {', '.join(others)} is another: choose by $DL_ROLE in a script",
        )
    env: Dict[str, str] = {}
    for role in reversed(work.roles):
        env.update(role.env)
    for name, value in env.items():
        if "\0" in value or not one.variable(name, value):
            how = "its value is of the trial, or its name begins with no letter; a script has DL_HP_... (dl-trainer(7))"
            one.say(0, f"the variable {name} is not set: {how}")
    resources_of(one, work)
    one.set("max_restarts", 0 if not work.restarts else work.tries or None)
    image = work.main.container.get("image") if work.main.container is not None else None
    one.image(image, containers.binds_of(one, work.main.mounts))


def convert(node: Node, name: str, program: str = "") -> List[Import]:
    one = Import(TABLE, node, plain_name(node.string("metadata", "name") or name))
    one.set("name", one.name[:100])
    resource = _searcher(one, node)
    found: Dict[str, Tuple[str, Optional[Dict[str, Any]]]] = {}
    parameters = node.items("spec", "parameters")
    names = ranges.names_of([name for name, _ in parameters])
    for key, parameter in parameters:
        if key == resource:
            one.mark(parameter, MAPPED, "")
        else:
            found[key] = (names[key], _parameter(one, parameter))
    one.set("hyperparameters", ranges.nest({ours: group for ours, group in found.values() if group}))
    _objective(one, node)
    _counts(one, node)
    _metrics(one, node)
    _trial(one, node, {key: names[key] for key, (_, group) in found.items() if group}, resource)
    return [one]
