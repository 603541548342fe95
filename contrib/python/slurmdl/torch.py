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

import functools
import hashlib
import json
import os
import random
import sys
from collections import Counter, OrderedDict
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Tuple

import torch

from . import _slurmdl
from .arrays import Memory, Path, is_tensor, memory_of, naming, type_of_torch
from .files import checkpoint_of
from .fsdp import FlatOptimizer, adapted, flat_models
from .loader import ResumableLoader
from .runs import Run
from .sharded import Slab, is_sharded, size_of_world
from .structure import decode, encode
from .tensors import Targets, Tensors, is_lazy, places_of
from .trust import Reader

__all__ = [
    "ResumableLoader",
    "Restored",
    "load",
    "random_state",
    "restore_model",
    "save",
    "save_model",
    "set_random_state",
]

_STATE = "torch"
_PARTS = ("model", "optimizer", "scheduler", "scaler", "loader")

# ---- parts


# wrapper modules by class name, and the name of the module inside
_WRAPPERS = {
    "OptimizedModule": "_orig_mod",
    "DistributedDataParallel": "module",
    "DataParallel": "module",
    "CheckpointWrapper": "_checkpoint_wrapped_module",
    "OffloadWrapper": "_checkpoint_wrapped_module",
    "FullyShardedDataParallel": "_fsdp_wrapped_module",
}


@functools.lru_cache(maxsize=None)
def _wraps(kind: type) -> Optional[str]:
    return next((_WRAPPERS[c.__name__] for c in kind.__mro__ if c.__name__ in _WRAPPERS), None)


def _unwrap(part: Any) -> Any:
    """The model inside DistributedDataParallel, DataParallel or torch.compile()."""
    while isinstance(part, torch.nn.Module) and _wraps(type(part)) in ("module", "_orig_mod"):
        part = getattr(part, _wraps(type(part)) or "")
    return part


def _bare(module: Any, name: str) -> str:
    """The name of a state without the wrapper modules in it, such as compiled blocks.  Some wrappers omit themselves
    from names."""
    bare: List[str] = []
    for part in name.split("."):
        wraps = _wraps(type(module))
        while wraps is not None and wraps != part:
            module = getattr(module, wraps)
            wraps = _wraps(type(module))
        if wraps is None:
            bare.append(part)
        inner = getattr(module, "_modules", {})
        module = inner[part] if part in inner else None
    return ".".join(bare)


def _has_wrappers(module: Any) -> bool:
    return any(_wraps(type(m)) for m in module.modules())


def _bare_names(module: Any, names: Iterable[str]) -> Dict[str, str]:
    """The names of a module's states, with their bare names; of two that would be equal both stay as they are."""
    found = {name: _bare(module, name) for name in names}
    count = Counter(found.values())
    return {name: bare if count[bare] == 1 else name for name, bare in found.items()}


def _to_bare(module: Any, state: Any) -> Any:
    """The module's state_dict, as the bare module would have it."""
    names = _bare_names(module, state)
    result = type(state)((names[k], v) for k, v in state.items())
    if hasattr(state, "_metadata"):
        # of a wrapper and its content, the content wins, which comes later
        result._metadata = OrderedDict((_bare(module, k), v) for k, v in state._metadata.items())
    return result


def _of_bare(module: Any, state: Any) -> Any:
    """A bare module's state_dict, as this module expects it; unknown names stay as they are."""
    own = module.state_dict(keep_vars=True)
    names = {bare: name for name, bare in _bare_names(module, own).items()}
    result = type(state)((names.get(k, k), v) for k, v in state.items())
    if hasattr(state, "_metadata"):
        bare = {k: _bare(module, k) for k in getattr(own, "_metadata", {})}
        result._metadata = OrderedDict((k, state._metadata[b]) for k, b in bare.items() if b in state._metadata)
    return result


def _state_of(part: Any) -> Any:
    """The state of a part: of anything with a state_dict(), or of a dict or list of such."""
    part = _unwrap(part)
    if isinstance(part, dict):
        return {k: _state_of(v) for k, v in part.items()}
    if isinstance(part, (list, tuple)):
        return [_state_of(v) for v in part]
    state = part.state_dict()
    if not isinstance(part, torch.nn.Module):
        return state
    if any(map(is_sharded, state.values())):
        # the parameters themselves: all ranks see that a weight appears twice
        state = part.state_dict(keep_vars=True)
    return _to_bare(part, state) if _has_wrappers(part) else state


