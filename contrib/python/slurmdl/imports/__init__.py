# SPDX-License-Identifier: Apache-2.0
"""dl import: convert the files of other systems to experiment files.

Each format has a module here.  Its table (table.py) says where each field goes, and its code converts the fields that
cannot simply be copied.
"""

import argparse
import math
import os
import subprocess
import sys
from typing import Callable, Dict, List, NamedTuple, Sequence, Tuple

from ..program import IO_ERROR, NOT_FOUND, OK, complain, printable
from . import determined, hydrasweep, jobs, katib, optuna, raytune, seml, target, trainjob, wandb
from .document import BadInput, Node, read
from .table import CHANGED, MAPPED, NONE, OPEN, Field, Import, Table


class Format(NamedTuple):
    """A format: knows(document) recognises it, and convert(document, name, entrypoint) returns the experiments in it."""

    name: str
    knows: Callable[[Node], bool]
    convert: Callable[[Node, str, str], List[Import]]
    tables: Sequence[Table]


FORMATS: List[Format] = [
    Format("determined", determined.knows, determined.convert, [determined.TABLE]),
    Format("katib", katib.knows, katib.convert, [katib.TABLE]),
    Format("job", jobs.knows, jobs.convert, [jobs.TABLE]),
    Format("trainjob", trainjob.knows, trainjob.convert, [trainjob.TABLE, trainjob.RUNTIME]),
    Format("runtime", trainjob.knows_runtime, trainjob.convert_runtime, []),
    Format("seml", seml.knows, seml.convert, [seml.TABLE]),
    Format("hydra", hydrasweep.knows, hydrasweep.convert, [hydrasweep.TABLE]),
    Format("wandb", wandb.knows, wandb.convert, [wandb.TABLE]),
    Format("optuna", optuna.knows, optuna.convert, [optuna.TABLE]),
    Format("raytune", raytune.knows, raytune.convert, [raytune.TABLE]),
]


class _Options(NamedTuple):
    dl: str
    output: str
    format: str
    entrypoint: str
    coverage: bool
    files: List[str]


# ---- read


class _Unknown(BadInput):
    """A file in none of the formats."""


def _files(paths: Sequence[str]) -> List[Tuple[str, bool]]:
    """The files, and the YAML and JSON files in each folder; whether a file was found in a folder."""
    found = []
    for path in paths:
        if not os.path.isdir(path):
            found.append((path, False))
            continue
        try:
            names = sorted(os.listdir(path))
        except OSError as error:
            raise BadInput(path, 0, error.strerror or "cannot be read", IO_ERROR) from None
        inside = [
            os.path.join(path, n) for n in names if n.endswith((".yaml", ".yml", ".json")) and not n.startswith(".")
        ]
        if not inside:
            raise BadInput(path, 0, "this folder has no .yaml, .yml or .json files", NOT_FOUND)
        found += [(file, True) for file in inside]
    return found


def _format_of(node: Node, wanted: str) -> Format:
    for format in FORMATS:
        if format.name == wanted or (not wanted and format.knows(node)):
            return format
    kind = node.string("kind")
    what = f"cannot import a {kind} of Kubernetes" if kind and node.has("apiVersion") else "unknown format"
    known = ", ".join(format.name for format in FORMATS)
    raise _Unknown(node.file, node.line, f"{what}: --from can be {known}")


def _imports(file: str, options: _Options) -> List[Import]:
    base = os.path.splitext(os.path.basename(file))[0]
    notes: List[Tuple[int, str]] = []
    documents = read(file, notes)
    if len(documents) > 1 and not all(d.has("apiVersion") for d in documents):
        raise BadInput(file, documents[1].line, "a second document: only files of Kubernetes may have several")
    made: List[Import] = []
    for node in documents:
        format = _format_of(node, options.format)
        try:
            several = format.convert(node, base, options.entrypoint)
        except (AttributeError, ArithmeticError, LookupError, RecursionError, TypeError, ValueError) as error:
            what = f"{type(error).__name__}: {error}"
            raise BadInput(file, node.line, f"not a valid file of the format {format.name}: {what}") from None
        if several:
            end = next((d.line for d in documents if d.line > node.line), math.inf)
            for line, text in [note for note in notes if note[0] < end]:
                several[0].say(line, text)
                notes.remove((line, text))
        made += several
    return made


# ---- write


def _place(one: Import, source: str, count: int, options: _Options) -> str:
    """The file to write: beside the source, because relative paths in the source start there."""
    if options.output:
        if count > 1:
            raise BadInput(source, 0, f"contains {count} experiments, but --output names one file")
        return options.output
    name = os.path.splitext(os.path.basename(source))[0] + (f"-{one.name}" if count > 1 else "")
    name = "".join(c if c.isalnum() or c in "._-" else "_" for c in name)
    return os.path.join(os.path.dirname(source), name + ".conf")


