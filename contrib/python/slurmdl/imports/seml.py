# SPDX-License-Identifier: Apache-2.0
"""Experiments of SEML: a Sacred script, options of Slurm, and fixed, grid and random parameters in nested blocks."""

import ast
import math
import os
import re
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from . import ranges, target
from .document import MAX_DOCUMENTS, Node
from .table import INTERPOLATION, NONE, Import, Table, changed, copied, itself, left, none, used

MAX_OPTIONS = 10_000
_BLOCKS = ("fixed", "grid", "random")
_RESERVED = ("seml", "slurm", *_BLOCKS)

# fmt: off
TABLE = Table(
    "seml",
    "SEML experiment",
    [
        used("seml.executable seml.project_root_dir", "entrypoint", "`python3 FILE with NAME=VALUE`, the syntax of Sacred, in the project's folder"),
        used("seml.name", "name"),
        copied("seml.description", "description"),
        used("seml.conda_environment", "environment.conda"),
        none("seml.output_dir", "the output of a trial is in its folder: dl logs"),
        none("seml.use_uploaded_sources seml.stash_all_py_files seml.working_dir", "dl run freezes the code: code.include, code.exclude"),
        used("seml.reschedule_timeout", "worker.grace", "a trial gets a signal instead of the hook: dl-trainer(7), SIGNALS"),
        used("slurm.*.experiments_per_job slurm.experiments_per_job", "resources.trials_per_task", "the trials share the job's memory and cores equally"),
        used("slurm.*.max_simultaneous_jobs slurm.max_simultaneous_jobs", "resources.workers", "with experiments_per_job"),
        changed("slurm.*.sbatch_options_template slurm.sbatch_options_template", "resources", "GPU is the one of SEML's settings.py; others are not converted"),
        used("slurm.*.sbatch_options.* slurm.sbatch_options.*", "resources", "gres=gpu:N, mem, cpus-per-task, nodes, time, partition, account, qos; others: sbatch_args; for a second block: a command that adds workers"),
        used("**.zip_id", "searcher.constraint", "parameters that change together"),
        used("fixed fixed.** *.fixed.**", "hyperparameters", "constants; inner blocks override outer ones"),
        used("grid.**.type grid.**.options grid.**.min grid.**.max grid.**.step grid.**.num grid.**", "hyperparameters, searcher.name", "grid; choice, range, uniform, loguniform, parameter_collection"),
        used("random.samples **.samples", "searcher.max_trials", "with a grid, multiplied by the number of its points"),
        used("random.seed **.seed", "reproducibility.experiment_seed", "the first seed"),
        used("random.**", "hyperparameters, searcher.name", "random; choice, uniform, loguniform, randint (excludes its end)"),
        used("**.fixed.** **.grid.** **.random.**", "an experiment for each block", "nested blocks"),
        left("seml.** slurm.**", "unknown field"),
    ],
    foreign=INTERPOLATION,
)
# fmt: on

_KEYS = {"mem": "memory", "time": "time", "partition": "partition", "account": "account", "qos": "qos", "p": "partition",
         "t": "time", "A": "account"}  # fmt: skip
# from SEML's settings.py
_TEMPLATES = {"GPU": {"cpus-per-task": "2", "mem": "16G", "gres": "gpu:1"}}
_OWN = ("array", "output", "error", "job-name", "job_name", "o", "e", "a", "J", "ntasks", "n")


def knows(node: Node) -> bool:
    return node.has("seml") or (any(node.has(b) for b in _BLOCKS) and not node.has("apiVersion"))


# ---- blocks


class Block(NamedTuple):
    """A path of nested blocks, which becomes one experiment."""

    name: str
    parts: List[Node]


def _blocks(node: Node, name: str = "", above: Tuple[Node, ...] = ()) -> List[Block]:
    """The innermost blocks, each with the blocks around it."""
    path = [*above, node]
    inner = [(n, b) for n, b in node.items() if n not in _RESERVED and any(b.has(x) for x in _BLOCKS) or _holds(n, b)]
    if not inner:
        return [Block(name, path)]
    found: List[Block] = []
    for n, block in inner:
        found += _blocks(block, f"{name}-{n}" if name else n, tuple(path))
    return found


