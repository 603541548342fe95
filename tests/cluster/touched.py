# SPDX-License-Identifier: Apache-2.0
"""touched.py TRACE: what the processes of a trace of slurmd touched as root.

TRACE is of strace -f -e trace=file,network,process,%creds; a line of the output is a system call and its path, with
what differs from run to run (numbers) as #.  A process is root's from its start until it gives up the effective user.
"""
import re
import sys

SETS = {"setresuid": 1, "setreuid": 1, "setuid": 0, "seteuid": 0}  # which argument is the effective user


def calls(path):
    """Whole calls: one that another process interrupted is put together."""
    begun = {}
    for line in open(path, errors="replace"):
        pid, _, rest = line.rstrip("\n").partition(" ")
        rest = rest.strip()
        if rest.endswith("<unfinished ...>"):
            begun[pid] = rest[:-len("<unfinished ...>")].rstrip()
            continue
        m = re.match(r"<\.\.\. \w+ resumed>(.*)", rest)
        if m:
            rest = begun.pop(pid, "") + m.group(1)
        m = re.match(r"(\w+)\((.*)\) += (.*)$", rest)
        if m:
            yield pid, m.group(1), m.group(2), m.group(3)


class Trace:
    """Who is root, call by call.  A child's first calls may come before the fork that made it has returned."""

    def __init__(self):
        self.euid = {}
        self.early = {}
        self.touched = set()

    def call(self, pid, name, args, result):
        if pid not in self.euid:
            self.early.setdefault(pid, []).append((name, args, result))
            return
        failed = result.startswith("-1")
        if name in ("clone", "clone3", "fork", "vfork") and not failed:
            self.begin(result.split()[0], self.euid[pid])
        if name in SETS and not failed:
            user = int(args.split(",")[SETS[name]])
            if user not in (-1, 4294967295):
                self.euid[pid] = user
        if self.euid[pid] == 0:
            self.note(name, args)

    def begin(self, pid, euid):
        self.euid[pid] = euid
        for name, args, result in self.early.pop(pid, []):
            self.call(pid, name, args, result)

    def note(self, name, args):
        if re.match("exit|wait|send|recv|accept", name):  # no paths, and not twice the same
            return
        path = re.search(r'"([^"]*)"', args)
        if path or name in ("socket", "connect", "bind", "listen"):
            self.touched.add((name, re.sub(r"\d+", "#", path.group(1) if path else args)))


def main():
    trace = Trace()
    for pid, name, args, result in calls(sys.argv[1]):
        if not trace.euid:
            trace.begin(pid, 0)  # slurmstepd itself
        trace.call(pid, name, args, result)
    for pid in list(trace.early):
        trace.begin(pid, 0)  # nobody's child that we know of: taken for root's
    for name, what in sorted(trace.touched):
        print(name, what)


main()
