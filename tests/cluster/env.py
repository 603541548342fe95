# SPDX-License-Identifier: Apache-2.0
"""Compare the output of `dl env --json` with the environment of each rank.

usage: env.py PROMISED RANK-0 RANK-1 ...   (RANK-N: output of `env -0`)
"""
import json
import sys

MARKS = ("DL_ENV_SET", "DL_BIND_SET", "DL_NCCL_SET")


def real(path):
    with open(path, "rb") as f:
        pairs = [v.split(b"=", 1) for v in f.read().split(b"\0") if b"=" in v]
    return {k.decode(): v.decode() for k, v in pairs}


def depends_on_node(why):
    return why.startswith("set where ")


def differences(rank, env):
    promised = dict(rank["environment"])
    for name, value in promised.items():
        if env.get(name) != value:
            yield "%s: promised %r, got %r" % (name, value, env.get(name))
    got = {n for m in MARKS for n in env.get(m, "").split(",") if n}
    for name in got - set(promised) - set(rank["unknown"]):
        yield "%s=%r was not promised" % (name, env[name])
    for name, why in rank["unknown"].items():
        if name in env or depends_on_node(why):
            continue
        yield "%s was promised, and is not there" % name
    place = (env["SLURM_NODEID"], env["SLURM_LOCALID"], env["SLURMD_NODENAME"])
    want = (str(rank["node_index"]), str(rank["local_rank"]), rank["node"])
    if place != want:
        yield "it is at %s, not at %s" % (place, want)


def main():
    with open(sys.argv[1]) as f:
        ranks = json.load(f)["ranks"]
    if len(ranks) != len(sys.argv) - 2:
        sys.exit("%d ranks promised, %d came" % (len(ranks), len(sys.argv) - 2))
    bad = ["rank %d: %s" % (r["rank"], d)
           for r in ranks
           for d in differences(r, real(sys.argv[2 + r["rank"]]))]
    unknown = sorted({n for r in ranks for n, why in r["unknown"].items() if not depends_on_node(why)})
    names = sum(len(r["environment"]) for r in ranks)
    print("\n".join(bad) if bad else
          "%d variables%s" % (names, " but " + ",".join(unknown) if unknown else ""))
    sys.exit(bool(bad))


main()
