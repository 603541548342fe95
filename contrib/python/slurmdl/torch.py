# SPDX-License-Identifier: Apache-2.0
"""PyTorch: models, optimizers, schedulers, random states and the position in the data as one checkpoint.

    import slurmdl.torch

    run = slurmdl.init()
    loader = slurmdl.torch.ResumableLoader(dataset, batch_size=64, shuffle=True, seed=run.seed)
    parts = dict(model=model, optimizer=optimizer, scheduler=scheduler, loader=loader)
    restored = slurmdl.torch.restore_model(run, **parts)
    while loader.epoch < run.length and not run.should_stop():
        for x, y in loader:
            ...
            if run.should_stop():
                break
        slurmdl.torch.save_model(run, loader.epoch, **parts)

Tensors are read from and written to memory as they are, each a dataset of its own; all else of a state_dict is JSON
(slurmdl.structure) in the state "torch".
"""

import json
import os
import random
import sys
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Set, Tuple

import torch

from . import _slurmdl
from .arrays import TYPES, Path, empty, has_cuda, is_tensor, memory_of
from .names import dataset_name
from .run import Run
from .structure import decode, encode

_STATE = "torch"
_TORCH_TYPES = {code: getattr(torch, name) for name, code in TYPES.items() if hasattr(torch, name)}

# ---- what a state_dict is made of


class _Tensors:
    """Gives tensors and arrays names; one that is there twice (tied weights) is saved once."""

    def __init__(self) -> None:
        self.named: Dict[str, Any] = {}
        self.copies: Set[str] = set()
        self._seen: Dict[Any, str] = {}

    def put(self, path: Tuple[str, ...], x: Any) -> Optional[Dict[str, Any]]:
        if is_tensor(x):
            return self._put_tensor(path, x.detach())
        if "numpy" not in sys.modules or type(x) is not sys.modules["numpy"].ndarray:
            return None
        if str(x.dtype) not in TYPES or x.size == 0:
            return None
        a = sys.modules["numpy"].ascontiguousarray(x).reshape(x.shape)
        return {"array": self._add(path, a), "type": TYPES[str(a.dtype)], "shape": list(a.shape)}

    def _put_tensor(self, path: Tuple[str, ...], x: Any) -> Optional[Dict[str, Any]]:
        if hasattr(x, "placements"):
            raise TypeError("a tensor is spread over ranks: give each rank's slab to run.protect_shard()")
        code = TYPES.get(str(x.dtype).split(".")[-1])
        if code is None or x.layout != torch.strided or x.device.type == "meta":
            return None
        about = {"type": code, "shape": list(x.shape)}
        if x.numel() == 0:
            return {"tensor": None, **about}
        key = (x.device, x.data_ptr(), x.shape, x.stride(), x.dtype)
        if key not in self._seen:
            self._seen[key] = self._add(path, x if _is_direct(x) else x.cpu().resolve_conj().resolve_neg().contiguous())
            if not _is_direct(x):
                self.copies.add(self._seen[key])
        return {"tensor": self._seen[key], **about}

    def _add(self, path: Tuple[str, ...], x: Any) -> str:
        name = dataset_name(path, self.named)
        self.named[name] = x
        return name


def _is_direct(x: Any) -> bool:
    """Whether the library can read and write the tensor's memory where it is."""
    plain = x.is_contiguous() and not x.is_conj() and not x.is_neg()
    return plain and (x.device.type == "cpu" or (x.device.type == "cuda" and has_cuda()))


def _unwrap(part: Any) -> Any:
    """The model inside DistributedDataParallel, DataParallel or torch.compile()."""
    while True:
        if type(part).__name__ in ("DistributedDataParallel", "DataParallel"):
            part = part.module
        elif isinstance(part, torch.nn.Module) and hasattr(part, "_orig_mod"):
            part = part._orig_mod
        else:
            return part


def _state_of(part: Any) -> Any:
    """The state of a part: of what has a state_dict(), or of a dict or list of such."""
    part = _unwrap(part)
    if isinstance(part, dict):
        return {k: _state_of(v) for k, v in part.items()}
    if isinstance(part, (list, tuple)):
        return [_state_of(v) for v in part]
    return part.state_dict()


