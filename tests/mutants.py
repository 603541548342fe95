# SPDX-License-Identifier: Apache-2.0
"""Draw one-line mutants of the code by seed, for tests/mutate."""
import os
import re
import subprocess

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# source folder: its tests, the most relevant first
TESTS = {
    "searcher": ["tests/searcher/*.t"],
    "runtime": ["tests/runtime/*.t", "tests/spank/*.t", "tests/launcher/*.t", "tests/attacks/*.t", "tests/cluster/*.t"],
    "launcher": ["tests/launcher/*.t", "tests/attacks/*.t", "tests/cluster/*.t"],
    "spank": ["tests/spank/*.t", "tests/attacks/*.t", "tests/cluster/*.t"],
}
# mutants of each folder, of a hundred
SHARES = {"searcher": 25, "runtime": 35, "launcher": 30, "spank": 10}

# (pattern, replacement). Never "return 1" for "return 0", nor -2 for -1: callers only check whether the value is negative.
CHANGES = [
    (r" < ", " <= "), (r" <= ", " < "), (r" > ", " >= "), (r" >= ", " > "),
    (r" == ", " != "), (r" != ", " == "), (r" && ", " || "), (r" \|\| ", " && "),
    (r" \+ ", " - "), (r" - ", " + "), (r" \* (?=\w)", " / "), (r" / ", " * "),
    (r"\+\+", "--"), (r"--(?=[\w)])", "++"), (r" \+= ", " -= "), (r" -= ", " += "),
    (r"\btrue\b", "false"), (r"\bfalse\b", "true"), (r"!(?=[\w(*])", ""),
    (r"\breturn 0;", "return -1;"), (r"\breturn -1;", "return 0;"), (r"(?<![\w.])(?<!return )0(?=[;,)\]])", "1"),
    (r"(?<!calloc \()(?<![\w.-])1(?=[;,)\]])", "2"), (r"\bbreak;", ";"), (r"\bcontinue;", ";"),
    (r"^\s+(?!\w*(?:free|close|destroy|decref) )[a-z_]+ \([^=]*\);$", ";"),
]


def code_lines(text):
    """Yield the numbers of the lines of code: not comments, strings, preprocessor lines, or lines without indentation."""
    comment = False
    for i, line in enumerate(text.split("\n")):
        start = line.strip()
        if start.startswith("/*"):
            comment = True
        if not comment and start and not start.startswith("#") and '"' not in line and line.startswith((" ", "\t")):
            yield i
        if "*/" in line:
            comment = False


def mutants(top, rng, only):
    """Yield (folder, file, line number, line, changed line) without end."""
    files = [f for f in subprocess.check_output(["git", "-C", TOP, "ls-files", *only], text=True).split() if f.endswith(".c")]
    places = []
    for f in files:
        with open(os.path.join(top, f), encoding="utf-8") as source:
            text = source.read()
        places += [(f, i, line) for i in code_lines(text) for line in [text.split("\n")[i]]]
    by_folder = {}
    for p in places:
        by_folder.setdefault(p[0].split("/")[0], []).append(p)
    limit = re.compile(r"([\w.\[\]>-]+) [<>]=? ([\w.\[\]>-]+)\)? \? (\1 : \2|\2 : \1)\b")
    descriptor = re.compile(r"fd(?:\[\w+\])? (?:<|>=) 0.?$")
    while True:
        folder = rng.choices(sorted(by_folder), [SHARES[d] for d in sorted(by_folder)])[0]
        f, i, line = rng.choice(by_folder[folder])
        found = [(m, new) for old, new in CHANGES for m in re.finditer(old, line)]
        if not found:
            continue
        m, new = rng.choice(found)
        if limit.search(line) and m.group().strip() in ("<", ">", "<=", ">="):
            continue # min() and max(): if both are equal, either will do
        if descriptor.search(line[:m.end() + 1]) and new in (" <= ", " > ", "1"):
            continue # descriptor 0 is in use, so no call returns it
        changed = line[:m.start()] + (re.sub(r"\S.*", ";", m.group()) if new == ";" and m.start() == 0 else new) + line[m.end():]
        if changed != line:
            yield folder, f, i, line, changed


def equivalents():
    """Return (file, line, changed line) of the mutants that are known to change nothing."""
    known = set()
    with open(os.path.join(TOP, "tests/mutants.equivalent"), encoding="utf-8") as f:
        block = [line.rstrip("\n") for line in f if not line.startswith("#")]
    for i in range(0, len(block) - 3, 5):
        known.add(tuple(x.strip() for x in block[i:i + 3]))
    return known
