# SPDX-License-Identifier: Apache-2.0
"""TAP for the scripts in this folder; tap() in tests/lib.sh numbers the lines."""

import contextlib


def ok(condition, name):
    print(("ok" if condition else "not ok") + " - " + name, flush=True)


def same(got, wanted, name):
    ok(got == wanted, name)
    if got != wanted:
        print(f"# got:    {repr(got)[:500]}\n# wanted: {repr(wanted)[:500]}", flush=True)


def on_all(world, rank):
    """Return told(CONDITION, NAME): a check that passes if the condition holds on all ranks, and that rank 0 prints."""

    def told(condition, name):
        every = world.allgather_object(bool(condition))
        if rank == 0:
            ok(all(every), name if all(every) else f"{name} (not on ranks {[r for r, e in enumerate(every) if not e]})")

    return told


@contextlib.contextmanager
def raises(kind, text, name):
    try:
        yield
    except kind as error:
        ok(text in str(error), name)
        if text not in str(error):
            print(f"# {error}", flush=True)
    else:
        ok(False, name)


def skip(name, why):
    print(f"ok - {name} # SKIP {why}", flush=True)