def _load_state(part: Any, state: Any) -> None:
    part = _unwrap(part)
    if isinstance(part, dict):
        for k, v in part.items():
            _load_state(v, state[k])
    elif isinstance(part, (list, tuple)):
        for v, s in zip(part, state):
            _load_state(v, s)
    else:
        part.load_state_dict(state)


# ---- random states


def random_state() -> Dict[str, Any]:
    """The states of the random number generators of Python, numpy, torch and its CUDA devices."""
    state: Dict[str, Any] = {"python": random.getstate(), "torch": torch.get_rng_state().numpy().tobytes()}
    if "numpy" in sys.modules:
        kind, keys, at, has_gauss, gauss = sys.modules["numpy"].random.get_state()
        state["numpy"] = (kind, keys.tolist(), at, has_gauss, gauss)
    if torch.cuda.is_available() and torch.cuda.is_initialized():  # type: ignore[no-untyped-call, unused-ignore]
        state["cuda"] = [s.numpy().tobytes() for s in torch.cuda.get_rng_state_all()]
    return state


def _byte_tensor(data: bytes) -> Any:
    return torch.frombuffer(bytearray(data), dtype=torch.uint8)


def set_random_state(state: Dict[str, Any]) -> None:
    """Put back what random_state() returned."""
    random.setstate(state["python"])
    torch.set_rng_state(_byte_tensor(state["torch"]))
    if "numpy" in state:
        import numpy

        kind, keys, *rest = state["numpy"]
        numpy.random.set_state((kind, numpy.array(keys, dtype="u4"), *rest))
    if "cuda" in state and torch.cuda.is_available():
        n = torch.cuda.device_count()
        torch.cuda.set_rng_state_all([_byte_tensor(s) for s in state["cuda"][:n]])


def _random_name(run: Run) -> str:
    return "rng" if run.size == 1 else "rng.%r"


# ---- save and restore


def _text(x: Any) -> bytes:
    return json.dumps(x, separators=(",", ":")).encode()


def _protect(run: Run, named: Dict[str, Any]) -> None:
    """Protect just these: what save_model() had protected before and is gone is taken out."""
    before: Dict[str, Any] = run.__dict__.setdefault("_torch_protected", {})
    for name in [n for n in before if n not in named]:
        run.unprotect(name)
        del before[name]
    for name, x in named.items():
        memory = memory_of(x)
        about = (memory.type, memory.shape, memory.where if isinstance(memory.where, int) else None)
        if about[2] is None or before.get(name) != about:
            run.protect(name, x)
        else:
            continue
        before[name] = about


def save_model(
    run: Run,
    step: int,
    *,
    model: Any = None,
    optimizer: Any = None,
    scheduler: Any = None,
    scaler: Any = None,
    loader: Any = None,
    extra: Any = None,
    rng: bool = True,
    wait: bool = True,
) -> None:
    """Save all that is given, and the random states, as one checkpoint of the run.

    A part is anything with a state_dict(), or a dict or list of such.  All ranks call it: rank 0 writes, and each
    rank's random state is kept.  With wait=False it returns when all was copied, and a thread writes it
    (Run.save_async()).
    """
    parts = {"model": model, "optimizer": optimizer, "scheduler": scheduler, "scaler": scaler, "loader": loader}
    tensors = _Tensors()
    index: Dict[str, Any] = {"version": 1, "step": int(step), "size": run.size}
    for name, part in parts.items():
        if part is not None:
            index[name] = encode(_state_of(part), tensors.put, (name,))
    index["extra"] = encode(extra, tensors.put, ("extra",))
    _protect(run, tensors.named)
    run.state(_STATE, _text(index))
    if rng:
        run.state(_random_name(run), _text(encode(random_state(), lambda path, x: None)))
    if torch.cuda.is_available() and torch.cuda.is_initialized():  # type: ignore[no-untyped-call, unused-ignore]
        # the library copies on a stream of its own
        torch.cuda.synchronize()
    if wait:
        run.save(step)
    else:
        run.save_async(step)


class Restored(NamedTuple):
    """What restore_model() has found."""

    step: int
    extra: Any


