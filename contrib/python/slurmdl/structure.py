# SPDX-License-Identifier: Apache-2.0
"""Nested Python objects as JSON, with arrays and tensors stored separately under names.

None, booleans, strings, finite numbers and lists represent themselves.  Everything else is an object with one member
that names its kind: tuple, set, frozenset, dict, ordered, counter (lists of pairs), bytes and pickle (base64), float
("nan"), complex, number (of numpy: its type, and base64), size, dtype and device (of torch), and array or tensor (a
name).  Other objects are pickled, if that is allowed; slurmdl.trust decides who may read a pickle.
"""

import base64
import math
import pickle
import sys
from collections import Counter, OrderedDict
from typing import Any, Callable, Dict, List, Optional, Tuple

from .arrays import torch_name, torch_type

Path = Tuple[str, ...]
# put(path, x) returns the replacement of an array or a tensor, None if x is neither
Put = Callable[[Path, Any], Any]
# other(path, x) returns the bytes of any other object
Other = Callable[[Path, Any], bytes]
Get = Callable[[Dict[str, Any]], Any]
Unpickle = Callable[[bytes], Any]

# numpy kinds whose bytes describe an array completely
_NUMBERS = "biufcSUmM"


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def pickled(path: Path, x: Any) -> bytes:
    """Pickle what JSON cannot represent."""
    return pickle.dumps(x, protocol=4)


def _special(x: Any) -> Optional[Dict[str, Any]]:
    """The representation of a numpy number, and of torch's sizes, types and devices."""
    if type(x).__module__ == "numpy" and isinstance(x, sys.modules["numpy"].generic) and x.dtype.kind in _NUMBERS:
        return {"number": x.dtype.str, "data": _base64(x.tobytes())}
    torch = sys.modules.get("torch")
    if torch is None or type(x).__module__ != "torch":
        return None
    if type(x) is torch.Size:
        return {"size": list(x)}
    if isinstance(x, torch.dtype):
        return {"dtype": torch_name(x)}
    return {"device": str(x)} if isinstance(x, torch.device) else None


class _Encoder:
    """The encoder of each type is looked up once: a model has thousands of tensors."""

    def __init__(self, put: Put, other: Other) -> None:
        self.put, self.other = put, other
        self._by_type: Dict[type, Callable[[Any, Path], Any]] = {
            type(None): self.itself,
            bool: self.itself,
            int: self.itself,
            str: self.itself,
            float: self.real,
            bytes: lambda x, path: {"bytes": _base64(x)},
            complex: lambda x, path: {"complex": [x.real, x.imag]},
            list: self.items,
            tuple: lambda x, path: {"tuple": self.items(x, path)},
            set: lambda x, path: {"set": self.items(x, path)},
            frozenset: lambda x, path: {"frozenset": self.items(x, path)},
            dict: lambda x, path: {"dict": self.pairs(x, path)},
            Counter: lambda x, path: {"counter": self.pairs(x, path)},
            OrderedDict: self.ordered,
        }

    def itself(self, x: Any, path: Path) -> Any:
        return x

    def real(self, x: float, path: Path) -> Any:
        return x if math.isfinite(x) else {"float": repr(x)}

    def items(self, x: Any, path: Path) -> List[Any]:
        return [self.encode(v, path + (str(i),)) for i, v in enumerate(x)]

    def pairs(self, x: Any, path: Path) -> List[Any]:
        return [[self.encode(k, path), self.encode(v, path + (str(k),))] for k, v in x.items()]

    def ordered(self, x: Any, path: Path) -> Any:
        # torch keeps the versions of modules in an attribute
        metadata = getattr(x, "_metadata", None)
        return {"ordered": self.pairs(x, path), "metadata": self.encode(metadata, path + ("metadata",))}

    def rest(self, x: Any, path: Path) -> Any:
        stands = self.put(path, x)
        stands = _special(x) if stands is None else stands
        return {"pickle": _base64(self.other(path, x))} if stands is None else stands

    def encode(self, x: Any, path: Path) -> Any:
        by_type = self._by_type.get(type(x))
        return self.rest(x, path) if by_type is None else by_type(x, path)


def encode(x: Any, put: Put, path: Path = (), other: Other = pickled) -> Any:
    """Convert x to what json.dumps() accepts."""
    return _Encoder(put, other).encode(x, path)


def _ordered(pairs: Any, metadata: Any) -> Any:
    result: Any = OrderedDict(pairs)
    if metadata is not None:
        result._metadata = metadata
    return result


def _number(x: Dict[str, Any]) -> Any:
    import numpy

    kind = numpy.dtype(x["number"])
    if kind.kind not in _NUMBERS:
        raise ValueError(f"{kind} is not a type of numbers")
    return numpy.frombuffer(base64.b64decode(x["data"]), kind)[0] if kind.itemsize else kind.type()


def _of_torch(x: Dict[str, Any]) -> Any:
    import torch

    if "size" in x:
        return torch.Size(x["size"])
    if "device" in x:
        return torch.device(x["device"])
    return torch_type(x["dtype"])


_COLLECTIONS: Dict[str, Callable[[Any], Any]] = {"tuple": tuple, "set": set, "frozenset": frozenset}
_VALUES: Dict[str, Callable[[Dict[str, Any]], Any]] = {
    "float": lambda x: float(x["float"]),
    "complex": lambda x: complex(*x["complex"]),
    "bytes": lambda x: base64.b64decode(x["bytes"]),
    "number": _number,
    "size": _of_torch,
    "dtype": _of_torch,
    "device": _of_torch,
}


def decode(x: Any, get: Get, unpickle: Unpickle) -> Any:
    """The inverse of encode(); get() finds an array or tensor, unpickle() reads or refuses a pickle."""

    def pairs(items: Any) -> List[Any]:
        return [(again(k), again(v)) for k, v in items]

    def again(x: Any) -> Any:
        if isinstance(x, list):
            return [again(v) for v in x]
        if not isinstance(x, dict):
            return x
        if "dict" in x:
            return dict(pairs(x["dict"]))
        if "ordered" in x:
            return _ordered(pairs(x["ordered"]), again(x["metadata"]))
        if "counter" in x:
            return Counter(dict(pairs(x["counter"])))
        if "pickle" in x:
            return unpickle(base64.b64decode(x["pickle"]))
        # a tensor has a type, a shape and more
        word = next(iter(x)) if len(x) else ""
        if word in _COLLECTIONS:
            return _COLLECTIONS[word](again(v) for v in x[word])
        return _VALUES[word](x) if word in _VALUES else get(x)

    return again(x)
