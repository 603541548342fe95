# SPDX-License-Identifier: Apache-2.0
"""How a function reaches the processes that run it: by the name of its module, or as source.

Everything that a trial runs is in experiment.conf, as readable text; each user who runs it has agreed to its SHA-256
(dl-run(1), SHARING).  Nothing is pickled, and there is no other file that somebody could replace.

A function of a module is imported by name.  A function of a script or a notebook (the module __main__), or of another
function, is sent as source, together with what it refers to: imports, functions and classes as source, and plain
values.
"""

import __future__

import ast
import inspect
import linecache
import os
import pathlib
import symtable
import sys
import textwrap
import types
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

from ._slurmdl import Error

NAME, FOLDER, SOURCE = "DL_FUNCTION", "DL_FUNCTION_FOLDER", "DL_FUNCTION_SOURCE"
# Linux limits a variable to 128 KiB
_SOURCE_MAX = 120000
_PLAIN = (bool, int, float, complex, str, bytes, type(None), type(Ellipsis))


# ---- by the name of its module


def _found(module: Any, path: str) -> Any:
    found = module
    for part in path.split("."):
        found = getattr(found, part, None)
    return found


def _is_importable(thing: Any) -> bool:
    module = sys.modules.get(getattr(thing, "__module__", None) or "")
    if module is None or module.__name__ == "__main__" or not getattr(module, "__file__", None):
        return False
    return _found(module, getattr(thing, "__qualname__", "")) is thing


def _folder_of(module: types.ModuleType) -> str:
    """The folder from which the first package of the module is imported."""
    folder = os.path.dirname(os.path.abspath(str(module.__file__)))
    parts = module.__name__.count(".") + hasattr(module, "__path__")
    for _ in range(parts):
        folder = os.path.dirname(folder)
    return folder


# ---- as source


def _text_of(thing: Any) -> str:
    try:
        return str(inspect.getsource(thing))
    except (OSError, TypeError):
        # before 3.13 Python cannot find the source of a notebook's class, but that of its methods
        methods = [m for m in vars(thing).values() if inspect.isfunction(m)] if inspect.isclass(thing) else []
        for method in methods:
            lines = linecache.getlines(method.__code__.co_filename)
            for node in ast.walk(ast.parse("".join(lines))):
                if isinstance(node, ast.ClassDef) and node.name == thing.__name__:
                    first = min([node.lineno] + [d.lineno for d in node.decorator_list])
                    return "".join(lines[first - 1 : node.end_lineno])
        raise


