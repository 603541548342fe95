# SPDX-License-Identifier: Apache-2.0
"""Python objects as bytes for other ranks: JSON (slurmdl.structure), followed by the bytes of arrays and tensors.

Other objects must be pickled, and reading a pickle runs code.  Therefore the rank that sends such an object and those
that receive it must pass trust=True; otherwise a pickle is neither made nor read, whoever has sent it.
"""

import json
import pickle
import sys
from typing import Any, Dict, List, Optional

from ._slurmdl import Error
from .arrays import is_tensor, tensor_bytes, torch_name, torch_type, type_of_torch
from .structure import Get, Path, Put, decode, encode, pickled

# the first byte of a message
PLAIN, PICKLE, REFUSED = b"J", b"P", b"E"
_LENGTH = 8


class NeedsTrust(TypeError):
    """An object that requires a pickle, without trust=True."""


def _refuse(path: Path, x: Any) -> bytes:
    kind = f"{type(x).__module__}.{type(x).__qualname__}"
    where = f"{'/'.join(path)}: " if path else ""
    raise NeedsTrust(f"{where}an object of {kind} must be pickled: pass trust=True on all ranks, or send its contents")


def is_plain_tensor(x: Any) -> bool:
    """Whether type, shape and bytes describe a tensor completely."""
    return (
        is_tensor(x)
        and type_of_torch(x.dtype) is not None
        and str(x.layout) == "torch.strided"
        and x.device.type in ("cpu", "cuda")
        and not hasattr(x, "placements")
        and not hasattr(x, "local_shards")
    )


def about_tensor(x: Any) -> Dict[str, Any]:
    """The description of a tensor in a message."""
    about = {"tensor": torch_name(x.dtype), "shape": list(x.shape)}
    return about if x.device.type == "cpu" else {**about, "on": x.device.type}


def new_tensor(about: Dict[str, Any]) -> Any:
    """A new tensor for a description."""
    import torch

    device = "cuda" if about.get("on") == "cuda" and torch.cuda.is_available() else "cpu"
    return torch.empty(about["shape"], dtype=torch_type(about["tensor"]), device=device)


class _Parts:
    """Collects the bytes of arrays and tensors behind the JSON."""

    def __init__(self) -> None:
        self.parts: List[bytes] = []

    def put(self, path: Path, x: Any) -> Optional[Dict[str, Any]]:
        if is_plain_tensor(x):
            return {**about_tensor(x), "bytes_of": self._add(tensor_bytes(x))}
        numpy = sys.modules.get("numpy")
        if numpy is None or type(x) is not numpy.ndarray or x.dtype.hasobject or x.dtype.kind == "V":
            return None
        return {"array": x.dtype.str, "shape": list(x.shape), "bytes_of": self._add(x.tobytes())}

    def _add(self, data: bytes) -> int:
        self.parts.append(data)
        return len(data)


class _Got:
    """Returns them in the same order."""

    def __init__(self, data: memoryview) -> None:
        self.data, self.at = data, 0

    def get(self, about: Dict[str, Any]) -> Any:
        end = self.at + int(about["bytes_of"])
        data = bytearray(self.data[self.at : end])
        self.at = end
        if "array" in about:
            import numpy

            return numpy.frombuffer(data, numpy.dtype(about["array"])).reshape(about["shape"])
        x = new_tensor(about)
        return x.copy_(sys.modules["torch"].frombuffer(data, dtype=x.dtype).reshape(x.shape)) if data else x


def _pickled(x: Any) -> bytes:
    """Includes functions and classes of the script if cloudpickle is installed."""
    try:
        import cloudpickle  # type: ignore[import-not-found, import-untyped, unused-ignore]
    except ImportError:
        return pickle.dumps(x, protocol=4)
    data: bytes = cloudpickle.dumps(x)
    return data


def to_bytes(x: Any, trust: bool = False, put: Optional[Put] = None) -> bytes:
    """Encode a message; may raise NeedsTrust.  'put' takes arrays and tensors out, which otherwise follow the JSON."""
    if trust and put is None:
        return PICKLE + _pickled(x)
    parts = _Parts()
    tree = encode(x, put or parts.put, (), pickled if trust else _refuse)
    text = json.dumps(tree, separators=(",", ":")).encode()
    return b"".join((PLAIN, len(text).to_bytes(_LENGTH, "little"), text, *parts.parts))


def refusal(error: BaseException) -> bytes:
    """The message that is sent instead of an object that cannot be sent: otherwise the other ranks would wait."""
    return REFUSED + str(error).encode(errors="replace")


def to_send(x: Any, trust: bool = False, put: Optional[Put] = None) -> bytes:
    """The message, or one with the error: the other ranks wait for a message."""
    try:
        return to_bytes(x, trust, put)
    except (TypeError, ValueError, AttributeError, RecursionError, pickle.PicklingError) as error:
        return refusal(error)


def from_bytes(data: bytes, trust: bool = False, sender: str = "another rank", get: Optional[Get] = None) -> Any:
    """Decode a message; slurmdl.Error for a pickle without 'trust', and for invalid data."""

    def unpickle(pickle_of: Any) -> Any:
        if trust:
            return pickle.loads(pickle_of)
        raise Error(f"{sender} sent a pickle, which was not read: if you trust it, pass trust=True on all ranks")

    kind, rest = data[:1], memoryview(data)[1:]
    if kind == PICKLE:
        return unpickle(rest)
    if kind == REFUSED:
        raise NeedsTrust(f"{sender}: {bytes(rest).decode(errors='replace')}")
    if kind != PLAIN:
        raise Error(f"{sender} sent invalid data")
    end = _LENGTH + int.from_bytes(rest[:_LENGTH], "little")
    return decode(json.loads(bytes(rest[_LENGTH:end])), get or _Got(rest[end:]).get, unpickle)
