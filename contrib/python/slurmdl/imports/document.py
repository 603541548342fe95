# SPDX-License-Identifier: Apache-2.0
"""Read untrusted YAML and JSON: returns a tree of nodes that know their lines, or raises an error of one line.

PyYAML scans and parses the text.  This module resolves plain scalars by the rules of YAML 1.2 and creates no other
objects.  The sizes of the file, of its keys and numbers, the depth of the tree and the number of nodes after expanding
aliases (a long text counts as several) are limited, so that no file takes long.
"""

import math
import os
import re
import stat
from typing import Any, Dict, Iterator, List, Optional, Tuple

try:
    import yaml
except ImportError:
    raise ImportError("dl import needs PyYAML: python3 -m pip install pyyaml") from None

from ..program import IO_ERROR, NOT_FOUND, USAGE

MAX_BYTES = 1 << 20
MAX_NODES = 100_000
MAX_DEPTH = 60
MAX_DOCUMENTS = 100
MAX_KEY = 256
MAX_NUMBER = 100


class BadInput(Exception):
    """A file that cannot be imported; 'status' is the exit status of dl."""

    def __init__(self, file: str, line: int, text: str, status: int = USAGE) -> None:
        super().__init__(f"{file}:{line}: {text}" if line else f"{file}: {text}")
        self.status = status


class Node:
    """A mapping (a dict of nodes), a list of nodes or a scalar; its line and, if it is a scalar, its text."""

    __slots__ = ("value", "line", "text", "file")

    def __init__(self, file: str, line: int, value: Any, text: str = "") -> None:
        self.file, self.line, self.value, self.text = file, line, value, text

    def get(self, *path: str) -> Optional["Node"]:
        """The node at this path below; None if there is none."""
        node: Optional[Node] = self
        for name in path:
            node = node.value.get(name) if node is not None and isinstance(node.value, dict) else None
        return node

    def has(self, *path: str) -> bool:
        return self.get(*path) is not None

    def plain(self, *path: str, default: Any = None) -> Any:
        """The value at this path as dicts, lists and scalars of Python."""
        node = self.get(*path)
        if node is None:
            return default
        if isinstance(node.value, dict):
            return {name: n.plain() for name, n in node.value.items()}
        return [n.plain() for n in node.value] if isinstance(node.value, list) else node.value

    def integer(self, *path: str, least: Optional[int] = None) -> Optional[int]:
        """The whole number below, None where there is none or it is less than 'least'."""
        value = self.plain(*path)
        whole = isinstance(value, int) and not isinstance(value, bool)
        return value if whole and (least is None or value >= least) else None

    def string(self, *path: str, default: str = "") -> str:
        """The text of the scalar at this path, as the file spells it."""
        node = self.get(*path)
        return default if node is None or isinstance(node.value, (dict, list)) or node.value is None else node.text

    def items(self, *path: str) -> List[Tuple[str, "Node"]]:
        """The entries of the mapping at this path, or of the list: by their names, or by number if they have no name."""
        node = self.get(*path)
        if node is None:
            return []
        if isinstance(node.value, dict):
            return list(node.value.items())
        if isinstance(node.value, list):
            return [(n.string("name") or str(i), n) for i, n in enumerate(node.value)]
        return []

    def scalars(self) -> Iterator["Node"]:
        """All scalars below, including those in lists."""
        values = self.value.values() if isinstance(self.value, dict) else self.value
        if not isinstance(self.value, (dict, list)):
            yield self
            return
        for node in values:
            yield from node.scalars()

    def fields(self, path: Tuple[str, ...] = ()) -> Iterator[Tuple[Tuple[str, ...], "Node"]]:
        """All fields below with their paths: scalars, lists without mappings, and empty lists and mappings."""
        entries = self.items()
        if isinstance(self.value, list) and not any(isinstance(n.value, dict) for n in self.value):
            entries = []
        if not entries:
            yield path, self
        for name, node in entries:
            yield from node.fields((*path, name))


# plain scalars in the core schema of YAML 1.2; launcher/config/yaml.c reads them in the same way
_NULL = ("", "~", "null", "Null", "NULL")
_TRUTHS = {text: text[0] in "tT" for text in ("true", "True", "TRUE", "false", "False", "FALSE")}
_INTEGER = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_REAL = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_NO_NUMBER = re.compile(r"([-+]?)\.(?:(inf|Inf|INF)|nan|NaN|NAN)")

