# SPDX-License-Identifier: Apache-2.0
"""For tests/mutate: a copy of the sources, its builds, and the lines that each test runs."""
import contextlib
import difflib
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

from mutants import TESTS, TOP


def digest(path):
    with open(path, "rb") as f:
        return hashlib.sha256(f.read()).hexdigest()


def write_new(path, data):
    """Write a file, unless it already has this content: make would rebuild what depends on it."""
    if os.path.exists(path):
        with open(path, "rb") as f:
            if f.read() == data:
                return
    with open(path, "wb") as f:
        f.write(data)


def copy_sources(top):
    files = subprocess.check_output(["git", "-C", TOP, "ls-files"], text=True).split("\n")
    for f in filter(None, files):
        to = os.path.join(top, f)
        os.makedirs(os.path.dirname(to), exist_ok=True)
        source = os.path.join(TOP, f)
        if os.path.islink(source) or not os.path.exists(source):
            continue
        with open(source, "rb") as f:
            write_new(to, f.read())
        shutil.copymode(source, to)


class Sources:
    """A copy of the sources and one build of it."""

    def __init__(self, folder, name, jobs, environment):
        self.src, self.build, self.jobs = os.path.join(folder, "src"), os.path.join(folder, name), jobs
        self.log, self.environment = os.path.join(folder, name + ".log"), environment
        os.makedirs(self.build, exist_ok=True)

    def configure(self, *options):
        if not os.path.exists(os.path.join(self.src, "configure")):
            self.call(["autoreconf", "-fi"], self.src)
        if not os.path.exists(os.path.join(self.build, "Makefile")):
            self.call([f"{self.src}/configure", *options], self.build)
        self.call(["make", "Makefile"], self.build)

    def call(self, command, cwd, must=True):
        with open(self.log, "a", encoding="utf-8") as log:
            if subprocess.call(command, cwd=cwd, env=self.environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log) and must:
                sys.exit(f"{' '.join(command)}: see {self.log}")

    def make(self, *arguments, must=True):
        self.call(["make", "V=1", f"-j{self.jobs}", *arguments], self.build, must)

    def variable(self, name):
        return subprocess.check_output(["make", "-s", f"--eval=show: ; $(info $({name})) @:", "show"], cwd=self.build, text=True).strip()

    def text(self, source):
        with open(os.path.join(self.src, source), encoding="utf-8") as f:
            return f.read()

    def is_script(self, test):
        return os.path.exists(os.path.join(self.src, test))

    def source_of(self, test):
        """Return the source of a test: a script itself, or the C file with the longest matching name (elasticjoins.t: elastic.c)."""
        if self.is_script(test):
            return test
        folder, name = os.path.split(test)
        return os.path.join(folder, max((f for f in os.listdir(os.path.join(self.src, folder)) if f.endswith(".c") and name.startswith(f[:-2])),
                                        key=len))

    def needs(self, tests):
        """Return make's targets for these tests: a script may use anything that is installed, so it needs all."""
        return ["all"] if any(self.is_script(t) for t in tests) else tests

    def digest_of(self, test):
        return digest(os.path.join(self.src, self.source_of(test)))

    def compiles(self):
        """Parse make's log. Return {object: (source, the command before the source's name, the command after it)}."""
        found = {}
        with open(self.log, encoding="utf-8", errors="replace") as log:
            for line in log:
                if not (m := re.match(r"(?:libtool: compile: +)?(gcc .*)", line)) or " -c " not in line:
                    continue
                command = re.sub(r" -M[DP]\b| -M[TF] \S+|&&\\$", "", m[1])
                source = re.search(r"(?:`[^`]*`)?(\S+\.c)(?= |$)", command)
                output = re.search(r" -o (\S+\.o)", command)
                if source and output and os.path.exists(os.path.join(self.build, output[1])):
                    name = os.path.relpath(source[1], self.src) if source[1].startswith("/") else source[1]
                    found[output[1]] = (name, command[:source.start()], command[source.end():])
        return found

    def links(self):
        """Parse make's log. Return {program: the command that links it}."""
        with open(self.log, encoding="utf-8", errors="replace") as log:
            commands = [m[1] for m in (re.match(r"libtool: link: +(gcc .*)", line) for line in log) if m]
        return {re.search(r" -o (\S+)", c)[1]: c for c in commands}


