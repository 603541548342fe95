# SPDX-License-Identifier: Apache-2.0
# With --dl-debug, in each Python: a signal writes the stacks of all threads, an uncaught exception is kept.
import os
import sys


def _keep_stacks():
    import faulthandler
    import fcntl

    import _signal as signal  # signal itself imports much more

    if hasattr(os, "memfd_create"):
        fd = os.memfd_create("dl-debug")
    else:
        path = "/tmp/dl-debug.%d.%d" % (os.getpid(), id(signal))
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        os.unlink(path)
    # away from the numbers that programs expect their own files to have
    high = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 200)
    os.close(fd)
    fcntl.fcntl(high, fcntl.F_SETFL, fcntl.fcntl(high, fcntl.F_GETFL) | os.O_APPEND)
    number = signal.SIGRTMIN + 18
    if signal.getsignal(number) == signal.SIG_DFL:
        faulthandler.register(number, file=high, all_threads=True, chain=False)


def _keep_exceptions(folder):
    before = sys.excepthook

    def hook(kind, value, trace):
        try:
            import traceback

            name = "error.%s.%d" % (os.environ.get("SLURM_PROCID", "0"), os.getpid())
            with open(os.path.join(folder, name), "w") as f:
                f.write("".join(traceback.format_exception(kind, value, trace)))
        except Exception:
            pass
        before(kind, value, trace)

    sys.excepthook = hook


def _next_one():
    """Run the sitecustomize that this one hides."""
    try:  # what importlib itself is made of, without its imports
        from _frozen_importlib import module_from_spec
        from _frozen_importlib_external import PathFinder
    except ImportError:
        from importlib.machinery import PathFinder
        from importlib.util import module_from_spec

    here = os.path.dirname(os.path.abspath(__file__))
    spec = PathFinder.find_spec("sitecustomize", [p for p in sys.path if os.path.abspath(p or ".") != here])
    if spec is None or spec.loader is None:
        return None
    return spec, module_from_spec(spec)


try:
    if os.environ.get("DL_DEBUG_PATH"):
        _keep_exceptions(os.environ["DL_DEBUG_PATH"])
        _keep_stacks()
except Exception:
    pass
try:
    _next = _next_one()
except Exception:
    _next = None
if _next:
    sys.modules[__name__] = _next[1]
    _next[0].loader.exec_module(_next[1])
