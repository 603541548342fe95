# SPDX-License-Identifier: Apache-2.0
"""Functions in a module, for tests/python/notebook.py."""

from slurmdl import Choice, Float, Int, LogUniform

LIMIT = 5


def of_module(lr: LogUniform(1e-4, 1e-1), width: Int(16, 256) = 32):
    return {"result": lr * width, "other": LIMIT}


def two(a: Float(0, 1), b: Choice("x", "<b>&\"'", "ä")):
    return {"loss/a": a, "gain": len(b) - a}