# what YAML 1.1, and therefore PyYAML, reads differently.  1e-5, a string in YAML 1.1, is not reported: everybody means
# the number
_OTHER_IN_1_1 = [
    (re.compile(r"yes|Yes|YES|no|No|NO|on|On|ON|off|Off|OFF"), "a boolean"),
    (re.compile(r"0o[0-7]+"), "a string"),
    (re.compile(r"[-+]?0[0-9_]*[89][0-9_]*"), "a string"),
    (re.compile(r"[-+]?0([0-7]*[1-7][0-7]+|(?=[0-7]*_)[0-7_]+)"), "an octal number"),
    (re.compile(r"[-+]?0b[01_]+|[-+]0x[0-9a-fA-F_]+|0x(?=[0-9a-fA-F]*_)[0-9a-fA-F_]+"), "a number"),
    (re.compile(r"[-+]?(?=[^_]*_)([0-9][0-9_]*(\.[0-9_]*([eE][-+][0-9]+)?)?|\.[0-9][0-9_]*([eE][-+][0-9]+)?)"), "a number"),
    (re.compile(r"[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?"), "a number in base 60"),
]


_TAGS: Dict[str, type] = {"null": type(None), "bool": bool, "int": int, "float": float}


def _plain_value(text: str) -> Any:
    """The value of a scalar without quotes."""
    if text in _NULL:
        return None
    if text in _TRUTHS:
        return _TRUTHS[text]
    if _INTEGER.fullmatch(text) and len(text) < MAX_NUMBER:
        return int(text, {"0o": 8, "0x": 16}.get(text[:2], 10))
    if _REAL.fullmatch(text):
        return float(text) if math.isfinite(float(text)) else text
    match = _NO_NUMBER.fullmatch(text)
    if match:
        return float(match.group(1) + ("inf" if match.group(2) else "nan"))
    return text


