# SPDX-License-Identifier: Apache-2.0
"""Write the experiment file, with comments."""

import math
import re
import shlex
import textwrap
from typing import Any, Dict, List, Sequence, Tuple

from ..program import printable
from .table import CHANGED, NONE, OPEN, Import

_ORDER = (
    "name description entrypoint working_folder job max_restarts max_failed log_policies container code searcher hyperparameters resources metrics "
    "environment checkpoint_policy reproducibility"
).split()
_FIRST = "name sampler metric smaller_is_better summary goal max_trials max_length".split()
WIDTH = 118


# ---- libconfig


def _text(value: str) -> str:
    def escape(match: "re.Match[str]") -> str:
        c = match.group()
        short = {"\n": "\\n", "\t": "\\t", "\r": "\\r", '"': '\\"', "\\": "\\\\"}.get(c)
        return short or "".join(f"\\x{b:02x}" for b in c.encode("utf-8", "replace"))

    return '"' + re.sub(r'[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069"\\]', escape, value) + '"'


def _real(value: float) -> str:
    if not math.isfinite(value):
        return f'"{value}"'
    text = repr(value)
    return text if re.search(r"[.]", text) else re.sub(r"e", ".0e", text)


class Lines(List[str]):
    """A string that spans several lines of the file: libconfig joins adjacent strings."""


def value_text(value: Any, indent: int = 0) -> str:
    """A value in the syntax of libconfig."""
    if isinstance(value, Lines):
        texts = [line for part in value for line in part.splitlines(keepends=True)]
        return "".join("\n" + " " * (indent + 4) + _text(text) for text in texts)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        if not -(2**63) <= value < 2**63:
            return _real(float(value))
        return str(value) if -(2**31) <= value < 2**31 else f"{value}L"
    if isinstance(value, float):
        return _real(value)
    if isinstance(value, (list, tuple)):
        return _list([value_text(v, indent + 4) for v in value], value, indent)
    if isinstance(value, dict):
        if not all(re.fullmatch(r"[A-Za-z*][\w*-]*", str(name), re.A) for name in value):
            return _text(str(value))
        settings = [f"{name} = {value_text(v, indent + 4)};" for name, v in value.items()]
        one = " ".join(["{", *settings, "}"])
        if ("type" in value or len(one) < 60) and "\n" not in one and len(one) + indent < WIDTH:
            return one
        pad = " " * (indent + 4)
        return "{\n" + "".join(f"{pad}{setting}\n" for setting in settings) + " " * indent + "}"
    return _text(str(value))


def _list(texts: List[str], values: Sequence[Any], indent: int) -> str:
    plain = len({type(v) for v in values}) == 1 and isinstance(values[0], (bool, int, float, str))
    # the elements of an array must have one type, also in the way they are spelled
    plain = plain and len({(t[:1] == '"', t.endswith("L"), "." in t and t[:1] != '"') for t in texts}) == 1
    first, last = ("[", "]") if plain else ("( ", " )")
    one = first + ", ".join(texts) + last
    if len(one) + indent < WIDTH - 20 and "\n" not in one:
        return one
    pad = "\n" + " " * (indent + 4)
    return first.strip() + pad + ("," + pad).join(texts) + last.strip()


# ---- comments


def _wrapped(text: str, first: str = "# ", rest: str = "#   ") -> List[str]:
    return textwrap.wrap(printable(text), WIDTH, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False) or [
        "#"
    ]


def header(one: Import, source: str) -> List[str]:
    """The first lines: where the file comes from, and what was not converted."""
    kind = one.node.string("kind") if one.table.name in ("job", "trainjob") else one.table.title
    lines = [f"# {printable(source)} ({printable(kind)}), by dl import; dl-import(1) has the table of its fields."]
    for title, state in (("Not converted:", OPEN), ("Different here:", CHANGED)):
        here = one.node.file
        notes = [(n.line, ("" if n.file == here else f"{n.file}: ") + f"{n.path}: {n.note}") for n in one.notes(state)]
        notes += one.general() if state == CHANGED else []
        if notes:
            lines.append(f"# {title}")
            for line, text in notes:
                lines += _wrapped(f"line {line}: {text}" if line else text, "#   ", "#     ")
    names = [f"{n.path} ({n.line})" for n in one.notes(NONE)]
    if names:
        lines += _wrapped("Without a meaning on Slurm: " + ", ".join(names))
    return lines


def _tree(keys: Dict[str, Any]) -> Dict[str, Any]:
    tree: Dict[str, Any] = {}
    for key, value in keys.items():
        group, _, name = key.partition(".")
        if name:
            tree.setdefault(group, {})[name] = value
        else:
            tree[group] = value
    return tree


