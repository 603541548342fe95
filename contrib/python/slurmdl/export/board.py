# SPDX-License-Identifier: Apache-2.0
"""TensorBoard for `dl tensorboard`: on loopback, below a path that nobody can guess.

TensorBoard has no passwords, and other users of the machine can connect to its port.  The path is generated here and
never appears on a command line, where they could read it.
"""

import getpass
import secrets
import signal
import socket
import sys

from ..program import NOT_FOUND, OK, complain

# its reader in Rust is a separate server, without a path
_OWN = "--load_fast=false"


def main(folder: str) -> int:
    """Serve the files of a folder until a signal arrives; with "" only check whether that is possible."""
    try:
        from tensorboard import program  # type: ignore[import-not-found, import-untyped, unused-ignore]
    except ImportError:
        complain(f"tensorboard is not installed: {sys.executable} -m pip install tensorboard")
        return NOT_FOUND
    if not folder:
        return OK
    board = program.TensorBoard()
    path = "/" + secrets.token_urlsafe(24)
    board.configure(
        argv=["tensorboard", "--logdir", folder, "--host", "127.0.0.1", "--port", "0", "--path_prefix", path, _OWN]
    )
    url = board.launch()
    port = url.split(":")[2].split("/")[0]
    print(f"http://127.0.0.1:{port}{path}/")
    print("Open it in a browser on your machine, after running this there (Ctrl-C here stops it):")
    print(f"  ssh -N -L {port}:127.0.0.1:{port} {getpass.getuser()}@{socket.getfqdn()}", flush=True)
    for name in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(name, lambda *_: sys.exit(0))
    while True:
        signal.pause()
