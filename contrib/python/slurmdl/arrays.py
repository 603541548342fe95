# SPDX-License-Identifier: Apache-2.0
"""Arrays and tensors as memory with a type and a shape: numpy, torch, cupy and anything with a buffer."""

import functools
import os
import sys
from typing import Any, Dict, NamedTuple, Optional, Tuple, Union

from . import _slurmdl

Path = Union[str, "os.PathLike[str]"]

NUMPY_TYPES = {
    "i8": "int8",
    "u8": "uint8",
    "i16": "int16",
    "u16": "uint16",
    "i32": "int32",
    "u32": "uint32",
    "i64": "int64",
    "u64": "uint64",
    "f16": "float16",
    "f32": "float32",
    "f64": "float64",
    "bool": "bool",
    "c64": "complex64",
    "c128": "complex128",
}
# without ml_dtypes these are read as integers of the same size
EXTENDED_TYPES = {
    "bf16": ("bfloat16", "uint16"),
    "f8_e4m3": ("float8_e4m3fn", "uint8"),
    "f8_e5m2": ("float8_e5m2", "uint8"),
}
TYPES = {name: code for code, name in NUMPY_TYPES.items()}
TYPES.update({name: code for code, (name, _) in EXTENDED_TYPES.items()})


class Memory(NamedTuple):
    """Memory of an array: 'where' is its address, or an object with a buffer."""

    type: str
    shape: Tuple[int, ...]
    where: Any
    owner: Any


@functools.lru_cache(maxsize=None)
def has_cuda() -> bool:
    """Whether the library's module for memory of CUDA devices is installed."""
    return _slurmdl.has_cuda()


def _check_cuda() -> None:
    if not has_cuda():
        raise _slurmdl.Error("slurmdl-cuda.so is not installed: protect a copy on the host, or use slurmdl.torch")


@functools.lru_cache(maxsize=1024)
def _is_tensor_type(kind: type) -> bool:
    return any(c.__module__ == "torch" and c.__name__ == "Tensor" for c in kind.__mro__)


def is_tensor(x: Any) -> bool:
    """Whether x is a torch tensor; does not import torch."""
    return _is_tensor_type(type(x))


def torch_name(dtype: Any) -> str:
    """The name of a torch type without its module: "float32"."""
    return str(dtype).split(".")[-1]


@functools.lru_cache(maxsize=None)
def type_of_torch(dtype: Any) -> Optional[str]:
    """The library's name for a torch type; None if it has none."""
    return TYPES.get(torch_name(dtype))


def torch_type(name: str) -> Any:
    """The torch type of this name, which comes from a file or from another rank."""
    import torch

    found = getattr(torch, name, None)
    if not isinstance(found, torch.dtype):
        raise _slurmdl.Error(f"this version of torch has no type {name!r}")
    return found


def tensor_bytes(x: Any) -> bytes:
    """The elements of a dense tensor."""
    flat = x.detach().cpu().resolve_conj().resolve_neg().contiguous().reshape(-1)
    return bytes(flat.view(sys.modules["torch"].uint8).numpy()) if flat.numel() else b""


def _of_tensor(x: Any) -> Memory:
    if hasattr(x, "placements"):
        raise TypeError(
            "the tensor is spread over ranks: pass each rank's slab to run.protect_shard(), or use slurmdl.torch"
        )
    code = type_of_torch(x.dtype)
    if code is None or str(x.layout) != "torch.strided":
        raise TypeError(f"tensors of type {x.dtype}, {x.layout}, cannot be saved")
    if x.is_conj() or x.is_neg():
        raise ValueError("the tensor is a conjugated or negated view: protect its resolve_conj().resolve_neg()")
    if not x.is_contiguous():
        raise ValueError("the tensor is not contiguous: protect tensor.contiguous(), or use slurmdl.torch")
    if x.device.type != "cpu":
        if x.device.type != "cuda":
            raise TypeError(f"tensors on {x.device} cannot be saved: copy them to the host")
        _check_cuda()
    return Memory(code, tuple(x.shape), x.data_ptr(), x)


def _of_cuda(x: Any) -> Memory:
    about = x.__cuda_array_interface__
    if about.get("strides") is not None:
        raise ValueError("the array is not contiguous")
    _check_cuda()
    import numpy

    return Memory(TYPES[numpy.dtype(about["typestr"]).name], tuple(about["shape"]), about["data"][0], x)


def memory_of(x: Any) -> Memory:
    """The memory of an array or tensor, C-contiguous, on the host or a CUDA device."""
    if is_tensor(x):
        return _of_tensor(x)
    if hasattr(x, "__cuda_array_interface__"):
        return _of_cuda(x)
    name = str(getattr(x, "dtype", ""))
    if TYPES.get(name) in EXTENDED_TYPES:
        code = TYPES[name]
        return Memory(code, tuple(x.shape), memoryview(x.view(EXTENDED_TYPES[code][1])), x)
    code, shape, view = _slurmdl.format_of(x)
    return Memory(code, shape, view, view)


def number_of(table: Dict[str, int], word: str, what: str) -> int:
    """The library's number for a word."""
    if word not in table:
        raise ValueError(f"{what} must be one of {', '.join(table)}, not {word!r}")
    return table[word]


class naming:
    """Add the name of the array to errors about it."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: Optional[BaseException], trace: Any) -> None:
        name = self._name
        if not isinstance(error, (TypeError, ValueError, BufferError)) or isinstance(error, UnicodeError):
            return
        if not str(error).startswith((f"{name}:", f"'{name}':")):
            plain = next(k for k in (TypeError, ValueError, BufferError) if isinstance(error, k))
            raise plain(f"{name}: {error}") from None


def dtype_of(code: str) -> Any:
    """The numpy type for one of ours."""
    import numpy

    if code in NUMPY_TYPES:
        return numpy.dtype(NUMPY_TYPES[code])
    name, instead = EXTENDED_TYPES[code]
    try:
        import ml_dtypes  # type: ignore[import-not-found, unused-ignore]

        return numpy.dtype(getattr(ml_dtypes, name))
    except ImportError:
        return numpy.dtype(instead)


def empty(code: str, shape: Tuple[int, ...]) -> Any:
    import numpy

    return numpy.empty(shape, dtype_of(code))


def host(x: Any) -> Any:
    """Convert a tensor, a list or an array to a numpy array."""
    import numpy

    if not is_tensor(x):
        return numpy.asarray(x)
    x = x.detach().cpu().resolve_conj().resolve_neg()
    return numpy.asarray(x.float() if type_of_torch(x.dtype) in EXTENDED_TYPES else x)
