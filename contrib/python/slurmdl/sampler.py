# SPDX-License-Identifier: Apache-2.0
"""A sampler of PyTorch whose ranks may leave and come: that of slurmdl.elastic, and Horovod's by its names."""

import random
import weakref
from typing import Any, Dict, Iterator, List

import torch.utils.data

from . import comm

samplers: "weakref.WeakSet[ElasticSampler]" = weakref.WeakSet()  # to share out anew when the world changes


class ElasticSampler(torch.utils.data.Sampler):  # type: ignore[misc, type-arg, unused-ignore]
    """Samples of a dataset, shared out over the ranks of the world that is, without those that this epoch has had:
    a sampler for torch's DataLoader.  It is part of the state: TorchState(sampler=sampler); record_batch() after
    each batch, set_epoch() at the end of an epoch.  Its attributes, the order of the samples and state_dict() are
    Horovod's, so that each goes on from the checkpoints of the other."""

    def __init__(self, dataset: Any, shuffle: bool = True, seed: int = 0) -> None:
        # torch warns of an argument that some versions want: it has no use for one
        self.dataset, self.shuffle, self.seed = dataset, shuffle, seed
        self.epoch = 0
        self.processed_num = 0
        samplers.add(self)
        self.reset()

    def reset(self) -> None:
        """The world has changed: share the rest of the epoch out anew."""
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
        """This rank's; all ranks have as many, some of which come twice where they have to."""
        rest = self.remaining_indices
        times = -(-self.total_size // len(rest)) if rest else 0
        return (rest * times)[self.rank : self.total_size : self.num_replicas]

    def set_epoch(self, epoch: int) -> None:
        """Begin an epoch."""
        self.epoch, self.processed_num = epoch, 0
        self.reset()

    def record_batch(self, batch_idx: int, batch_size: int) -> None:
        """A batch of so many samples was trained on each rank."""
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
