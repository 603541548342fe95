# SPDX-License-Identifier: Apache-2.0
"""The ranges and names of other systems as groups of `hyperparameters`."""

import math
import re
from typing import Any, Dict, Sequence, Tuple


def number(text: Any) -> Any:
    """The number that a string spells, or the string."""
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


NULL = {"type": "null"}  # no value: omits a group in brackets of the command


def constant(value: Any) -> Dict[str, Any]:
    return _group("const", val=value)


def real(low: float, high: float, log: bool = False, **more: Any) -> Dict[str, Any]:
    """A float from 'low' to 'high'; with 'log', uniform on a logarithmic scale."""
    low, high = float(low), float(high)
    more.update({name: float(more[name]) for name in ("mean", "deviation") if name in more})
    if not (math.isfinite(low) and math.isfinite(high)) or low > high:
        raise ValueError(f"{low:g} to {high:g} is not a range")
    if low == high:
        return constant(low)
    if log and low <= 0:
        raise ValueError(f"a logarithmic range must begin above 0, not at {low:g}")
    step = more.get("step")
    if step is not None and not 0 < step <= high - low:
        raise ValueError(f"{step:g} is not a step from {low:g} to {high:g}")
    if log:
        if more.pop("step", None):
            raise ValueError("a logarithmic range of floats cannot have a step")
        return _group("loguniform", min=low, max=high, **more)
    return _group("float", minval=low, maxval=high, **more)


def integer(low: Any, high: Any, log: bool = False, **more: Any) -> Dict[str, Any]:
    """An integer from 'low' to 'high', both included."""
    if low != int(low) or high != int(high):
        raise ValueError(f"{low} to {high} is not a range of integers")
    low, high = int(low), int(high)
    if low > high:
        raise ValueError(f"{low} to {high} is not a range")
    if low == high:
        return constant(low)
    step = more.pop("step", None)
    if step is not None and step != int(step):
        raise ValueError(f"{step} is not a step between integers")
    if step is not None and step != 1:
        more["step"] = int(step)
    if more.get("step") is not None and not 0 < more["step"] <= high - low:
        raise ValueError(f"{more['step']} is not a step from {low} to {high}")
    if log and low < 1:
        raise ValueError(f"a logarithmic range must begin above 0, not at {low}")
    return _group("int", minval=low, maxval=high, base=10.0 if log else None, **more)


def choice(values: Sequence[Any]) -> Dict[str, Any]:
    """One of some values; duplicates count once, and None becomes the string "None"."""
    given = ("None" if value is None else value for value in values)
    kept = list({(type(value), repr(value)): value for value in given}.values())
    if not kept:
        raise ValueError("no values")
    return _group("categorical", vals=kept) if len(kept) > 1 else constant(kept[0])


def truths(value: Any) -> Any:
    """Booleans as Python prints them, for commands that expect that."""
    return str(value) if isinstance(value, bool) else value


# ---- names


def names_of(keys: Sequence[str]) -> Dict[str, str]:
    """The hyperparameter for each key: optimizer.lr keeps its name, unless optimizer is a hyperparameter, too."""

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
    """Convert {'a.b': 1} to {'a': {'b': 1}}."""
    tree: Dict[str, Any] = {}
    for name, value in flat.items():
        *groups, last = name.split(".")
        node = tree
        for group in groups:
            node = node.setdefault(group, {})
        node[last] = value
    return tree


def sizes(groups: Dict[str, Any]) -> Tuple[bool, int]:
    """Whether the grid of all parameters is finite, and its number of points."""
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
