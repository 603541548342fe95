#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# case: order 15, seconds 25
"""The Python package works with this host's Python, numpy, pandas and PyTorch."""

import os
import sys

from gpu import case, done, folder, need, ok, run, same, say, skip

numpy, slurmdl = need("numpy", "slurmdl")


def versions():
    say(f"Python {sys.version}")
    for name in ("numpy", "pandas", "torch", "h5py", "sklearn"):
        try:
            say(f"{name} {__import__(name).__version__}")
        except ImportError as error:
            say(f"{name}: {error}")
    from slurmdl.arrays import has_cuda

    ok(has_cuda(), "the module for device memory is found")


def logs_and_checkpoints():
    with folder() as top:
        os.environ["DL_LENGTH"] = "3"
        run_ = slurmdl.init(os.path.join(top, "run"))
        w = numpy.arange(12, dtype="f4").reshape(3, 4)
        run_.protect("w", w)
        for step in (1, 2, 3):
            run_.log("loss", 1 / step, step)
        run_.save(3)
        metrics = os.path.join(run_.dir, "metrics.h5")
        run_.close()
        rows = slurmdl.read_metrics(metrics)
        same([float(v) for v in rows.of("loss")["value"]], [1.0, 0.5, 1 / 3], "metrics are read back")
        del os.environ["DL_LENGTH"]
        again = slurmdl.init(os.path.join(top, "run"))
        mine = numpy.zeros((3, 4), "f4")
        again.protect("w", mine)
        same(again.restore(), 3, "the checkpoint is found")
        ok((mine == w).all(), "and restored", mine)
        again.close()


def frames():
    try:
        import pandas
    except ImportError as error:
        skip("trials as a DataFrame", str(error))
        return
    with folder() as top:
        script = os.path.join(top, "t.py")
        with open(script, "w") as f:
            f.write("import slurmdl\nwith slurmdl.init() as run:\n    run.log('loss', (run.hp['x'] - 1) ** 2, 1)\n")
        with open(os.path.join(top, "s.conf"), "w") as f:
            f.write(f'''name = "smoke";
entrypoint = "{sys.executable} {script}";
hyperparameters = {{ x = {{ type = "float"; minval = 0.0; maxval = 2.0; }}; }};
searcher = {{ name = "random"; metric = "loss"; max_trials = 3; max_length = 1; }};
resources = {{ workers = 3; }};
''')
        status, out = run(["dl", "run", "--local", "s.conf"], 120, cwd=top)
        same(status, 0, "dl run --local of three trials")
        say(out[-1500:] if status else "")
        where = sorted(n for n in os.listdir(top) if n.startswith("smoke"))
        found = slurmdl.Experiment(os.path.join(top, where[0])).trials()
        ok(isinstance(found, pandas.DataFrame) and len(found) == 3, "trials() is a DataFrame of three rows", found)
        say(found.to_string())


def hydra():
    try:
        import hydra  # noqa: F401
    except ImportError as error:
        skip("the sweeper of Hydra", str(error))
        return
    import hydra_plugins.slurmdl_sweeper  # noqa: F401

    ok(True, "the sweeper of Hydra is imported")


for part in (versions, logs_and_checkpoints, frames, hydra):
    case(part)
done()