def _load_state(part: Any, state: Any) -> None:
    part = _unwrap(part)
    if isinstance(part, dict):
        for k, v in part.items():
            _load_state(v, state[k])
    elif isinstance(part, (list, tuple)):
        for v, s in zip(part, state):
            _load_state(v, s)
    elif isinstance(part, torch.nn.Module) and _has_wrappers(part):
        part.load_state_dict(_of_bare(part, state))
    else:
        part.load_state_dict(state)


# ---- checks before anything is written


def _is_of_torch(f: Any) -> bool:
    return str(getattr(f, "__module__", "")).startswith("torch.")


def _may_take_others(module: Any) -> bool:
    """Whether code outside torch influences what the module accepts: then unknown names and shapes may be valid."""
    for m in module.modules():
        kind = type(m)
        if not all(_is_of_torch(getattr(kind, f, None)) for f in ("load_state_dict", "_load_from_state_dict")):
            return True
        if getattr(m, "_load_state_dict_post_hooks", None):
            return True
        for hook in (getattr(m, "_load_state_dict_pre_hooks", None) or {}).values():
            hook = getattr(hook, "hook", hook)
            while isinstance(hook, functools.partial):
                hook = hook.func
            if getattr(hook, "__module__", "") != "torch.nn.modules.lazy":
                return True
    return False


def _shapes_differ(own: Any, saved: Any) -> Optional[str]:
    if not is_tensor(own) or not is_tensor(saved) or is_lazy(own):
        return None
    if is_lazy(saved):
        return "was saved before its module had seen data"
    a, b = tuple(saved.shape), tuple(own.shape)
    # torch before 0.4 had no tensors without dimensions
    return None if a == b or (a, b) == ((1,), ()) else f"size mismatch: {a} in the checkpoint, {b} in the model"


def _check_module(module: Any, own: Any, saved: Any, where: str) -> None:
    found = {
        "missing in the checkpoint": [k for k in own if k not in saved],
        "not in the model": [k for k in saved if k not in own],
    }
    for k in own:
        why = _shapes_differ(own[k], saved.get(k))
        if why is not None:
            found.setdefault(why, []).append(k)
    if any(found.values()) and not _may_take_others(module):
        told = [f"{why}: {', '.join(k[:8])}{' ...' if len(k) > 8 else ''}" for why, k in found.items() if k]
        raise _slurmdl.Error(f"{where} cannot be restored: {'; '.join(told)}")


def _check_optimizer(optimizer: Any, saved: Any, where: str) -> None:
    plain = _is_of_torch(type(optimizer).load_state_dict)
    if not plain or getattr(optimizer, "_optimizer_load_state_dict_pre_hooks", None) or "param_groups" not in saved:
        return
    theirs, own = ([len(g["params"]) for g in groups] for groups in (saved["param_groups"], optimizer.param_groups))
    if theirs != own:
        raise _slurmdl.Error(
            f"{where} cannot be restored: the parameter groups that were saved have {theirs} parameters, those of the "
            f"optimizer {own}"
        )


def _check(part: Any, own: Any, saved: Any, where: str) -> None:
    """Raise an error if a part cannot accept what was saved.  'own' is its state; None if it was not asked for."""
    part = _unwrap(part)
    if isinstance(part, (dict, list, tuple)):
        several = isinstance(part, dict)
        fits = isinstance(saved, dict if several else list) and (
            all(k in saved for k in part) if several else len(saved) == len(part)
        )
        if not fits:
            has: Any = list(saved) if several and type(saved) is dict else len(saved) if isinstance(saved, list) else "only one"
            wants = list(part) if several else len(part)
            raise _slurmdl.Error(f"{where} cannot be restored: the checkpoint has {has}, expected {wants}")
        for k, v in part.items() if several else enumerate(part):
            _check(v, None if own is None else own[k], saved[k], f"{where}[{k!r}]")
    elif isinstance(part, torch.nn.Module) and isinstance(saved, dict):
        _check_module(part, _state_of(part) if own is None else own, saved, where)
    elif isinstance(part, FlatOptimizer):
        part.check(saved)
    elif isinstance(part, torch.optim.Optimizer) and isinstance(saved, dict):
        _check_optimizer(part, saved, where)


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
    """Restore what random_state() returned."""
    random.setstate(state["python"])
    torch.set_rng_state(_byte_tensor(state["torch"]))
    if "numpy" in state:
        import numpy

        kind, keys, *rest = state["numpy"]
        numpy.random.set_state((kind, numpy.array(keys, dtype="u4"), *rest))
    if "cuda" in state and torch.cuda.is_available():
        n = torch.cuda.device_count()
        torch.cuda.set_rng_state_all([_byte_tensor(s) for s in state["cuda"][:n]])


