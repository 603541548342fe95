# SPDX-License-Identifier: Apache-2.0
"""Open one of the package's objects, and exit without closing it: endings.py OBJECT WAY."""

import gc
import os
import sys
import tempfile
import threading

import numpy

folder = tempfile.mkdtemp(dir=".")


def elastic():
    import slurmdl.elastic

    made = slurmdl.elastic.Elastic(dir=folder, min=1, settle=0.1, timeout=60)
    made.protect("x", numpy.ones(4))
    made.form().allreduce(numpy.ones(4))
    return made


def current():
    import slurmdl.elastic

    os.environ["DL_ELASTIC_DIR"] = folder
    os.environ["DL_ELASTIC_SETTLE"] = "0.1"
    return slurmdl.elastic.current(), slurmdl.elastic.world()


def part():
    import slurmdl.elastic

    made = slurmdl.elastic.Elastic(dir=folder, min=1, settle=0.1, timeout=60)
    world = made.form()
    return made, world, world.split(0)


def comm():
    import slurmdl.comm

    made = slurmdl.comm.init(rank=0, size=1)
    made.submit("x", numpy.ones(4))
    return made, made.split(0)


def run():
    import slurmdl

    made = slurmdl.init(folder)
    made.protect("x", numpy.ones(4))
    made.log("a", 1, 1)
    return made, made.metric("b")


class Late:
    """Use an object in __del__, when the garbage collector frees the cycle that it is in."""

    def __init__(self, of):
        self.of, self.me = of, self

    def __del__(self):
        for x in self.of if isinstance(self.of, tuple) else (self.of,):
            for name, args in (
                ("protect", ("y", numpy.ones(2))),
                ("log", ("a", 1, 2)),
                ("metric", ("c",)),
                ("wait", (1,)),
                ("close", ()),
            ):
                try:
                    getattr(x, name)(*args)
                except Exception:
                    pass


WAYS = {}


def way(f):
    WAYS[f.__name__] = f
    return f


@way
def end(make):
    global kept
    kept = make()


@way
def leave(make):
    global kept
    kept = make()
    sys.exit(0)


@way
def local(make):
    mine = make()
    sys.exit(0 if mine else 1)


@way
def at_once(make):
    global kept
    kept = make()
    os._exit(0)


@way
def cycle(make):
    mine = make()
    me = [mine]
    me.append(me)
    for x in mine if isinstance(mine, tuple) else (mine,):
        if hasattr(x, "__dict__"):
            x.me = me
    del mine, x, me
    gc.collect()


@way
def kept_cycle(make):
    global kept
    kept = make()
    for x in kept if isinstance(kept, tuple) else (kept,):
        if hasattr(x, "__dict__"):
            x.me = kept


@way
def finalizer(make):
    Late(make())
    gc.collect()


@way
def late_finalizer(make):
    global kept
    kept = Late(make())


@way
def builtins_too(make):
    import builtins

    builtins.kept = make()


@way
def thread(make):
    def work():
        global kept
        kept = make()

    t = threading.Thread(target=work)
    t.start()
    t.join()


@way
def daemon(make):
    global kept
    kept = make()
    begun = threading.Event()

    def work():
        begun.set()
        while True:
            for x in kept if isinstance(kept, tuple) else (kept,):
                try:
                    getattr(x, "closed", None), getattr(x, "size", None), repr(x)
                    x.log("a", 1, 3)
                except Exception:
                    pass

    threading.Thread(target=work, daemon=True).start()
    begun.wait()


@way
def fork(make):
    global kept
    kept = make()
    pid = os.fork()
    if pid == 0:
        sys.exit(0)
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))


@way
def subinterpreter(make):
    import _xxsubinterpreters as interpreters

    make()
    code = (
        f"import sys; sys.argv = {sys.argv[:2] + ['end']!r}; sys.path = {sys.path!r}; exec(open({__file__!r}).read())"
    )
    inner = interpreters.create()
    try:
        interpreters.run_string(inner, code)
    except Exception as error:  # numpy and torch may refuse a subinterpreter, but must not crash
        print(f"# {error}"[:200])
    interpreters.destroy(inner)


@way
def failure(make):
    global kept
    kept = make()
    raise RuntimeError("as wanted")


WAYS[sys.argv[2]](globals()[sys.argv[1]])
