# SPDX-License-Identifier: Apache-2.0
"""Horovod's name for slurmdl.elastic."""

import functools
import sys
from typing import Any, Callable

from ..elastic import HostsUpdatedInterrupt, ObjectState, State, TorchState, train
from ..sampler import ElasticSampler

__all__ = ["ElasticSampler", "HostsUpdatedInterrupt", "ObjectState", "State", "TorchState", "run"]


def run(f: Callable[..., Any]) -> Callable[..., Any]:
    """As slurmdl.elastic.run().  The process of a rank that is no longer needed exits here, as with Horovod: what
    follows, such as saving the model on rank 0, is for the ranks that trained to the end."""

    @functools.wraps(f)
    def wrapper(state: State, *args: Any, **options: Any) -> Any:
        done, result = train(f, state, args, options)
        return result if done else sys.exit(0)

    return wrapper
