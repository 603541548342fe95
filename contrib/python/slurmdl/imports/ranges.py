# SPDX-License-Identifier: Apache-2.0
"""Groups of `hyperparameters` for the ranges of other systems, and names for them."""

import math
import re
from typing import Any, Dict, Sequence, Tuple


def number(text: Any) -> Any:
    """The number that a text spells, else the text."""
    if not isinstance(text, str):
        return text
    for kind in (int, float):
        try:
            value = kind(text)
            return value if isinstance(value, int) or math.isfinite(value) else text
        except (TypeError, ValueError):
            continue
    return text


def _group(kind: str, **keys: Any) -> Dict[str, Any]:
    return {"type": kind, **{name: value for name, value in keys.items() if value is not None}}


NULL = {"type": "null"}  # no value: a group in brackets of the command is left out


def constant(value: Any) -> Dict[str, Any]:
    return _group("const", val=value)


def real(low: float, high: float, log: bool = False, **more: Any) -> Dict[str, Any]:
    """A float from 'low' to 'high'; with 'log' uniform in its logarithm."""
    low, high = float(low), float(high)
    more.update({name: float(more[name]) for name in ("mean", "deviation") if name in more})
    if not (math.isfinite(low) and math.isfinite(high)) or low > high:
        raise ValueError(f"{low:g} to {high:g} is no range")
    if low == high:
        return constant(low)
    if log and low <= 0:
        raise ValueError(f"a logarithmic range begins above 0, not at {low:g}")
    step = more.get("step")
    if step is not None and not 0 < step <= high - low:
        raise ValueError(f"{step:g} is no step of {low:g} to {high:g}")
    if log:
        if more.pop("step", None):
            raise ValueError("a logarithmic range of floats has no step")
        return _group("loguniform", min=low, max=high, **more)
    return _group("float", minval=low, maxval=high, **more)


def integer(low: Any, high: Any, log: bool = False, **more: Any) -> Dict[str, Any]:
    """An integer from 'low' to 'high', both included."""
    if low != int(low) or high != int(high):
        raise ValueError(f"{low} to {high} is no range of integers")
    low, high = int(low), int(high)
    if low > high:
        raise ValueError(f"{low} to {high} is no range")
    if low == high:
        return constant(low)
    step = more.pop("step", None)
    if step is not None and step != int(step):
        raise ValueError(f"{step} is no step of integers")
    if step is not None and step != 1:
        more["step"] = int(step)
    if more.get("step") is not None and not 0 < more["step"] <= high - low:
        raise ValueError(f"{more['step']} is no step of {low} to {high}")
    if log and low < 1:
        raise ValueError(f"a logarithmic range begins above 0, not at {low}")
    return _group("int", minval=low, maxval=high, base=10.0 if log else None, **more)


def choice(values: Sequence[Any]) -> Dict[str, Any]:
    """One of some values; those that are there twice count once, and None is the text."""
    given = ("None" if value is None else value for value in values)
    kept = list({(type(value), repr(value)): value for value in given}.values())
    if not kept:
        raise ValueError("no values")
    return _group("categorical", vals=kept) if len(kept) > 1 else constant(kept[0])


def truths(value: Any) -> Any:
    """Truths as Python prints them, for commands that read them so."""
    return str(value) if isinstance(value, bool) else value


# ---- names


def names_of(keys: Sequence[str]) -> Dict[str, str]:
    """The hyperparameter for each key: optimizer.lr stays so, unless optimizer is one, too."""

    def part(text: str) -> str:
        text = re.sub(r"[^\w-]", "_", text, flags=re.A).lstrip("_-")
        return text if re.match("[A-Za-z]", text) else "p" + text

    plain = {key: ".".join(part(p) for p in key.lstrip("+~").split(".")) for key in keys}
    groups = {".".join(name.split(".")[:n]) for name in plain.values() for n in range(1, name.count(".") + 1)}
    nested = not groups.isdisjoint(plain.values())
    names: Dict[str, str] = {}
    taken: Dict[str, int] = {}
    for key, name in plain.items():
        ours = name = name.replace(".", "_") if nested else name
        while ours in taken:
            taken[name] += 1
            ours = f"{name}_{taken[name]}"
        taken[ours] = 1
        names[key] = ours
    return names


def nest(flat: Dict[str, Any]) -> Dict[str, Any]:
    """{'a.b': 1} as {'a': {'b': 1}}."""
    tree: Dict[str, Any] = {}
    for name, value in flat.items():
        *groups, last = name.split(".")
        node = tree
        for group in groups:
            node = node.setdefault(group, {})
        node[last] = value
    return tree


def sizes(groups: Dict[str, Any]) -> Tuple[bool, int]:
    """Whether all parameters have a finite grid, and how many points it has."""
    points, finite = 1, True
    for group in groups.values():
        kind = group.get("type") if isinstance(group, dict) else None
        if kind == "categorical":
            points *= len(group["vals"])
        elif kind == "int":
            points *= (group["maxval"] - group["minval"]) // group.get("step", 1) + 1
        elif kind in ("float", "loguniform", "log"):
            count = group.get("count") or (
                int((group["maxval"] - group["minval"]) / group["step"] + 1e-9) + 1 if "step" in group else 0
            )
            finite, points = finite and count > 0, points * max(count, 1)
    return finite, points