def _holds(name: str, block: Node) -> bool:
    """Whether a block contains only blocks."""
    return name not in _RESERVED and any(
        isinstance(b.value, dict) and any(b.has(x) for x in _BLOCKS) for _, b in block.items()
    )


def _flat(one: Import, node: Node, typed: bool, prefix: str = "") -> Dict[str, Node]:
    """Parameters by their dotted names."""
    found: Dict[str, Node] = {}
    for name, value in node.items():
        if typed and name in ("samples", "seed") and not isinstance(value.value, dict):
            continue
        inner = value.get("params") if value.string("type") == "parameter_collection" else None
        if inner is not None:
            one.take(value, "type")
            found.update(_flat(one, inner, typed, f"{prefix}{name}."))
        elif isinstance(value.value, dict) and value.value and not (typed and value.has("type")):
            found.update(_flat(one, value, typed, f"{prefix}{name}."))
        else:
            found[prefix + name] = value
    return found


def _literal(value: Any) -> Any:
    """A value in Sacred's NAME=VALUE: a string gets quotes if Python would read it as another type."""
    if isinstance(value, str):
        try:
            ast.literal_eval(value)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            return value
        return repr(value)
    if isinstance(value, (list, dict)):
        return str(value)
    return "None" if value is None else ranges.truths(value)


# ---- parameters


def _known(node: Node) -> None:
    """Raise an error if SEML would fill something in below."""
    for scalar in node.scalars():
        if INTERPOLATION.search(scalar.text):
            raise ValueError("contains an interpolation: write the value")


def _fixed(one: Import, node: Node, name: str) -> Any:
    _known(node)
    one.take(node)
    return node.text if name.startswith("+") else _literal(node.plain())


def _arange(low: float, high: float, step: float) -> List[float]:
    count = math.ceil((high - low) / step - 1e-9) if step else MAX_OPTIONS + 1
    if not 0 < count <= MAX_OPTIONS:
        raise ValueError(f"{low:g} to {high:g} in steps of {step:g} is not a range, or has more than {MAX_OPTIONS} values")
    return [low + i * step for i in range(count)]


_GRID = itself("choice range uniform loguniform")
_RANDOM = itself("choice randint uniform loguniform")


def _kind(one: Import, node: Node, known: Dict[str, str]) -> str:
    if not isinstance(node.value, dict):
        raise ValueError("not a group with a type")
    _known(node)
    kind = one.word(node, "type", known=known)
    if kind is None:
        raise ValueError(f"unknown type '{node.string('type')}': must be one of {', '.join(known)}")
    return kind


def _choice(one: Import, node: Node) -> Dict[str, Any]:
    return ranges.choice([_literal(v) for v in one.values(node, "options")])


def _of_grid(one: Import, node: Node, name: str) -> Dict[str, Any]:
    kind = _kind(one, node, _GRID)
    one.take(node, "zip_id")
    if kind == "choice":
        return _choice(one, node)
    if kind == "range":
        low, high, step = (one.need(node, name) for name in ("min", "max", "step"))
        values = _arange(float(low), float(high), float(step))
        whole = all(isinstance(v, int) for v in (low, high, step))
        if len(values) > 1 and whole and step > 0:
            return ranges.integer(low, int(values[-1]), step=step)
        return ranges.choice([int(v) if whole else round(v, 12) for v in values])
    low, high = one.need(node, "min"), one.need(node, "max")
    count = one.whole(node, "num", least=1)
    if count is None:
        raise ValueError("num is missing or not a whole number from 1")
    return ranges.constant(low) if count == 1 else ranges.real(low, high, log=kind == "loguniform", count=count)


def _of_random(one: Import, node: Node, name: str) -> Dict[str, Any]:
    kind = _kind(one, node, _RANDOM)
    if kind == "choice":
        return _choice(one, node)
    if kind == "randint":
        low, high = one.need(node, "min", True), one.need(node, "max", True)
        return ranges.integer(low, high - 1)
    low, high = one.need(node, "min"), one.need(node, "max")
    return ranges.real(low, high, log=kind == "loguniform")