class _Collector:
    """The source of a function and of what it refers to, in an order in which it can run."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.what = function.__name__
        self.parts: List[str] = []
        self.added: Dict[str, Any] = {}
        self.future = False

    def add(self, thing: Any, name: str) -> None:
        """Add the source of a function or a class that is called 'name' where it is used."""
        source = self._source(thing)
        function = inspect.unwrap(thing) if callable(thing) else thing
        self.future |= bool(_flags(function) & __future__.annotations.compiler_flag)
        for used in _names(source):
            if used not in self.added:
                self._refer(used, function)
        self.parts.append(source)
        if thing.__name__ != name:
            self.parts.append(f"{name} = {thing.__name__}\n")

    def _source(self, thing: Any) -> str:
        try:
            source = textwrap.dedent(_text_of(thing))
            ast.parse(source)
        except (OSError, TypeError, SyntaxError):
            raise Error(
                f"{self.what}(): cannot find the source of {getattr(thing, '__qualname__', thing)!r}, which the trials "
                "need: put it in a module"
            ) from None
        if getattr(thing, "__name__", "") == "<lambda>":
            raise Error(f"{self.what}(): a lambda has no name: use def")
        return source

    def _refer(self, name: str, function: Any) -> None:
        found, value = _lookup(name, function)
        if not found:
            return
        self.added[name] = value
        if name == "__name__":
            return
        if isinstance(value, types.ModuleType):
            self._module(name, value)
        elif _is_importable(value):
            self._import(name, value)
        elif inspect.isfunction(value) or inspect.isclass(value):
            self.add(value, name)
        elif _is_plain(value):
            self.parts.append(f"{name} = {value!r}\n")
        elif isinstance(value, pathlib.PurePath):
            self.parts.append(f"import pathlib\n{name} = pathlib.Path({str(value)!r})\n")
        else:
            kind = type(value).__name__
            where = "create it in the function, or in a module"
            raise Error(f"{self.what}(): '{name}' ({kind}) cannot be sent as source: {where}")

    def _module(self, name: str, value: Any) -> None:
        if value.__name__ == "__main__":
            raise Error(f"{self.what}(): '{name}' is the module __main__: put it in a module of its own")
        self.parts.append(f"import {value.__name__}" + ("\n" if name == value.__name__ else f" as {name}\n"))

    def _import(self, name: str, value: Any) -> None:
        first, _, rest = value.__qualname__.partition(".")
        if rest:
            self.parts.append(f"import {value.__module__}\n{name} = {value.__module__}.{value.__qualname__}\n")
        else:
            self.parts.append(f"from {value.__module__} import {first}" + ("\n" if name == first else f" as {name}\n"))


def _flags(function: Any) -> int:
    return getattr(getattr(function, "__code__", None), "co_flags", 0)


def _scopes(table: symtable.SymbolTable) -> Iterator[symtable.SymbolTable]:
    yield table
    for child in table.get_children():
        yield from _scopes(child)


def _names(source: str) -> List[str]:
    """The free names of the code, in alphabetical order."""
    names = set()
    for scope in _scopes(symtable.symtable(source, "source", "exec")):
        is_top = scope.get_type() == "module"
        names |= {s.get_name() for s in scope.get_symbols() if s.is_referenced() and (is_top or s.is_global())}
    # including annotations in quotes
    for n in ast.walk(ast.parse(source)):
        text = n.annotation if isinstance(n, ast.arg) else None
        if isinstance(text, ast.Constant) and isinstance(text.value, str):
            names |= set(_names(text.value))
    return sorted(names)


def _lookup(name: str, thing: Any) -> Tuple[bool, Any]:
    """The value of a name in the source of a function or a class: from the enclosing function or the module."""
    if inspect.isfunction(thing) and name in thing.__code__.co_freevars:
        cells = dict(zip(thing.__code__.co_freevars, thing.__closure__ or ()))
        return True, cells[name].cell_contents
    names = getattr(thing, "__globals__", None) or vars(sys.modules[thing.__module__])
    return name in names, names.get(name)


def _is_plain(value: Any) -> bool:
    """Whether repr() reproduces it."""
    if type(value) in (list, tuple, set, frozenset) and value:
        return all(_is_plain(v) for v in value)
    if type(value) is dict:
        return all(_is_plain(k) and _is_plain(v) for k, v in value.items())
    if type(value) is float:
        return value == value and abs(value) != float("inf")
    return type(value) in _PLAIN or (type(value) in (list, tuple) and not value)


def _source_of(function: Callable[..., Any]) -> str:
    collector = _Collector(function)
    collector.added[function.__name__] = function
    collector.add(function, function.__name__)
    head = "from __future__ import annotations\n" if collector.future else ""
    source = head + "\n".join(collector.parts)
    if len(source.encode()) > _SOURCE_MAX:
        size = f"its source, with everything it refers to, has {len(source)} bytes"
        raise Error(f"{function.__name__}(): {size}, more than {_SOURCE_MAX}: put it in a module")
    return source


def variables_of(function: Callable[..., Any]) -> Dict[str, str]:
    """The variables from which function_of() creates the function in another process."""
    if not inspect.isfunction(function):
        raise Error(f"{function!r} is not a function")
    if _is_importable(function):
        module = sys.modules[function.__module__]
        return {NAME: f"{function.__module__}:{function.__qualname__}", FOLDER: _folder_of(module)}
    return {NAME: function.__name__, FOLDER: os.path.abspath(sys.path[0]), SOURCE: _source_of(function)}


# ---- in the other process


def function_of(variables: Any) -> Callable[..., Any]:
    """The function that variables_of() describes."""
    name: str = variables[NAME]
    sys.path.insert(0, variables[FOLDER])
    source: Optional[str] = variables.get(SOURCE)
    if source is None:
        module, _, path = name.partition(":")
        __import__(module)
        result: Callable[..., Any] = _found(sys.modules[module], path)
        return result
    # lets a traceback show the lines
    file = f"<{name}() of experiment.conf>"
    linecache.cache[file] = (len(source), None, source.splitlines(True), file)
    module_of_it = types.ModuleType("slurmdl_function")
    sys.modules[module_of_it.__name__] = module_of_it
    exec(compile(source, file, "exec", dont_inherit=True), module_of_it.__dict__)
    made: Callable[..., Any] = module_of_it.__dict__[name]
    return made
