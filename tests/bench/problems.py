# SPDX-License-Identifier: Apache-2.0
"""Large conditional search spaces for conditional.py.

They have 30 to 81 parameters, of which 4 to 33 are active:

    digits, wine, diabetes  one of seven learners of scikit-learn (two to five
                            parameters each, some nested) and a scaler; the first
                            run makes a table of all settings
    branches  eight branches of four parameters, which interact, and shared ones
    nested    four branches with three branches each; deep: seven with four
    blocks    eight optional blocks with three parameters each
    chain     one to eight layers; each has its parameters
    stairs    eleven branches of ordinal and log parameters, in steps
"""

import importlib
import itertools
import json
import math
import os
import random

import numpy as np

# ---- spaces ----

def num(name, low, high, when=None, kind="float"):
    return {
        "name": name,
        "type": kind.replace("log", "float"),
        "low": low,
        "high": high,
        "log": kind == "log",
        "when": when,
    }


def cat(name, choices, when=None):
    return {"name": name, "type": "categorical", "choices": list(choices), "when": when}


def active(p, x):
    """Whether a parameter is active. Parents come before their children."""
    if not p["when"]:
        return True
    ((name, values),) = p["when"].items()
    return name in x and x[name] in values


def draw(p, g):
    if p["type"] == "categorical":
        return g.choice(p["choices"])
    if p["type"] == "int":
        return g.randint(p["low"], p["high"])
    if p["log"]:
        return math.exp(g.uniform(math.log(p["low"]), math.log(p["high"])))
    return g.uniform(p["low"], p["high"])


def random_point(space, g):
    x = {}
    for p in space:
        if active(p, x):
            x[p["name"]] = draw(p, g)
    return x


def unit(p, v):
    """Map a value to [0, 1] within its range."""
    if p["log"]:
        return math.log(v / p["low"]) / math.log(p["high"] / p["low"])
    return (v - p["low"]) / (p["high"] - p["low"])


# ---- synthetic problems ----


class Synthetic:
    """A function of the distances to an optimum, which couples neighbouring parameters, plus
    the cost of each choice. Each path through the tree has its own optimum."""

    def __init__(self, name, space, tie, floor, steps=0):
        self.name, self.space, self.steps = name, space, steps
        self.tie, self.floor = tie, floor  # names of the parameters that select the path
        self.by = {p["name"]: p for p in space}

    def parts(self, x):
        path = "/".join(f"{n}={x[n]}" for n in self.tie if n in x)
        g = random.Random(f"{self.name}:{path}")
        names = [n for n in x if n not in self.tie]
        return path, g, names

    def value(self, x):
        path, g, names = self.parts(x)
        d, cost = [], 0.0
        for n in names:
            p = self.by[n]
            own = random.Random(f"{self.name}:{'' if p['when'] else path}:{n}")
            if p["type"] == "categorical":
                costs = [own.uniform(0.05, 0.4) for _ in p["choices"]]
                costs[own.randrange(len(costs))] = 0.0
                cost += costs[p["choices"].index(x[n])]
            else:
                best, weight = own.uniform(0.1, 0.9), math.exp(own.uniform(-1, 1.2))
                if p["type"] == "int":
                    best = unit(p, round(p["low"] + best * (p["high"] - p["low"])))
                u = unit(p, x[n])
                if self.steps and p["type"] != "int":
                    u = math.floor(u * self.steps) / self.steps
                    best = math.floor(best * self.steps) / self.steps
                d.append(weight * (u - best))
        for i in range(len(d) - 1):  # couples neighbours
            d[i] += g.choice((-0.6, 0, 0.6)) * d[i + 1]
        return self.floor(x) + cost / 2 + math.sqrt(1 + 4 * sum(v * v for v in d)) - 1

    optimum = 0.0


def synthetic(name, space, tie, **more):
    """Return a problem in which the best choice on each path costs nothing, and the others slightly more."""
    choices = {p["name"]: p["choices"] for p in space if p["name"] in tie}

    def one(x, i):
        order = list(choices[tie[i]])
        random.Random(f"{name}:{tie[i]}:floor").shuffle(order)
        return 0.12 * order.index(x[tie[i]]) ** 0.7

    return Synthetic(
        name, space, tie, lambda x: sum(one(x, i) for i, n in enumerate(tie) if n in x), **more
    )


def make_branches():
    space = [cat("algo", "abcdefgh"), num("s0", 1e-5, 1, None, "log"), num("s1", 0, 1)]
    for a in "abcdefgh":
        w = {"algo": [a]}
        space += [
            num(f"{a}0", 1e-4, 10, w, "log"),
            num(f"{a}1", 0, 1, w),
            num(f"{a}2", 1, 20, w, "int"),
            cat(f"{a}3", "xyz", w),
        ]
    return synthetic("branches", space, ["algo"])