class _Targets:
    """Memory to restore into: the model's own where it fits, new memory else."""

    def __init__(self, own: Dict[str, Any]) -> None:
        self.own = own
        self.named: Dict[str, Any] = {}

    def get(self, about: Dict[str, Any]) -> Any:
        name = about.get("tensor", about.get("array"))
        if name is None:
            return torch.empty(about["shape"], dtype=_TORCH_TYPES[about["type"]])
        if name not in self.named:
            self.named[name] = self._memory(name, about)
        return self.named[name]

    def _memory(self, name: str, about: Dict[str, Any]) -> Any:
        if "array" in about:
            return empty(about["type"], tuple(about["shape"]))
        own = self.own.get(name)
        kind = _TORCH_TYPES[about["type"]]
        if own is not None and own.dtype == kind and list(own.shape) == about["shape"] and _is_direct(own):
            return own
        return torch.empty(about["shape"], dtype=kind)


def _load_parts(parts: Dict[str, Any], index: Dict[str, Any], run: Run, step: int) -> Any:
    now = _Tensors()
    model = None
    if parts.get("model") is not None:
        model = encode(_state_of(parts["model"]), now.put, ("model",))
    # what is not direct was copied when it was named: the model's own is elsewhere
    targets = _Targets({n: x for n, x in now.named.items() if is_tensor(x) and n not in now.copies})
    states = {n: decode(index[n], targets.get) for n, part in parts.items() if part is not None}
    extra = decode(index["extra"], targets.get)
    _protect(run, targets.named)
    if run.restore() != step:
        raise _slurmdl.Error("the checkpoints of the run change while one is restored")
    _protect(run, {})
    for name, state in states.items():
        if name != "model" or model != index["model"] or now.copies:
            _load_state(parts[name], state)
    return extra


def restore_model(
    run: Run,
    *,
    model: Any = None,
    optimizer: Any = None,
    scheduler: Any = None,
    scaler: Any = None,
    loader: Any = None,
    rng: bool = True,
) -> Optional[Restored]:
    """Restore what save_model() has saved into the parts that are given, in place; None if there is no checkpoint."""
    _protect(run, {})
    step = run.restore()
    if step is None:
        return None
    data = run.read_state(_STATE)
    if data is None:
        raise _slurmdl.Error("the newest checkpoint was not saved by slurmdl.torch.save_model()")
    index = json.loads(data)
    parts = {"model": model, "optimizer": optimizer, "scheduler": scheduler, "scaler": scaler, "loader": loader}
    for name, part in parts.items():
        if part is not None and name not in index:
            raise _slurmdl.Error(f"the newest checkpoint has no {name}")
    extra = _load_parts(parts, index, run, step)
    state = run.read_state(_random_name(run)) if rng else None
    if state is not None:
        set_random_state(decode(json.loads(state), lambda about: about))
    return Restored(step, extra)


# ---- files by themselves

_STRUCTURE = "structure"


def save(obj: Any, path: Path, step: int = 0) -> None:
    """Save anything with tensors in it, as torch.save() does, as a checkpoint file: each tensor is a dataset, all else
    JSON in the dataset "structure"."""
    tensors = _Tensors()
    tensors.named[_STRUCTURE] = None
    index = _text(encode(obj, tensors.put, ("data",)))
    tensors.named[_STRUCTURE] = memoryview(index)
    file = _slurmdl.Writer(os.fspath(path), step)
    try:
        for name, x in tensors.named.items():
            memory = memory_of(x.cpu() if is_tensor(x) else x)
            file.add(name, memory.type, memory.shape, memory.where, False)
    except BaseException:
        file.abort()
        raise
    file.commit()


def load(path: Path, map_location: Any = None) -> Any:
    """Load what save() has saved, verified; tensors on the host, or where 'map_location' says."""
    file = _slurmdl.Checkpoint(os.fspath(path))
    shapes = {name: shape for name, _, shape, _ in file.tensors()}
    if _STRUCTURE not in shapes:
        raise _slurmdl.Error(f"{path}: was not saved by slurmdl.torch.save()")
    data = bytearray(shapes[_STRUCTURE][0])
    file.read(_STRUCTURE, data)
    targets = _Targets({})
    result = decode(json.loads(data), targets.get)
    for name, x in targets.named.items():
        file.read(name, memory_of(x).where)
    return result if map_location is None else _moved(result, map_location)


def _moved(x: Any, where: Any) -> Any:
    if is_tensor(x):
        return x.to(where)
    if isinstance(x, dict):
        for k in x:
            x[k] = _moved(x[k], where)
    elif isinstance(x, (list, tuple)):
        return type(x)([_moved(v, where) for v in x])
    return x


