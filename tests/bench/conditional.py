#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measure searchers on large conditional spaces.

    conditional.py run OUT.csv SEARCHER [--seeds 0-9] [--trials 200] [--only PROBLEM,...]
    conditional.py score A B CSV... [--at 100]

SEARCHER: dl:NAME (`dl search-server --searcher NAME`, dl in the PATH), optuna
(TPE, the default), optuna-group (its group=True), smac (SMAC3's facade for
hyperparameter optimisation) or random.

The problems are in problems.py. The regret of a search is (best value - optimum) / (median of
random points - optimum). `score` prints the ratio of the geometric mean regrets (eps 0.01) with its
95 % bootstrap interval over problems and seeds.
"""

import argparse
import csv
import json
import math
import os
import random
import subprocess

for _v in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_v, "1")
from problems import PROBLEMS, active, random_point  # noqa: E402  (import after setting the number of threads)

EPS = 0.01
CHECKPOINTS = (50, 100, 150, 200, 300)


# ---- searchers: yield the value of each trial ----


def by_dl(problem, seed, trials, name):
    def field(p):
        f = {
            k: v
            for k, v in p.items()
            if v is not None and k in ("name", "type", "choices", "low", "high", "when")
        }
        return {**f, "log": True} if p.get("log") else f

    first = {"space": [field(p) for p in problem.space], "seed": seed, "budget": trials}
    with subprocess.Popen(
        ["dl", "search-server", "--searcher", name],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        bufsize=1,
    ) as server:
        server.stdin.write(json.dumps(first) + "\n")
        for _ in range(trials):
            server.stdin.write('{"op": "ask"}\n')
            a = json.loads(server.stdout.readline())
            y = problem.value(a["params"])
            server.stdin.write(json.dumps({"op": "tell", "id": a["id"], "value": y}) + "\n")
            yield y
        server.stdin.write('{"op": "quit"}\n')
        server.stdin.close()


def by_optuna(problem, seed, trials, group):
    import optuna
    import warnings

    warnings.filterwarnings("ignore")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    more = {"multivariate": True, "group": True} if group else {}
    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed, **more))

    def suggest(t, p):
        if p["type"] == "categorical":
            return t.suggest_categorical(p["name"], p["choices"])
        if p["type"] == "int":
            return t.suggest_int(p["name"], p["low"], p["high"])
        return t.suggest_float(p["name"], p["low"], p["high"], log=p["log"])

    for _ in range(trials):
        t, x = study.ask(), {}
        for p in problem.space:
            if active(p, x):
                x[p["name"]] = suggest(t, p)
        y = problem.value(x)
        study.tell(t, y)
        yield y


def by_smac(problem, seed, trials, _):
    import tempfile
    import ConfigSpace as C
    from smac import HyperparameterOptimizationFacade as Facade, Scenario
    from smac.runhistory.dataclasses import TrialValue

    space = C.ConfigurationSpace(seed=seed)
    for p in problem.space:
        if p["type"] == "categorical":
            space.add(C.CategoricalHyperparameter(p["name"], p["choices"]))
        else:
            kind = (
                C.UniformIntegerHyperparameter
                if p["type"] == "int"
                else C.UniformFloatHyperparameter
            )
            space.add(kind(p["name"], lower=p["low"], upper=p["high"], log=p["log"]))
    for p in problem.space:
        for parent, values in (p["when"] or {}).items():
            space.add(C.InCondition(space[p["name"]], space[parent], values))
    with tempfile.TemporaryDirectory() as folder:
        scenario = Scenario(
            space, n_trials=trials, deterministic=True, seed=seed, output_directory=folder
        )
        model = Facade.get_model(scenario)  # limit leaves to save memory, and use one thread
        model._rf_opts.update(max_leaf_nodes=trials, n_jobs=1)
        smac = Facade(
            scenario, lambda config, seed=0: 0.0, model=model, overwrite=True, logging_level=50
        )
        for _ in range(trials):
            info = smac.ask()
            x = {k: getattr(v, "item", lambda v=v: v)() for k, v in dict(info.config).items()}
            y = problem.value({p["name"]: x[p["name"]] for p in problem.space if p["name"] in x})
            smac.tell(info, TrialValue(cost=y))
            yield y


def by_random(problem, seed, trials, _):
    g = random.Random(seed)
    for _ in range(trials):
        yield problem.value(random_point(problem.space, g))


SEARCHERS = {
    "optuna": (by_optuna, False),
    "optuna-group": (by_optuna, True),
    "smac": (by_smac, None),
    "random": (by_random, None),
}


def run(args):
    first, _, last = args.seeds.partition("-")
    kind, _, name = args.searcher.partition(":")
    search, arg = (by_dl, name) if kind == "dl" else SEARCHERS[args.searcher]
    folder = os.path.dirname(os.path.abspath(args.out))
    new = not os.path.exists(args.out)
    with open(args.out, "a", encoding="utf-8", newline="") as f:
        out = csv.writer(f)
        if new:
            out.writerow(("problem", "searcher", "seed", "n", "regret"))
        for n in args.only.split(",") if args.only else PROBLEMS:
            problem = PROBLEMS[n](folder)
            g = random.Random(0)
            usual = sorted(problem.value(random_point(problem.space, g)) for _ in range(1001))[500]
            for seed in range(int(first), int(last or first) + 1):
                best = math.inf
                for i, y in enumerate(search(problem, seed, args.trials, arg), 1):
                    best = min(best, y)
                    if i in CHECKPOINTS:
                        regret = max(0, best - problem.optimum) / (usual - problem.optimum)
                        out.writerow((n, args.searcher, seed, i, f"{regret:.6g}"))
                f.flush()


def score(args):
    runs = {}
    for path in args.csv:
        with open(path, encoding="utf-8") as f:
            for r in csv.DictReader(f):
                if r["n"] == str(args.at):
                    runs.setdefault(r["problem"], {}).setdefault(r["searcher"], []).append(
                        math.log(float(r["regret"]) + EPS)
                    )
    both = [(r[args.a], r[args.b]) for r in runs.values() if args.a in r and args.b in r]
    g, mean = random.Random(0), lambda v: sum(v) / len(v)

    def again(v):
        return [g.choice(v) for _ in v]

    means = sorted(
        mean([mean(again(a)) - mean(again(b)) for a, b in again(both)]) for _ in range(2000)
    )
    for n, r in runs.items():
        if args.a in r and args.b in r:
            print(
                f"  {n}: {math.exp(mean(r[args.a])) - EPS:.3f}"
                f" and {math.exp(mean(r[args.b])) - EPS:.3f},"
                f" {len(r[args.a])} and {len(r[args.b])} seeds"
            )
    ratio = mean([mean(a) - mean(b) for a, b in both])
    print(
        f"{args.a} / {args.b} at {args.at}: {math.exp(ratio):.3f}"
        f" [{math.exp(means[50]):.3f}, {math.exp(means[1949]):.3f}], {len(both)} problems"
    )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    sub = parser.add_subparsers(required=True)
    p = sub.add_parser("run")
    p.add_argument("out")
    p.add_argument("searcher")
    p.add_argument("--seeds", default="0-9")
    p.add_argument("--trials", type=int, default=200)
    p.add_argument("--only")
    p.set_defaults(do=run)
    p = sub.add_parser("score")
    p.add_argument("a")
    p.add_argument("b")
    p.add_argument("csv", nargs="+")
    p.add_argument("--at", type=int, default=100)
    p.set_defaults(do=score)
    args = parser.parse_args()
    args.do(args)


if __name__ == "__main__":
    main()
