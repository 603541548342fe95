# SPDX-License-Identifier: Apache-2.0
"""Read and replay the decision log of an experiment: an independent implementation of doc/formats.md."""
import glob
import json
import math
import os
import re

BLOCK = 256
MASK = (1 << 64) - 1
P1, P2, P3, P4, P5 = (0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9,
                      0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5)


# (state, event): the next state; any other pair is an event that came too late, and changes nothing
MOVES = {("running", "pause"): "paused", ("paused", "resume"): "running", ("running", "stop"): "stopped",
         ("paused", "stop"): "stopped", ("running", "kill"): "killed", ("paused", "kill"): "killed",
         ("stopped", "kill"): "killed", ("stopped", "continue"): "running", ("killed", "continue"): "running",
         ("completed", "continue"): "running", ("failed", "continue"): "running"}
WISHES = {event for _, event in MOVES}
NOTES = {"report", "submit", "scale", "exclude", "label", "archive"}


def rotate(x, n):
    return ((x << n) | (x >> (64 - n))) & MASK


def stir(acc, word):
    return rotate((acc + word * P2) & MASK, 31) * P1 & MASK


def xxh64(data):
    """XXH64 with seed 0."""
    at, n = 0, len(data)
    if n >= 32:
        lanes = [(P1 + P2) & MASK, P2, 0, -P1 & MASK]
        while at + 32 <= n:
            for i in range(4):
                lanes[i] = stir(lanes[i], int.from_bytes(data[at + 8 * i:at + 8 * i + 8], "little"))
            at += 32
        h = sum(rotate(lane, r) for lane, r in zip(lanes, (1, 7, 12, 18))) & MASK
        for lane in lanes:
            h = ((h ^ stir(0, lane)) * P1 + P4) & MASK
    else:
        h = P5
    h = (h + n) & MASK
    while at + 8 <= n:
        h = (rotate(h ^ stir(0, int.from_bytes(data[at:at + 8], "little")), 27) * P1 + P4) & MASK
        at += 8
    if at + 4 <= n:
        h = (rotate(h ^ int.from_bytes(data[at:at + 4], "little") * P1 & MASK, 23) * P2 + P3) & MASK
        at += 4
    for byte in data[at:]:
        h = rotate(h ^ byte * P5 & MASK, 11) * P1 & MASK
    for shift, factor in ((33, P2), (29, P3)):
        h = (h ^ h >> shift) * factor & MASK
    return h ^ h >> 32


def number(v):
    return float(v) if v is not None else math.nan


def read_entry(path):
    """Return the events of an entry. Raise ValueError if it is damaged."""
    with open(path, "rb") as f:
        text = f.read()
    if not text.endswith(b"\n"):
        raise ValueError("its last line is cut")
    end = text.rfind(b"\n", 0, len(text) - 1) + 1
    if text[end:] != b'{"xxh64": "%016x"}\n' % xxh64(text[:end]):
        raise ValueError("its checksum is wrong")
    return [json.loads(line) for line in text[:end].splitlines()]


class Trial:
    def __init__(self, number, event):
        self.number = number
        self.hparams = event.get("hparams")
        self.state = "paused"   # open, paused (between segments), failed, rejected
        self.target = self.length = 0
        self.over = 0           # number of attempts that have ended
        self.owners = {}        # attempt: nonce of the owner that its begin names
        self.ends = {}          # attempt: the event that ended it
        self.results = []       # accepted results