def _write(path: str, text: str) -> None:
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
    except FileExistsError:
        raise BadInput(path, 0, "already exists: remove it, or choose another file with --output") from None
    except OSError as error:
        raise BadInput(path, 0, error.strerror or "cannot be written", IO_ERROR) from None
    try:
        with open(fd, "w", encoding="utf-8", errors="replace") as f:
            f.write(text)
    except OSError as error:
        os.unlink(path)
        raise BadInput(path, 0, error.strerror or "cannot be written", IO_ERROR) from None


def _check(path: str, options: _Options) -> None:
    """Print the errors that dl finds in the experiment file."""
    done = subprocess.run(
        [options.dl, "run", "--dry-run", path],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        timeout=300,
    )
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines()
        for line in said[:10]:
            complain(f"dl run --dry-run: {line[4:] if line.startswith('dl: ') else line}")


def _count(fields: Sequence[Field]) -> Dict[str, int]:
    counts = {state: 0 for state in (MAPPED, CHANGED, NONE, OPEN)}
    for field in fields:
        counts[field.state] += 1
    return counts


def _say(one: Import, source: str, path: str) -> None:
    """Print the fields that were not converted, or with another meaning, and the counts."""
    for note in one.notes(OPEN):
        complain(f"{note.file}:{note.line}: {note.path}: {note.note}")
    for note in one.notes(CHANGED):
        complain(f"{note.file}:{note.line}: {note.path}: converted, but {note.note}")
    for line, text in one.general():
        complain(f"{source}:{line}: {text}" if line else f"{source}: {text}")
    n = _count(one.fields())
    complain(f"{path}: {n[MAPPED] + n[CHANGED]} fields converted, {n[OPEN]} not, {n[NONE]} without a meaning on Slurm")


def _one(source: str, options: _Options) -> None:
    made = _imports(source, options)
    for one in made:
        text = target.experiment_text(one, os.path.basename(source))
        if options.output == "-":
            sys.stdout.write(text)
            _say(one, source, "standard output")
            continue
        path = _place(one, source, len(made), options)
        _write(path, text)
        _say(one, source, path)
        _check(path, options)
        print(printable(path) if sys.stdout.isatty() else path, flush=True)


# ---- coverage


def _coverage(files: Sequence[Tuple[str, bool]], options: _Options) -> int:
    """Print how much of each file can be converted; write nothing."""
    sums: Dict[str, List[int]] = {}
    status = OK
    print(f"{'FORMAT':<12} {'FIELDS':>6} {'TAKEN':>6} {'CHANGED':>7} {'NO MEANING':>10} {'LEFT':>5} {'SHARE':>6}  FILE")

    def line(name: str, row: Sequence[int], file: str) -> None:
        total, taken, other, nothing, open = row
        share = f"{100 * taken / (taken + open):.0f}%" if taken + open else "-"
        print(f"{name:<12} {total:>6} {taken:>6} {other:>7} {nothing:>10} {open:>5} {share:>6}  {printable(file)}")

    for file, of_folder in files:
        try:
            made = _imports(file, options)
        except BadInput as error:
            complain(str(error))
            status = status if of_folder and isinstance(error, _Unknown) else error.status
            continue
        for one in made:
            n = _count(one.fields())
            row = [sum(n.values()), n[MAPPED] + n[CHANGED], n[CHANGED], n[NONE], n[OPEN]]
            line(one.table.name, row, file)
            sums[one.table.name] = [a + b for a, b in zip(sums.get(one.table.name, [0] * 6), [*row, 1])]
    for name, row in sums.items():
        line(name, row[:5], f"all {row[5]}")
    if len(sums) > 1:
        total = [sum(column) for column in zip(*sums.values())]
        line("all", total[:5], f"all {total[5]}")
    return status


# ---- main


def _parse(arguments: Sequence[str]) -> _Options:
    parser = argparse.ArgumentParser(prog="dl import")
    for name in ("dl", "output", "from", "entrypoint"):
        parser.add_argument(f"--{name}", default="")
    parser.add_argument("--coverage", action="store_true")
    parser.add_argument("files", nargs="+")
    given = parser.parse_args(arguments)
    return _Options(
        given.dl or "dl", given.output, getattr(given, "from"), given.entrypoint, given.coverage, given.files
    )


def _known(name: str) -> None:
    if name and name not in [format.name for format in FORMATS]:
        raise BadInput(f"--from={name}", 0, "must be one of " + ", ".join(format.name for format in FORMATS))


def main(*arguments: str) -> int:
    """Import the files that the arguments name.  Returns an exit status of dl(1)."""
    options = _parse(arguments)
    status = OK
    try:
        _known(options.format)
        files = _files(options.files)
        if options.coverage:
            return _coverage(files, options)
        if options.output and len(files) > 1:
            raise BadInput(options.output, 0, f"--output names one file, but there are {len(files)} to import")
    except BadInput as error:
        complain(str(error))
        return error.status
    for file, of_folder in files:
        try:
            _one(file, options)
        except BadInput as error:
            skipped = of_folder and isinstance(error, _Unknown)
            complain(str(error) + ("; skipped" if skipped else ""))
            status = status or (OK if skipped else error.status)
    return status
