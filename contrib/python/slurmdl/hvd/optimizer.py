# SPDX-License-Identifier: Apache-2.0
"""Horovod's optimizer, based on slurmdl.distributed's; and the one for Adasum."""

import contextlib
import warnings
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

import torch

from .. import distributed as _distributed
from .compression import Compression, own_of
from .collectives import Adasum, Average, How, ReduceOp, start_allreduce
from .world import ProcessSet, global_process_set, size


def _check_names(named_parameters: Any) -> Any:
    if named_parameters is None:
        return None
    named = list(named_parameters)
    if any(not isinstance(p, tuple) for p in named):
        raise ValueError("named_parameters should be a sequence of tuples (name, parameter): model.named_parameters()")
    return named


def _check_groups(groups: Any) -> None:
    if not isinstance(groups, list):
        if not isinstance(groups, int) or groups < 1:
            raise ValueError("groups should be a positive integer or a list of lists of torch.Tensor")
        return
    members = [p for group in groups for p in group]
    if any(not isinstance(p, torch.Tensor) for p in members):
        raise ValueError("groups must consist of torch.Tensor")
    if len({id(p) for p in members}) < len(members):
        raise ValueError("a parameter can only appear once in groups")


def _grouped(optimizer: Any, groups: Any) -> Optional[List[List[Any]]]:
    """Lists of parameters; an integer asks for that many lists of similar length."""
    if groups is None:
        return None
    _check_groups(groups)
    own = [p for group in optimizer.param_groups for p in group["params"] if p.requires_grad]
    if isinstance(groups, list):
        mine = {id(p) for p in own}
        return [[p for p in group if id(p) in mine] for group in groups]
    n, more = divmod(len(own), groups)
    begins = [g * n + min(g, more) for g in range(groups + 1)]
    return [own[a:b] for a, b in zip(begins, begins[1:]) if b > a]


class _AdasumSteps:
    """Each rank steps with its own gradients; the resulting changes are added adaptively."""

    param_groups: List[Dict[str, Any]]
    _names: Dict[Any, str]
    _compression: Any

    def synchronize(self) -> None:
        """Changes are sent in step(): there is nothing to wait for."""

    def set_backward_passes_per_step(self, passes: int) -> None:
        """Gradients accumulate until step() is called."""

    @contextlib.contextmanager
    def skip_synchronize(self) -> Iterator[None]:
        raise AssertionError("Skipping synchronization is not supported when using Adasum optimizer.")
        yield

    def _send(self, p: Any, before: Any, own: Any) -> Tuple[Any, Any]:
        narrow, context = own.compress(p.detach() - before) if own else (p.detach() - before, None)
        return start_allreduce(narrow, f"adasum.{self._names[p]}", How(Adasum), False), context

    def step(self, closure: Optional[Callable[[], Any]] = None) -> Any:
        loss = closure() if closure is not None else None
        before = {p: p.detach().clone() for p in self._names}
        super().step()  # type: ignore[misc]
        own = None if self._compression is Compression.none else self._compression
        sent = [(p, *self._send(p, before[p], own)) for p in self._names]
        with torch.no_grad():
            for p, handle, context in sent:
                change = handle.wait()
                p.copy_(before[p] + (own.decompress(change, context) if own else change))
        return loss


def _adasum_optimizer(optimizer: Any, named_parameters: Any, compression: Any) -> Any:
    kind = type(optimizer)
    new: Any = type(kind.__name__, (_AdasumSteps, kind), {"__module__": kind.__module__, "__doc__": kind.__doc__})
    self = new.__new__(new)
    self.__dict__ = optimizer.__dict__
    _distributed.take_step(self)
    self._names = {p: name for name, p in _distributed.named(optimizer, named_parameters) if p.requires_grad}
    self._compression = compression
    return self


def DistributedOptimizer(
    optimizer: Any,
    named_parameters: Any = None,
    compression: Any = Compression.none,
    backward_passes_per_step: int = 1,
    op: ReduceOp = Average,
    gradient_predivide_factor: float = 1.0,
    num_groups: int = 0,
    groups: Any = None,
    sparse_as_dense: bool = False,
    process_set: ProcessSet = global_process_set,
) -> Any:
    """As horovod.torch.DistributedOptimizer.  Ranks outside the set step with their own gradients."""
    if gradient_predivide_factor != 1.0 and op is not Average:
        raise ValueError("gradient_predivide_factor not supported with op != Average")
    if backward_passes_per_step <= 0:
        raise ValueError("backward_passes_per_step must be > 0")
    if num_groups:
        warnings.warn("Parameter `num_groups` has been replaced by `groups`", DeprecationWarning, stacklevel=2)
    lists = _grouped(optimizer, groups if groups is not None else num_groups or None)
    names = _check_names(named_parameters)
    if op is Adasum and size() > 1:
        if process_set is not global_process_set:
            raise NotImplementedError("Adasum does not support non-global process sets yet.")
        return _adasum_optimizer(optimizer, names, compression)
    own = own_of(compression)
    return _distributed.DistributedOptimizer(
        optimizer, names, Average.word if op is Adasum else op.word, "none" if own else compression.word,
        backward_passes_per_step, gradient_predivide_factor, sparse_as_dense,
        None if process_set is global_process_set or not process_set.included() else process_set.comm,
        groups=lists, compressor=own, alone=not process_set.included(),
    )  # fmt: skip
