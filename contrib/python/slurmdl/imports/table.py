# SPDX-License-Identifier: Apache-2.0
"""The tables of fields, and the state of each field of a file.

A table says where each field goes, or that it has no meaning on Slurm, or why it is not converted.  A field that no row
matches is reported as unknown.  dl-import(1) contains the tables; tests/python/import.t compares them.

A field counts as converted only if a reader of Import (text(), whole(), word() and so on) understood its value or the
code called take().  All other values are reported, so that none silently becomes a default.
"""

import math
import re
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, NoReturn, Optional, Sequence, Set, Tuple, TypeVar, Union

from .document import BadInput, Node
from .ranges import names_of

# states of a field; CHANGED: converted, with another meaning
MAPPED, CHANGED, NONE, OPEN = "mapped", "changed", "none", "open"


class Row(NamedTuple):
    """One or more fields, separated by spaces: '*' matches one name, '**' everything below.

    'to' names keys of dl-experiment(5) or options of sbatch.  With 'copy' the value is copied unchanged."""

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
    return Row(path, OPEN, "not converted", remark)


def under(prefix: str, rows: Sequence[Row]) -> List[Row]:
    """The same fields below another one."""
    return [row._replace(path=" ".join(f"{prefix}.{one}" for one in row.path.split())) for row in rows]


def _pattern(path: str) -> "re.Pattern[str]":
    parts = {"*": "[^\0]+", "**": ".*"}
    texts = ["\0".join(parts.get(name, re.escape(name)) for name in one.split(".")) for one in path.split()]
    # "a.**" also matches a itself, if it is empty or a scalar
    return re.compile("|".join(text.replace("\0.*", "(\0.*)?") for text in texts), re.S)


# placeholders that another program fills in: Helm, Jinja and Argo; the second one also OmegaConf
TEMPLATE = re.compile(r"\{\{.*?\}\}", re.S)
INTERPOLATION = re.compile(r"\{\{.*?\}\}|\$\{[^{}]*\}", re.S)


class Table:
    """The rows of a format; the first one that matches a field counts.  dl-import(1) lists 'shared' in another table.

    'foreign' matches placeholders that are filled in before the format's own program reads the file."""

    def __init__(
        self,
        name: str,
        title: str,
        rows: Sequence[Row],
        shared: Sequence[Row] = (),
        foreign: "re.Pattern[str]" = TEMPLATE,
    ) -> None:
        self.name, self.title, self.rows, self.foreign = name, title, list(rows), foreign
        self.matched = [*shared, *rows]
        self._patterns = [(_pattern(row.path), row) for row in self.matched]
        self._known: Dict[Tuple[str, ...], Optional[Row]] = {}

    def row(self, path: Tuple[str, ...]) -> Optional[Row]:
        if path not in self._known:
            text = "\0".join(path)
            self._known[path] = next((row for pattern, row in self._patterns if pattern.fullmatch(text)), None)
        return self._known[path]


class Field(NamedTuple):
    """A field of a file, and its state."""

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
    """Convert a string to a valid name of an experiment or a job."""
    return re.sub(r"[^\w.-]+", "_", text, flags=re.A)


def _common(a: Tuple[str, ...], b: Tuple[str, ...]) -> Tuple[str, ...]:
    """The common beginning of two paths."""
    same = next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))
    return a[:same]


def _shown(node: Node) -> str:
    """A value for a message."""
    if isinstance(node.value, (dict, list)):
        return "a list" if isinstance(node.value, list) else "a mapping"
    return f"'{node.text[:60]}'" if node.text else "an empty value"


# the type of a copied key, if it is not a string
_KINDS: Dict[str, str] = {
    **dict.fromkeys(("max_restarts", "searcher.max_concurrent_trials", "resources.nodes_per_trial"), "whole"),
    **dict.fromkeys((f"checkpoint_policy.save_{name}" for name in ("experiment_best", "trial_best", "trial_latest")), "whole"),
    "reproducibility.experiment_seed": "whole",
    "searcher.smaller_is_better": "truth",
    "searcher.goal": "real",
    "resources.sbatch_args": "texts",
}

T = TypeVar("T")


def itself(words: str) -> Dict[str, str]:
    """For Import.word(): words that stand for themselves."""
    return {word: word for word in words.split()}


def _given(node: Optional[Node], path: Sequence[str]) -> Optional[Node]:
    """The node at a path; None if it does not exist or is null."""
    found = node.get(*path) if node is not None else None
    return None if found is None or found.value is None else found