def _space(one: Import, block: Block) -> Tuple[Dict[str, Any], Dict[str, Any], Dict[str, List[Tuple[str, Node]]]]:
    """(grid parameters and constants, random parameters, zipped parameters by zip_id)."""
    grid: Dict[str, Any] = {}
    chance: Dict[str, Any] = {}
    zipped: Dict[str, List[Tuple[str, Node]]] = {}
    for part in block.parts:
        own: Dict[str, str] = {}
        for kind, reader in (("fixed", _fixed), ("grid", _of_grid), ("random", _of_random)):
            for name, node in _flat(one, part.get(kind) or Node("", 0, {}), kind != "fixed").items():
                if own.setdefault(name, kind) != kind:
                    one.refuse(node, f"{name} is both in {own[name]} and in {kind}; SEML rejects this, too")
                grid.pop(name, None), chance.pop(name, None)
                try:
                    (chance if kind == "random" else grid)[name] = reader(one, node, name)
                except (KeyError, TypeError, ValueError, OverflowError) as error:
                    one.open(node, str(error))
                if kind == "grid" and node.has("zip_id"):
                    zipped.setdefault(node.string("zip_id"), []).append((name, node))
    return grid, chance, zipped


def _term(name: str, value: Any) -> str:
    return (f"`{name}`" if re.search(r"[^\w.]", name) else name) + f" == '{value}'"


def _constraints(
    one: Import, zipped: Dict[str, List[Tuple[str, Node]]], names: Dict[str, str], groups: Dict[str, Any]
) -> List[str]:
    """For each zip_id, an expression that lets its parameters change together."""
    made = []
    for members in zipped.values():
        rows: List[List[str]] = []
        for name, node in members:
            group = groups.get(name, {})
            values = group.get("vals") if isinstance(group, dict) else None
            if (
                values is None
                or any("'" in str(v) for v in values)
                or len(values) != len(node.plain("options", default=[]))
            ):
                rows = []
                break
            rows.append([_term(names[name], v) for v in values])
        if len(rows) > 1 and len({len(r) for r in rows}) == 1:
            made.append(" || ".join("(" + " && ".join(terms) + ")" for terms in zip(*rows)))
        elif len(members) > 1:
            for _, node in members:
                one.open(node.get("zip_id"), "parameters can be zipped only if all have type choice and equally many options")
    return made


# ---- the rest


def _slurm(one: Import, node: Node) -> None:
    slurm = node.get("slurm")
    if slurm is None:
        return
    blocks = slurm.value if isinstance(slurm.value, list) else [slurm]
    for block in blocks[1:]:
        _more_workers(one, block)
    first = blocks[0] if blocks else slurm
    each, jobs = _counts(one, first)
    if each > 1:
        one.set("resources.trials_per_task", each)
    one.set("resources.workers", jobs * each or None)
    _sbatch(one, first, each)


def _counts(one: Import, block: Node) -> Tuple[int, int]:
    """(experiments in each job, number of jobs or 0)."""
    return one.whole(block, "experiments_per_job", least=1) or 1, one.whole(block, "max_simultaneous_jobs", least=1) or 0


def _options(one: Import, block: Node) -> List[Tuple[str, Node]]:
    """The options of the template and of the block itself."""
    given = dict(block.items("sbatch_options"))
    template = one.take(block, "sbatch_options_template")
    if template is not None and template.text not in _TEMPLATES:
        one.open(template, "the template is in SEML's settings.py: copy its options to resources")
    options = _TEMPLATES.get(template.text, {}) if template is not None else {}
    names = [name.replace("_", "-").lstrip("-") for name in given]
    more = [(k, Node(block.file, block.line, v, v)) for k, v in options.items() if k not in names]
    return [(name.replace("_", "-").lstrip("-"), node) for name, node in [*more, *given.items()] if node.value is not None]


def _option(one: Import, key: str, node: Node) -> str:
    """The value of an option of sbatch; "" if it is not valid."""
    if key in ("partition", "p") and isinstance(node.value, list):
        return ",".join(one.texts(node) or ())
    if isinstance(node.value, bool):
        one.open(node, "SEML passes a boolean unchanged, which sbatch rejects: add the option to resources.sbatch_args")
        return ""
    return one.text(node)