def experiment_text(one: Import, source: str) -> str:
    """The experiment file."""
    tree = _tree(one.keys)
    lines = [*header(one, source), ""]

    def put(name: str, key: str, value: Any, indent: int) -> None:
        pad = " " * indent
        comment = one.comments.get(key, "")
        text = f"{pad}{name} = {value_text(value, indent)};"
        if comment and (len(text) + len(comment) > WIDTH or "\n" in text):
            lines.extend(pad + line for line in _wrapped(comment, rest="# "))
            comment = ""
        lines.append(text + (f"  # {printable(comment)}" if comment else ""))

    for name in sorted(tree, key=lambda n: _ORDER.index(n) if n in _ORDER else len(_ORDER)):
        if tree[name] == {} and name != "job":
            continue
        if not isinstance(tree[name], dict) or name == "hyperparameters":
            put(name, name, tree[name], 0)
            continue
        lines.append(f"\n{name} = {{")
        inner = sorted(tree[name], key=lambda n: _FIRST.index(n) if n in _FIRST else len(_FIRST))
        for key in inner:
            put(key, f"{name}.{key}", tree[name][key], 4)
        lines.append("};")
    return re.sub(r"\n\n\n+", "\n\n", "\n".join(lines)) + "\n"


# ---- commands


def quoted(words: Sequence[str]) -> str:
    """Quote words for a shell."""
    return " ".join(shlex.quote(word) for word in words)


_PLAIN = re.compile(r"[\w@%+=:,./{}-]+", re.A)
PLACEHOLDER = re.compile(r"\{[A-Za-z_*][\w.*-]*\}")


def place(name: str) -> str:
    """A hyperparameter in a word; shield() replaces the mark."""
    return f"\0{name}\0"


def optional(name: str) -> str:
    """A word that is omitted if the hyperparameter has no value; shield() replaces the mark."""
    return f"\1{name}\1"


_OPTIONAL = re.compile(r"\[\{[A-Za-z][\w.-]*\}\]")


def shield(words: Sequence[str]) -> Tuple[List[str], Dict[str, str]]:
    """(words, constants) for an entrypoint, in which {name} is a hyperparameter and [ begins a group.  If a foreign word
    contains such text, a constant hyperparameter replaces it."""
    constants: Dict[str, str] = {}

    def constant(text: str) -> str:
        return "{" + constants.setdefault(text, f"word_{len(constants) + 1}") + "}"

    made = []
    for word in words:
        word = PLACEHOLDER.sub(lambda m: constant(m.group()), word)
        if word.startswith("["):
            word = constant("[") + word[1:]
        made.append(re.sub("\1(.*?)\1", r"[{\1}]", re.sub("\0(.*?)\0", r"{\1}", word)))
    return made, {name: text for text, name in constants.items()}


def shell_word(word: str) -> str:
    """Quote a word for a shell; $(NAME), the syntax of Kubernetes, becomes the variable."""
    pieces = re.split(r"\$\(([A-Za-z_]\w*)\)", word)
    if len(pieces) == 1:
        return shlex.quote(word)
    return "".join(f'"${{{p}}}"' if i % 2 else shlex.quote(p) if p else "" for i, p in enumerate(pieces))


def shell_words(words: Sequence[str]) -> str:
    """Quote words for a shell, except for hyperparameters, which dl quotes itself."""
    words = [f"\1{word}\1" if _OPTIONAL.fullmatch(word) else word for word in words]
    pieces = ([word] if word[:1] == "\1" else [p for p in re.split(r"(\{[A-Za-z*][\w.*-]*\})", word) if p] or [""] for word in words)
    return " ".join("".join(p.strip("\1") if PLACEHOLDER.fullmatch(p) or p[:1] == "\1" else shell_word(p) for p in word) for word in pieces)


def put_entrypoint(one: Import, words: Sequence[str], folder: str = "") -> None:
    """Set the command of a trial: a string if no word needs quotes or if a shell must expand variables or change the
    folder, otherwise a list."""
    made, constants = shield(words)
    one.keys.setdefault("hyperparameters", {}).update(constants)
    if any(re.search(r"\$\([A-Za-z_]\w*\)", word) for word in made):
        one.set("entrypoint", shell_words(made))
    elif all(_PLAIN.fullmatch(word) or _OPTIONAL.fullmatch(word) for word in made):
        one.set("entrypoint", " ".join(made))
    else:
        one.set("entrypoint", list(made))
    if folder:
        text = one.keys["entrypoint"]
        one.set("entrypoint", f"cd {quoted([folder])} && {text if isinstance(text, str) else shell_words(text)}")


def put_program(one: Import, names: Dict[str, str], given: str) -> None:
    """Set the command for a format without one: that of --entrypoint, with all hyperparameters."""
    words = " ".join(f"--{key}={{{ours}}}" for key, ours in names.items())
    if PLACEHOLDER.search(given):
        one.set("entrypoint", given)
        return
    one.set(
        "entrypoint",
        f"{given or 'python3 train.py'} {words}".strip(),
        "" if given else "the file does not name the program",
    )
    if not given:
        one.say(0, "the file does not name the program: edit entrypoint, or pass --entrypoint")