class Replay:
    """The state of an experiment by its log; .problems lists violations of the format."""

    def __init__(self, folder):
        self.folder = folder
        self.problems = []
        self.trials = []
        self.create = None
        self.state = "new"
        self.expired = False
        self.ignored = 0        # events of fenced attempts
        self.entries = 0
        self.counts = {}
        for n, path in enumerate(self.paths(), 1):
            self.entries = n
            try:
                events = read_entry(path)
            except (ValueError, OSError) as e:
                self.bad(f"{path}: {e}")
                break
            for event in events:
                self.apply(event, n)

    def bad(self, what):
        self.problems.append(what)

    def paths(self):
        """Return the paths of the entries in order. Gaps and other files are problems."""
        found = {}
        for path in glob.glob(f"{self.folder}/log/*/*"):
            block, name = path.split("/")[-2:]
            if not re.fullmatch(r"\d{8,}", name):
                self.bad(f"{path}: no entry")
            elif block != "%06d" % ((int(name) - 1) // BLOCK):
                self.bad(f"{path}: in the wrong folder")
            else:
                found[int(name)] = path
        for path in glob.glob(f"{self.folder}/log/*"):
            if os.path.isdir(path) or path.endswith(".pack"):
                continue
            self.bad(f"{path}: no entry")
        if sorted(found) != list(range(1, len(found) + 1)):
            self.bad(f"{self.folder}/log: the numbers have gaps: {len(found)} entries, the last is {max(found)}")
        return [found[n] for n in sorted(found)]

    # ---- events

    def apply(self, event, n):
        op = event.get("op")
        self.counts[op] = self.counts.get(op, 0) + 1
        if (op == "create") != (self.create is None):
            self.bad(f"entry {n}: {op} is not where it belongs")
        handler = getattr(self, "on_" + str(op), None)
        if op in WISHES:
            self.state = MOVES.get((self.state, op), self.state)
            self.expired = self.expired and op != "continue"
        elif handler:
            handler(event, n)
        elif op not in NOTES:
            self.bad(f"entry {n}: an event without a meaning: {op}")

    def trial(self, event, n):
        t = event.get("trial", 0)
        if 1 <= t <= len(self.trials):
            return self.trials[t - 1]
        self.bad(f"entry {n}: {event['op']} of trial {t}, which there is not")
        return None

    def on_create(self, event, n):
        self.create = event
        self.state = "running"

    def on_begin(self, event, n):
        if self.state != "running" or self.expired:
            self.bad(f"entry {n}: a segment begins in a sweep that is {'expired' if self.expired else self.state}")
        if event["trial"] == len(self.trials) + 1:
            self.trials.append(Trial(event["trial"], event))
        t = self.trial(event, n)
        if not t:
            return
        if t.state != "paused" or event["length"] <= t.length:
            self.bad(f"entry {n}: trial {t.number} ({t.state}) cannot begin a segment to {event['length']}")
        t.state, t.target = "open", event["length"]
        if event.get("owner"):
            t.owners[t.over + 1] = event["owner"]

    def end_attempt(self, event, n):
        """Return the trial if the event ends its current attempt, else None."""
        t = self.trial(event, n)
        if not t:
            return None
        if event["attempt"] > t.over + 1 or (t.state != "open" and event["attempt"] > t.over):
            self.bad(f"entry {n}: {event['op']} of trial {t.number}, attempt {event['attempt']}, which has not begun")
        if t.state != "open" or event["attempt"] != t.over + 1:
            self.ignored += 1
            return None
        return t

    def on_result(self, event, n):
        t = self.end_attempt(event, n)
        if not t:
            return
        length = event["length"]
        if not (1 <= length < t.target if event.get("stopped") else length == t.target):
            self.bad(f"entry {n}: trial {t.number} has a result at {length}, not {t.target}")
            return
        if any(r["length"] == length for r in t.results):
            self.bad(f"entry {n}: trial {t.number} has two results at {length}")
        self.close(t, event)
        t.results.append(event)
        t.length, t.state = length, "paused"

    def close(self, t, event):
        t.over = event["attempt"]
        t.ends[t.over] = event

    def on_fail(self, event, n):
        t = self.end_attempt(event, n)
        if t:
            self.close(t, event)

    on_park = on_lost = on_fail

    def on_reject(self, event, n):
        t = self.end_attempt(event, n)
        if t:
            self.close(t, event)
            t.state = "rejected"

    def on_exit(self, event, n):
        t = self.trial(event, n)
        if t and t.state == "open":
            t.state = "failed"

    def on_retry(self, event, n):
        t = self.trial(event, n)
        if t and t.state == "failed":
            t.state = "open"

    def on_expire(self, event, n):
        self.expired = self.expired or self.state == "running"

    def on_end(self, event, n):
        if self.state == "running":
            self.state = event["state"]
