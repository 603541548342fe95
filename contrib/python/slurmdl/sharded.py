# SPDX-License-Identifier: Apache-2.0
"""PyTorch: tensors that are distributed over ranks, as this rank's slab of them.

A DTensor (fully_shard, parallelize_module, distribute_tensor) and a ShardedTensor (FullyShardedDataParallel) are
recognised by their attributes.  Ranks are those of torch.distributed, which are also the run's.
"""

from typing import Any, Dict, List, NamedTuple, Tuple

import torch

from .arrays import is_tensor


class Slab(NamedTuple):
    """This rank's part of a tensor."""

    tensor: Any  # the tensor itself
    local: Any  # this rank's part, in its memory
    shape: Tuple[int, ...]  # of the whole tensor
    offset: Tuple[int, ...]  # where this part begins
    writes: bool  # whether this rank saves the part: replicas are saved once

    def to_write(self) -> "Slab":
        """The part of it that this rank saves."""
        if self.writes or not self.shape:
            return self
        none = (0,) * len(self.shape)
        return self._replace(local=torch.empty(none, dtype=self.local.dtype), offset=none)


def is_sharded(x: Any) -> bool:
    """Whether x is a DTensor or a ShardedTensor."""
    if type(x) is torch.Tensor or type(x) is torch.nn.Parameter:
        return False
    return is_tensor(x) and (hasattr(x, "placements") or hasattr(x, "local_shards"))


def slab_of(x: Any, name: str) -> Slab:
    """This rank's slab of a tensor for which is_sharded(); 'name' is for the error if there is none."""
    with torch.no_grad():
        return _of_shards(x, name) if hasattr(x, "local_shards") else _of_dtensor(x, name)


def size_of_world() -> int:
    """Number of ranks that torch knows."""
    world = torch.distributed
    return world.get_world_size() if world.is_available() and world.is_initialized() else 1


# ---- DTensor


def _order(cuts: List[Tuple[int, int, int]], name: str) -> List[Tuple[int, int, int]]:
    """The cuts (parts, index, split factor) of one dimension, in the order in which they were made.  Those of
    fully_shard() stand left of those of tensor parallelism but were made later, which a split factor shows.
    """
    later: List[Tuple[int, int, int]] = []
    for i, (_, _, factor) in enumerate(cuts):
        right = 1
        for parts, _, _ in cuts[i + 1 :]:
            right *= parts
        if factor > 1:
            if factor != right:
                raise TypeError(f"{name}: a rank has several pieces of it: redistribute it to Shard() or Replicate()")
            later.insert(0, cuts[i])
    return [c for c in cuts if c[2] <= 1] + later


def _box(n: int, cuts: List[Tuple[int, int, int]], name: str) -> Tuple[int, int]:
    """Begin and length of the remaining dimension: each cut is that of torch.chunk(), whose last parts may be short or
    empty."""
    begin = 0
    for parts, index, _ in _order(cuts, name):
        part = -(-n // parts)
        first = min(index * part, n)
        begin, n = begin + first, min(part, n - first)
    return begin, n


def _of_dtensor(x: Any, name: str) -> Slab:
    mesh, shape = x.device_mesh, tuple(x.shape)
    at = mesh.get_coordinate()
    # DDP over tensor parallelism: each replica has a mesh of its own
    writes = at is not None and bool((mesh.mesh == 0).any())
    cuts: List[List[Tuple[int, int, int]]] = [[] for _ in shape]
    for i, placement in enumerate(x.placements):
        if placement.is_partial():
            raise TypeError(f"{name}: is a partial sum on each rank: redistribute it to Shard() or Replicate()")
        dim = getattr(placement, "dim", None)
        if dim is None:
            writes = writes and at[i] == 0
        elif at is not None:
            cuts[dim].append((mesh.size(i), at[i], int(getattr(placement, "split_factor", 1))))
    local = x.detach().to_local()
    if at is None:
        if not shape:
            raise TypeError(f"{name}: is a scalar that only other ranks have")
        return Slab(x, torch.empty((0,) * len(shape), dtype=x.dtype), shape, (0,) * len(shape), False)
    boxes = [_box(n, c, name) for n, c in zip(shape, cuts)]
    if tuple(n for _, n in boxes) != tuple(local.shape):
        raise TypeError(f"{name}: this rank has {tuple(local.shape)} of {shape}, which does not match {x.placements}")
    return Slab(x, local, shape, tuple(begin for begin, _ in boxes), writes)


def like(parameter: Any, shape: Tuple[int, ...], kind: Any) -> Any:
    """A new tensor of an optimizer's state, distributed like its parameter, a DTensor: along the dimensions that have
    the parameter's size, and replicated along the others."""
    from torch.distributed import tensor  # type: ignore[attr-defined, unused-ignore]

    x = parameter.detach()
    if tuple(x.shape) == shape:
        return torch.empty_like(x, dtype=kind)
    kept = [d < x.dim() and n == x.shape[d] for d, n in enumerate(shape)]
    dims = [getattr(p, "dim", len(shape)) for p in x.placements]
    places = [p if d < len(shape) and kept[d] else tensor.Replicate() for d, p in zip(dims, x.placements)]
    own = x.to_local()
    local = torch.empty([own.shape[d] if kept[d] else n for d, n in enumerate(shape)], dtype=kind, device=own.device)
    whole: Dict[str, Any] = {"shape": torch.Size(shape), "stride": torch.empty(shape, device="meta").stride()}
    return tensor.DTensor.from_local(local, x.device_mesh, places, run_check=False, **whole)


# ---- ShardedTensor


def _of_shards(x: Any, name: str) -> Slab:
    shards, shape = x.local_shards(), tuple(x.size())
    if len(shards) > 1:
        raise TypeError(f"{name}: a rank has several pieces of it")
    if not shards:
        return Slab(x, torch.empty((0,) * len(shape), dtype=x.dtype), shape, (0,) * len(shape), False)
    group = getattr(x, "_process_group", None)
    # HYBRID_SHARD: each replica has a group of its own
    writes = group is None or 0 in torch.distributed.get_process_group_ranks(group)
    return Slab(x, shards[0].tensor.detach(), shape, tuple(shards[0].metadata.shard_offsets), writes)
