# SPDX-License-Identifier: Apache-2.0
"""PyTorch: the tensors of a state_dict, by name, as memory to save from and to restore into."""

import base64
import contextlib
import hashlib
import io
import pickle
import re
import sys
from typing import Any, Dict, List, NamedTuple, Optional, Set, Tuple

import torch

from . import _slurmdl
from .arrays import TYPES, empty, has_cuda, is_tensor, tensor_bytes, torch_name, torch_type, type_of_torch
from .sharded import Slab, is_sharded, like, slab_of
from .structure import decode
from .trust import Reader

# ---- dataset names for nested objects

_NAME_MAX = 127

# what would make a part of a name empty, or start it with a dot
_ODD = re.compile(r"(^|/)(\.|/|$)")


class _Names:
    """Dataset names of a checkpoint: all are different, and none is a folder of another."""

    def __init__(self) -> None:
        self._found: Dict[str, str] = {}  # folders as requested, and as they are
        self._datasets: Set[str] = set()
        self._folders: Set[str] = set()

    def _is_taken(self, name: str, is_folder: bool) -> bool:
        return name in self._datasets or (not is_folder and name in self._folders)

    def _free(self, name: str, is_folder: bool) -> str:
        base, n = name, 1
        while self._is_taken(name, is_folder):
            n += 1
            name = f"{base}~{n}"
        return name

    def _folder(self, asked: str) -> str:
        """A folder, with its slash; a folder that has a dataset keeps its name."""
        folder = self._found.get(asked, "")
        if asked and folder[:-1] not in self._folders:
            above, slash, last = asked[:-1].rpartition("/")
            folder = self._found[asked] = self._free(self._folder(above + slash) + last, True) + "/"
        return folder

    def add(self, path: Tuple[str, ...]) -> str:
        """A name that a checkpoint accepts: the parts of the path joined by slashes, with ~2 appended if it is taken.
        """
        whole = "/".join(path)
        if _ODD.search(whole):
            whole = "/".join(p for p in whole.split("/") if p) or "value"
            whole = re.sub(r"(^|/)\.+", r"\1_", whole)
        above, slash, last = whole.rpartition("/")
        name = self._folder(above + slash) + last
        # a character has at most four bytes
        if 4 * len(name) > _NAME_MAX - 4 and len(name.encode()) > _NAME_MAX - 4:
            name = name[:80].encode()[:90].decode(errors="ignore") + "~" + hashlib.sha256(name.encode()).hexdigest()[:24]
        name = self._free(name, False)
        self._datasets.add(name)
        folder = name.rpartition("/")[0]
        while folder and folder not in self._folders:
            self._folders.add(folder)
            folder = folder.rpartition("/")[0]
        return name


# ---- to save

is_lazy = torch.nn.parameter.is_lazy
_PLAIN = (torch.Tensor, torch.nn.Parameter)
_TORCH_TYPES = {code: getattr(torch, name) for name, code in TYPES.items() if hasattr(torch, name)}


def _is_direct(x: Any) -> bool:
    """Whether the library can access the memory of the tensor directly."""
    if not x.is_contiguous() or x.is_neg() or x.is_conj():
        return False
    return x.is_cpu or (x.is_cuda and has_cuda())


def _is_same(x: Any, y: Any) -> bool:
    """Whether two tensors with the same address are equal."""
    a, b = ((t.device, t.shape, t.stride(), t.dtype, t.is_conj(), t.is_neg()) for t in (x, y))
    return a == b


def _copy(x: Any) -> Any:
    return x.cpu().resolve_conj().resolve_neg().contiguous()


def _raw(x: Any) -> Dict[str, Any]:
    return {"raw": torch_name(x.dtype), "shape": list(x.shape), "data": base64.b64encode(tensor_bytes(x)).decode()}


def _of_raw(about: Dict[str, Any]) -> Any:
    kind = torch_type(about["raw"])
    data = bytearray(base64.b64decode(about["data"]))
    return (
        torch.frombuffer(data, dtype=kind).reshape(about["shape"]) if data else torch.empty(about["shape"], dtype=kind)
    )


def _saved(x: Any) -> Dict[str, Any]:
    """Tensors that no dataset can hold: sparse ones, and types that HDF5 does not have."""
    if x.layout == torch.sparse_coo:
        parts = [_raw(x._indices()), _raw(x._values())]
        return {"coo": parts, "shape": list(x.shape), "coalesced": x.is_coalesced()}
    if x.layout == torch.strided and x.device.type != "meta" and not x.is_quantized:
        return _raw(x)
    data = io.BytesIO()
    torch.save(x, data)
    return {"saved": base64.b64encode(data.getvalue()).decode()}


