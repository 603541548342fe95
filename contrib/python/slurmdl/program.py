# SPDX-License-Identifier: Apache-2.0
"""Call the program dl, which reads, starts and controls all experiments."""

import json
import shutil
import subprocess
import sys
from typing import Any, List, Mapping, Optional, Tuple

from ._slurmdl import Error

PROGRAM = "dl"

# exit statuses of dl(1)
OK, FAILED, USAGE, NOT_FOUND, IO_ERROR = 0, 1, 2, 3, 7


def popen(arguments: List[str], **options: Any) -> "subprocess.Popen[str]":
    """Start dl; it does not read this process's standard input, and Ctrl-C does not reach it."""
    options = {"stdin": subprocess.DEVNULL, "encoding": "utf-8", "errors": "replace", **options}
    try:
        return subprocess.Popen([PROGRAM, *arguments], start_new_session=True, **options)
    except OSError as error:
        # PermissionError can also mean that a folder in PATH is not accessible and no other one has the program
        if not isinstance(error, (FileNotFoundError, PermissionError)) or shutil.which(PROGRAM):
            raise Error(f"cannot run '{PROGRAM}': {error.strerror}") from None
        where = "install slurm-dl, or add the folder of its programs to PATH"
        raise Error(f"there is no program '{PROGRAM}' in PATH: {where}") from None


def printable(text: str) -> str:
    """Foreign text, safe for a comment or a terminal: one line, without control characters."""
    return "".join(c if c.isprintable() else "?" for c in text)


def complain(text: str) -> None:
    """Print one line on standard error, whatever the text contains."""
    print("dl: " + printable(text), file=sys.stderr)


def message_of(output: str, arguments: List[str], status: int) -> str:
    """The error of dl, without its own name before each line."""
    lines = [printable(line[4:] if line.startswith("dl: ") else line) for line in output.strip().splitlines()]
    return "\n".join(lines) or f"dl {arguments[0]} ended with status {status}"


def call(
    *arguments: str, good: Tuple[int, ...] = (0,), env: Optional[Mapping[str, str]] = None
) -> Tuple[int, str]:
    """Run dl to its end: (status, standard output).  If the status is not in 'good', raise slurmdl.Error with dl's
    message."""
    process = popen(list(arguments), stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env)
    try:
        output, errors = process.communicate()
    except BaseException:
        process.kill()
        process.wait()
        raise
    if process.returncode not in good:
        raise Error(message_of(errors, list(arguments), process.returncode))
    return process.returncode, output


def call_json(*arguments: str) -> Any:
    return json.loads(call(*arguments)[1])
