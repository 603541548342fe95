# SPDX-License-Identifier: Apache-2.0
"""Run ranks of torch.distributed as forked children of the test, so that slow imports happen only once."""

import json
import os
import sys
import tempfile
import traceback

import torch.distributed as dist
from check import ok


class Told:
    """Collect the results of a rank's checks by name."""

    def __init__(self):
        self.found = {}

    def __call__(self, condition, name):
        self.found[name] = self.found.get(name, True) and bool(condition)

    def raises(self, kind, text, name, f, *args, **options):
        try:
            f(*args, **options)
        except kind as error:
            self(text in str(error), name)
            if text not in str(error):
                print(f"# {error}", flush=True)
        else:
            self(False, name)


def one_rank(rank, size, store, f, args):
    os.environ.update(RANK=str(rank), WORLD_SIZE=str(size), LOCAL_RANK=str(rank), LOCAL_WORLD_SIZE=str(size))
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=size)
    told = Told()
    f(told, *args)
    dist.barrier()
    dist.destroy_process_group()
    return told.found


def world(size, f, *args):
    """Call f(told, *args) on 'size' ranks.  A check passes if it holds on all ranks."""
    sys.stdout.flush()
    pipes = []
    with tempfile.TemporaryDirectory() as folder:
        for rank in range(size):
            r, w = os.pipe()
            if os.fork() == 0:
                found = None
                try:
                    found = one_rank(rank, size, os.path.join(folder, "store"), f, args)
                except BaseException:
                    traceback.print_exc()
                os.write(w, json.dumps(found).encode())
                sys.stdout.flush()
                os._exit(0)
            os.close(w)
            pipes.append(r)
        every = [json.loads(os.fdopen(r, "rb").read() or b"null") for r in pipes]
    for _ in pipes:
        os.wait()
    name = f"{size} ranks, {f.__name__}{''.join(f' {a}' for a in args if isinstance(a, str))}"
    ok(None not in every, f"{name}: all ranks finish")
    for what in every[0] or {}:
        wrong = [r for r, found in enumerate(every) if not (found or {}).get(what)]
        ok(not wrong, f"{name}: {what}" + (f" (not on ranks {wrong})" if wrong else ""))
