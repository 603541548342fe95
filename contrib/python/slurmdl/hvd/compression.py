# SPDX-License-Identifier: Apache-2.0
"""How gradients travel.  A script's own classes with compress() and decompress() serve, too."""

from typing import Any, Tuple

import torch


class Compressor:
    """What a script's own compression has: all sums are made of what compress() returns.

    'word' is what the library does itself, while it adds: then compress() is not called by collectives.
    """

    word = ""

    @staticmethod
    def compress(tensor: Any) -> Tuple[Any, Any]:
        """The tensor as it travels, and what decompress() wants to know."""
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
    """Horovod's none and fp16; and ours: bf16."""

    none = NoneCompressor
    fp16 = FP16Compressor
    bf16 = BF16Compressor


def own_of(compression: Any) -> Any:
    """The script's own compression, None if the library has it."""
    return None if getattr(compression, "word", "") else compression