class Import:
    """The conversion of one document: the keys of the experiment file, and the state of each field."""

    def __init__(self, table: Table, node: Node, name: str, program: str = "") -> None:
        self.table, self.node, self.name = table, node, name
        self.keys: Dict[str, Any] = {}
        self.comments: Dict[str, str] = {}
        self.program = program
        self._marks: Dict[int, Tuple[str, str]] = {}
        self._taken: Set[int] = set()
        self._skipped: List[Node] = []
        self._extra: List[Tuple[Table, Node]] = []
        self._general: List[Tuple[int, str]] = []
        for path, field in node.fields():
            row = table.row(path)
            if row is not None and row.copy and field.value is not None:
                self.set(row.to, getattr(self, _KINDS.get(row.to, "text"))(field))

    def set(self, key: str, value: Any, comment: str = "") -> None:
        """Set a key of the experiment file by its dotted name; None leaves it unset."""
        if value is not None:
            self.keys[key] = value
        if comment:
            self.comments[key] = comment

    def set_name(self, given: Union[Node, str, None], default: str) -> None:
        """Set the name of the experiment; report it if it had to change."""
        text = self.text(given) if isinstance(given, Node) else given or ""
        ours = plain_name(text).lstrip(".-")[:100] or plain_name(default).lstrip(".-")[:100] or "experiment"
        self.set("name", ours)
        if isinstance(given, Node) and text and ours != text:
            self.changed(given, f"it is called {ours} here")

    def names(self, given: Mapping[str, Node]) -> Dict[str, str]:
        """The name of the hyperparameter for each key; report those that had to change."""
        found = names_of(list(given))
        for key, ours in found.items():
            if ours != key.lstrip("+~"):
                self.changed(given[key], f"the hyperparameter is called {ours}")
        return found

    def set_searcher(self, ours: Optional[str], given: Optional[Node], why: str = "") -> None:
        """Set searcher.name.  If dl has no such searcher, keep the foreign name, which dl run rejects."""
        if ours is None and given is not None:
            self.open(given, why or f"dl has no searcher like '{given.text[:60]}': choose searcher.name")
        elif ours is None:
            self.say(self.node.line, "the file has no searcher: choose searcher.name")
        theirs = plain_name(given.text)[:60] if given is not None else ""
        self.set("searcher.name", ours or theirs or "none", "" if ours else "not a searcher of dl: choose one")

    def guess(self, key: str, value: Any, why: str) -> None:
        """Set a required key that the file does not have, and report the guess."""
        self.set(key, value, why)
        self.say(self.node.line, f"{key} = {str(value).lower() if isinstance(value, bool) else value} is a guess: {why}")

    # ---- readers: each accepts exactly what it knows; other values are reported

    def take(self, node: Optional[Node], *path: str) -> Optional[Node]:
        """Mark everything at this path as understood."""
        found = node.get(*path) if node is not None else None
        for _, field in found.fields() if found is not None else ():
            self._taken.add(id(field))
            if any(isinstance(s.value, float) and not math.isfinite(s.value) for s in field.scalars()):
                self.changed(field, "infinity and NaN become strings")
        return found

    def is_taken(self, node: Node) -> bool:
        return all(id(field) in self._taken for _, field in node.fields())

    def _read(self, node: Optional[Node], kind: str, fits: bool, value: T) -> Optional[T]:
        if node is None or not fits:
            if node is not None:
                self.open(node, f"{_shown(node)} is {kind}")
            return None
        self._taken.add(id(node))
        return value

    def text(self, node: Optional[Node], *path: str, default: str = "") -> str:
        """A scalar as the file spells it; 'default' if there is none."""
        found = _given(node, path)
        plain = found is not None and not isinstance(found.value, (dict, list))
        filled = plain and self.table.foreign.search(found.text)  # type: ignore[union-attr]
        kind = "a placeholder: write the value" if filled else "not a string"
        given = self._read(found, kind, plain and not filled, found.text if found is not None else "")
        return default if given is None else given

    def whole(
        self, node: Optional[Node], *path: str, least: Optional[int] = None, most: Optional[int] = None
    ) -> Optional[int]:
        """A whole number."""
        found = _given(node, path)
        value = found.value if found is not None else None
        fits = isinstance(value, int) and not isinstance(value, bool)
        if fits and isinstance(value, int):
            fits = (least is None or value >= least) and (most is None or value <= most)
        ends = (f" from {least}" if least is not None else "") + (f" to {most}" if most is not None else "")
        return self._read(found, f"not a whole number{ends}", fits, value)

    def real(self, node: Optional[Node], *path: str, above: Optional[float] = None) -> Optional[float]:
        """A finite number."""
        found = _given(node, path)
        value = found.value if found is not None else None
        fits = isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 1e300
        fits = fits and (above is None or value > above)  # type: ignore[operator]
        return self._read(found, "not a number" + (f" above {above:g}" if above is not None else ""), fits, value)

    def need(self, node: Node, name: str, whole: bool = False) -> Any:
        """A number without which there is no range."""
        value = self.whole(node, name) if whole else self.real(node, name)
        if value is None:
            raise ValueError(f"{name} is missing or not {'a whole number' if whole else 'a number'}")
        return value

    def values(self, node: Node, *path: str) -> List[Any]:
        """The values of a list."""
        found = node.get(*path)
        if found is None or not isinstance(found.value, list):
            raise ValueError(f"{path[-1]} is not a list")
        self.take(found)
        values: List[Any] = found.plain()
        return values

    def truth(self, node: Optional[Node], *path: str) -> Optional[bool]:
        """A boolean."""
        found = _given(node, path)
        value = found.value if found is not None else None
        return self._read(found, "neither true nor false", isinstance(value, bool), value)

    def texts(self, node: Optional[Node], *path: str) -> Optional[Tuple[str, ...]]:
        """The scalars of a list, or a single scalar, as the file spells them."""
        found = _given(node, path)
        values = found.value if found is not None and isinstance(found.value, list) else [found] if found is not None else []
        fits = not any(isinstance(v.value, (dict, list)) or v.value is None for v in values)
        made = self._read(found, "not a list of strings", fits, tuple(v.text for v in values) if fits else ())
        if made is not None:
            self.take(found)
        return made

    def word(self, node: Optional[Node], *path: str, known: Mapping[str, T]) -> Optional[T]:
        """What a word stands for in 'known'."""
        found = _given(node, path)
        text = found.text if found is not None and not isinstance(found.value, (dict, list)) else ""
        one_of = "not one of " + ", ".join(word for word in known if word)
        return self._read(found, one_of, text in known, known.get(text))

    def must(self, read: Callable[..., Optional[T]], node: Optional[Node], *path: str, **how: Any) -> Optional[T]:
        """What a reader finds.  A value that it does not understand is an error: without it, the job would be another."""
        value = read(node, *path, **how)
        found = _given(node, path)
        if value is None and found is not None:
            self.refuse(found, f"{path[-1]}: {self._marks[id(found)][1]}")
        return value

    def refuse(self, node: Node, why: str) -> NoReturn:
        """Fail: no file is written."""
        raise BadInput(node.file, node.line, why)

    def unique(self, node: Optional[Node], *path: str) -> Dict[str, Node]:
        """The entries of a mapping, or of a list by their names; report duplicate names."""
        found: Dict[str, Node] = {}
        for name, entry in node.items(*path) if node is not None else ():
            if name in found:
                self.open(entry, f"duplicate name {name}; the first one counts")
            else:
                found[name] = entry
        return found

    # ---- states of the fields

    def mark(self, node: Optional[Node], state: str, note: str) -> None:
        """Set the state of a field, or of everything below it; this overrides the table."""
        made: Dict[Optional[Tuple[str, str]], Tuple[str, str]] = {}
        for _, field in node.fields() if node is not None else ():
            before = self._marks.get(id(field))
            if before is not None and before[0] == OPEN and state != OPEN:
                continue  # a field that was not converted stays so
            both = before is not None and before[0] == state == CHANGED and note not in before[1]
            one = made.setdefault(before, (state, f"{before[1]}; {note}" if both and before else note))
            self._marks[id(field)] = one

    def open(self, node: Optional[Node], why: str) -> None:
        """A field is not converted."""
        self.mark(node, OPEN, why)

    def changed(self, node: Optional[Node], how: str) -> None:
        """A field is converted, with another meaning."""
        self.mark(node, CHANGED, how)

    def say(self, line: int, text: str) -> None:
        """Report something that does not concern a single field."""
        self._general.append((line, text))

    def also(self, table: Table, node: Node) -> None:
        """Also convert the fields of another document that this one uses."""
        self._extra.append((table, node))

    def leave(self, node: Node) -> None:
        """Ignore everything below: it belongs to another experiment in the file."""
        self._skipped.append(node)

    def fields(self) -> List[Field]:
        """All fields with their states."""
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
        if state in (MAPPED, CHANGED) and id(node) not in self._taken:
            empty = node.value is None or node.value in ([], {})
            state, note = (NONE, "no value") if empty else (OPEN, "not used here")
        if id(node) in self._marks:
            group = self._marks[id(node)]
            state, note = group
        filled = next(filter(None, (table.foreign.search(scalar.text) for scalar in node.scalars())), None)
        if filled and state == MAPPED:
            state, group = CHANGED, node
            note = f"{filled.group()[:60]} is kept unchanged: dl does not fill it in"
        return Field(path, node.line, state, note, node.file, group)

    def notes(self, state: str) -> List[Field]:
        """The fields in a state; fields with the same mark, or neighbours that match the same row, are merged."""
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
        """Set the image of the container, and what is bound into it."""
        image = self.text(node)
        if image:
            self.set("container" + (".image" if binds else ""), image)
            self.set("container.binds", tuple(binds) or None)

    def variable(self, name: str, value: str, comment: str = "") -> bool:
        """Set an environment variable of the trials.  Returns False if libconfig does not allow its name."""
        if not re.fullmatch(r"[A-Za-z]\w*", name, re.A):
            return False
        variables = {**self.keys.get("environment.variables", {}), name: value}
        self.set("environment.variables", variables, comment)
        return True