def make_nested(name, branches, solvers):
    space = [cat("algo", branches)] + [num(f"s{i}", 0, 1) for i in range(3)]
    for a in branches:
        w = {"algo": [a]}
        space += [
            cat(f"{a}solver", solvers, w),
            num(f"{a}0", 1e-5, 1, w, "log"),
            num(f"{a}1", 0, 1, w),
        ]
        for v in solvers:
            w2 = {f"{a}solver": [v]}
            space += [num(f"{a}{v}0", 0, 1, w2), num(f"{a}{v}1", 1e-3, 1e3, w2, "log")]
    return synthetic(name, space, ["algo"] + [f"{a}solver" for a in branches])


class Blocks(Synthetic):
    """Eight optional blocks; a block helps if its parameters are good, and more if its neighbour is on."""

    def __init__(self):
        g = random.Random("blocks")
        space = [num("lr", 1e-5, 1, None, "log")]
        self.gain = [g.uniform(-0.3, 1) for _ in range(8)]
        self.best = [[g.uniform(0.1, 0.9) for _ in range(2)] + [g.choice("xyz")] for _ in range(8)]
        for i in range(8):
            w = {f"b{i}": ["on"]}
            space += [
                cat(f"b{i}", ["off", "on"]),
                num(f"b{i}u", 0, 1, w),
                num(f"b{i}v", 1e-4, 1, w, "log"),
                cat(f"b{i}c", "xyz", w),
            ]
        super().__init__("blocks", space, [], None)
        self.optimum = min(self.of_subset(m) for m in range(256))

    def of_subset(self, mask):
        """Return the loss of a subset of blocks with the best parameters."""
        on = [mask >> i & 1 for i in range(8)]
        return -sum(self.weight(on, i) for i in range(8) if on[i])

    def weight(self, on, i):
        return self.gain[i] * (1 if on[(i + 3) % 8] else 0.5)

    def value(self, x):
        on = [x[f"b{i}"] == "on" for i in range(8)]
        loss = 2 * (unit(self.space[0], x["lr"]) - 0.3 - 0.04 * (sum(on) - 4)) ** 2
        for i in range(8):
            if on[i]:
                u, v, c = self.best[i]
                du = x[f"b{i}u"] - u
                dv = unit(self.by[f"b{i}v"], x[f"b{i}v"]) - v
                q = math.exp(-4 * (du * du + dv * dv + 0.8 * du * dv)) * (
                    1 if x[f"b{i}c"] == c else 0.6
                )
                w = self.weight(on, i)
                loss -= w * q if w > 0 else w * (2 - q)
        return loss


class Chain(Synthetic):
    """Up to eight layers; the best widths depend on their number."""

    def __init__(self):
        space = [
            num("n", 1, 8, None, "int"),
            num("lr", 1e-5, 1, None, "log"),
            num("wd", 1e-6, 1e-1, None, "log"),
            cat("opt", ["sgd", "adam", "rms"]),
            num("momentum", 0, 0.99, {"opt": ["sgd", "rms"]}),
            num("beta", 0.5, 0.999, {"opt": ["adam"]}),
        ]
        for i in range(1, 9):
            w = {"n": list(range(i, 9))} if i > 1 else None
            space += [
                num(f"w{i}", 8, 512, w, "int"),
                num(f"drop{i}", 0, 0.8, w),
                cat(f"act{i}", ["relu", "tanh", "gelu"], w),
            ]
        super().__init__("chain", space, [], None)
        self.optimum = min(self.least(n) for n in range(1, 9))

    def value(self, x):
        n = x["n"]
        loss = 0.08 * abs(n - 5)
        best_lr = {"sgd": 0.7, "adam": 0.4, "rms": 0.5}[x["opt"]] - 0.03 * (n - 5)
        loss += {"sgd": 0.15, "adam": 0.0, "rms": 0.1}[x["opt"]]
        loss += (
            3 * (unit(self.by["lr"], x["lr"]) - best_lr) ** 2
            + (unit(self.by["wd"], x["wd"]) - 0.4) ** 2
        )
        second = "beta" if x["opt"] == "adam" else "momentum"
        loss += 0.5 * (unit(self.by[second], x[second]) - 0.8) ** 2
        last = 0.5
        for i in range(1, n + 1):
            w = math.log(x[f"w{i}"] / 8) / math.log(64)
            loss += (w - (0.9 - 0.08 * i)) ** 2 + 0.3 * (w - last) ** 2
            loss += 0.4 * (x[f"drop{i}"] - 0.08 * i) ** 2 + (
                0.06 if x[f"act{i}"] != ("relu" if i % 2 else "gelu") else 0
            )
            last = w
        return loss

    def least(self, n):
        """Return the lowest loss with n layers. The widths are a quadratic form; all else is at its optimum."""
        a, b, c = np.eye(n) * 1.3, np.zeros(n), 0.3 * 0.25
        for i in range(n):
            b[i] = 0.9 - 0.08 * (i + 1) + (0.15 if i == 0 else 0)
            c += (0.9 - 0.08 * (i + 1)) ** 2
            if i + 1 < n:
                a[i, i] += 0.3
                a[i, i + 1] = a[i + 1, i] = -0.3
        return 0.08 * abs(n - 5) + c - b @ np.linalg.solve(a, b)


