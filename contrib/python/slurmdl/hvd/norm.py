# SPDX-License-Identifier: Apache-2.0
"""Batch normalization over the batches of all ranks, on the host or a device."""

from typing import Any, Tuple

import torch
from torch.nn.modules.batchnorm import _BatchNorm

from .collectives import How, Sum, start_allreduce
from .world import size


def _sum(*parts: Any) -> Any:
    """Sum over all ranks, in one message."""
    whole = torch.cat([p.reshape(-1) for p in parts])
    start_allreduce(whole, None, How(Sum), True).wait()
    return torch.split(whole, [p.numel() for p in parts])


def _dims(x: Any) -> Tuple[int, ...]:
    return (0, *range(2, x.dim()))


def _wide(v: Any, x: Any) -> Any:
    """One number per channel, as a tensor with the dimensions of x."""
    return v.reshape(1, -1, *[1] * (x.dim() - 2))


class _Normalize(torch.autograd.Function):  # type: ignore[misc, unused-ignore]
    """Mean and variance over the samples of all ranks; S. Ioffe and C. Szegedy, 2015 (arXiv:1502.03167)."""

    @staticmethod
    def forward(ctx: Any, x: Any, weight: Any, bias: Any, eps: float) -> Any:
        real = x.float() if x.dtype in (torch.float16, torch.bfloat16) else x
        samples = real.new_tensor([real.numel() / max(real.shape[1], 1)])
        total, count = _sum(real.sum(_dims(x)), samples)
        mean = total / count
        (squares,) = _sum((real - _wide(mean, x)).square().sum(_dims(x)))
        inverse = torch.rsqrt(squares / count + eps)
        ctx.save_for_backward(x, mean, inverse, weight, count)
        out = (real - _wide(mean, x)) * _wide(inverse, x)
        if weight is not None:
            out = out * _wide(weight, x) + _wide(bias, x)
        ctx.mark_non_differentiable(mean, squares, count)
        return out.to(x.dtype), mean, squares, count

    @staticmethod
    def backward(ctx: Any, gradient: Any, *_: Any) -> Any:
        x, mean, inverse, weight, count = ctx.saved_tensors
        g = gradient.to(mean.dtype)
        normal = (x - _wide(mean, x)) * _wide(inverse, x)
        bias_part, weight_part = g.sum(_dims(x)), (g * normal).sum(_dims(x))
        back = None
        if ctx.needs_input_grad[0]:
            b, w = _sum(bias_part, weight_part)
            back = (g - _wide(b / count, x) - normal * _wide(w / count, x)) * _wide(inverse, x)
            back = (back * _wide(weight, x) if weight is not None else back).to(x.dtype)
        # the gradients of weight and bias are reduced with the other gradients
        if weight is None:
            return back, None, None, None
        return back, weight_part.to(weight.dtype), bias_part.to(weight.dtype), None


class SyncBatchNorm(_BatchNorm):  # type: ignore[misc, unused-ignore]
    """Replaces torch.nn.BatchNorm1d, 2d and 3d: in training, all ranks normalize by the same mean and variance."""

    def _check_input_dim(self, input: Any) -> None:
        if input.dim() < 2:
            raise ValueError(f"expected at least 2D input (got {input.dim()}D input)")

    def _follow(self, mean: Any, squares: Any, count: Any) -> None:
        """Update the running mean and variance."""
        # torch declares them optional; they are set while they are tracked
        tracked: Any = self.num_batches_tracked
        tracked += 1
        share = self.momentum if self.momentum is not None else 1 / float(tracked)
        followed: Any = ((self.running_mean, mean), (self.running_var, squares / (count - 1).clamp(min=1)))
        for running, now in followed:
            running.mul_(1 - share).add_(now.to(running.dtype), alpha=share)

    def forward(self, input: Any) -> Any:
        self._check_input_dim(input)
        if size() == 1 or (not self.training and self.track_running_stats):
            return super().forward(input)
        out, mean, squares, count = _Normalize.apply(input, self.weight, self.bias, self.eps)
        if self.training and self.track_running_stats:
            with torch.no_grad():
                self._follow(mean, squares, count)
        return out
