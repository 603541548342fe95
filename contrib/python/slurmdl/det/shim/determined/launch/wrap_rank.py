# SPDX-License-Identifier: Apache-2.0
"""python -m determined.launch.wrap_rank RANK [--] COMMAND: run it; which rank wrote a line is not marked."""

import os
import sys

if __name__ == "__main__":
    command = sys.argv[2:][sys.argv[2:3] == ["--"] :]
    if not command:
        sys.exit("usage: python -m determined.launch.wrap_rank RANK [--] COMMAND...")
    os.execvp(command[0], command)