def _of_lazy(about: Dict[str, Any]) -> Any:
    kinds = torch.nn.parameter
    if about["lazy"] == "buffer":
        return kinds.UninitializedBuffer(dtype=torch_type(about["type"]))
    return kinds.UninitializedParameter(requires_grad=False, dtype=torch_type(about["type"]))


def _of_coo(about: Dict[str, Any]) -> Any:
    # torch checks the range of the indices
    x = torch.sparse_coo_tensor(*map(_of_raw, about["coo"]), about["shape"])
    return x.coalesce() if about["coalesced"] else x


class Tensors:
    """Gives names to tensors and arrays; one that appears twice (tied weights) is saved once.

    'named' are tensors, numpy arrays and slabs of distributed tensors, 'copies' the names of those whose memory the
    library cannot access, 'others' the slabs of 'named' under their additional names.
    """

    def __init__(self) -> None:
        self.named: Dict[str, Any] = {}
        self._names = _Names()
        self.copies: Set[str] = set()
        self.others: Dict[str, Any] = {}
        self._seen: Dict[Any, str] = {}
        self._at: Dict[int, List[Tuple[Any, str]]] = {}
        self._alive: List[Any] = []

    def put(self, path: Tuple[str, ...], x: Any) -> Optional[Dict[str, Any]]:
        """The replacement of a tensor or an array in a structure (slurmdl.structure)."""
        if type(x) in _PLAIN:
            return self._put_tensor(path, x.detach() if x.requires_grad else x)
        if is_tensor(x):
            if is_sharded(x):
                return self._put_slab(path, x)
            if is_lazy(x):
                # of a module that has seen no data: it has a type, but no shape yet
                kind = "parameter" if isinstance(x, torch.nn.Parameter) else "buffer"
                return {"lazy": kind, "type": torch_name(x.dtype)}
            return self._put_tensor(path, x.detach() if x.requires_grad else x)
        if "numpy" not in sys.modules or type(x) is not sys.modules["numpy"].ndarray:
            return None
        if str(x.dtype) not in TYPES or x.size == 0:
            return None
        a = sys.modules["numpy"].ascontiguousarray(x).reshape(x.shape)
        return {"array": self._add(path, a), "type": TYPES[str(a.dtype)], "shape": list(a.shape)}

    def _put_tensor(self, path: Tuple[str, ...], x: Any) -> Dict[str, Any]:
        code = type_of_torch(x.dtype)
        if code is None or x.layout != torch.strided or x.is_meta:
            return _saved(x)
        about = {"type": code, "shape": list(x.shape)}
        if x.numel() == 0:
            return {"tensor": None, **about}
        # usually it is the only one at its address
        there = self._at.setdefault(x.data_ptr(), [])
        for other, name in there:
            if _is_same(other, x):
                return {"tensor": name, **about}
        name = self._add(path, x)
        there.append((x, name))
        if not _is_direct(x):
            self.copies.add(name)
        return {"tensor": name, **about}

    def _put_slab(self, path: Tuple[str, ...], x: Any) -> Dict[str, Any]:
        """The same as for a tensor that is not distributed; all ranks choose the same names."""
        slab = slab_of(x, "/".join(path))
        code = type_of_torch(slab.local.dtype)
        if code is None or slab.local.device.type == "meta":
            raise TypeError(f"{'/'.join(path)}: {slab.local.dtype} on {slab.local.device} cannot be saved")
        about = {"type": code, "shape": list(slab.shape)}
        if 0 in slab.shape:
            return {"tensor": None, **about}
        # a part may be empty: its address says nothing; id() is unique while the object lives
        key = ("slab", id(x))
        if key in self._seen:
            self.others[self._names.add(path)] = slab
        else:
            self._alive.append(x)
            self._seen[key] = self._add(path, slab)
            if not _is_direct(slab.local):
                self.copies.add(self._seen[key])
        return {"tensor": self._seen[key], **about}

    def _add(self, path: Tuple[str, ...], x: Any) -> str:
        name = self._names.add(path)
        self.named[name] = x
        return name

    def to_write(self) -> Dict[str, Any]:
        """The same with memory that the library can read; for slabs, the part that this rank saves."""
        return {name: self._readable(name, x) for name, x in self.named.items()}

    def _readable(self, name: str, x: Any) -> Any:
        if isinstance(x, Slab):
            x = x.to_write()
            return x._replace(local=_copy(x.local)) if not _is_direct(x.local) else x
        return _copy(x) if name in self.copies else x


# ---- to restore


class _Unread(NamedTuple):
    """Placeholder for a pickle, which has no places."""

    data: bytes


class _Saved(NamedTuple):
    """Placeholder for a tensor or an array in a structure."""

    about: Dict[str, Any]