_RANDOM = "rng.%r"


def _read_random(run: Run, reader: Reader) -> Optional[Callable[[], None]]:
    """Read the random state of this rank; None if none was saved.  If there were fewer ranks when the checkpoint was
    saved, a new rank gets a state derived from rank 0's and its own number: reproducible, and different from any other
    rank's.
    """
    saved, first = run.read_state(_RANDOM), run.read_state("rng.0")
    if saved is not None:
        state = decode(json.loads(saved), lambda about: about, reader.unpickle)
        return functools.partial(set_random_state, state)
    if first is None:
        return None
    return functools.partial(_seed, int(hashlib.sha256(first + b"%d" % run.rank).hexdigest()[:16], 16))


def _seed(seed: int) -> None:
    random.seed(seed)
    torch.manual_seed(seed >> 1)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(seed % 2**32)


# ---- save and restore


def _text(x: Any) -> bytes:
    return json.dumps(x, separators=(",", ":")).encode()


def _memory_of(x: Any) -> Memory:
    """As memory_of(), but faster for plain tensors on the host."""
    code = type_of_torch(x.dtype) if type(x) is torch.Tensor and x.device.type == "cpu" else None
    return memory_of(x) if code is None else Memory(code, tuple(x.shape), x.data_ptr(), x)


def _protect_one(run: Run, name: str, x: Any, memory: Memory) -> None:
    with naming(name):
        if isinstance(x, Slab) and x.shape:
            run.protect_slab(name, memory.type, x.shape, x.offset, memory.shape, memory.where, memory.owner)
        else:
            run.protect_memory(name, memory.type, memory.shape, memory.where, memory.owner)


def _protect(run: Run, named: Dict[str, Any]) -> None:
    """Protect exactly these, and remove other names that save_model() protected before."""
    before: Dict[str, Any] = run.__dict__.setdefault("_torch_protected", {})
    for name in [n for n in before if n not in named]:
        run.forget(name)
        del before[name]
    for name, x in named.items():
        code = type_of_torch(x.dtype) if type(x) is torch.Tensor and x.is_cpu else None
        if code is not None:
            # most are unchanged, and there may be thousands
            plain = (code, x.shape, x.data_ptr())
            if before.get(name) != plain:
                with naming(name):
                    run.protect_memory(name, *plain, x)
                before[name] = plain
            continue
        memory = _memory_of(x.local if isinstance(x, Slab) else x)
        where = memory.where if isinstance(memory.where, int) else None
        about = (memory.type, memory.shape, where, *(x[2:] if isinstance(x, Slab) else ()))
        if where is None or before.get(name) != about:
            _protect_one(run, name, x, memory)
            before[name] = about