def make_stairs():
    space = [cat("algo", "abcdefghijk"), num("s", 0, 1)]
    for a in "abcdefghijk":
        w = {"algo": [a]}
        space += [
            num(f"{a}0", 1e-4, 10, w, "log"),
            num(f"{a}1", 0, 12, w, "int"),
            num(f"{a}2", 1e-3, 1, w, "log"),
            num(f"{a}3", 1, 40, w, "int"),
            cat(f"{a}4", "wxyz", w),
        ]
    space += [num(f"t{i}", 0, 1) for i in range(9)]
    return synthetic("stairs", space, ["algo"], steps=6)


# ---- learners of scikit-learn: a table of all settings ----

LEARNERS = {  # lists: ordinal parameters; dicts: choices with parameters of their own
    "svm": {
        "C": [0.01, 0.1, 1, 10, 100, 1000],
        "kernel": {
            "linear": {},
            "rbf": {"gamma": [1e-4, 1e-3, 1e-2, 0.1, 1]},
            "poly": {"degree": [2, 3, 4], "coef0": [0, 0.5, 1]},
        },
    },
    "knn": {
        "k": [1, 2, 3, 5, 8, 13, 21, 34],
        "weights": ["uniform", "distance"],
        "p": [1, 1.5, 2, 3],
    },
    "forest": {
        "features": [0.05, 0.1, 0.2, 0.4, 0.8],
        "leaf": [1, 2, 4, 8],
        "depth": [2, 4, 8, 16],
        "trees": [5, 15, 30],
    },
    "tree": {
        "depth": [1, 2, 4, 6, 8, 12, 16],
        "leaf": [1, 2, 4, 8, 16],
        "features": [0.1, 0.3, 0.6, 1.0],
        "random": ["best", "random"],
    },
    "boost": {
        "rate": [0.01, 0.03, 0.1, 0.3, 1],
        "depth": [1, 2, 3],
        "rounds": [5, 15, 30],
        "sample": [0.3, 0.6, 1.0],
    },
    "linear": {
        "alpha": [1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1],
        "penalty": {"l2": {}, "l1": {}, "elasticnet": {"ratio": [0.1, 0.3, 0.5, 0.7, 0.9]}},
        "average": ["no", "yes"],
    },
    "mlp": {
        "width": [8, 24, 64],
        "alpha": [1e-5, 1e-3, 0.1],
        "solver": {
            "lbfgs": {"tol": [1e-4, 1e-2]},
            "adam": {"lr": [1e-3, 1e-2, 0.1]},
            "sgd": {"slr": [1e-2, 0.1, 0.3], "momentum": [0, 0.5, 0.9]},
        },
    },
}
SCALERS = ("none", "standard", "minmax")


def learner_space():
    space = [cat("learner", LEARNERS), cat("scaler", SCALERS)]

    def add(prefix, params, when):
        for name, values in params.items():
            full = f"{prefix}.{name}"
            if isinstance(values, dict):
                space.append(cat(full, values, when))
                for choice, own in values.items():
                    add(full, own, {full: [choice]})
            elif isinstance(values[0], str):
                space.append(cat(full, values, when))
            else:
                space.append(num(full, 0, len(values) - 1, when, "int"))

    for name, params in LEARNERS.items():
        add(name, params, {"learner": [name]})
    return space


