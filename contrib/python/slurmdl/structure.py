# SPDX-License-Identifier: Apache-2.0
"""Nested Python objects as JSON, with their arrays and tensors put aside under names.

None, booleans, texts, finite numbers and lists are themselves.  All else is an object with one member that says what
it is: tuple, dict and ordered (lists of pairs), bytes and pickle (base64), float ("nan"), complex, and array or tensor
(a name).  What is none of these is pickled: read only checkpoints that you trust.
"""

import base64
import math
import pickle
from collections import OrderedDict
from typing import Any, Callable, Dict, List, Tuple

# put(path, x) returns what stands for an array or a tensor, None if x is neither
Put = Callable[[Tuple[str, ...], Any], Any]
Get = Callable[[Dict[str, Any]], Any]


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _pairs(items: Any, put: Put, path: Tuple[str, ...]) -> List[Any]:
    return [[encode(k, put, path), encode(v, put, path + (str(k),))] for k, v in items]


def encode(x: Any, put: Put, path: Tuple[str, ...] = ()) -> Any:
    """x as what json.dumps() takes."""
    kind = type(x)
    if x is None or kind in (bool, int, str):
        return x
    if kind is float:
        return x if math.isfinite(x) else {"float": repr(x)}
    if kind in (list, tuple):
        items = [encode(v, put, path + (str(i),)) for i, v in enumerate(x)]
        return items if kind is list else {"tuple": items}
    if kind is dict:
        return {"dict": _pairs(x.items(), put, path)}
    if kind is OrderedDict:
        # torch keeps the versions of modules in an attribute
        metadata = getattr(x, "_metadata", None)
        return {"ordered": _pairs(x.items(), put, path), "metadata": encode(metadata, put, path + ("metadata",))}
    if kind is bytes:
        return {"bytes": _base64(x)}
    if kind is complex:
        return {"complex": [x.real, x.imag]}
    placed = put(path, x)
    return placed if placed is not None else {"pickle": _base64(pickle.dumps(x, protocol=4))}


def _ordered(pairs: Any, metadata: Any) -> Any:
    result: Any = OrderedDict(pairs)
    if metadata is not None:
        result._metadata = metadata
    return result


def decode(x: Any, get: Get) -> Any:
    """What encode() was given; get() finds an array or tensor."""
    if isinstance(x, list):
        return [decode(v, get) for v in x]
    if not isinstance(x, dict):
        return x
    if "tuple" in x:
        return tuple(decode(v, get) for v in x["tuple"])
    if "dict" in x:
        return {decode(k, get): decode(v, get) for k, v in x["dict"]}
    if "ordered" in x:
        return _ordered([(decode(k, get), decode(v, get)) for k, v in x["ordered"]], decode(x["metadata"], get))
    if "float" in x:
        return float(x["float"])
    if "complex" in x:
        return complex(*x["complex"])
    if "bytes" in x:
        return base64.b64decode(x["bytes"])
    if "pickle" in x:
        return pickle.loads(base64.b64decode(x["pickle"]))
    return get(x)
