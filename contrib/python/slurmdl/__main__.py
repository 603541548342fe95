# SPDX-License-Identifier: Apache-2.0
"""python -m slurmdl SCRIPT ARGUMENTS, or -m MODULE ARGUMENTS: run a program, and collect what it logs and prints."""

import os
import runpy
import sys
from typing import Callable

from . import init


def run_script(name: str, prepare: Callable[[], object]) -> None:
    """Run the program of the command line in this process, after prepare()."""
    arguments = sys.argv[1:]
    module = arguments[:1] == ["-m"]
    if module:
        arguments = arguments[1:]
    if not arguments or (arguments[0].startswith("-") and not module):
        raise SystemExit(f"usage: {os.path.basename(sys.executable)} -m {name} SCRIPT ARGUMENTS | -m MODULE ARGUMENTS")
    if not module and not os.path.exists(arguments[0]):
        raise SystemExit(f"{name}: {arguments[0]}: there is no such script")
    prepare()
    sys.argv[:] = arguments
    if module:
        sys.path[0] = os.getcwd()
        runpy.run_module(arguments[0], run_name="__main__", alter_sys=True)
    else:
        sys.path[0] = os.path.dirname(os.path.abspath(arguments[0]))
        runpy.run_path(arguments[0], run_name="__main__")


if __name__ == "__main__":
    run_script("slurmdl", lambda: init(capture=True))
