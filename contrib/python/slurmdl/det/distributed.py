# SPDX-License-Identifier: Apache-2.0
"""Determined's DistributedContext: objects exchanged between ranks, with the communication library that the script
uses.

Everything is based on one call, in which all ranks gather one object of each: by torch.distributed (gloo) if it is
initialised, by Horovod (slurmdl.hvd too), or else by slurmdl.comm.  Objects are sent as messages (slurmdl.message),
which run no code where they are read; objects that only a pickle can represent require trust=True from the caller.
"""

import os
from typing import Any, Callable, List, Optional

from .. import message
from .._slurmdl import Error

Gather = Callable[[Any], List[Any]]


def _of_torch(local_size: int, trust: bool) -> "tuple[Gather, Gather]":
    """(over all ranks, over those of this node)."""
    import torch
    import torch.distributed as dist

    # its all_gather_object() unpickles anything
    def gather_in(group: Any, size: int) -> Gather:
        def gather(stuff: Any) -> List[Any]:
            data = torch.frombuffer(bytearray(message.to_send(stuff, trust)), dtype=torch.uint8)
            lengths = [torch.zeros(1, dtype=torch.int64) for _ in range(size)]
            dist.all_gather(lengths, torch.tensor([len(data)]), group=group)
            most = max(int(n) for n in lengths)
            found = [torch.zeros(most, dtype=torch.uint8) for _ in range(size)]
            dist.all_gather(found, torch.nn.functional.pad(data, (0, most - len(data))), group=group)
            return [
                message.from_bytes(f[: int(n)].numpy().tobytes(), trust, f"rank {r}")
                for r, (f, n) in enumerate(zip(found, lengths))
            ]

        return gather

    size = dist.get_world_size()
    everybody = dist.new_group(backend="gloo")
    # all ranks create the groups of all nodes
    firsts = range(0, size, local_size)
    nodes = [dist.new_group(list(range(i, i + local_size)), backend="gloo") for i in firsts]
    return gather_in(everybody, size), gather_in(nodes[dist.get_rank() // local_size], local_size)


def _of_comm(rank: int, size: int, cross_rank: int, trust: bool) -> "tuple[Gather, Gather]":
    from .. import comm

    world = comm.current() or comm.init(rank=rank, size=size)
    node = world.split(cross_rank)
    if node is None:
        raise Error("DistributedContext: there are no ranks on this node")
    return (
        lambda stuff: world.allgather_object(stuff, trust=trust),
        lambda stuff: node.allgather_object(stuff, trust=trust),
    )


def _number(*names: str) -> Optional[int]:
    """The first of these variables that is set."""
    for name in names:
        if os.environ.get(name, "").isdigit():
            return int(os.environ[name])
    return None


class DistributedContext:
    """Ranks: among all, on this node (local), and the number of the node (cross).  All ranks make their calls in the
    same order."""

    def __init__(
        self,
        *,
        rank: int,
        size: int,
        local_rank: int,
        local_size: int,
        cross_rank: int,
        cross_size: int,
        chief_ip: Optional[str] = None,
        trust: bool = False,
        _gather: Optional[Gather] = None,
        **_ports: Any,
    ) -> None:
        if not (0 <= rank < size and 0 <= local_rank < local_size and 0 <= cross_rank < cross_size):
            raise ValueError(f"rank {rank} of {size}, {local_rank} of {local_size}, {cross_rank} of {cross_size}")
        if cross_size > 1 and local_size * cross_size != size:
            raise ValueError(f"{local_size} ranks on each of {cross_size} nodes are not {size}")
        self.rank, self.size = rank, size
        self.local_rank, self.local_size = local_rank, local_size
        self.cross_rank, self.cross_size = cross_rank, cross_size
        if size == 1:
            self._all: Gather = lambda stuff: [stuff]
            self._near: Gather = self._all
        elif _gather is not None:
            self._all, self._near = _gather, lambda stuff: _gather(stuff)[rank - local_rank :][:local_size]
        elif _has_torch():
            self._all, self._near = _of_torch(local_size, trust)
        else:
            self._all, self._near = _of_comm(rank, size, cross_rank, trust)
        # slurmdl.init() reads these to find out which rank writes the metrics
        os.environ.update(RANK=str(rank), WORLD_SIZE=str(size), LOCAL_RANK=str(local_rank))

    @classmethod
    def from_torch_distributed(cls, chief_ip: Optional[str] = None, *, trust: bool = False) -> "DistributedContext":
        """After torch.distributed.init_process_group(), or with the variables of torchrun or srun --dl=torch."""
        if _has_torch():
            import torch.distributed as dist

            return cls._of_variables(dist.get_rank(), dist.get_world_size(), chief_ip, trust)
        rank, size = _number("RANK"), _number("WORLD_SIZE")
        if rank is None or size is None:
            raise Error("from_torch_distributed: there are no ranks: start them by torchrun or srun --dl=torch")
        return cls._of_variables(rank, size, chief_ip, trust)

    from_deepspeed = from_torch_distributed

    @classmethod
    def _of_variables(cls, rank: int, size: int, chief_ip: Optional[str], trust: bool) -> "DistributedContext":
        local_rank = _number("LOCAL_RANK", "SLURM_LOCALID") or 0
        local_size = _number("LOCAL_WORLD_SIZE") or (size if _number("SLURM_NNODES") in (None, 1) else 1)
        return cls(
            rank=rank,
            size=size,
            local_rank=local_rank,
            local_size=local_size,
            cross_rank=rank // local_size,
            cross_size=size // local_size,
            chief_ip=chief_ip,
            trust=trust,
        )

    @classmethod
    def from_horovod(cls, hvd: Any, chief_ip: Optional[str] = None) -> "DistributedContext":
        """With horovod.torch or slurmdl.hvd, after hvd.init()."""
        return cls(
            rank=hvd.rank(),
            size=hvd.size(),
            local_rank=hvd.local_rank(),
            local_size=hvd.local_size(),
            cross_rank=hvd.cross_rank(),
            cross_size=hvd.cross_size(),
            chief_ip=chief_ip,
            _gather=hvd.allgather_object,
        )

    @classmethod
    def from_tf_config(cls) -> Any:
        raise NotImplementedError("from_tf_config is not offered by slurmdl.det: use DistributedContext(rank=...)")

    def close(self) -> None:
        pass

    def get_rank(self) -> int:
        return self.rank

    def get_local_rank(self) -> int:
        return self.local_rank

    def get_size(self) -> int:
        return self.size

    def get_num_agents(self) -> int:
        return self.cross_size

    def allgather(self, stuff: Any) -> List[Any]:
        """A list with the object of each rank."""
        return self._all(stuff)

    def allgather_local(self, stuff: Any) -> List[Any]:
        return self._near(stuff)

    def gather(self, stuff: Any) -> Optional[List[Any]]:
        """The list on rank 0, None on the others."""
        found = self._all(stuff)
        return found if self.rank == 0 else None

    def gather_local(self, stuff: Any) -> Optional[List[Any]]:
        found = self._near(stuff)
        return found if self.local_rank == 0 else None

    def broadcast(self, stuff: Any = None) -> Any:
        """The object of rank 0."""
        return self._all(stuff if self.rank == 0 else None)[0]

    def broadcast_local(self, stuff: Any = None) -> Any:
        return self._near(stuff if self.local_rank == 0 else None)[0]

    def barrier(self) -> None:
        self._all(None)


def _has_torch() -> bool:
    import sys

    if "torch" not in sys.modules:
        return False
    dist = sys.modules["torch"].distributed
    return bool(dist.is_available() and dist.is_initialized())


def alone() -> DistributedContext:
    """A single process."""
    return DistributedContext(rank=0, size=1, local_rank=0, local_size=1, cross_rank=0, cross_size=1)