def _check_ranks(run: Run, named: Dict[str, Any]) -> None:
    if any(isinstance(x, Slab) for x in named.values()) and size_of_world() not in (1, run.size):
        raise _slurmdl.Error(
            f"the run has {run.size} ranks and torch.distributed {size_of_world()}: set RANK and WORLD_SIZE before "
            "slurmdl.init()"
        )


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
    """Save all parts, and the random states, as one checkpoint of the run.

    A part is anything with a state_dict(), or a dict or list of such.  All ranks call it: rank 0 writes, and each
    rank's random state is saved.  Of distributed tensors (DTensor: fully_shard(), parallelize_module();
    FullyShardedDataParallel) each rank writes its part, and of replicas the first one does; the file contains the whole
    tensors.  With wait=False it returns once everything was copied, and a thread writes it (Run.save_async()).
    """
    parts = {"model": model, "optimizer": optimizer, "scheduler": scheduler, "scaler": scaler, "loader": loader}
    tensors = Tensors()
    index: Dict[str, Any] = {"version": 1, "step": int(step), "size": run.size}
    flat = flat_models(model)
    for name, part in parts.items():
        if part is not None:
            index[name] = encode(_state_of(adapted(part, flat)), tensors.put, (name,))
    index["extra"] = encode(extra, tensors.put, ("extra",))
    _check_ranks(run, tensors.named)
    _protect(run, tensors.to_write())
    run.state(_STATE, _text(index))
    if rng:
        run.state(_RANDOM, _text(encode(random_state(), lambda path, x: None)))
    if torch.cuda.is_available() and torch.cuda.is_initialized():  # type: ignore[no-untyped-call, unused-ignore]
        # the library copies on a stream of its own
        torch.cuda.synchronize()
    if wait:
        run.save(step)
    else:
        run.save_async(step)
    if flat:
        # torch created these tensors for this save only
        _protect(run, {})


class Restored(int):
    """The result of restore_model(): the step, as run.restore() returns it, and save_model()'s 'extra'.  It is true
    even at step 0, and can be unpacked: `step, extra = restored`.
    """

    extra: Any

    def __new__(cls, step: int, extra: Any = None) -> "Restored":
        self = super().__new__(cls, step)
        self.extra = extra
        return self

    @property
    def step(self) -> int:
        return int(self)

    def __bool__(self) -> bool:
        return True

    def __iter__(self) -> Iterator[Any]:
        return iter((self.step, self.extra))

    def __repr__(self) -> str:
        return f"Restored(step={self.step}, extra={self.extra!r})"


def _flat_states(part: Any) -> Any:
    """The states of the FullyShardedDataParallel optimizers in a part, with None in place of everything else."""
    if isinstance(part, dict):
        return {k: _flat_states(v) for k, v in part.items()}
    if isinstance(part, (list, tuple)):
        return [_flat_states(v) for v in part]
    return part.made_state_dict() if isinstance(part, FlatOptimizer) else None


def _index_of(run: Run, parts: Dict[str, Any]) -> Dict[str, Any]:
    data = run.read_state(_STATE)
    if data is None:
        raise _slurmdl.Error("the newest checkpoint was not saved by slurmdl.torch.save_model()")
    index: Dict[str, Any] = json.loads(data)
    for name in parts:
        if name not in index:
            raise _slurmdl.Error(f"the newest checkpoint has no {name}")
    return index


def _load_parts(parts: Dict[str, Any], index: Dict[str, Any], run: Run, step: int, reader: Reader) -> Tuple[int, Any]:
    """The step of the checkpoint whose tensors were complete, and 'extra'; nothing is loaded if it is not 'step'."""
    flat = flat_models(parts.get("model"))
    parts = {name: adapted(part, flat) for name, part in parts.items()}
    now = Tensors()
    in_place, own = False, None
    if "model" in parts:
        own = _state_of(parts["model"])
        model = encode(own, now.put, ("model",))
        in_place = model == index["model"] and not now.copies and not flat
    places = {}
    if "optimizer" in parts:
        encode(_flat_states(parts["optimizer"]), now.put, ("optimizer",))
        places = places_of(parts["optimizer"], index["optimizer"])
    targets = Targets({**now.others, **now.named}, reader, places)
    states = {name: decode(index[name], targets.get, reader.unpickle) for name in parts}
    extra = decode(index["extra"], targets.get, reader.unpickle)
    for name, part in parts.items():
        if name != "model" or not in_place:
            _check(part, own if name == "model" else None, states[name], name)
    _protect(run, targets.named)
    found = run.restore()
    _protect(run, {})
    if found is None or found > step:
        raise _slurmdl.Error("the checkpoints of the run changed during the restore")
    if found < step:
        return found, None
    targets.finish()
    for i, (name, state) in enumerate(states.items()):
        try:
            if name != "model" or not in_place:
                _load_state(parts[name], state)
        except Exception as error:
            changed = ", ".join(list(states)[: i + 1])
            error.args = (f"{error} (restore_model() has changed, in whole or in part: {changed})", *error.args[1:])
            raise
    return step, extra


