# SPDX-License-Identifier: Apache-2.0
"""A PyTorch sampler for ranks that leave and join: for slurmdl.elastic, with the interface of Horovod's."""

import random
import weakref
from typing import Any, Dict, Iterator, List

import torch.utils.data

from . import comm

samplers: "weakref.WeakSet[ElasticSampler]" = weakref.WeakSet()  # to distribute again when the world changes


class ElasticSampler(torch.utils.data.Sampler):  # type: ignore[misc, type-arg, unused-ignore]
    """Samples of a dataset, distributed over the ranks of the current world, without those that this epoch has used: a
    sampler for torch's DataLoader.

    It is part of the state: TorchState(sampler=sampler).  Call record_batch() after each batch, set_epoch() at the end
    of an epoch.  Its attributes, the order of the samples and state_dict() are Horovod's, so that each can continue
    from the checkpoints of the other.
    """

    def __init__(self, dataset: Any, shuffle: bool = True, seed: int = 0) -> None:
        # torch warns about this argument, which only some versions require and none uses
        self.dataset, self.shuffle, self.seed = dataset, shuffle, seed
        self.epoch = 0
        self.processed_num = 0
        samplers.add(self)
        self.reset()

    def reset(self) -> None:
        """The world has changed: distribute the rest of the epoch again."""
        formed = comm.current()
        self.rank, self.num_replicas = (formed.rank, formed.size) if formed is not None else (0, 1)
        order = list(range(len(self.dataset)))
        if self.shuffle:
            random.Random(self.seed + self.epoch).shuffle(order)
        self.remaining_indices = order[self.processed_num :]
        self.num_samples = -(-len(self.remaining_indices) // self.num_replicas)
        self.total_size = self.num_samples * self.num_replicas

    @property
    def indices(self) -> List[int]:
        """This rank's samples; all ranks have equally many, so that some samples may appear twice."""
        rest = self.remaining_indices
        times = -(-self.total_size // len(rest)) if rest else 0
        return (rest * times)[self.rank : self.total_size : self.num_replicas]

    def set_epoch(self, epoch: int) -> None:
        """Begin an epoch."""
        self.epoch, self.processed_num = epoch, 0
        self.reset()

    def record_batch(self, batch_idx: int, batch_size: int) -> None:
        """Record that each rank has trained a batch of this many samples."""
        self.processed_num += batch_size * self.num_replicas

    def __iter__(self) -> Iterator[int]:
        return iter(self.indices)

    def __len__(self) -> int:
        return self.num_samples

    def state_dict(self) -> Dict[str, int]:
        return {"epoch": self.epoch, "processed_num": self.processed_num}

    def load_state_dict(self, state: Dict[str, int]) -> None:
        self.epoch, self.processed_num = state["epoch"], state["processed_num"]
        self.reset()
