# SPDX-License-Identifier: Apache-2.0
"""Experiments of Katib, whose trials are Jobs or training jobs of Kubernetes."""

import math
import re
from typing import Any, Dict, List, Optional, Tuple

from . import jobs, ranges, target, trainjob
from .document import MAX_KEY, Node
from .jobs import Work
from .table import NONE, Import, Row, Table, changed, copied, itself, left, none, under, used


def _in_experiment(rows: List[Row]) -> List[Row]:
    """Convert the rows of a job to the keys of an experiment."""
    keys = {
        "job.roles: count; or resources.nodes_per_trial": "resources.nodes_per_trial, gpus_per_trial",
        "gpus, cpus and memory of the role, or of resources": "resources.slots_per_trial, cpus_per_trial, memory",
        "environment.variables, or export in the command of a role": "environment.variables",
        "job.active_deadline": "resources.time", "the command": "entrypoint",
    }  # fmt: skip
    made = []
    for row in rows:
        if row.path.startswith("spec.suspend") or row.to in ("cd", "job.suspend"):
            row = left(row.path, "for jobs; experiments have no such key")
        elif row.to in ("job.backoff_limit", "restart_policy of the role, or of the job"):
            row = row._replace(
                to="max_restarts", remark="a trial that fails is restarted with all its ranks; Never: max_restarts = 0"
            )
        elif row.to.startswith("job.") and row.to not in keys and "roles" not in row.to:
            row = none(row.path, "for jobs, not for trials")
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
        none("apiVersion kind status status.**", "specific to Kubernetes"),
        used("metadata.name metadata.generateName", "name"),
        none("metadata.**", "namespaces, labels and annotations of Kubernetes"),
        used("spec.objective.type", "searcher.smaller_is_better"),
        copied("spec.objective.goal", "searcher.goal"),
        copied("spec.objective.objectiveMetricName", "searcher.metric"),
        none("spec.objective.additionalMetricNames spec.objective.additionalMetricNames.**", "dl logs all metrics that it finds"),
        used("spec.objective.metricStrategies.*.name spec.objective.metricStrategies.*.value", "searcher.summary", "for the objective: min, max, latest (last); default best, as in Katib"),
        used("spec.algorithm.algorithmName", "searcher.name", "see SEARCHERS"),
        _setting("random_state", "reproducibility.experiment_seed"),
        _setting("n_population popsize", "searcher.population"),
        _setting("eta", "searcher.divisor", "for hyperband"),
        _setting("r_l", "searcher.max_length", "for hyperband"),
        _setting("resource_name", "{length} in the entrypoint", "for hyperband: this parameter is the length and is not searched"),
        none(f"{_SETTINGS}.suggestion_trial_dir.name {_SETTINGS}.suggestion_trial_dir.value", "trials exchange checkpoints in the experiment's folder"),
        _setting("*", "", "a setting of Katib's implementation"),
        changed("spec.earlyStopping.algorithmName", "searcher.name", "Katib's medianstop compares once, with the mean of averages; searcher median compares at every step, with the median"),
        used("spec.earlyStopping.algorithmSettings.start_step.name spec.earlyStopping.algorithmSettings.start_step.value", "searcher.min_length"),
        left("spec.earlyStopping.**", "searcher median compares with all trials that have ended"),
        used("spec.parallelTrialCount", "searcher.max_concurrent_trials, resources.workers"),
        used("spec.maxTrialCount", "searcher.max_trials"),
        changed("spec.maxFailedTrialCount", "max_failed", "with more failed trials, the experiment is partial (status 12), but it continues"),
        none("spec.resumePolicy", "every experiment can be resumed and continued"),
        used("spec.parameters.*.name spec.parameters.*.parameterType", "hyperparameters"),
        used("spec.parameters.*.feasibleSpace.*", "hyperparameters", "min, max, step, list, distribution: normal has the deviation (max - min) / 6, as in Katib"),
        left("spec.nasConfig.**", "dl has no search of architectures: describe it by hyperparameters with `when`"),
        used("spec.metricsCollectorSpec.collector.kind", "metrics.format, metrics.file", "StdOut, File; TensorFlowEvent: python -m slurmdl"),
        used("spec.metricsCollectorSpec.source.filter.metricsFormat", "metrics.pattern", "with two groups, a name and its value"),
        used("spec.metricsCollectorSpec.source.fileSystemPath.format", "metrics.format", "JSON or TEXT"),
        used("spec.metricsCollectorSpec.source.fileSystemPath.path spec.metricsCollectorSpec.source.fileSystemPath.kind", "metrics.file", "{attempt_dir} in the entrypoint"),
        left("spec.metricsCollectorSpec.**", "dl reads metrics from the output, or slurmdl logs them"),
        used("spec.trialTemplate.trialParameters.*.name spec.trialTemplate.trialParameters.*.reference", "{NAME} in the entrypoint"),
        none("spec.trialTemplate.trialParameters.*.description", "a comment"),
        used("spec.trialTemplate.primaryContainerName", "entrypoint", "selects the container whose command runs"),
        none("spec.trialTemplate.retain spec.trialTemplate.primaryPodLabels.** spec.trialTemplate.successCondition spec.trialTemplate.failureCondition", "the exit status shows how a trial ended"),
        left("spec.trialTemplate.configMap.**", "the file does not contain the trial's command: insert the template as trialSpec"),
        left("spec.trialTemplate.trialSpec.**", "a trial is a Job, a training job or a TrainJob; for workflows, use dl flow"),
    ],
    [
        none("spec.trialTemplate.trialSpec.spec.template.spec.restartPolicy", "backoffLimit applies"),
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


def _number(one: Import, node: Node, name: str) -> Optional[float]:
    """A number; in Katib's files, it is a string."""
    text = one.text(node, "feasibleSpace", name)
    value = ranges.number(text) if text else None
    if isinstance(value, str):
        raise ValueError(f"{name} '{value}' is not a number")
    return value


def _normal(low: float, high: float, log: bool) -> Dict[str, Any]:
    """Katib's normal distribution: its mean is the middle of the range, and its deviation a sixth of it."""
    if log:
        return {"deviation": (math.log10(high) - math.log10(low)) / 6, "mean": math.sqrt(low * high)}
    return {"deviation": (high - low) / 6}


# (whether a distribution is logarithmic, whether it is normal)
_DISTRIBUTIONS = {
    "uniform": (False, False),
    "logUniform": (True, False),
    "normal": (False, True),
    "logNormal": (True, True),
}


def _ranged(one: Import, node: Node, kind: str) -> Dict[str, Any]:
    low, high, step = (_number(one, node, name) for name in ("min", "max", "step"))
    if low is None or high is None:
        raise ValueError("min and max are missing")
    given = node.get("feasibleSpace", "distribution")
    pair = one.word(given, known=_DISTRIBUTIONS) if given is not None else (False, False)
    if pair is None:
        raise ValueError(f"unknown distribution '{node.string('feasibleSpace', 'distribution')}'")
    log, normal = pair
    if kind == "int":
        if normal and log:
            one.changed(
                node.get("feasibleSpace", "distribution"), "an integer has a logarithmic range or a deviation, not both"
            )
            normal = False
        if log and step not in (None, 1):
            one.changed(node.get("feasibleSpace", "step"), "a logarithmic range has no steps")
        more = _normal(low, high, False) if normal else {}
        return ranges.integer(low, high, log=log, step=None if log else step, **more)
    if log and step:
        one.changed(node.get("feasibleSpace", "step"), "a logarithmic range of floats has no step")
        step = None
    return ranges.real(low, high, log=log, step=step, **(_normal(low, high, log) if normal else {}))


def _parameter(one: Import, node: Node) -> Optional[Dict[str, Any]]:
    kind = one.word(node, "parameterType", known=itself("int double discrete categorical"))
    one.take(node, "name")
    try:
        if kind is None:
            raise ValueError(f"unknown parameterType '{node.string('parameterType')}'")
        if kind in ("int", "double"):
            return _ranged(one, node, kind)
        values = one.texts(node, "feasibleSpace", "list")
        if not values:
            raise ValueError("list is missing")
        numbers = [ranges.number(v) for v in values] if kind == "discrete" else []
        if any(isinstance(v, str) for v in numbers):
            raise ValueError("a value of the list is not a number")
        return ranges.choice(numbers or values)
    except (TypeError, ValueError, AttributeError) as error:
        one.open(node, f"not a valid range: {error}")
        return None


# ---- the searcher


class _Settings:
    """The settings of an algorithm, whose values are strings."""

    def __init__(self, one: Import, node: Node, where: str) -> None:
        self.one, self.given = one, one.unique(node, "spec", where, "algorithmSettings")

    def number(self, name: str, whole: bool = True, least: float = 1) -> Any:
        entry = self.given.get(name)
        if entry is None:
            return None
        value = ranges.number(self.one.text(entry, "value"))
        if not isinstance(value, int if whole else (int, float)) or value < least:
            self.one.open(entry, f"'{entry.string('value')}' is not a {'whole ' if whole else ''}number from {least:g}")
            return None
        self.one.take(entry)
        return value

    def text(self, name: str) -> str:
        self.one.take(self.given.get(name))
        return self.given[name].string("value") if name in self.given else ""


def _searcher(one: Import, node: Node) -> str:
    """Set the searcher.  Returns the name of the parameter that is the length of hyperband."""
    given = _Settings(one, node, "algorithm")
    ours = one.word(node, "spec", "algorithm", "algorithmName", known=_SEARCHERS)
    resource = ""
    one.set_searcher(ours, node.get("spec", "algorithm", "algorithmName"))
    if ours in ("cmaes", "pbt"):
        one.set("searcher.population", given.number("n_population") or given.number("popsize"))
    if ours == "pbt":
        one.guess("searcher.max_length", 10, "generations; the file does not have their number")
        one.set("searcher.min_length", 1)
        one.say(node.get("spec", "algorithm").line, "Katib's pbt copies only the hyperparameters of another trial; here, {resume_dir} also has its checkpoint")  # type: ignore[union-attr]
    if ours == "hyperband":
        length, eta = given.number("r_l", whole=False), given.number("eta", whole=False, least=1.0001)
        one.set("searcher.max_length", None if length is None else int(length))
        if length is None:
            one.guess("searcher.max_length", 9, "the file has no r_l")
        elif length != int(length):
            one.changed(given.given["r_l"], "a length must be a whole number")
        one.set("searcher.divisor", None if eta is None else float(eta))
        resource = given.text("resource_name")
    one.set("reproducibility.experiment_seed", given.number("random_state", least=0))
    for name in ("n_population", "popsize", "eta", "r_l", "resource_name"):
        if ours and name in given.given and not one.is_taken(given.given[name]):
            one.open(given.given[name], f"{ours} does not have this setting")
    _early(one, node, ours)
    return resource


def _early(one: Import, node: Node, ours: Optional[str]) -> None:
    early = node.get("spec", "earlyStopping")
    if early is None:
        return
    if one.word(early, "algorithmName", known={"medianstop": True}) is None or ours not in _SAMPLERS:
        one.open(early, "dl has no such early stopping with this algorithm")
        return
    one.set("searcher.name", "median")
    one.set("searcher.sampler", ours)
    one.guess("searcher.max_length", 100, "number of steps in a full training; the file does not have it")
    one.set("searcher.min_length", _Settings(one, node, "earlyStopping").number("start_step"))


def _objective(one: Import, node: Node) -> None:
    objective = node.get("spec", "objective")
    smaller = one.must(one.word, objective, "type", known={"minimize": True, "maximize": False})
    one.set("searcher.smaller_is_better", smaller)
    if smaller is None:
        one.guess("searcher.smaller_is_better", True, "the file has no type of the objective")
    if "searcher.metric" not in one.keys:
        one.guess("searcher.metric", "loss", "the file has no objectiveMetricName")
    metric = one.keys["searcher.metric"]
    one.set("searcher.summary", "best")
    for name, strategy in one.unique(objective, "metricStrategies").items():
        if name == metric:
            one.take(strategy, "name")
            one.set("searcher.summary", one.word(strategy, "value", known={"latest": "last", "min": "min", "max": "max"}))
        else:
            one.mark(strategy, NONE, "this metric is not optimised")


def _counts(one: Import, node: Node) -> None:
    trials = one.whole(node, "spec", "maxTrialCount", least=1)
    if one.keys.get("searcher.name") not in ("grid", "hyperband", "pbt"):
        one.set("searcher.max_trials", trials)
        if trials is None:
            one.guess("searcher.max_trials", 100, "the file has none: Katib continues until it reaches the goal")
    elif trials is not None:
        one.changed(node.get("spec", "maxTrialCount"), f"{one.keys['searcher.name']} chooses the number itself; dl stop ends it earlier")
    one.set("resources.workers", one.whole(node, "spec", "parallelTrialCount", least=1))
    one.set("max_failed", one.whole(node, "spec", "maxFailedTrialCount", least=0))


# ---- metrics


def _filter(format: str) -> Optional[str]:
    """Convert Katib's regular expression, with a group for the name and one for the value, to a metrics.pattern."""
    try:
        groups = re.compile(format).groups
    except re.error:
        return None
    if groups < 2 or "(?" in format or re.search(r"[*+?}]\?", format):
        return None
    # in a metrics.pattern, {NAME} matches a number: escape literal braces
    return re.sub(r"(?<!\\)\{(?![0-9])", r"\\{", format)


def _metrics(one: Import, node: Node) -> None:
    spec = node.get("spec", "metricsCollectorSpec") or Node(node.file, node.line, {})
    known = itself("StdOut File TensorFlowEvent")
    kind = one.word(spec, "collector", "kind", known=known) if spec.has("collector", "kind") else "StdOut"
    filters = spec.get("source", "filter", "metricsFormat")
    format = one.word(spec, "source", "fileSystemPath", "format", known={"TEXT": "text", "JSON": "json"})
    if filters is not None:
        given = one.texts(filters) or ()
        patterns = [pattern for f in given for pattern in [_filter(f)] if pattern]
        one.set("metrics.pattern", tuple(patterns) or None)
        if len(patterns) < len(given):
            one.open(filters, "does not have two groups, a name and a number, or is not a POSIX expression: write metrics.pattern")
    elif kind != "TensorFlowEvent":
        one.set("metrics.format", format or "text")
    if kind is None:
        one.open(spec, "dl reads metrics from the output, or slurmdl logs them")


# ---- the trial


_META = re.compile(r"\$\{trialSpec\.(Name|Namespace|Kind|APIVersion|(?:Labels|Annotations)\[([^\]]*)\])\}")


def _references(one: Import, node: Node, names: Dict[str, str], resource: str) -> Dict[str, str]:
    """What each ${trialParameters.NAME} stands for."""
    spec = node.get("spec", "trialTemplate", "trialSpec") or node
    found = {}
    for name, parameter in one.unique(node, "spec", "trialTemplate", "trialParameters").items():
        to = one.text(parameter, "reference")
        one.take(parameter, "name")
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
        made = re.sub(r"\$\{trialParameters\.([\w-]+)\}", lambda m: references.get(m.group(1), m.group()), text)
        for rest in set(re.findall(r"\$\{trialParameters\.[^}]*\}", made)):
            one.say(spec.line, f"{rest[:60]} is kept unchanged: there is no such trialParameter")
        return made

    if trainjob.knows(spec):
        return trainjob.work_of(one, spec, substitute)
    if not jobs.knows(spec):
        return None
    return jobs.work_of(one, spec, substitute, one.text(node, "spec", "trialTemplate", "primaryContainerName"))


def _uneven(one: Import, work: Work) -> None:
    """Convert the pods of a trial whose roles need different numbers of GPUs to ranks of one node."""
    total = sum(role.gpus * role.replicas for role in work.roles)
    one.set("resources.slots_per_trial", total or None)
    one.set("resources.ranks_per_node", work.pods * work.per_pod)
    one.say(
        work.main.container.line if work.main.container else 0,
        f"the roles need {', '.join(f'{r.replicas} x {r.gpus} ({r.name})' for r in work.roles)} GPUs: the trial gets {total} "
        "on one node, and all its ranks see them",
    )


def resources_of(one: Import, work: Work) -> None:
    """Set the keys of `resources` for the pods of a job."""
    gpus, cpus, memory = (work.most_of(need) for need in ("gpus", "cpus", "memory"))
    ranks = work.pods * work.per_pod
    torchrun = work.by_torchrun
    if len({role.gpus for role in work.roles}) > 1:
        _uneven(one, work)
    elif gpus == 1 and ranks > 1 and not torchrun and work.per_pod == 1:
        one.set("resources.gpus_per_trial", work.pods * gpus, "dl run chooses the number of nodes; one rank for each GPU")
    else:
        one.set(f"resources.{'gpus_per_node' if work.pods > 1 else 'slots_per_trial'}", gpus or None)
        if ranks > 1:
            one.set("resources.nodes_per_trial", work.pods)
            one.set("resources.ranks_per_node", None if torchrun or work.per_pod == 1 else work.per_pod)
    one.set("resources.cpus_per_trial", cpus or None)
    one.set("resources.memory", jobs.memory_text(memory) if memory else None)
    if len({(role.cpus, role.memory) for role in work.roles}) > 1:
        one.say(0, "the roles need different cores or memory: each rank gets the largest amounts")
    framework = "torchrun" if work.framework == "torch" and torchrun else work.framework
    if framework and ranks > 1:
        one.set("resources.framework", framework)
    if jobs.roles_text(work) and ranks > 1:
        one.set("resources.sbatch_args", (f"--dl-roles={jobs.roles_text(work)}",))
    if work.ends and ranks > 1:
        one.say(0, f"a trial ends when all its ranks have, not with its {work.ends}: a parameter server must exit by itself")
    if work.seconds:
        minutes = max(math.ceil(work.seconds / 60), 1)
        one.set("resources.time", str(minutes), "minutes for an array task, which may train several trials")


def _put_command(one: Import, node: Node, words: List[str]) -> None:
    """Set the command of a trial, and how dl reads its metrics if they are not in the output."""
    source = node.get("spec", "metricsCollectorSpec", "source", "fileSystemPath")
    kind = node.string("spec", "metricsCollectorSpec", "collector", "kind")
    path = one.text(source, "path") if source is not None else ""
    one.word(source, "kind", known={"File": True, "Directory": True})
    own = target.place("attempt_dir") + "/" + path.rstrip("/").rpartition("/")[2]
    is_there = bool(path) and any(path.rstrip("/") in word for word in words)
    if is_there:
        words = [word.replace(path.rstrip("/"), own) for word in words]
    if kind == "TensorFlowEvent" and re.match(r"(.*/)?python[\d.]*$", words[0]):
        words = [words[0], "-m", "slurmdl", *words[1:]]
    elif source is not None and not is_there:
        one.open(source, "the command does not name this file: print the metrics, or log them with slurmdl")
    if kind == "File" and is_there:
        one.set("metrics.file", own.rpartition("/")[2])
    target.put_entrypoint(one, words)


def _trial(one: Import, node: Node, names: Dict[str, str], resource: str) -> None:
    work = _work(one, node, _references(one, node, names, resource))
    if work is None or not work.main.words:
        one.set("entrypoint", "./PROGRAM", "insert the command of a trial, with {NAME} for its hyperparameters")
        if work is not None and work.main.container is not None:
            one.open(work.main.container.get("image"), "the file does not name the image's own program: put it in place of ./PROGRAM")
        return
    _put_command(one, node, work.main.words)
    others = [role.name for role in work.roles if role.words and role.words != work.main.words]
    if others:
        one.say(
            0,
            f"all roles run the command of {work.main.name}; {', '.join(others)} had another: choose by $DL_ROLE in a script",
        )
    env: Dict[str, str] = {}
    for role in reversed(work.roles):
        for variable in [n for n, v in role.env.items() if n in env and env[n] != v]:
            one.say(0, f"the variable {variable} differs between roles: the value of {role.name} applies")
        env.update(role.env)
    for name, value in env.items():
        if "\0" in value or not one.variable(name, value):
            how = "its value depends on the trial, or its name does not begin with a letter; a script can use DL_HP_... (dl-trainer(7))"
            one.say(0, f"the variable {name} is not set: {how}")
    resources_of(one, work)
    one.set("max_restarts", 0 if not work.restarts else work.tries or None)
    image = work.main.container.get("image") if work.main.container is not None else None
    one.image(image, jobs.binds_of(one, work.main.mounts))


def convert(node: Node, name: str, program: str = "") -> List[Import]:
    one = Import(TABLE, node, name)
    jobs.named_by(one, node, name)
    one.set("name", one.name)
    resource = _searcher(one, node)
    found: Dict[str, Tuple[str, Optional[Dict[str, Any]]]] = {}
    parameters = one.unique(node, "spec", "parameters")
    names = one.names(parameters)
    for key, parameter in parameters.items():
        if key == resource:
            one.take(parameter)
        else:
            found[key] = (names[key], _parameter(one, parameter))
    one.set("hyperparameters", ranges.nest({ours: group for ours, group in found.values() if group}))
    _objective(one, node)
    _counts(one, node)
    _metrics(one, node)
    _trial(one, node, {key: names[key] for key, (_, group) in found.items() if group}, resource)
    return [one]
