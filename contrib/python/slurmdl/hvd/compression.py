# SPDX-License-Identifier: Apache-2.0
"""How gradients are sent.  A script's own class with compress() and decompress() works, too."""

from typing import Any, Tuple

import torch


class Compressor:
    """Base class for a script's own compression: sums are computed from what compress() returns.  'word' names a
    compression that the library applies itself while it adds: collectives do not call compress() then.
    """

    word = ""

    @staticmethod
    def compress(tensor: Any) -> Tuple[Any, Any]:
        """The tensor to send, and a context for decompress()."""
        raise NotImplementedError

    @staticmethod
    def decompress(tensor: Any, ctx: Any) -> Any:
        raise NotImplementedError


class NoneCompressor(Compressor):
    word = "none"

    @staticmethod
    def compress(tensor: Any) -> Tuple[Any, Any]:
        return tensor, None

    @staticmethod
    def decompress(tensor: Any, ctx: Any) -> Any:
        return tensor


class FP16Compressor(Compressor):
    word = "f16"
    narrow = torch.float16

    @classmethod
    def compress(cls, tensor: Any) -> Tuple[Any, Any]:
        return (tensor.type(cls.narrow) if tensor.dtype.is_floating_point else tensor), tensor.dtype

    @staticmethod
    def decompress(tensor: Any, ctx: Any) -> Any:
        return tensor.type(ctx)


class BF16Compressor(FP16Compressor):
    word = "bf16"
    narrow = torch.bfloat16


class Compression:
    """Horovod's none and fp16; additionally bf16."""

    none = NoneCompressor
    fp16 = FP16Compressor
    bf16 = BF16Compressor


def own_of(compression: Any) -> Any:
    """The script's own compression, None if the library implements it."""
    return None if getattr(compression, "word", "") else compression
