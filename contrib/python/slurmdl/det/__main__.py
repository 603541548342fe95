# SPDX-License-Identifier: Apache-2.0
"""python -m slurmdl.det SCRIPT ARGUMENTS, or -m MODULE ARGUMENTS: run a program that imports determined."""

import os
import secrets
import socket

from .. import __main__ as program
from . import stand_in


def _prepare() -> None:
    """For ranks that the script starts on this machine; ranks of srun and torchrun have their own variables."""
    stand_in()
    if "DL_SECRET" in os.environ or "DL_COMM_ADDRESS" in os.environ:
        return
    os.environ["DL_SECRET"] = secrets.token_hex(16)
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        os.environ["DL_COMM_ADDRESS"] = "127.0.0.1:%d" % s.getsockname()[1]


if __name__ == "__main__":
    program.run_script("slurmdl.det", _prepare)
