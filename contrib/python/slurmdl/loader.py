# SPDX-License-Identifier: Apache-2.0
"""PyTorch: batches of a dataset that can resume in the middle of an epoch."""

import random
import sys
from typing import Any, Dict, Iterator, List

import torch


def _mix(*numbers: int) -> int:
    """A 32-bit seed from some numbers."""
    h = 0x9E3779B97F4A7C15
    for n in numbers:
        h = ((h ^ (n & 0xFFFFFFFFFFFFFFFF)) * 0xBF58476D1CE4E5B9) & 0xFFFFFFFFFFFFFFFF
        h ^= h >> 29
    return h & 0xFFFFFFFF


class _Seeded(torch.utils.data.Dataset):  # type: ignore[misc, type-arg, unused-ignore]
    """In a worker each sample gets random numbers of its own: the same wherever the loader started."""

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
    """Batches of a dataset with a length; they resume exactly where they were when the checkpoint was saved.

    The order of an epoch depends only on 'seed' and the epoch.  With several ranks each gets a share, padded to the
    same length as DistributedSampler does. epoch and position (batches taken from it) are the state; save it in the
    body of the loop or between epochs.  If a loop is left, the next loop continues there.  With workers each sample
    gets random numbers of its own, so that augmentation does not depend on where the loader started.  Further arguments
    are passed to torch's DataLoader.
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
        if batch_size < 1:
            raise ValueError(f"batch_size must be at least 1, not {batch_size}")
        if not hasattr(dataset, "__len__"):
            raise TypeError(f"{type(dataset).__name__} has no length: a ResumableLoader needs a dataset with one")
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
        # a separate generator: torch's, which the training uses, stays untouched
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
        """Samples are counted, so that the number of ranks or the batch size may have changed."""
        if state["length"] != len(self.dataset):
            raise ValueError(f"the dataset had {state['length']} samples and has {len(self.dataset)} now")
        self.epoch, self.seed = state["epoch"], state["seed"]
        self.position = state["samples"] // (self.batch_size * self.size)
