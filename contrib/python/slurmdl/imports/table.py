# SPDX-License-Identifier: Apache-2.0
"""The tables of fields, and what became of each field of a file.

A table says of each field where it goes, that it has no meaning on Slurm, or that it is not taken over, and why.  What
no row matches is an unknown field, which is named, too.  dl-import(1) has the tables; tests/python/import.t compares.
"""

import re
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

from .document import Node

# what became of a field; CHANGED: taken over, with another meaning
MAPPED, CHANGED, NONE, OPEN = "mapped", "changed", "none", "open"


class Row(NamedTuple):
    """One or more fields, with blanks between them: '*' stands for one name, '**' for all that is below.

    'to' are keys of dl-experiment(5), or options of sbatch.  With 'copy' the value is taken as it is."""

    path: str
    state: str
    to: str
    remark: str = ""
    copy: bool = False


def copied(path: str, to: str, remark: str = "") -> Row:
    return Row(path, MAPPED, to, remark, True)


def used(path: str, to: str, remark: str = "") -> Row:
    return Row(path, MAPPED, to, remark)


def changed(path: str, to: str, remark: str) -> Row:
    return Row(path, CHANGED, to, remark)


def none(path: str, remark: str) -> Row:
    return Row(path, NONE, "-", remark)


def left(path: str, remark: str) -> Row:
    return Row(path, OPEN, "not taken over", remark)


def under(prefix: str, rows: Sequence[Row]) -> List[Row]:
    """The same fields below another one."""
    return [row._replace(path=" ".join(f"{prefix}.{one}" for one in row.path.split())) for row in rows]


def _pattern(path: str) -> "re.Pattern[str]":
    parts = {"*": "[^\0]+", "**": ".*"}
    texts = ["\0".join(parts.get(name, re.escape(name)) for name in one.split(".")) for one in path.split()]
    # the mapping itself, where it is empty or a single value
    return re.compile("|".join(text.replace("\0.*", "(\0.*)?") for text in texts), re.S)


class Table:
    """The rows of a format: the first that matches a field counts.  'shared' are those of another list in dl-import(1)."""

    def __init__(self, name: str, title: str, rows: Sequence[Row], shared: Sequence[Row] = ()) -> None:
        self.name, self.title, self.rows = name, title, list(rows)
        self.matched = [*shared, *rows]
        self._patterns = [(_pattern(row.path), row) for row in self.matched]
        self._known: Dict[Tuple[str, ...], Optional[Row]] = {}

    def row(self, path: Tuple[str, ...]) -> Optional[Row]:
        if path not in self._known:
            text = "\0".join(path)
            self._known[path] = next((row for pattern, row in self._patterns if pattern.fullmatch(text)), None)
        return self._known[path]


class Field(NamedTuple):
    """A field of a file, and what became of it."""

    names: Tuple[str, ...]
    line: int
    state: str
    note: str
    file: str
    group: Any

    @property
    def path(self) -> str:
        return ".".join(self.names)


def plain_name(text: str) -> str:
    """A text as a name of an experiment or a job."""
    return re.sub(r"[^\w.-]+", "_", text, flags=re.A)


def _common(a: Tuple[str, ...], b: Tuple[str, ...]) -> Tuple[str, ...]:
    """The names that two paths begin with."""
    same = next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))
    return a[:same]


# what a copied key must be, where it is no text
_KINDS: Dict[str, Tuple[type, ...]] = {
    **dict.fromkeys(("max_restarts", "searcher.max_concurrent_trials", "resources.nodes_per_trial"), (int,)),
    **dict.fromkeys(
        (f"checkpoint_policy.save_{name}" for name in ("experiment_best", "trial_best", "trial_latest")), (int,)
    ),
    "reproducibility.experiment_seed": (int,),
    "searcher.smaller_is_better": (bool,),
    "searcher.goal": (float, int),
    "resources.sbatch_args": (list, str),
}


