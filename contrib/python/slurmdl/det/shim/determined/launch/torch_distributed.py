# SPDX-License-Identifier: Apache-2.0
"""python -m determined.launch.torch_distributed [TORCHRUN_OPTIONS] [--] COMMAND: a rank for each slot.

Where dl or srun has started the ranks already (resources.framework = "torch") the command is run as it is.
"""

import os
import sys

import determined as det


def split(arguments):  # type: ignore[no-untyped-def]
    """(options, command)."""
    if "--" in arguments:
        at = arguments.index("--")
        return arguments[:at], arguments[at + 1 :]
    at = next((i for i, word in enumerate(arguments) if not word.startswith("-")), len(arguments))
    return arguments[:at], arguments[at:]


if __name__ == "__main__":
    options, command = split(sys.argv[1:])
    if not command:
        sys.exit("usage: python -m determined.launch.torch_distributed [OPTION...] [--] COMMAND...")
    if command[0].endswith(".py"):
        command = [sys.executable, *command]
    if "RANK" not in os.environ:
        info = det.core.get_cluster_info()
        if info is not None and len(info.container_addrs) > 1:
            sys.exit('determined.launch: on several nodes set resources.framework = "torch" and ranks_per_node')
        ranks = len(info.slot_ids) if info is not None else 1
        torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc_per_node={ranks}"]
        command = [*torchrun, *options, "--no_python", *command]
    os.execvp(command[0], command)
