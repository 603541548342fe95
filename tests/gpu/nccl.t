#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# case: order 21, seconds 70
"""slurmdl-nccl.so with one rank: collectives, streams and timeouts, with the system's NCCL and with PyTorch's."""

import glob
import os
import sys
import sysconfig

from gpu import STAND_INS, case, done, left, relay, say, skip, skip_all

program = os.path.join(os.environ["builddir"], "tests", "gpu", "backend")


def system():
    relay("system", [program], left(100))


def pytorch():
    """Run the cases with the NCCL in Python's packages, where torch finds it."""
    found = [d for top in {sysconfig.get_path("purelib"), sysconfig.get_path("platlib"), *sys.path}
             for d in glob.glob(os.path.join(top, "nvidia", "nccl", "lib"))]
    if STAND_INS or not found:
        skip("NCCL of Python's packages", "stand-ins" if STAND_INS else "no nvidia/nccl in site-packages")
        return
    say(f"NCCL of {found[0]}")
    path = f"{found[0]}:{os.environ.get('LD_LIBRARY_PATH', '')}"
    relay("PyTorch's", [program, "alone"], left(100), env=dict(os.environ, LD_LIBRARY_PATH=path))


if not os.access(program, os.X_OK):
    skip_all(f"{program} was not built")
case(system)
case(pytorch)
done()