# For each learner: its class without Regressor or Classifier, its arguments by our parameter names, and fixed arguments
CLASSES = {
    "svm": ("svm.SV", {k: k for k in ("C", "kernel", "gamma", "degree", "coef0")}, {"max_iter": 3000}),
    "knn": ("neighbors.KNeighbors", {"k": "n_neighbors", "weights": "weights", "p": "p"}, {}),
    "forest": (
        "ensemble.ExtraTrees",
        {"trees": "n_estimators", "features": "max_features", "leaf": "min_samples_leaf", "depth": "max_depth"},
        {"random_state": 0},
    ),
    "tree": (
        "tree.DecisionTree",
        {"depth": "max_depth", "leaf": "min_samples_leaf", "features": "max_features", "random": "splitter"},
        {"random_state": 0},
    ),
    "boost": (
        "ensemble.GradientBoosting",
        {"rate": "learning_rate", "depth": "max_depth", "rounds": "n_estimators", "sample": "subsample"},
        {"random_state": 0, "max_features": 0.2},
    ),
    "linear": (
        "linear_model.SGD",
        {"alpha": "alpha", "penalty": "penalty", "ratio": "l1_ratio", "average": "average"},
        {"max_iter": 30, "tol": None, "random_state": 0},
    ),
    "mlp": (
        "neural_network.MLP",
        {"width": "hidden_layer_sizes", "lr": "learning_rate_init", "slr": "learning_rate_init"}
        | {k: k for k in ("alpha", "solver", "momentum", "tol")},
        {"max_iter": 15, "random_state": 0},
    ),
}


def learner(name, o, regression):
    path, arguments, more = CLASSES[name]
    module, _, start = path.partition(".")
    kind = "Regressor" if regression else "Classifier"
    make = getattr(importlib.import_module("sklearn." + module), start + (kind[0] if name == "svm" else kind))
    given = {arguments[k]: {"no": False, "yes": True}.get(v, v) for k, v in o.items()}
    return make(**given, **more)


def all_settings(params):
    """Yield each setting twice: with indices for the search space, and with values for the learner."""
    axes = []
    for name, values in params.items():
        if isinstance(values, dict):
            axes.append(
                [
                    ({name: c, **{f"{name}.{k}": v for k, v in point.items()}}, {name: c, **own})
                    for c, sub in values.items()
                    for point, own in all_settings(sub)
                ]
            )
        elif isinstance(values[0], str):
            axes.append([({name: v}, {name: v}) for v in values])
        else:
            axes.append([({name: i}, {name: v}) for i, v in enumerate(values)])
    for combination in itertools.product(*axes):
        point, own = {}, {}
        for a, b in combination:
            point.update(a)
            own.update(b)
        yield point, own


class Table:
    """A table of held-out losses: the error rate, or for diabetes the squared error relative to the variance."""

    def __init__(self, name, folder):
        self.name, self.space = name, learner_space()
        path = os.path.join(folder, f"conditional-{name}.json")
        if not os.path.exists(path):
            table = self.make()
            with open(path, "w", encoding="utf-8") as f:
                json.dump(table, f)
        with open(path, encoding="utf-8") as f:
            self.table = json.load(f)
        self.optimum = min(self.table.values())

    @staticmethod
    def key(x):
        return json.dumps(sorted(x.items()))

    def value(self, x):
        return self.table[self.key(x)]

    def make(self):
        import warnings
        from sklearn import datasets, preprocessing

        warnings.filterwarnings("ignore")
        data = getattr(datasets, "load_" + self.name)()
        order = np.random.RandomState(1).permutation(len(data.target))[:600]
        x, y, regression = data.data[order], data.target[order], self.name == "diabetes"
        if self.name != "digits":  # noise features make a small data set harder
            x = np.hstack([x, np.random.RandomState(2).randn(len(x), 12) * x.std(0).mean()])
        y = (y - y.mean()) / y.std() if regression else y
        half, table = len(y) * 2 // 5, {}
        for s in SCALERS:
            t = {
                "none": preprocessing.FunctionTransformer(),
                "standard": preprocessing.StandardScaler(),
                "minmax": preprocessing.MinMaxScaler(),
            }[s].fit(x[:half])
            a, b = t.transform(x[:half]), t.transform(x[half:])
            for name, params in LEARNERS.items():
                for point, own in all_settings(params):
                    k = {
                        "learner": name,
                        "scaler": s,
                        **{f"{name}.{n}": v for n, v in point.items()},
                    }
                    table[self.key(k)] = self.loss(
                        learner(name, own, regression), a, y[:half], b, y[half:], regression
                    )
        return table

    @staticmethod
    def loss(model, a, ya, b, yb, regression):
        try:
            guess = model.fit(a, ya).predict(b)
        except (ValueError, FloatingPointError):
            return 1.0
        if not regression:
            return float(np.mean(guess != yb))
        v = float(np.mean((guess - yb) ** 2))
        return min(v, 2.0) if math.isfinite(v) else 2.0


PROBLEMS = {
    **{n: lambda folder, n=n: Table(n, folder) for n in ("digits", "wine", "diabetes")},
    "branches": lambda _: make_branches(),
    "nested": lambda _: make_nested("nested", "abcd", "xyz"),
    "deep": lambda _: make_nested("deep", "abcdefg", "wxyz"),
    "blocks": lambda _: Blocks(),
    "chain": lambda _: Chain(),
    "stairs": lambda _: make_stairs(),
}