def restore_model(
    run: Run,
    *,
    model: Any = None,
    optimizer: Any = None,
    scheduler: Any = None,
    scaler: Any = None,
    loader: Any = None,
    rng: bool = True,
    weights_only: bool = False,
    trust: bool = False,
) -> Optional[Restored]:
    """Restore what save_model() has saved into the given parts, in place.

    Returns the step, an int like that of run.restore(), with 'extra' as an attribute; None if there is no checkpoint:
    `step = restore_model(run, model=model) or 0`.  All ranks call it.  Their number and the distribution of the model
    may differ from those when it was saved; each rank reads what it needs.  The optimizer need not have made a step.
    Tensors of 'extra' are returned whole.  Each rank gets its own random state, a new rank one derived from rank 0's.

    Names and shapes of the models, and the groups of the optimizers, are compared before anything is changed.  If a
    part still rejects its state, or all files are damaged, the error says what was changed.  Objects that are neither
    JSON nor tensors were pickled: they are read if the checkpoint is your own (slurmdl.trust), otherwise only with
    trust=True; with weights_only=True never.
    """
    given = {"model": model, "optimizer": optimizer, "scheduler": scheduler, "scaler": scaler, "loader": loader}
    parts = {name: part for name, part in given.items() if part is not None}
    _protect(run, {})
    damaged = False
    found = run.restore()
    while found is not None:
        step = found
        index = _index_of(run, parts)
        reader = Reader(run.restored_origin(), trust, weights_only)
        set_random = _read_random(run, reader) if rng else None
        try:
            found, extra = _load_parts(parts, index, run, step, reader)
        except Exception as error:
            if damaged:
                error.args = (f"{error} (the objects have parts of a newer checkpoint, which is damaged)", *error.args[1:])
            raise
        if found == step:
            break
        damaged = True
    else:
        return None
    if set_random is not None:
        set_random()
    return Restored(step, extra)


# ---- files without a run

_STRUCTURE = "structure"


def save(obj: Any, path: Path, step: int = 0) -> None:
    """Save anything with tensors in it, as torch.save() does, as a checkpoint file: each tensor becomes a dataset,
    everything else JSON in the dataset "structure"."""
    tensors = Tensors()
    tensors.named[_STRUCTURE] = None
    index = _text(encode(obj, tensors.put, ("data",)))
    tensors.named[_STRUCTURE] = memoryview(index)
    for name, x in tensors.named.items():
        if isinstance(x, Slab):
            raise TypeError(f"{name}: is spread over ranks: save_model() saves it, or save its full_tensor()")
    file = _slurmdl.Writer(os.fspath(path), step)
    try:
        for name, x in tensors.to_write().items():
            memory = _memory_of(x.cpu() if is_tensor(x) else x)
            file.add(name, memory.type, memory.shape, memory.where, False)
    except BaseException:
        file.abort()
        raise
    file.commit()


def load(path: Path, map_location: Any = None, weights_only: bool = False, trust: bool = False) -> Any:
    """Load and verify what save() has saved; tensors go to the host, or where 'map_location' says.

    For a checkpoint of save_model(), a file or a trial's folder (its newest), returns a dict of the parts:
    load(path)["model"] is for load_state_dict().  Objects that are neither JSON nor tensors were pickled: they are read
    if the file is your own (slurmdl.trust), otherwise only with trust=True; with weights_only=True never.
    """
    file = _slurmdl.Checkpoint(checkpoint_of(path))
    shapes = {name: shape for name, _, shape, _ in file.tensors()}
    written = next((name for name in (_STRUCTURE, "state/" + _STATE) if name in shapes), None)
    if written is None:
        raise _slurmdl.Error(f"{path}: was not saved by slurmdl.torch: slurmdl.load() reads its arrays")
    data = bytearray(shapes[written][0])
    file.read(written, data)
    reader = Reader(file.origin(), trust, weights_only)
    targets = Targets({}, reader)
    value = json.loads(data)
    if written == _STRUCTURE:
        result = decode(value, targets.get, reader.unpickle)
    else:
        result = {name: decode(value[name], targets.get, reader.unpickle) for name in (*_PARTS, "extra") if name in value}
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
