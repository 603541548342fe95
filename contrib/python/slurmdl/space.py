# SPDX-License-Identifier: Apache-2.0
"""The space of a search in the signature of a function, for slurmdl.run().

    def train(lr: LogUniform(1e-4, 1e-1), optimizer: Choice("sgd", "adam"), width: Int(16, 256) = 64): ...

or, as type checkers want it, Annotated[float, LogUniform(1e-4, 1e-1)].  A parameter's default is the point of trial 1.
"""

import inspect
from typing import Any, Callable, Dict, Optional

from ._slurmdl import Error


class Parameter:
    """A group of `hyperparameters` in dl-experiment(5); 'more' has further keys: count, when, mean, deviation."""

    def __init__(self, keys: Dict[str, Any], more: Dict[str, Any]) -> None:
        self.keys = {name: value for name, value in {**keys, **more}.items() if value is not None}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in self.keys.items() if k != 'type')})"


class Float(Parameter):
    """A number from 'min' to 'max'."""

    def __init__(self, min: float, max: float, step: Optional[float] = None, **more: Any) -> None:
        super().__init__({"type": "float", "minval": float(min), "maxval": float(max), "step": step}, more)


class LogUniform(Parameter):
    """A number from 'min' to 'max', uniform in its logarithm."""

    def __init__(self, min: float, max: float, **more: Any) -> None:
        super().__init__({"type": "loguniform", "min": float(min), "max": float(max)}, more)


class Int(Parameter):
    """An integer from 'min' to 'max', both inclusive; with 'log' uniform in its logarithm."""

    def __init__(self, min: int, max: int, step: Optional[int] = None, log: bool = False, **more: Any) -> None:
        keys = {"type": "int", "minval": min, "maxval": max, "step": step, "base": 10.0 if log else None}
        super().__init__(keys, more)


class Choice(Parameter):
    """One of some values: Choice("sgd", "adam")."""

    def __init__(self, *values: Any, **more: Any) -> None:
        super().__init__({"type": "categorical", "vals": list(values)}, more)


# ---- of a function


def _annotation(function: Callable[..., Any], parameter: inspect.Parameter) -> Any:
    """The annotation; in quotes, or under `from __future__ import annotations`, it is a text."""
    given = parameter.annotation
    around = inspect.unwrap(function)
    try:
        while isinstance(given, str):
            given = eval(given, around.__globals__, dict(inspect.getclosurevars(around).nonlocals))
    except Exception as error:
        raise Error(f"{function.__name__}(): the annotation of '{parameter.name}': {error}") from None
    for extra in getattr(given, "__metadata__", ()):
        if _is_space(extra):
            return extra
    return given


def _is_space(given: Any) -> bool:
    return isinstance(given, (Parameter, list, tuple)) or (isinstance(given, dict) and "type" in given)


def _group(given: Any) -> Dict[str, Any]:
    if isinstance(given, Parameter):
        return dict(given.keys)
    return dict(given) if isinstance(given, dict) else {"type": "categorical", "vals": list(given)}


def takes_run(parameter: inspect.Parameter) -> bool:
    """Whether the parameter 'run' gets the slurmdl.Run of the trial."""
    return parameter.name == "run"


def space_of(function: Callable[..., Any]) -> Dict[str, Any]:
    """The group `hyperparameters` that the function's signature describes."""
    space: Dict[str, Any] = {}
    none = inspect.Parameter.empty
    for parameter in inspect.signature(function).parameters.values():
        name = f"{function.__name__}(): '{parameter.name}'"
        if takes_run(parameter):
            continue
        given = _annotation(function, parameter)
        if _is_space(given):
            if parameter.kind == parameter.POSITIONAL_ONLY:
                raise Error(f"{name} is positional-only: move it behind the '/'")
            space[parameter.name] = _group(given)
            if parameter.default is not none:
                space[parameter.name].setdefault("default", parameter.default)
        elif parameter.default is none and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise Error(f"{name} has no space and no default: annotate it, as in {parameter.name}: Float(0, 1)")
    if not space:
        raise Error(f"{function.__name__}(): no parameter has a space: annotate one, as in lr: LogUniform(1e-4, 0.1)")
    return space
