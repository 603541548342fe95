# SPDX-License-Identifier: Apache-2.0
"""Check the files of an experiment: nothing is lost, duplicated, stuck or torn.

usage: check.py [--table] [--trials=N] [--unfinished] [--results] FOLDER

Prints the problems, if any, and one line with the verdict.  The exit status is 0
if the experiment is sound, else 1.
--table prints a sorted line "trial hparams length metric" for each accepted
result, to compare two runs, and the checksum of these lines.  --trials requires
results of exactly N trials.  --unfinished accepts a sweep that has not ended.
--results also checks that results.h5 is final, as after dl show.
"""
import collections
import glob
import hashlib
import json
import math
import os
import re
import sys

from replay import BLOCK, Replay, number, xxh64

try:
    import h5py
except ImportError:
    h5py = None

TEMPORARY = re.compile(r"\.[0-9a-f]{32}")


def same(a, b):
    return a == b or (math.isnan(a) and math.isnan(b))


class Check:
    def __init__(self, folder):
        self.folder = folder
        self.log = Replay(folder)
        self.problems = self.log.problems
        self.temporary = 0

    def bad(self, what):
        self.problems.append(what)

    def json(self, path, whole=True):
        """Return the JSON object in a file, or in its first line."""
        try:
            with open(path) as f:
                text = f.read()
            if not text.strip():
                raise ValueError("empty")
            return json.loads(text if whole else text.split("\n")[0])
        except (OSError, ValueError) as e:
            self.bad(f"{path}: {e}")
            return {}

    # ---- consistency of the log

    def segments(self, unfinished):
        if self.log.state == "new":
            self.bad("no create")
        if unfinished:
            return
        if self.log.state not in ("completed", "failed"):
            self.bad(f"the sweep has not ended: {self.log.state}")
        for t in self.log.trials:
            if t.state == "open" and not self.log.expired:
                self.bad(f"trial {t.number} is stuck: its segment to {t.target} has no end")

    # ---- files that must match the log

    def claims(self):
        """Check that only the worker that claimed an attempt logs its end."""
        workers = {os.path.basename(p): self.json(p, whole=False) for p in glob.glob(f"{self.folder}/workers/*")
                   if re.fullmatch(r"[0-9a-f]{32}", os.path.basename(p))}
        for t in self.log.trials:
            owners = dict(t.owners)
            for path in glob.glob(f"{self.folder}/trials/{t.number:04d}/claim.*"):
                k = int(path.rpartition(".")[2])
                claim = self.json(path)
                if (claim.get("trial"), claim.get("attempt")) != (t.number, k):
                    self.bad(f"{path}: the claim of another attempt: {claim}")
                if k in owners:
                    self.bad(f"{path}: this attempt was given to {owners[k]} by its begin")
                if k > t.over + (t.state == "open"):
                    self.bad(f"{path}: attempt {k - 1} has not ended")
                owners[k] = claim.get("nonce")
            for k, event in t.ends.items():
                slot = workers.get(owners.get(k), {}).get("slot")
                if k not in owners or slot is None:
                    self.bad(f"trial {t.number}: {event['op']} of attempt {k}, which no worker has claimed")
                elif event["op"] != "lost" and event["by"] != slot:
                    self.bad(f"trial {t.number}: {event['op']} of attempt {k} by {event['by']}, but {slot} had it")

    def attempts(self):
        for t in self.log.trials:
            for r in t.results:
                folder = f"{self.folder}/trials/{t.number:04d}/a.{r['attempt']}"
                if not os.path.isdir(folder):
                    # stopped by its reports after its worker had died, maybe before it made the folder
                    if not r.get("stopped"):
                        self.bad(f"{folder}: no such folder, but attempt {r['attempt']} has a result")
                    continue
                have = self.json(f"{folder}/hparams.json")
                if have != t.hparams:
                    self.bad(f"{folder}/hparams.json: {have}, not {t.hparams}")
                if h5py:
                    self.metric(t, r)

    def metric(self, t, result):
        """Check the metric against the metrics file of the attempt, or of an earlier one."""
        name, want = self.metric_name(), number(result["metric"])
        for k in range(result["attempt"], 0, -1):
            last = self.last(f"{self.folder}/trials/{t.number:04d}/a.{k}", name)
            if last is not None:
                if not same(last, want):
                    self.bad(f"trial {t.number}, attempt {k}: {name} is {last}, not {want}")
                return
        self.bad(f"trial {t.number}: no file has the {name} of its result")

    def metric_name(self):
        with open(f"{self.folder}/experiment.conf") as f:
            found = re.search(r'\bmetric\s*[=:]\s*\[?\s*"([^"]*)"', f.read())
        return found.group(1) if found else ""

    def last(self, folder, name):
        """Return the newest value. Each file must open: it gets its name only when complete."""
        value = None
        for path in sorted(glob.glob(f"{folder}/metrics*.h5")):
            try:
                with h5py.File(path, "r") as f:
                    names = f["names"][:].astype(str)
                    rows = [r for r in f["metrics"][1:] if names[r["name"]] == name]
            except (OSError, KeyError) as e:
                self.bad(f"{path}: {e}")
                continue
            value = float(rows[-1]["value"]) if rows else value
        return value

    def files(self):
        """Check each file; count temporary ones, which a crash leaves behind."""
        for folder, _, names in os.walk(self.folder):
            for name in names:
                path = os.path.join(folder, name)
                if os.path.islink(path) and not os.path.exists(path):
                    self.bad(f"{path}: leads nowhere")
                elif TEMPORARY.fullmatch(name):
                    self.temporary += 1
                elif name.endswith(".pack"):
                    self.pack(path)
                elif name.endswith(".h5") and h5py:
                    self.open(path)

    def open(self, path):
        try:
            h5py.File(path, "r").close()
        except OSError as e:
            self.bad(f"{path}: {e}")

    def pack(self, path):
        """Check a pack, which copies the entries of a full block."""
        with open(path, "rb") as f:
            head, events = f.read(32), f.read()
        size, total = (int.from_bytes(head[at:at + 8], "little") for at in (16, 24))
        if not head.startswith(b"DLPACK") or size != len(events) or total != xxh64(events):
            self.bad(f"{path}: is cut, or changed")
        if self.log.entries < (int(os.path.basename(path)[:-5]) + 1) * BLOCK:
            self.bad(f"{path}: its folder is not full")

    # ---- results

    def results_file(self):
        """Check that results.h5 of an ended sweep is complete; dl show makes it so."""
        if not h5py or self.log.state not in ("completed", "failed"):
            return
        path = f"{self.folder}/results.h5"
        try:
            with h5py.File(path, "r") as f:
                shown, state = int(f.attrs["entries"]), f.attrs["state"]
                state = state.decode() if isinstance(state, bytes) else state
                columns = {name: f["trials"][name][:] for name in ("trial", "length", "metric")}
                rows = f["metrics"][:]
        except (OSError, KeyError) as e:
            self.bad(f"{path}: {e}")
            return
        if shown != self.log.entries or state != self.log.state:
            self.bad(f"{path}: {shown} entries and {state}, not {self.log.entries} and {self.log.state}")
            return
        if list(columns["trial"]) != [t.number for t in self.log.trials]:
            self.bad(f"{path}: other trials than in the log")
            return
        for t, length, metric in zip(self.log.trials, columns["length"], columns["metric"]):
            last = t.results[-1] if t.results else None
            if length != (last["length"] if last else 0) or (last and not same(metric, number(last["metric"]))):
                self.bad(f"{path}: trial {t.number} has {metric} at {length}, not {last}")
        twice = [k for k, n in collections.Counter((r["trial"], r["name"], r["step"]) for r in rows).items() if n > 1]
        if twice:
            self.bad(f"{path}: {len(twice)} values are there twice, such as {twice[0]}")

    def table(self):
        return sorted("%d %s %d %r" % (t.number, json.dumps(t.hparams, sort_keys=True), r["length"], r["metric"])
                      for t in self.log.trials for r in t.results)


    def sum(self):
        return hashlib.sha256("\n".join(self.table()).encode()).hexdigest()

    def verdict(self):
        states = collections.Counter(t.state for t in self.log.trials)
        line = ("%s: %s: %d problems; %d entries, %d trials (%s), %d with a result, %d attempts ended, %d lost, "
                "%d events of fenced attempts, %d temporary files%s"
                % (self.folder, "DAMAGED" if self.problems else "sound", len(self.problems), self.log.entries,
                   len(self.log.trials), ", ".join(f"{n} {s}" for s, n in sorted(states.items())) or "none",
                   self.done(), sum(len(t.ends) for t in self.log.trials), self.log.counts.get("lost", 0),
                   self.log.ignored, self.temporary, "" if h5py else " (no h5py: metrics not read)"))
        return "\n".join(["  " + p for p in self.problems[:20]] + [line])

    def done(self):
        return sum(bool(t.results) for t in self.log.trials)


def judge(folder, trials=None, unfinished=False, results=False):
    """Run all checks. The problems are in .problems of the result."""
    c = Check(folder)
    c.segments(unfinished)
    c.claims()
    c.attempts()
    c.files()
    if results:
        c.results_file()
    if trials is not None and c.done() != trials:
        c.bad(f"{c.done()} trials have a result, not {trials}")
    return c


def usage():
    print(__doc__.strip(), file=sys.stderr)
    sys.exit(2)


def main():
    options = [a for a in sys.argv[1:] if a.startswith("--")]
    folders = [a for a in sys.argv[1:] if not a.startswith("--")]
    if len(folders) != 1 or any(not re.fullmatch(r"--table|--unfinished|--results|--trials=\d+", o) for o in options):
        usage()
    trials = [int(o[9:]) for o in options if o.startswith("--trials=")]
    c = judge(folders[0].rstrip("/"), trials[0] if trials else None, "--unfinished" in options, "--results" in options)
    if "--table" in options:
        print("\n".join(c.table()))
        print("sum", c.sum())
    print(c.verdict())
    sys.exit(1 if c.problems else 0)


if __name__ == "__main__":
    main()
