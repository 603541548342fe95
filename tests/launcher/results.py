# SPDX-License-Identifier: Apache-2.0
"""Read results.h5 as users do.

    results.py check FILE CSV JSON   check that the three formats agree
    results.py watch FILE N LEAST    open it N times or more while it is rewritten,
                                     until at least LEAST states were seen
"""
import csv
import json
import math
import sys
import time

import h5py

try:
    import pandas as pd
except ImportError:
    pd = None


def column(group, name):
    values = group[name][:]
    return [v.decode() for v in values] if values.dtype.kind == "S" else values.tolist()


def same(a, b):
    """Return whether a value of the file equals that of CSV or JSON."""
    if isinstance(a, str):
        return a == (b or "")
    if isinstance(a, float) and math.isnan(a):
        return b in (None, "")
    return a == float(b)


def check_tables(f, rows, objects):
    groups = {"": f["trials"], "hp.": f["hyperparameters"]}
    names = [p + n for p, g in groups.items() for n in g]
    # the file has the other metrics in a separate table
    logged = {"metric." + n for n in f["names"][:].astype(str)} - set(names)
    assert set(names) == set(rows[0]) - logged, (names, list(rows[0]))
    for prefix, group in groups.items():
        for name in group:
            values = column(group, name)
            assert len(values) == len(rows) == len(objects) > 0
            for v, row, o in zip(values, rows, objects):
                other = o["hyperparameters"][name] if prefix else o[name]
                assert same(v, row[prefix + name]), (name, v, row)
                assert same(v, other), (name, v, o)


def check_metrics(f):
    rows = f["metrics"][:]
    names = f["names"][:].astype(str)
    loss = rows[names[rows["name"]] == "loss"]
    lr = dict(zip(f["trials/trial"][:], f["hyperparameters/lr"][:]))
    assert len(loss) == sum(f["trials/length"][:]) > 0
    for row in loss:
        assert row["value"] == lr[row["trial"]] + row["step"]
    for n, b, length in zip(*(f["trials/" + name][:] for name in ("trial", "best", "best_length"))):
        assert [b] == list(loss["value"][(loss["trial"] == n) & (loss["step"] == length)])


def check_pandas(path):
    f = h5py.File(path, "r")
    trials = pd.DataFrame({k: f["trials"][k][:] for k in f["trials"]})
    metrics = pd.DataFrame(f["metrics"][:])
    assert len(trials) == len(f["trials/trial"])
    losses = metrics[f["names"][:].astype(str)[metrics["name"]] == "loss"].set_index(["trial", "step"])["value"]
    assert all(losses[n, length] == b for n, length, b in trials[["trial", "best_length", "best"]].itertuples(index=False))
    f.close()


def check(path, csv_path, json_path):
    with open(csv_path, newline="") as f:
        rows = list(csv.DictReader(f))
    with open(json_path) as f:
        objects = json.load(f)
    with h5py.File(path, "r") as f:
        assert f.attrs["slurmdl_version"] == 1 and f.attrs["entries"] > 0
        check_tables(f, rows, objects)
        check_metrics(f)
    if pd:
        check_pandas(path)
    print("pandas", pd.__version__ if pd else "absent")


def look(path):
    """Check one complete file, and return its numbers of log entries and trials."""
    with h5py.File(path, "r") as f:
        n = len(f["covered"])
        for group in ("trials", "hyperparameters"):
            for name in f[group]:
                assert len(f[group][name][:]) == n
        names = f["names"][:]
        rows = f["metrics"][:]
        assert all(r["name"] < len(names) and 1 <= r["trial"] <= n for r in rows)
        assert f["trials/trial"][:].tolist() == list(range(1, n + 1))
        return int(f.attrs["entries"]), n


def watch(path, times, least):
    """Open PATH again and again; the search waits for PATH.seen, so that later states differ."""
    seen = []
    while len(seen) < times or len(set(seen)) < least:
        seen.append(look(path))
        open(path + ".seen", "w").close()
        time.sleep(0.02)
    assert seen == sorted(seen), "it went back"
    print(len(seen), "opens,", len(set(seen)), "states")


if sys.argv[1] == "check":
    check(*sys.argv[2:5])
else:
    watch(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