def _more_workers(one: Import, block: Node) -> None:
    """Report the command that lets another kind of jobs join the experiment."""
    each, jobs = _counts(one, block)
    words = ["sbatch", f"--array=1-{jobs or 1}", *([f"--ntasks={each}"] if each > 1 else [])]
    for name, node in _options(one, block):
        key, text = name, _option(one, name, node)
        if not text:
            continue
        if key in ("cpus-per-task", "c") and text.isdigit():
            text = str(max(int(text) // each, 1))
        if key not in _OWN:
            words.append(f"--{key}={text}" if len(key) > 1 else f"-{key}{text}")
    words.append(f"--wrap={'srun ' if each > 1 else ''}dl worker {one.keys['name']}")
    how = "to add workers of this kind while the experiment runs: " + target.quoted(words)
    one.changed(block, how)


def _share(one: Import, node: Node, text: str, each: int) -> Optional[str]:
    """The share of a trial in the memory of a job."""
    match = re.fullmatch(r"(\d+)([KMGT]?)B?", text)
    if each == 1:
        return text
    if not match:
        one.open(node, f"'{text}' cannot be divided among the trials of a job")
        return None
    size = int(match.group(1)) * {"K": 1 / 1024, "": 1, "M": 1, "G": 1024, "T": 1024 * 1024}[match.group(2)]
    return f"{max(int(size / each), 1)}M"


def _gpus(one: Import, node: Node, count: int, each: int) -> None:
    if count % each == 0:
        one.set("resources.slots_per_trial", count // each or None)
    else:
        one.open(node, f"in SEML, {each} experiments share {count} GPUs; here, each trial gets a GPU of its own")
        one.set("resources.slots_per_trial", 1)


def _cores(one: Import, node: Node, count: int, each: int) -> None:
    one.set("resources.cpus_per_trial", max(count // each, 1))
    if count % each:
        one.changed(node, f"in SEML, {each} experiments share {count} cores; here, each trial gets {max(count // each, 1)}")


def _sbatch(one: Import, block: Node, each: int) -> None:
    more = []
    for key, node in _options(one, block):
        text = _option(one, key, node)
        if not text and node.value == "" and key not in (*_KEYS, *_OWN):
            more.append(f"--{key}" if len(key) > 1 else f"-{key}")
        if not text:
            continue
        gpus = re.fullmatch(r"gpu(?::([\w.-]*[A-Za-z][\w.-]*))?:(\d+)", text) if key == "gres" else None
        if gpus or key in ("gpus", "gpus-per-node") and text.isdigit():
            _gpus(one, node, int(gpus.group(2) if gpus else text), each)
            if gpus and gpus.group(1):
                one.changed(node, f"to get the type {gpus.group(1)}, use --constraint or a partition")
        elif key in ("cpus-per-task", "c") and text.isdigit():
            _cores(one, node, int(text), each)
        elif key in ("nodes", "N") and text.isdigit():
            one.set("resources.nodes_per_trial", int(text) if int(text) > 1 else None)
        elif key in _KEYS:
            one.set(f"resources.{_KEYS[key]}", _share(one, node, text, each) if key == "mem" else text)
        elif key in ("ntasks", "n") and text != "1":
            one.open(node, "for a trial with several tasks, use resources.ranks_per_node")
        elif key in _OWN:
            one.mark(node, NONE, "dl sets it")
        elif re.fullmatch(r"[A-Za-z][\w-]*", key):
            more.append(f"--{key}={text}" if len(key) > 1 else f"-{key}{text}")
        else:
            one.open(node, "not an option of sbatch")
    one.set("resources.sbatch_args", tuple(more) or None)


def _command(one: Import, node: Node, names: Dict[str, str]) -> None:
    """Set the command: python3 FILE with NAME=VALUE...; for a named configuration (+NAME), only its value."""
    words = []
    for key, ours in names.items():
        if key.startswith("+"):
            if not key.endswith(".priority"):
                words.append(target.place(ours))
        else:
            words.append(f"{key}={target.place(ours)}")
    folder, file = one.text(node, "seml", "project_root_dir", default="."), one.text(node, "seml", "executable")
    here = os.path.dirname(node.file) or "."
    if file and not os.path.exists(os.path.join(here, folder, file)) and os.path.exists(os.path.join(here, file)):
        if os.path.normpath(folder) != ".":
            one.changed(node.get("seml", "project_root_dir"), f"{file} is in the folder of this file, where SEML also looks for it")
        folder = "."
    one.set("environment.conda", one.text(node, "seml", "conda_environment") or None)
    folder = "" if os.path.normpath(folder) == "." else folder
    target.put_entrypoint(one, ["python3", file or "train.py", "with", *words], folder)
    if not file:
        one.say(node.line, "the file has no executable: edit entrypoint")


def _searcher(one: Import, block: Block, grid: Dict[str, Any], chance: Dict[str, Any]) -> None:
    randoms = [random for random in (part.get("random") for part in block.parts) if random is not None]
    given = [n for random in randoms for n in (random, *(p for _, p in random.items())) if isinstance(n.value, dict)]
    samples = [n for n in (one.whole(n, "samples", least=1) for n in given if n.has("samples")) if n is not None]
    several = [one.whole(n, "seed", least=0) for n in given if not isinstance(getattr(n.get("seed"), "value", None), dict)]
    seeds = [n for n in several if n is not None]
    if len(set(seeds)) > 1:
        one.say(randoms[0].line, f"several seeds: the first one, {seeds[0]}, applies to all")
    one.set("searcher.metric", "result", "Sacred prints it at the end")
    one.guess("searcher.smaller_is_better", True, "SEML has no objective: change this if a greater result is better")
    one.set("metrics.pattern", ("Result: {result}",), "for a dictionary: \"Result: .*'loss': {loss}\"")
    if not chance:
        one.set("searcher.name", "grid")
        return
    points = ranges.sizes(grid)[1]
    one.set("searcher.name", "random")
    one.set("searcher.max_trials", max(max(samples or [1]) * points, 1))
    if seeds:
        one.set("reproducibility.experiment_seed", seeds[0] % 2**31)
    if points > 1:
        one.say(
            block.parts[0].line,
            f"random parameters with a grid of {points} points: all are drawn at random, with the same number of trials",
        )


def _one(node: Node, block: Block, name: str) -> Import:
    label = f"{name}-{block.name}" if block.name else name
    one = Import(TABLE, node, block.name or name)
    own = one.text(node, "seml", "name") or name
    one.set_name(f"{own}-{block.name}" if block.name else own, label)
    if node.has("seml", "name") and own not in one.keys["name"]:
        one.changed(node.get("seml", "name"), f"it is called {one.keys['name']} here")
    grid, chance, zipped = _space(one, block)
    groups = {**grid, **chance}
    given = {n: v for part in block.parts for kind in _BLOCKS for n, v in _flat(one, part.get(kind) or Node("", 0, {}), kind != "fixed").items()}
    names = one.names({key: given[key] for key in groups})
    one.set("hyperparameters", ranges.nest({names[key]: group for key, group in groups.items()}))
    if not any(isinstance(g, dict) for g in groups.values()):
        one.keys["searcher.name"] = "grid"
    constraints = _constraints(one, zipped, names, groups)
    one.set("searcher.constraint", constraints[0] if len(constraints) == 1 else tuple(constraints) or None)
    for key in names:
        if key.startswith("+") and key.endswith(".priority"):
            one.say(node.line, f"{key} is ignored: named configurations keep the order of the file")
    grace = one.whole(node, "seml", "reschedule_timeout", least=1, most=3600)
    one.set("worker.grace", grace)
    _searcher(one, block, grid, chance)
    _slurm(one, node)
    _command(one, node, names)
    return one


def convert(node: Node, name: str, program: str = "") -> List[Import]:
    blocks = _blocks(node)
    if len(blocks) > MAX_DOCUMENTS:
        raise ValueError(f"more than {MAX_DOCUMENTS} experiments")
    made = [_one(node, block, name) for block in blocks]
    for one, block in zip(made, blocks):
        for other in blocks:
            for part in other.parts:
                if all(part is not p for p in block.parts):
                    one.leave(part)
    return made
