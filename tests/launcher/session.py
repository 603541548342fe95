# SPDX-License-Identifier: Apache-2.0
"""Check sessions with dl search-server, for server.t: print "ok NAME" or "not ok NAME" for each check."""
import json
import math
import os
import re
import subprocess
import sys
import traceback


class Server:
    def __init__(self, header, *options):
        self.process = subprocess.Popen(["timeout", "300", "dl", "search-server", *options],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
        self.write(header)

    def write(self, line):
        self.process.stdin.write(json.dumps(line) + "\n")

    def op(self, name, **keys):
        self.write({"op": name, **keys})

    def answer(self, name, **keys):
        self.op(name, **keys)
        line = self.process.stdout.readline()
        assert line, "no answer, status %d" % self.process.wait()
        return json.loads(line)

    def end(self):
        self.process.stdin.close()
        rest = self.process.stdout.read()
        assert self.process.wait() == 0 and not rest, (self.process.returncode, rest)


def number(name, low, high, kind="float", **more):
    return {"name": name, "type": kind, "low": low, "high": high, **more}


def choice(name, *choices, **more):
    return {"name": name, "type": "categorical", "choices": list(choices), **more}


MIXED = [number("lr", 1e-4, 1, log=True), number("k", 1, 64, "int", log=True), number("x", -2, 2),
         choice("act", "relu", 7, None)]


def loss(p):
    return (math.log10(p["lr"]) + 2) ** 2 + abs(p["x"]) + (p["act"] != 7) + p["k"] / 64


def in_space(p, space):
    names = {d["name"]: d for d in space}
    assert set(p) <= set(names), p
    for name, v in p.items():
        d = names[name]
        if "choices" in d:
            assert v in d["choices"], (name, v)
        else:
            assert d["low"] <= v <= d["high"], (name, v)
            assert d["type"] == "float" or isinstance(v, int), (name, v)


def search(header, f, trials, seconds=None):
    """Run trials one after another, each with the value f (params); return their params and the best."""
    s = Server(header)
    seen = []
    for i in range(trials):
        a = s.answer("ask")
        if "params" not in a:
            assert a == {"wait": True, "done": True}, a
            break
        assert a["id"] == i, a
        in_space(a["params"], header["space"])
        seen.append(a["params"])
        s.op("tell", id=i, value=f(a["params"]), **({"seconds": seconds} if seconds else {}))
    best = s.answer("best")
    s.end()
    return seen, best


def train(header, f, workers=4, most=4000):
    """Run trials step by step, several at a time, with f (params, step); return the steps reached and the answers."""
    s = Server(header)
    params, reached, open_trials, answers = {}, {}, [], []
    for _ in range(most):
        a = {} if len(open_trials) == workers else s.answer("ask")
        if "params" in a:
            in_space(a["params"], header["space"])
            assert a["id"] == len(params), a
            params[a["id"]] = a["params"]
            reached[a["id"]] = a.get("from_step", 0)
            if "from" in a:
                assert reached[a["from"]] >= a["from_step"] > 0, a
        if "id" in a:
            open_trials.append(a["id"])
            answers.append(a)
        elif a.get("done"):
            assert not open_trials
            break
        else:
            i = open_trials.pop(0)
            reached[i] += 1
            assert reached[i] <= header["max_step"], (i, reached[i])
            d = s.answer("report", id=i, step=reached[i], value=f(params[i], reached[i]))["decision"]
            answers.append(d)
            assert d in ("continue", "pause", "stop"), d
            if d == "continue":
                open_trials.append(i)
    s.end()
    return reached, answers


# ---- the checks ----

def kinds():
    text = open(os.path.join(os.environ["srcdir"], "searcher", "search", "kinds.c")).read()
    return re.findall(r'^    { "([a-z0-9_]+)",$', text, re.M)


def check_kinds():
    names = kinds()
    assert len(names) > 15 and "auto" in names, names
    manual = open(os.path.join(os.environ["srcdir"], "doc", "dl-experiment.5")).read()
    for name in names:
        assert re.search(r"^\.TP\n%s$" % name, manual, re.M), name


def check_kind(name):
    header = {"space": MIXED, "seed": 3, "budget": 12, "searcher": name, "population": 4}
    if name == "grid":
        header["space"] = [dict(d, count=3) if "low" in d else d for d in MIXED]
    if name in ("hyperband", "async_hyperband", "bohb"):
        assert len(search(dict(header, max_trials=0), loss, 200)[0]) == 1, "one round"
    seen, best = search(header, loss, 200)
    wanted = {"grid": 3 * 3 * 3 * 3, "single": 1, "pbt": 4}
    assert len(seen) == wanted.get(name, 12), len(seen)
    assert (seen, best) == search(header, loss, 200), "not the same again"
    values = [loss(p) for p in seen]
    assert best == {"id": values.index(min(values)), "params": seen[best["id"]], "value": min(values)}, best


def check_steps(name):
    header = {"space": MIXED, "seed": 3, "max_step": 9, "max_trials": 18, "searcher": name, "population": 12, "min_step": 1}
    reached, answers = train(header, lambda p, step: loss(p) + 3 / step)
    n = len(reached)
    words = [a for a in answers if isinstance(a, str)]
    assert max(reached.values()) == 9 and "stop" in words, reached
    if name in ("stopping_asha", "adaptive_stopping", "median"):
        assert n == 18 and min(reached.values()) < 9 and "pause" not in words, reached
    elif name == "pbt":
        cloned = [a for a in answers if isinstance(a, dict) and "from" in a]
        assert cloned and n == 12 + len(cloned) and "pause" in words, answers
    else:
        assert n == 18 and min(reached.values()) < 9, reached
        assert "pause" in words and any("resume" in a for a in answers if isinstance(a, dict)), answers


def check_conditions():
    space = [choice("opt", "sgd", "adam"), number("momentum", 0, 1, when={"opt": "sgd"}),
             number("layers", 1, 3, "int"), number("width", 8, 16, "int", when={"layers": [2, 3]}),
             number("nesterov", 0, 1, "int", when={"momentum": [0.5]})]
    for name in kinds():
        if name in ("custom", "grid"):
            continue
        seen, _ = search({"space": space, "seed": 1, "budget": 30, "searcher": name, "population": 8}, lambda p: p["layers"], 30)
        for p in seen:
            assert ("momentum" in p) == (p["opt"] == "sgd") and ("width" in p) == (p["layers"] > 1), p
            assert "nesterov" not in p or p["momentum"] == 0.5, p
        assert name == "single" or len({"momentum" in p for p in seen}) == 2, name


def check_numbers():
    space = [number("a", 0.5, 2, step=0.25), number("b", 10, 40, "int", step=10),
             number("c", 1e-3, 10, log=True, mean=0.1, deviation=0.2), number("d", -5, 5, mean=3, deviation=0.1),
             number("e", 0, 8, deviation=0.5)]
    for name in ("random", "sobol", "lhs", "tpe", "gp", "cmaes", "auto"):
        seen, _ = search({"space": space, "seed": 2, "budget": 25, "searcher": name}, lambda p: p["a"] * p["b"], 25)
        for p in seen:
            assert p["a"] in (0.5, 0.75, 1, 1.25, 1.5, 1.75, 2) and p["b"] in (10, 20, 30, 40), p
        if name in ("random", "sobol", "lhs"):
            middle = [sorted(p[n] for p in seen)[12] for n in "cde"]
            assert 0.06 < middle[0] < 0.17 and 2.9 < middle[1] < 3.1 and 3.5 < middle[2] < 4.5, middle


def check_constraint():
    for name in kinds():
        if name in ("custom", "single", "grid"):
            continue
        header = {"space": MIXED, "seed": 1, "budget": 25, "searcher": name, "population": 5,
                  "constraint": "x < 0.5 && (act != '7' || lr * k < 1)"}
        for p in search(header, loss, 25)[0]:
            assert p["x"] < 0.5 and (p["act"] != 7 or p["lr"] * p["k"] < 1), (name, p)
    seen, _ = search({"space": [choice("a", 1, 2, 3), choice("b", 0.1, 0.2)], "searcher": "grid", "constraint": "a != '2' && b != '0.1'"}, lambda p: 0, 9)
    assert seen == [{"a": 1, "b": 0.2}, {"a": 3, "b": 0.2}], seen


def check_points():
    points = [{"lr": 0.5, "k": 3, "x": 0, "act": None}, {"lr": 1e-4, "k": 64, "x": -2, "act": "relu"}]
    for name in kinds():
        if name not in ("custom", "single", "grid"):
            seen, _ = search({"space": MIXED, "budget": 4, "searcher": name, "population": 4, "points": points}, loss, 4)
            assert seen[:2] == points[:len(seen)], (name, seen)
    space = [choice("opt", "sgd", "adam"), number("momentum", 0, 1, when={"opt": "sgd"})]
    points = [{"opt": "adam"}, {"opt": "adam", "momentum": None}, {"opt": "sgd", "momentum": 0.5}]
    seen, _ = search({"space": space, "budget": 3, "points": points}, lambda p: 1, 3)
    assert seen == [{"opt": "adam"}, {"opt": "adam"}, points[2]], seen


def check_known():
    space = [number("x", 0, 1), number("y", 0, 1)]
    known = [{"params": {"x": i / 40, "y": (i * 7 % 40) / 40}, "value": abs(i / 40 - 0.8)} for i in range(40)]
    known.append({"params": {"x": 0.1, "y": 0.1}, "value": None})
    for name in ("auto", "tpe", "gp"):
        header = {"space": space, "seed": 5, "budget": 5, "searcher": name}
        f = lambda p: abs(p["x"] - 0.8)
        warm, cold = search(dict(header, known=known), f, 5)[0], search(header, f, 5)[0]
        assert sum(map(f, warm)) < sum(map(f, cold)), (name, warm, cold)


def check_repeats():
    seen, _ = search({"space": MIXED, "budget": 4, "repeats": 3, "searcher": "tpe"}, loss, 50)
    assert len(seen) == 12 and all(seen[i] == seen[i // 3 * 3] for i in range(12)), seen
    assert len({p["lr"] for p in seen}) == 4


def check_objectives():
    space = [number("x", 0, 1), number("y", 0, 1)]
    f = lambda p: [p["x"], p["x"] * (1 - p["y"])]
    for name in ("auto", "random", "sobol", "lhs", "tpe", "gp", "nsga2"):
        header = {"space": space, "seed": 4, "budget": 40, "searcher": name, "population": 8, "direction": ["minimize", "maximize"]}
        seen, best = search(header, f, 40)
        assert len(seen) == 40 and best["value"] == min(p["x"] for p in seen), name
        late = [1 - p["y"] for p in seen[25:]]
        assert name in ("random", "sobol", "lhs") or sum(late) / 15 > 0.55, (name, late)
    seen, best = search(dict(header, direction=["maximize"]), lambda p: [p["x"]], 9)
    assert best["value"] == max(p["x"] for p in seen)
    s = Server(dict(header, searcher="gp"))
    for i in range(8):
        s.answer("ask")
        s.op("tell", id=i, value=None if i % 2 else [None, 1])
    assert s.answer("best") == {}
    s.end()


def check_reject():
    s = Server({"space": MIXED, "seed": 3, "budget": 3, "searcher": "tpe"})
    for i in range(6):
        assert s.answer("ask")["id"] == i
        if i % 2:
            s.op("tell", id=i, value=1)
        else:
            s.op("reject", id=i)
    assert s.answer("ask") == {"wait": True, "done": True}
    s.end()


def check_seconds():
    for name in ("auto", "random", "gp", "cmaes"):
        seen, _ = search({"space": MIXED, "budget": 50, "searcher": name, "max_seconds": 10, "cost_aware": True}, loss, 50, 2.5)
        assert len(seen) == 4, (name, len(seen))


def check_best():
    s = Server({"space": [number("x", 0, 1)], "direction": "maximize"})
    assert s.answer("best") == {}
    for i, v in enumerate((1, 5, None, 3)):
        params = s.answer("ask")["params"]
        best = params if i == 1 else best if i > 1 else None
        s.op("tell", id=i, value=v)
    assert s.answer("best") == {"id": 1, "params": best, "value": 5.0}
    s.end()


def check_begin():
    s = Server({"space": MIXED, "seed": 3, "budget": 5, "searcher": "tpe"})
    s.op("begin", id=0, params={"lr": 0.1, "k": 2, "x": 1.5, "act": 7})
    assert s.answer("ask")["id"] == 1
    s.op("begin", id=2, params={"lr": 1, "k": 64, "x": -2, "act": None})
    s.op("tell", id=0, value=0.25)
    assert s.answer("best") == {"id": 0, "params": {"lr": 0.1, "k": 2, "x": 1.5, "act": 7}, "value": 0.25}
    assert s.answer("ask")["id"] == 3 and s.answer("ask")["id"] == 4
    assert s.answer("ask") == {"wait": True}
    s.end()


def check_confirm():
    s = Server({"space": MIXED, "seed": 3, "budget": 3, "searcher": "tpe", "confirm": True, "metric": "loss", "workers": 2})
    first = s.answer("ask")
    assert first == s.answer("ask") and first["id"] == 0
    s.op("begin", id=0, params={"lr": 0.1, "k": 2, "x": 1.5, "act": 7})
    second = s.answer("ask")
    s.op("tell", id=0, value=1)
    s.op("begin", id=1, params=second["params"])
    s.op("begin", id=2, params=first["params"])
    assert second["id"] == 1 and s.answer("ask") == {"wait": True}
    s.op("tell", id=1, value=None)
    s.op("tell", id=2, value=3)
    assert s.answer("ask") == {"wait": True, "done": True}
    s.end()


def check_many():
    """A header of more than a megabyte, with unusual names."""
    space = [choice("a b", *range(5)), number("ü", 0, 1), number('"', 0, 1)]
    known = [{"params": {"a b": i % 5, "ü": i / 20000, '"': 0.5}, "value": i} for i in range(20000)]
    seen, _ = search({"space": space, "searcher": "random", "budget": 2, "known": known}, lambda p: 1, 2)
    assert len(seen) == 2


def checks():
    yield "every searcher is in the manual", check_kinds
    for name in kinds():
        if name != "custom":
            yield "searcher %s" % name, lambda: check_kind(name)
    for name in kinds():
        if name not in ("custom", "single", "grid", "random", "sobol", "lhs", "tpe", "gp", "cmaes", "nsga2"):
            yield "searcher %s, by steps" % name, lambda: check_steps(name)
    for name, f in sorted(globals().items()):
        if name.startswith("check_") and f not in (check_kinds, check_kind, check_steps):
            yield name[6:], f


for what, check in checks():
    try:
        check()
        print("ok", what)
    except Exception:
        print("not ok", what)
        print("# " + "".join(traceback.format_exc(limit=-2)).strip()[-1500:].replace("\n", "\n# "))
    sys.stdout.flush()