# ---- data


def _mix(*numbers: int) -> int:
    """A seed of 32 bits of some numbers."""
    h = 0x9E3779B97F4A7C15
    for n in numbers:
        h = ((h ^ (n & 0xFFFFFFFFFFFFFFFF)) * 0xBF58476D1CE4E5B9) & 0xFFFFFFFFFFFFFFFF
        h ^= h >> 29
    return h & 0xFFFFFFFF


class _Seeded(torch.utils.data.Dataset):  # type: ignore[misc, type-arg, unused-ignore]
    """In a worker each sample has random numbers of its own: the same ones wherever the loader began."""

    def __init__(self, dataset: Any, seed: int, epoch: int) -> None:
        self._dataset, self._seed, self._epoch = dataset, seed, epoch

    def __len__(self) -> int:
        return len(self._dataset)

    def __getitem__(self, i: Any) -> Any:
        if torch.utils.data.get_worker_info() is not None:
            seed = _mix(self._seed, self._epoch, int(i))
            random.seed(seed)
            torch.default_generator.manual_seed(seed)
            if "numpy" in sys.modules:
                sys.modules["numpy"].random.seed(seed)
        return self._dataset[i]


class ResumableLoader:
    """Batches of a dataset with a length, which go on exactly where they were when the checkpoint was saved.

    The order of an epoch depends on 'seed' and the epoch alone; with several ranks each has its share, which is
    padded to the same length as DistributedSampler does it.  epoch and position (batches of it that were taken) are
    its state; it is saved in the body of the loop or between epochs.  A loop that was left goes on there at the next
    one.  With workers each sample has random numbers of its own, so that augmentation does not depend on where
    the loader began.  Further arguments are those of torch's DataLoader.
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int = 1,
        shuffle: bool = False,
        seed: int = 0,
        rank: int = 0,
        size: int = 1,
        drop_last: bool = False,
        **options: Any,
    ) -> None:
        for name in ("sampler", "batch_sampler", "generator", "persistent_workers"):
            if name in options:
                raise TypeError(f"ResumableLoader has no argument '{name}'")
        self.dataset, self.batch_size, self.shuffle, self.seed = dataset, batch_size, shuffle, seed
        self.rank, self.size, self.drop_last, self.options = rank, size, drop_last, options
        self.epoch = 0
        self.position = 0

    def _indices(self) -> List[int]:
        n = len(self.dataset)
        generator = torch.Generator().manual_seed(_mix(self.seed, self.epoch))
        order: List[int] = torch.randperm(n, generator=generator).tolist() if self.shuffle else list(range(n))
        padding = -n % self.size
        return (order + (order * (padding // max(n, 1) + 1))[:padding])[self.rank :: self.size]

    def _batches(self) -> List[List[int]]:
        mine, b = self._indices(), self.batch_size
        batches = [mine[i : i + b] for i in range(0, len(mine), b)]
        return batches[:-1] if self.drop_last and batches and len(batches[-1]) < b else batches

    def __len__(self) -> int:
        n = (len(self.dataset) + self.size - 1) // self.size
        return n // self.batch_size if self.drop_last else (n + self.batch_size - 1) // self.batch_size

    def __iter__(self) -> Iterator[Any]:
        # a generator of its own: torch's, which the training uses, is left alone
        loader = torch.utils.data.DataLoader(
            _Seeded(self.dataset, self.seed, self.epoch),
            batch_sampler=self._batches()[self.position :],  # type: ignore[arg-type, unused-ignore]
            generator=torch.Generator().manual_seed(_mix(self.seed, self.epoch, 1)),
            **self.options,
        )
        for batch in loader:
            self.position += 1
            yield batch
        self.epoch += 1
        self.position = 0

    def state_dict(self) -> Dict[str, Any]:
        return {
            "epoch": self.epoch,
            "samples": self.position * self.batch_size * self.size,
            "length": len(self.dataset),
            "seed": self.seed,
        }

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        """Samples are counted, so that the number of ranks or the size of a batch may have changed."""
        if state["length"] != len(self.dataset):
            raise ValueError(f"the dataset had {state['length']} samples and has {len(self.dataset)} now")
        self.epoch, self.seed = state["epoch"], state["seed"]
        self.position = state["samples"] // (self.batch_size * self.size)
