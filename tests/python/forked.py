# SPDX-License-Identifier: Apache-2.0
"""Run scripts as forked children of one interpreter, so that slow imports happen only once.

forked.py runs worlds of ranks.  Each line on standard input is NAME RANKS SCRIPT [ARGUMENT...]; a line "torch" imports
PyTorch for the lines after it.  Rank 0 prints TAP.
"""

import os
import random
import runpy
import signal
import sys

from check import ok


def start(words, out, err, **variables):
    """Start a script, or -m and a module, with its arguments, its output in files if given, and a limit of 300 s.

    Return the pid of the child.
    """
    sys.stdout.flush()
    pid = os.fork()
    if pid:
        return pid
    signal.alarm(300)
    for fd, path in enumerate((out, err), 1):
        if path is not None:
            os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666), fd)
    os.environ.update(variables)
    sys.argv = words[1:] if words[0] == "-m" else words
    (runpy.run_module if words[0] == "-m" else runpy.run_path)(sys.argv[0], run_name="__main__")
    sys.exit()


def world(port, name, ranks, *words):
    os.makedirs(name, exist_ok=True)
    os.chdir(name)
    about = {"WORLD_SIZE": ranks, "DL_COMM_ADDRESS": f"127.0.0.1:{port}"}
    pids = [start(list(words), f"out.{r}", f"err.{r}", RANK=str(r), **about) for r in range(int(ranks))]
    bad = sum(os.waitpid(pid, 0)[1] != 0 for pid in pids)
    with open("out.0") as f:
        print(f.read().replace("ok - ", f"ok - {name}: "), end="")
    ok(bad == 0, f"{name}: {ranks} ranks exit with status 0")
    for r in range(int(ranks) if bad else 0):
        with open(f"err.{r}") as f:
            print("# " + "# ".join(f.readlines()[-4:]))
    os.chdir("..")


if __name__ == "__main__":
    # below the ephemeral ports, and below those of contrib/minicluster
    port = random.randrange(10000, 19990)
    for line in sys.stdin:
        if line == "torch\n":
            import torch  # noqa: F401
            continue
        port += 1
        world(port, *line.split())