class Import:
    """What is made of one document: keys of an experiment file, and the state of each field."""

    def __init__(self, table: Table, node: Node, name: str, program: str = "") -> None:
        self.table, self.node, self.name = table, node, name
        self.keys: Dict[str, Any] = {}
        self.comments: Dict[str, str] = {}
        self.program = program
        self.script = ""  # a batch script, in place of an experiment file
        self._marks: Dict[int, Tuple[str, str]] = {}
        self._skipped: List[Node] = []
        self._extra: List[Tuple[Table, Node]] = []
        self._general: List[Tuple[int, str]] = []
        for path, field in node.fields():
            row = table.row(path)
            if row is not None and row.copy and field.value is not None:
                self._copy(row.to, field)

    def set(self, key: str, value: Any, comment: str = "") -> None:
        """A key of the experiment file, by its dotted name; None: not given."""
        if value is not None:
            self.keys[key] = value
        if comment:
            self.comments[key] = comment

    def set_name(self, text: str, default: str) -> None:
        self.set("name", plain_name(text).lstrip(".-")[:100] or default)

    def _copy(self, key: str, field: Node) -> None:
        kinds = _KINDS.get(key, (str,))
        value = field.plain()
        if kinds == (str,) and not isinstance(value, (dict, list)):
            value = field.text
        if isinstance(value, kinds) and isinstance(value, bool) == (bool in kinds):
            self.set(key, tuple(map(str, value)) if isinstance(value, list) else value)
        else:
            self.open(field, f"no {kinds[0].__name__.replace('str', 'text')}")

    def mark(self, node: Optional[Node], state: str, note: str) -> None:
        """Say what became of a field, or of all that is below it, whatever the table says."""
        one = (state, note)
        for _, field in node.fields() if node is not None else ():
            self._marks[id(field)] = one

    def open(self, node: Optional[Node], why: str) -> None:
        """A field is not taken over."""
        self.mark(node, OPEN, why)

    def changed(self, node: Optional[Node], how: str) -> None:
        """A field is taken over, with another meaning."""
        self.mark(node, CHANGED, how)

    def say(self, line: int, text: str) -> None:
        """Something that is about no single field."""
        self._general.append((line, text))

    def also(self, table: Table, node: Node) -> None:
        """Fields of another document that this one uses."""
        self._extra.append((table, node))

    def leave(self, node: Node) -> None:
        """What is below belongs to another import of the same file."""
        self._skipped.append(node)

    def fields(self) -> List[Field]:
        """All fields with what became of them."""
        skipped = {id(field) for node in self._skipped for _, field in node.fields()}
        found = []
        for table, node in [(self.table, self.node), *self._extra]:
            for path, field in node.fields():
                if id(field) not in skipped:
                    found.append(self._field(table, path, field))
        return found

    def _field(self, table: Table, path: Tuple[str, ...], node: Node) -> Field:
        row = table.row(path)
        state, note = (row.state, row.remark) if row else (OPEN, "unknown field")
        group: Any = row if row and row.path.endswith("**") else node
        if row is not None and node.value is None and state == MAPPED:
            state, note = NONE, "no value"
        if id(node) in self._marks:
            group = self._marks[id(node)]
            state, note = group
        return Field(path, node.line, state, note, node.file, group)

    def notes(self, state: str) -> List[Field]:
        """The fields of a state; those of one mark, or beside each other below one row, are one."""
        grouped: List[Field] = []
        for field in self.fields():
            if field.state != state:
                continue
            last = grouped[-1] if grouped else None
            common = _common(last.names, field.names) if last else ()
            near = not isinstance(field.group, Row) or common == field.names[:-1]
            if last and last.group is field.group and common and near:
                grouped[-1] = last._replace(names=common)
            else:
                grouped.append(field)
        return grouped

    def general(self) -> List[Tuple[int, str]]:
        return self._general

    def image(self, node: Optional[Node], binds: Sequence[str] = ()) -> None:
        """The image of a container, and what is bound into it."""
        if node is not None and node.text:
            self.set("container" + (".image" if binds else ""), node.text)
            self.set("container.binds", tuple(binds) or None)

    def variable(self, name: str, value: str, comment: str = "") -> bool:
        """A variable of the trials; False if libconfig does not take its name."""
        if not re.fullmatch(r"[A-Za-z]\w*", name, re.A):
            return False
        variables = {**self.keys.get("environment.variables", {}), name: value}
        self.set("environment.variables", variables, comment)
        return True
