# SPDX-License-Identifier: Apache-2.0
"""Save or restore objects with pickles in them: trust.py save|load FOLDER HOW KIND..., with HOW plain, trust or weights_only.
Each kind has a folder below FOLDER and a line of output.  Its pickle creates the file $RAN.KIND where it is unpickled."""

import os
import sys

import numpy

import slurmdl

action, group, how, *kinds = sys.argv[1:]
options = {} if how == "plain" else {how: True}


class Code:
    def __reduce__(self):
        return (os.system, (f"touch '{os.environ['RAN']}'",))


def estimator(run):
    import slurmdl.sklearn as sk

    if action == "save":
        return sk.save(run, Code(), 1)
    return sk.restore(run, **options)


def model(run):
    import torch

    import slurmdl.torch as st

    net = torch.nn.Linear(2, 2)
    if action == "save":
        return st.save_model(run, 1, model=net, extra={"schedule": Code()})
    return st.restore_model(run, model=net, **options)


def random_states(run):
    import torch

    import slurmdl.torch as st

    net = torch.nn.Linear(2, 2)
    if action == "save":
        st.random_state = lambda: {"python": Code()}
        return st.save_model(run, 1, model=net)
    return st.restore_model(run, model=net, **options)


def file(run):
    import slurmdl.torch as st

    path = os.path.join(folder, "file.h5")
    return st.save({"x": Code()}, path, 1) if action == "save" else st.load(path, **options)


def tensor(run):
    """A tensor that torch itself has to unpickle."""
    import base64
    import io

    import torch

    import slurmdl.tensors
    import slurmdl.torch as st

    path = os.path.join(folder, "tensor.h5")
    if action == "load":
        return st.load(path, **options)
    data = io.BytesIO()
    torch.save({"x": Code()}, data)
    slurmdl.tensors._saved = lambda x: {"saved": base64.b64encode(data.getvalue()).decode()}
    return st.save({"x": torch.eye(2).to_sparse()}, path, 1)


def lightning(run):
    """Lightning's checkpoints, with stand-ins for its classes."""
    import types

    for name, cls in (
        ("lightning.pytorch", "Callback"),
        ("lightning.fabric.plugins.io.checkpoint_io", "CheckpointIO"),
        ("lightning.pytorch.loggers.logger", "Logger"),
    ):
        parts = name.split(".")
        for i in range(1, len(parts) + 1):
            module = sys.modules.setdefault(".".join(parts[:i]), types.ModuleType(".".join(parts[:i])))
            if i > 1:
                setattr(sys.modules[".".join(parts[: i - 1])], parts[i - 1], module)
        setattr(module, cls, type(cls, (), {}))
    import slurmdl.lightning as sl

    path = os.path.join(folder, "lightning.h5")
    trust = {"trust": True} if options.pop("trust", False) else {}
    if action == "save":
        return sl.CheckpointIO().save_checkpoint({"x": Code()}, path)
    return sl.CheckpointIO(**trust).load_checkpoint(path, **options)


def harmless(run):
    """Objects that need no pickle."""
    import torch

    import slurmdl.torch as st

    path = os.path.join(folder, "harmless.h5")
    whole = {
        "sparse": torch.eye(2).to_sparse(), "set": {1, 2}, "size": torch.Size([2, 3]), "type": torch.bfloat16,
        "device": torch.device("cpu"), "number": numpy.float32(1.5), "empty": torch.empty(0), "tuple": (1, 2.5, None, b"x"),
        "when": numpy.datetime64("2026-01-01"), "half": torch.ones(3, dtype=torch.bfloat16),
    }  # fmt: skip
    if action == "save":
        return st.save(whole, path, 1)
    got = st.load(path, **options)
    for name, x in whole.items():
        same = torch.equal(got[name].to_dense(), x.to_dense()) if isinstance(x, torch.Tensor) else got[name] == x
        assert same and type(got[name]) is type(x), (name, got[name])
    return got


def one(kind):
    """Save or load one kind, and return a line with the outcome."""
    run = slurmdl.init(folder) if kind in ("estimator", "model", "random_states") else None
    try:
        globals()[kind](run)
    except slurmdl.Error as error:
        return f"refused: {error}"
    except Exception as error:  # after unpickling: Code is neither an estimator nor a state
        return f"after all: {type(error).__name__} {error}"
    return f"{action} done"


if kinds != ["estimator"]:
    import slurmdl.torch  # once, before fork()
mark = os.environ["RAN"]
for kind in kinds:
    child = os.fork()
    if child == 0:
        folder = os.path.join(group, kind)
        os.environ["RAN"] = f"{mark}.{kind}"
        said = " ".join(one(kind).split("\n"))
        print(kind, "ran:" * os.path.exists(os.environ["RAN"]), said, flush=True)
        os._exit(0)
    os.waitpid(child, 0)