class _Builder:
    """Builds the tree from the events of the parser."""

    def __init__(self, file: str) -> None:
        self.file, self.nodes = file, 0
        self.anchors: Dict[str, Tuple[Optional[Node], int]] = {}
        self.notes: List[Tuple[int, str]] = []

    def bad(self, event: Any, text: str) -> BadInput:
        return BadInput(self.file, event.start_mark.line + 1, text)

    def bad_tag(self, event: Any, tag: str) -> BadInput:
        return self.bad(event, f"unsupported tag {tag[:60]}: only plain values are accepted")

    def count(self, event: Any, nodes: int, depth: int) -> None:
        self.nodes += nodes
        if self.nodes > MAX_NODES:
            raise self.bad(event, f"more than {MAX_NODES} values, including those that aliases repeat")
        if depth > MAX_DEPTH:
            raise self.bad(event, f"more than {MAX_DEPTH} levels")

    def scalar(self, event: Any) -> Node:
        text, line = event.value, event.start_mark.line + 1
        self.count(event, len(text) // 64, 0)  # aliases repeat long texts, too
        if "\0" in text:
            raise self.bad(event, "contains a NUL character")
        plain = event.implicit[0] or event.tag is not None and event.tag != "!"
        value = _plain_value(text) if plain else text
        if event.implicit[0]:
            self.differs(line, text, value)
        elif event.tag not in (None, "!"):
            value = self.tagged(event, text, value)
        return Node(self.file, line, value, text)

    def differs(self, line: int, text: str, value: Any) -> None:
        """Report a plain scalar that YAML 1.1 reads differently."""
        for pattern, what in _OTHER_IN_1_1:
            if pattern.fullmatch(text):
                ours = "a string" if isinstance(value, str) else f"the number {value}" if isinstance(value, int) else "a number"
                self.notes.append((line, f"{text} is {ours}, as in YAML 1.2; in YAML 1.1 it is {what}"))
                return

    def tagged(self, event: Any, text: str, value: Any) -> Any:
        """The value of a scalar that has a tag, such as !!int."""
        kind = event.tag.rpartition(":")[2] if event.tag.startswith("tag:yaml.org,2002:") else ""
        if kind == "str":
            return text
        if kind not in _TAGS:
            raise self.bad_tag(event, event.tag)
        if kind == "float" and isinstance(value, int) and not isinstance(value, bool):
            value = float(value)
        if type(value) is not _TAGS[kind]:
            raise self.bad(event, f"'{text[:40]}' is not a valid {kind}")
        return value

    def alias(self, event: Any, depth: int) -> Node:
        node, before = self.anchors.get(event.anchor, (None, -1))
        if before < 0:
            raise self.bad(event, f"*{event.anchor}: no such anchor above")
        if node is None:
            raise self.bad(event, f"*{event.anchor} contains itself")
        self.count(event, before, depth)
        return node

    def merge(self, event: Any, value: Node) -> Dict[str, Node]:
        parts = value.value if isinstance(value.value, list) else [value]
        if not all(isinstance(part.value, dict) for part in parts):
            raise self.bad(event, "<< needs a mapping or a list of mappings")
        return {name: node for part in reversed(parts) for name, node in part.value.items()}

    def mapping(self, events: Iterator[Any], start: Any, depth: int) -> Node:
        own: Dict[str, Node] = {}
        merged: Dict[str, Node] = {}
        for event in events:
            if isinstance(event, yaml.MappingEndEvent):
                break
            reported = len(self.notes)
            key = self.node(events, event, depth + 1)
            del self.notes[reported:]  # a key is always a string
            value = self.node(events, next(events), depth + 1)
            if isinstance(key.value, (dict, list)):
                raise self.bad(event, "a key must be a string, not a list or a mapping")
            if len(key.text) > MAX_KEY:
                raise self.bad(event, f"a key has more than {MAX_KEY} characters")
            if key.text in own:
                raise self.bad(event, f"duplicate key '{key.text}', first in line {own[key.text].line}")
            if key.text == "<<" and event.implicit[0]:
                merged = {**self.merge(event, value), **merged}
            else:
                own[key.text] = value
        return Node(self.file, start.start_mark.line + 1, {**merged, **own})

    def node(self, events: Iterator[Any], event: Any, depth: int) -> Node:
        """The node that begins with an event."""
        self.count(event, 1, depth)
        if isinstance(event, yaml.AliasEvent):
            return self.alias(event, depth)
        before, line = self.nodes, event.start_mark.line + 1
        if event.anchor:
            self.anchors[event.anchor] = (None, 0)
        if isinstance(event, yaml.ScalarEvent):
            made = self.scalar(event)
        elif event.tag and event.tag.rpartition(":")[2] not in ("!", "map", "seq"):
            raise self.bad_tag(event, event.tag)
        elif isinstance(event, yaml.SequenceStartEvent):
            values = []
            for item in events:
                if isinstance(item, yaml.SequenceEndEvent):
                    break
                values.append(self.node(events, item, depth + 1))
            made = Node(self.file, line, values)
        else:
            made = self.mapping(events, event, depth)
        if event.anchor:
            self.anchors[event.anchor] = (made, self.nodes - before + 1)
        return made


def _documents(file: str, text: str, notes: List[Tuple[int, str]]) -> List[Node]:
    builder = _Builder(file)
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    events: Iterator[Any] = iter(yaml.parse(text, Loader=loader))
    found = []
    for event in events:
        if isinstance(event, yaml.DocumentStartEvent):
            builder.anchors.clear()
            node = builder.node(events, next(events), 0)
            if node.value is None and not node.text:
                continue  # "---" at the end of the file
            if not isinstance(node.value, dict):
                raise BadInput(file, node.line, "expected a mapping at the top level, not a list or a scalar")
            found.append(node)
            if len(found) > MAX_DOCUMENTS:
                raise BadInput(file, node.line, f"more than {MAX_DOCUMENTS} documents")
    notes += builder.notes
    return found


def comes_with(file: str, other: str) -> bool:
    """Whether a file found beside another one belongs to the same owner, to the user or to root: in folders such as /tmp,
    anybody can put files."""
    return os.lstat(other).st_uid in (0, os.geteuid(), os.stat(file).st_uid)


def text_of(file: str) -> str:
    """The text of a regular file of limited size."""
    try:
        fd = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        status = NOT_FOUND if isinstance(error, FileNotFoundError) else IO_ERROR
        raise BadInput(file, 0, error.strerror or "cannot be opened", status) from None
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise BadInput(file, 0, "not a regular file")
    with open(fd, "rb") as f:
        data = f.read(MAX_BYTES + 1)
    if data.startswith(b"SQLite format 3"):
        raise BadInput(
            file, 0, "a database: for a study of Optuna, see dl-import(1) for its space and dl-experiment(5) for its results"
        )
    if len(data) > MAX_BYTES:
        raise BadInput(file, 0, f"larger than {MAX_BYTES >> 20} MiB")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadInput(file, data.count(b"\n", 0, error.start) + 1, "not UTF-8") from None


def read(file: str, notes: Optional[List[Tuple[int, str]]] = None) -> List[Node]:
    """The documents of a file, each a mapping.  Raises BadInput; 'notes' gets lines about scalars with two readings."""
    text = text_of(file)
    if file.endswith(".json"):
        text = text.replace("\t", " ")  # strings in JSON contain no tabs
    try:
        found = _documents(file, text, [] if notes is None else notes)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        said = " ".join(filter(None, (error.context, error.problem)))
        line = mark.line + 1 if mark else 0
        if "\t" in "".join(text.splitlines()[max(line - 1, 0) : line]):
            said = "a tab: indent YAML with spaces"
        raise BadInput(file, line, said) from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1 if isinstance(error.position, int) else 0
        raise BadInput(file, line, f"a character that YAML does not allow: {error.reason}") from None
    if not found:
        raise BadInput(file, 1, "empty")
    return found
