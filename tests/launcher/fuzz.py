# SPDX-License-Identifier: Apache-2.0
"""fuzz.py server|file CASES SEED: feed dl faulty search-server sessions or experiment files.

dl must end in time with status 0 or 2 and print nothing but its own messages on standard error.
The same seed makes the same cases; the last failing case is kept in the file "case".
"""
import json
import os
import random
import re
import subprocess
import sys

SEARCHERS = ("auto single grid random sobol lhs tpe gp cmaes nsga2 asha adaptive_asha stopping_asha adaptive_stopping pasha halving"
             " hyperband async_hyperband bohb median pbt").split()
NASTY = ["0", "-1", "1", "1e300", "-1e300", "1e-300", "1e999", "0.5", "9223372036854775807", "18446744073709551616", "NaN", "true", "false",
         "null", '""', '"a"', '"x"', '"\\n"', '"\\u0001"', '"tpe"', "[]", "{}", "[[]]", '{"x":1}', "-0.0", "2147483648", "1e15", "64", "33"]
TOKEN = re.compile(rb'"[^"\n]*"|[-+.\w]+|[][{}:,;=()]')


# ---- valid inputs ----

FULL = "auto random sobol lhs tpe gp cmaes nsga2".split()
SEVERAL = [k for k in FULL if k != "cmaes"]
OWN_POINTS = ["single", "grid"]
NO_REPEATS = ["stopping_asha", "adaptive_stopping", "median", "pbt"]


def values(p):
    """Return values that the parameter can have."""
    return p["choices"] if "choices" in p else [p["low"]] if "step" in p else [p["low"], p["high"]]


def parameter(r, name, others):
    kind = r.choice(["float", "int", "categorical", "log"])
    if kind == "categorical":
        p = {"name": name, "type": kind, "choices": r.sample(["a", "b", 1, 2.5, True, None, [1], "0.1"], r.randint(1, 5))}
    elif kind == "int":
        p = {"name": name, "type": kind, "low": r.randint(1, 5), "high": r.randint(8, 500)}
        p.update(r.choice([{}, {}, {"log": True}, {"deviation": 2.0}, {"step": 2}]))
    else:
        p = {"name": name, "type": "float", "low": 0.001, "high": r.choice([0.5, 1, 1000])}
        p.update({"log": True} if kind == "log" else r.choice([{}, {}, {"step": 0.1}, {"mean": 0.1, "deviation": 1}]))
    if kind != "categorical":
        p["count"] = r.randint(1, 3)
    if others and r.random() < 0.3:
        o = r.choice(others)
        p["when"] = {o["name"]: r.choice([values(o), [r.choice(values(o))]])}
    return p


def point(r, space):
    x = {}
    for p in space:
        if all(k in x and json.dumps(x[k]) in map(json.dumps, v) for k, v in p.get("when", {}).items()):
            x[p["name"]] = r.choice(values(p))
    return x


def value(r, objectives):
    v = r.choice([r.random(), r.randint(-5, 5), 0, r.random(), None])
    return v if objectives < 2 or v is None else [v, *(r.random() for _ in range(objectives - 1))]


def make_header(r):
    space = []
    for name in r.sample(["x", "y", "a.b", "opt", "lr", "k"], r.randint(1, 5)):
        space.append(parameter(r, name, space))
    kind = r.choice(SEARCHERS)
    header = {"space": space, "seed": r.randint(0, 99), "searcher": kind}
    objectives = r.choice([1, 2, 3]) if kind in SEVERAL else 1
    steps = kind not in FULL or (kind == "auto" and objectives == 1 and r.random() < 0.5)
    header.update({"max_trials": r.randint(1, 30), "max_step": r.choice([3, 9, 27])} if steps else r.choice([{}, {"budget": r.randint(1, 30)}]))
    may = [("population", r.randint(4, 9)), ("cost_aware", True), ("max_seconds", 50), ("divisor", r.choice([2, 3.5, 4])),
           ("max_rungs", r.randint(1, 9)), ("mode", "aggressive"), ("workers", 3)]
    if kind not in OWN_POINTS + ["pbt"] and objectives == 1:
        may.append(("sampler", r.choice(FULL)))
    if kind not in NO_REPEATS and objectives == 1:
        may.append(("repeats", r.randint(1, 3)))
    if kind not in OWN_POINTS:
        may.append(("points", [point(r, space) for _ in range(2)]))
    numbers = [p for p in space if "low" in p]
    if numbers:
        p = r.choice(numbers)
        may.append(("constraint", r.choice(["`%s` <= %g", "not (`%s` > %g || 1 == 2)"]) % (p["name"], p["high"])))
    may.append(("known", [{"params": point(r, space), "value": value(r, objectives)} for _ in range(3)]))
    header.update((key, v) for key, v in may if r.random() < 0.2)
    if objectives > 1:
        header["direction"] = ["minimize", "maximize", "minimize"][:objectives]
    if not steps and "repeats" not in header:
        header["confirm"] = r.random() < 0.3
    return header, objectives