class Coverage:
    """The lines that each test runs. TEST.json is {source: [digest, lines that ran, lines that did not]}; texts/ has sources by digest."""

    def __init__(self, folder):
        self.folder, self.texts = os.path.join(folder, "cover"), os.path.join(folder, "cover", "texts")
        self.tests, self.mapped = {}, {}
        os.makedirs(self.texts, exist_ok=True)

    def path(self, test, suffix=""):
        return os.path.join(self.folder, test.replace("/", ":") + suffix)

    def keep(self, test, gcov):
        """Write TEST.json from the test's gcov data, and delete that data."""
        ran, sources = {}, {}
        roots = [self.path(test)] + ([""] if gcov.is_script(test) else []) # env -i clears GCOV_PREFIX
        with tempfile.TemporaryDirectory() as tmp:
            for i, (output, root) in enumerate((output, root) for output in gcov.compiles() for root in roots):
                notes = os.path.join(gcov.build, output[:-2])
                if os.path.exists(root + notes + ".gcda"):
                    os.symlink(root + notes + ".gcda", os.path.join(tmp, f"{i}.gcda"))
                    os.symlink(notes + ".gcno", os.path.join(tmp, f"{i}.gcno"))
            data = sorted(f for f in os.listdir(tmp) if f.endswith(".gcda"))
            out = subprocess.run(["gcov", "--json-format", "--stdout", *data], cwd=tmp, capture_output=True, text=True, check=False).stdout
        for line in filter(lambda x: x.startswith("{"), out.split("\n")):
            for f in json.loads(line)["files"]:
                source = os.path.relpath(os.path.join(gcov.build, f["file"]), gcov.src)
                if source.endswith(".c") and source.split("/")[0] in TESTS and os.path.exists(os.path.join(gcov.src, source)):
                    counts = ran.setdefault(source, {})
                    for at in f["lines"]:
                        counts[at["line_number"]] = counts.get(at["line_number"], 0) + at["count"]
        for source, counts in ran.items():
            of = digest(os.path.join(gcov.src, source))
            shutil.copyfile(os.path.join(gcov.src, source), os.path.join(self.texts, of))
            sources[source] = [of, [n for n in sorted(counts) if counts[n]], [n for n in sorted(counts) if not counts[n]]]
        with open(self.path(test, ".json"), "w", encoding="utf-8") as f:
            json.dump(sources, f)
        shutil.rmtree(self.path(test), ignore_errors=True)

    def of(self, test):
        if test not in self.tests:
            self.tests[test] = {}
            with contextlib.suppress(OSError), open(self.path(test, ".json"), encoding="utf-8") as f:
                self.tests[test] = json.load(f)
        return self.tests[test]

    def share_of_room(self, test, source):
        """Return the share of the lines the test runs that is in the folder of that source."""
        ran = {s: len(x[1]) for s, x in self.of(test).items()}
        return sum(n for s, n in ran.items() if os.path.dirname(s) == os.path.dirname(source)) / max(sum(ran.values()), 1)

    def now(self, old, text):
        """Return {line in the old source: line in today's}, or None if both are the same."""
        today = hashlib.sha256(text.encode()).hexdigest()
        if old != today and (old, today) not in self.mapped:
            with open(os.path.join(self.texts, old), encoding="utf-8") as f:
                blocks = difflib.SequenceMatcher(None, f.read().split("\n"), text.split("\n"), autojunk=False).get_matching_blocks()
            self.mapped[old, today] = {b.a + i + 1: b.b + i + 1 for b in blocks for i in range(b.size)}
        return self.mapped.get((old, today))

    def share(self, test, source, text, line):
        """Return 0 if the test does not run the line (0: any line), else the share of the lines it runs that is in that source."""
        if source not in self.of(test):
            return 0
        old, ran, not_ran = self.of(test)[source]
        now = self.now(old, text)
        lines = {n if now is None else now.get(n, 0): n in runs for runs in (set(ran),) for n in ran + not_ran}
        at = max((n for n in lines if n <= line), default=0)
        # gcov counts a statement at its first line only; data outside functions counts as run if any line of the file is
        runs = bool(ran) if not at or "}" in text.split("\n")[at - 1:line - 1] else lines[at]
        return len(ran) / sum(len(x[1]) for x in self.of(test).values()) if runs else 0
