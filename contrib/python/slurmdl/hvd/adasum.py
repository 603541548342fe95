# SPDX-License-Identifier: Apache-2.0
"""Adaptive sums: the average of gradients with the same direction, the sum of orthogonal ones.

S. Maleki et al., Scaling Distributed Training with Adaptive Summation, 2020 (arXiv:2006.02924).
"""

from typing import Any, List, Sequence

import torch


def _pair(a: Any, b: Any) -> Any:
    both, aa, bb = torch.dot(a, b), torch.dot(a, a), torch.dot(b, b)
    # a zero gradient contributes nothing
    u = 1 - both / (2 * aa) if aa > 0 else torch.ones_like(aa)
    v = 1 - both / (2 * bb) if bb > 0 else torch.ones_like(bb)
    return u * a + v * b


def adasum(rows: Any) -> Any:
    """Combine the rows of a matrix, a power of two of them, in pairs of neighbours; in double precision."""
    left: Sequence[Any] = rows.double().unbind(0)
    while len(left) > 1:
        pairs: List[Any] = [_pair(a, b) for a, b in zip(left[::2], left[1::2])]
        left = pairs
    return left[0].to(rows.dtype)


def check(ranks: int) -> None:
    if ranks & (ranks - 1):
        raise NotImplementedError(f"Adasum of {ranks} ranks: their number has to be a power of two")