def _leaves(x: Any) -> List[Dict[str, Any]]:
    if isinstance(x, _Saved):
        return [x.about]
    if isinstance(x, dict):
        x = list(x.values())
    return [a for v in x for a in _leaves(v)] if isinstance(x, (list, tuple)) else []


class Place(NamedTuple):
    """Where a tensor of an optimizer's state belongs."""

    parameter: Any  # which is spread over ranks
    now: Any  # what the optimizer has there, None before its first step

    def slab(self, name: str, shape: Tuple[int, ...], kind: Any) -> Slab:
        there = is_sharded(self.now) and tuple(self.now.shape) == shape
        return slab_of(self.now if there else like(self.parameter, shape, kind), name)


def places_of(part: Any, encoded: Any) -> Dict[str, Place]:
    """The places of the tensors in the saved state of an optimizer, or of a dict or a list of such, by name, if their
    parameter is distributed."""
    return _places_of(part, decode(encoded, _Saved, _Unread))


def _places_of(part: Any, state: Any) -> Dict[str, Place]:
    found: Dict[str, Place] = {}
    if isinstance(part, (dict, list, tuple)):
        for k, v in part.items() if isinstance(part, dict) else enumerate(part):
            found.update(_places_of(v, state[k]))
    elif isinstance(part, torch.optim.Optimizer):
        for i, p in enumerate(p for group in part.param_groups for p in group["params"]):
            now = part.state.get(p, {}) if is_sharded(p) else {}
            for key, value in state.get("state", {}).get(i, {}).items() if is_sharded(p) else ():
                for about in _leaves(value):
                    if about.get("tensor") and about["shape"]:
                        found[about["tensor"]] = Place(p, now.get(key))
    return found


def _load(data: bytes, reader: Reader) -> Any:
    """Read what torch.save() has made of a tensor.  Before 2.6, weights_only does not prevent code execution
    (CVE-2025-32434)."""
    if tuple(int(n) for n in re.findall(r"\d+", torch.__version__)[:2]) >= (2, 6):
        with contextlib.suppress(pickle.UnpicklingError):
            return torch.load(io.BytesIO(data), weights_only=True)
    reader.check("a tensor that torch has to unpickle")
    return torch.load(io.BytesIO(data), weights_only=False)


class Targets:
    """Memory to restore into: the existing memory if it fits, otherwise new memory.

    'own' are tensors and slabs by name, 'places' the result of places_of() for other names, 'reader' decides about
    pickles.
    """

    def __init__(self, own: Dict[str, Any], reader: Reader, places: Optional[Dict[str, Place]] = None) -> None:
        self.own, self.reader, self.places = own, reader, places or {}
        self.named: Dict[str, Any] = {}
        self._values: Dict[str, Any] = {}
        self._later: List[Tuple[Any, Any]] = []

    def get(self, about: Dict[str, Any]) -> Any:
        """The tensor or array for the state."""
        if "raw" in about:
            return _of_raw(about)
        if "coo" in about:
            return _of_coo(about)
        if "lazy" in about:
            return _of_lazy(about)
        if "saved" in about:
            return _load(base64.b64decode(about["saved"]), self.reader)
        name = about.get("tensor", about.get("array"))
        if name is None:
            return torch.empty(about["shape"], dtype=_TORCH_TYPES[about["type"]])
        if name not in self._values:
            self._values[name] = self._value(name, about)
        return self._values[name]

    def _value(self, name: str, about: Dict[str, Any]) -> Any:
        if "array" in about:
            self.named[name] = empty(about["type"], tuple(about["shape"]))
            return self.named[name]
        own, kind = self.own.get(name), _TORCH_TYPES[about["type"]]
        if own is None and name in self.places:
            own = self.places[name].slab(name, tuple(about["shape"]), kind)
        if isinstance(own, Slab):
            return self._slab(name, own, about)
        fits = own is not None and own.dtype == kind and list(own.shape) == about["shape"] and _is_direct(own)
        self.named[name] = own if fits else torch.empty(about["shape"], dtype=kind)
        return self.named[name]

    def _slab(self, name: str, own: Slab, about: Dict[str, Any]) -> Any:
        if list(own.shape) != about["shape"]:
            raise _slurmdl.Error(
                f"{name}: size mismatch: {tuple(about['shape'])} in the checkpoint, {own.shape} in the model"
            )
        kind = _TORCH_TYPES[about["type"]]
        if own.local.dtype == kind and _is_direct(own.local):
            self.named[name] = own
        else:
            memory = torch.empty(own.local.shape, dtype=kind)
            self.named[name] = own._replace(local=memory)
            self._later.append((own.local, memory))
        return own.tensor

    def finish(self) -> None:
        """Called after everything was read."""
        with torch.no_grad():
            for local, memory in self._later:
                local.copy_(memory)