class Session:
    """A valid session, whose lines depend on the answers."""

    def __init__(self, r):
        self.header, self.objectives = make_header(r)
        self.process = subprocess.Popen(["dl", "search-server"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.lines = []
        self.steps = {}  # steps reached, by open trial
        self.trials = 0

    def write(self, line):
        self.lines.append(json.dumps(line).encode() + b"\n")
        self.process.stdin.write(self.lines[-1])
        self.process.stdin.flush()

    def answer(self, line):
        self.write(line)
        return json.loads(self.process.stdout.readline())

    def begin(self, params):
        self.write({"op": "begin", "id": self.trials, "params": params})
        self.steps[self.trials] = 0
        self.trials += 1

    def ask(self, r):
        a = self.answer({"op": "ask"})
        if "id" in a and self.header.get("confirm"):
            self.begin(a["params"])
        elif "id" in a:
            self.steps.setdefault(a["id"], a.get("from_step", 0))
            self.trials = max(self.trials, a["id"] + 1)

    def end(self, r):
        trial = r.choice(list(self.steps))
        del self.steps[trial]
        if r.random() < 0.1:
            self.write({"op": "reject", "id": trial})
        else:
            seconds = {"seconds": r.random() * 10} if r.random() < 0.3 else {}
            self.write({"op": "tell", "id": trial, "value": value(r, self.objectives), **seconds})

    def report(self, r):
        trial = r.choice(list(self.steps))
        self.steps[trial] += r.randint(1, 3)
        a = self.answer({"op": "report", "id": trial, "step": self.steps[trial], "value": value(r, self.objectives)})
        if a["decision"] != "continue":
            del self.steps[trial]

    def run(self, r):
        self.write(self.header)
        for _ in range(r.randint(3, 60)):
            if not self.steps or r.random() < 0.4:
                self.ask(r)
            else:
                r.choice([self.end, self.report])(r)
            if r.random() < 0.05:
                self.answer({"op": "best"})
        return b"".join(self.lines)


def session(r):
    s = Session(r)
    try:
        data, why = s.run(r), None
    except (OSError, ValueError, KeyError):
        data, why = b"".join(s.lines), "a session without a fault was refused"
    s.process.stdin.close()
    err = s.process.stderr.read().decode(errors="replace")
    if s.process.wait() != 0 or err:
        why = "a session without a fault: %s" % err[-2000:]
    return data, why


FILE = """name = "t";
entrypoint = "./train --lr {lr} {opt.name}";
searcher = { name = "%s"; metric = %s; max_trials = 9; max_length = %d; %s };
hyperparameters = {
    lr = { type = "log"; minval = -3; maxval = 0.0; count = 2; %s };
    opt = { name = { type = "categorical"; vals = ["sgd", "adam"]; default = "adam"; };
            momentum = { type = "float"; minval = 0.5; maxval = 0.9; step = 0.1; when = { opt = { name = "sgd"; }; }; }; };
    n = { type = "int"; minval = 2; maxval = 64; %s };
    c = { type = "const"; val = 3; };
    constant = 7;
};
resources = { workers = 2; };
metrics = { pattern = "epoch {step}: {loss}"; };
reproducibility = { experiment_seed = 1; };
"""


def experiment(r):
    name = r.choice(SEARCHERS)
    several = r.random() < 0.2
    more = [m for m in ["divisor = 3;", "max_rungs = 4;", "sampler = \"tpe\";", "repeats = 2;", "cost_aware = true;", "population = 5;",
                        "constraint = \"lr < 0.5 || n > 3\";", "constraint = [\"lr < 0.5\", \"opt.name != 'sgd'\"];", "max_gpu_hours = 2.5;",
                        "try_first = ( { lr = 0.1; opt = { name = \"sgd\"; momentum = 0.7; }; } );", "mode = \"conservative\";", "min_length = 2;"]
            if r.random() < 0.15]
    text = (FILE % (name, '["loss", "size"]' if several else '"loss"', 1 if several else r.choice([1, 9]), " ".join(more),
                    r.choice(["", "deviation = 0.5;", "default = 0.1;", "base = 2.0;"]),
                    r.choice(["", "base = 10.0;", "step = 2;", "when = { opt = { name = [\"sgd\"]; }; };"])))
    return text.encode(), None


# ---- faults ----

def bytes_fault(r, data):
    i = r.randrange(len(data))
    n = r.choice([0, 1, 1, 4])
    return data[:i] + bytes(r.choice([r.randrange(256), r.choice(b'"{}[],:0e\\\n')]) for _ in range(r.randint(0, 3))) + data[i + n:]


def token_fault(r, data):
    tokens = list(TOKEN.finditer(data))
    if not tokens:
        return data
    t = r.choice(tokens)
    new = r.choice([r.choice(NASTY).encode(), r.choice(tokens).group(), b"", t.group() * 2])
    return data[:t.start()] + new + data[t.end():]


def line_fault(r, data):
    lines = data.splitlines(True)
    i, j = r.randrange(len(lines)), r.randrange(len(lines))
    how = r.randrange(4)
    if how == 0:
        del lines[i]
    elif how == 1:
        lines.insert(j, lines[i])
    elif how == 2:
        lines[i], lines[j] = lines[j], lines[i]
    else:
        lines[i:i + 1] = [lines[i]] * r.randint(2, 40)
    return b"".join(lines)


def change(r, v):
    """Change one random part of a value; the JSON stays valid."""
    inner = v if isinstance(v, (list, dict)) and v and r.random() < 0.9 else None
    if isinstance(inner, dict):
        k = r.choice(list(inner))
        if r.random() < 0.15:
            other = r.choice([k + "x", r.choice(list(inner)), "low", "when", "value"])
            inner[other] = inner.pop(k)
        else:
            inner[k] = change(r, inner[k])
    elif isinstance(inner, list):
        i = r.randrange(len(inner))
        inner[i:i + 1] = r.choice([[], [inner[i]] * 2, [change(r, inner[i])], [change(r, inner[i])], [change(r, inner[i])]])
    elif isinstance(v, (int, float)) and r.random() < 0.6:
        return r.choice([-v, v + 1, v * 2, v / 2, v * 1e6, v / 1e6, 0, -1, 1e300, 1e-300, 2**53, 2**63 - 1])
    else:
        return r.choice([0, -1, 1.5, True, None, "", "a", "tpe", "x\ny", [], {}, [1], {"x": 1}, {"op": "ask"}, v, [v], {"a": v}])
    return v


def value_fault(r, data):
    lines = data.splitlines(True)
    i = r.choice([0, r.randrange(len(lines))])
    try:
        lines[i] = json.dumps(change(r, json.loads(lines[i]))).encode() + b"\n"
    except ValueError:
        pass
    return b"".join(lines)


def setting_fault(r, data):
    settings = list(re.finditer(rb"= ([^;{}\n]+);", data))
    if not settings:
        return data
    s = r.choice(settings)
    new = r.choice([r.choice(NASTY).encode(), r.choice(settings).group(1), s.group(1) + b"0", b"-" + s.group(1), b"(" + s.group(1) + b", 1.5)"])
    return data[:s.start(1)] + new + data[s.end(1):]


def damage(r, data, sound):
    """Make up to three faults, mostly with sound, which keeps the syntax valid."""
    for _ in range(r.choice([0, 1, 1, 1, 2, 3])):
        if data:
            data = r.choice([sound, sound, sound, line_fault, token_fault, bytes_fault])(r, data)
    return data


# ---- the cases ----

def finish(args, limit, **how):
    done = subprocess.run(["timeout", str(limit), *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, **how)
    return done.returncode, done.stdout, done.stderr.decode(errors="replace").splitlines()


def server_case(data):
    status, out, err = finish(["dl", "search-server"], 60, input=data)
    for line in out.splitlines():
        json.loads(line)
    if status not in (0, 2) or len(err) != (status == 2) or not all(line.startswith("dl: line ") for line in err):
        return "status %d: %s" % (status, "; ".join(err[-40:]))
    return None


def file_case(data):
    with open("exp.conf", "wb") as f:
        f.write(data)
    for args in (["run", "--dry-run"], ["preview"]):
        status, _, err = finish(["dl", *args, "exp.conf"], 60)
        said = [line for line in err if not line.startswith("dl: exp.conf:")]  # without warnings
        if status not in (0, 2) or bool(err if status else said) != (status == 2) or not all(line.startswith(("dl: ", "exp.conf:")) for line in err):
            return "dl %s: status %d: %s" % (" ".join(args), status, "; ".join(err[-40:]))
    return None


def suppress_foreign_leaks():
    """Ignore libconfig's leak of a string that contains a syntax error."""
    with open("leaks", "w") as f:
        f.write("leak:libconfig\n")
    os.environ["LSAN_OPTIONS"] = "suppressions=leaks:print_suppressions=0"


def main():
    suppress_foreign_leaks()
    make, sound, check = {"server": (session, value_fault, server_case), "file": (experiment, setting_fault, file_case)}[sys.argv[1]]
    cases, seed = int(sys.argv[2]), int(sys.argv[3])
    good = failed = 0
    print("# seed %d" % seed)
    for i in range(cases):
        r = random.Random("%d %d" % (seed, i))
        valid, why = make(r)
        data = valid if why else damage(r, valid, sound)
        why = why or check(data)
        if why:
            with open("case", "wb") as f:
                f.write(data)
            print("not ok case %d: %s" % (i, why))
            failed += 1
        good += data == valid
    print("# %d cases, %d of them without a fault" % (cases, good))
    sys.exit(failed > 0)


main()
