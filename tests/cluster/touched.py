# SPDX-License-Identifier: Apache-2.0
"""touched.py TRACE: print the paths and sockets that traced processes of slurmd used as root.

TRACE is the output of strace -f -e trace=file,network,process,%creds.  Each line of the output is a system call and its
path; numbers, which differ from run to run, are replaced by #.  A process counts as root until it changes its effective user.
"""
import re
import sys

SETS = {"setresuid": 1, "setreuid": 1, "setuid": 0, "seteuid": 0}  # which argument is the effective user


def calls(path):
    """Yield calls; join the two halves of a call that another process interrupted."""
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
    """Track who is root, call by call.  A child's first calls may be traced before fork() returns in its parent."""

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
        if re.match("exit|wait|send|recv|accept", name):  # no paths, and different in each run
            return
        path = re.search(r'"([^"]*)"', args)
        if path or name in ("socket", "connect", "bind", "listen"):
            self.touched.add((name, re.sub(r"\d+", "#", path.group(1) if path else args)))


def main():
    trace = Trace()
    for pid, name, args, result in calls(sys.argv[1]):
        if not trace.euid:
            trace.begin(pid, 0)  # the first process is slurmstepd
        trace.call(pid, name, args, result)
    for pid in list(trace.early):
        trace.begin(pid, 0)  # its parent is unknown, so assume root
    for name, what in sorted(trace.touched):
        print(name, what)


main()
