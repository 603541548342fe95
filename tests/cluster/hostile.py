# SPDX-License-Identifier: Apache-2.0
"""hostile.py CASES SEED PLUGIN: try hostile options, variables and plugstack.conf on a real cluster under sanitizers.

SLURM_CONF points to a cluster whose slurmd runs with libasan in LD_PRELOAD, and PLUGIN is built with it: see
tests/cluster/hostile.t.  No case may cause a sanitizer report about the plugin, drain a node, or stop jobs that do not use
the plugin.  The same seed gives the same cases; a failing case is written to the file "case".
"""
import glob
import os
import random
import re
import subprocess
import sys

SIZES = [0, 1, 2, 31, 63, 64, 65, 127, 255, 256, 257, 1023, 4095, 4096, 8192, 16384, 65535, 65536]
SEEDS = ["torch", "off", "auto", "tf", "worker:*", "chief:1,ps:2,worker:*", "closest", "none,verbose", "spread,own-gpu,nic", "site", "10", "quick",
         "(null)", "n[1-2]", "2,1", "1(x2)", "0,1", "41004-41006", "GPU-0,GPU-1", "0-3", "1234.0", "RANK,WORLD_SIZE", "block", "plane=2",
         "allow=torch", "default=torch", "options=dl", "nccl_dir=/tmp", "min_nccl=3"]
PIECES = ["%n", "%s" * 40, "%65536d", "%1$n", "../", "/../../etc/passwd", "$(id)", "`id`", ";id", "'", '"', "\\", "\n", "\r\n", "\t", "\x1b[2J", "\x7f",
          "\u00e9", "\u202e", "\U0001f4a9", "\ud800", "=", ",", ",,,,", ":", ":*", "[", "]", "[1-999999999]", "(x4294967296)", "-", "--", "-1",
          "18446744073709551616", "9" * 400, "nan", "1e999", "*", " ", "dl", "none", "off", "(null)"]
COMMANDS = ["srun", "sbatch", "salloc"]


def text(r, plain=False):
    """Return bytes without NUL, often of a size near a limit."""
    size = r.choice(SIZES)
    kind = r.randrange(5)
    if kind == 0:
        b = bytes(r.randrange(1, 256) for _ in range(size))
    elif kind == 1:
        b = r.choice(SEEDS).encode()
        at = r.randrange(len(b) + 1)
        b = b[:at] + r.choice(PIECES).encode("utf-8", "surrogatepass") + b[at:]
    elif kind == 2:
        piece = r.choice(PIECES + SEEDS).encode("utf-8", "surrogatepass")
        b = (piece * (size // len(piece) + 1))[:size]
    elif kind == 3:
        b = ",".join(r.choice(SEEDS) for _ in range(r.randrange(1, 12))).encode()
    else:
        b = r.choice(SEEDS).encode() + bytes([r.randrange(1, 256)]) * size
    b = b.replace(b"\0", b"")
    return re.sub(rb"[\s#\\'\"=,]", b"x", b) if plain else b


class Bench:
    def __init__(self, seed, plugin, source):
        self.r = random.Random(seed)
        self.plugin = os.path.abspath(plugin)
        self.conf = os.environ["SLURM_CONF"]
        self.plugstack = os.path.join(os.path.dirname(self.conf), "plugstack.conf")
        self.line = open(self.plugstack).read()
        self.options = self.found(source, r'"(dl(?:-[a-z]+)?)",\n')
        self.variables = self.found(source, r'"((?:SLURM|SLURMD|DL|CUDA|ROCR|HIP|ZE|GPU|NCCL|UCX|PMI|PMIX|OMP)_[A-Z_]+)"')
        self.client = self.empty_client()
        self.others = 0

    def found(self, source, pattern):
        """Return the names that the sources use, so that new options and variables are tested automatically."""
        names = set()
        for path in glob.glob(source + "/spank/*.c") + glob.glob(source + "/runtime/rank/*.c"):
            names |= set(re.findall(pattern, open(path).read()))
        assert names
        return sorted(names)

    def empty_client(self):
        """Write a slurm.conf without the plugin for srun: Slurm then passes forged options on unchecked."""
        with open("client.conf", "w") as f:
            for line in open(self.conf):
                f.write("PlugStackConfig=%s/none.conf\n" % os.getcwd() if line.startswith("PlugStackConfig=") else line)
        open("none.conf", "w").close()
        return os.path.abspath("client.conf")

    def run(self, argv, env=None, conf=None):
        e = {os.fsencode(k): os.fsencode(v) for k, v in os.environ.items()}
        e.update(env or {})
        if conf:
            e[b"SLURM_CONF"] = os.fsencode(conf)
        p = subprocess.run(argv, env=e, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300, check=False)
        return p.returncode, p.stdout

    # ---- kinds of cases; each returns what went wrong, or None

    def typed(self):
        """Pass an option on the command line: it is accepted, or rejected with a clean message."""
        command = self.r.choice(COMMANDS)
        option, value = self.r.choice(self.options), text(self.r)
        tail = {"srun": ["-n1", "true"], "sbatch": ["--wrap", "true", "-o", "/dev/null"], "salloc": ["-Q", "-n1", "true"]}[command]
        rc, out = self.run([command, b"--" + option.encode() + b"=" + value] + tail)
        if rc not in (0, 1, 255):
            return "%s ended with %d" % (command, rc)
        told = [line for line in out.split(b"\n") if b"error: dl:" in line]
        if rc and not told and b"invalid" not in out.lower() and b"rror" not in out:
            return "%s refused it without a word" % command
        if any(re.search(rb"[^\x20-\x7e]", line) for line in told):
            return "raw bytes in a message"
        return None

    def forged(self):
        """Forge an option that srun does not check, so that slurmstepd reads it: the job must run all the same."""
        option, value = self.r.choice(self.options), text(self.r)
        name = ("_SLURM_SPANK_OPTION_dl_" + option.replace("-", "_")).encode()
        env = {name: value, b"SLURM_SPANK_" + name: value}
        rc, out = self.run(["srun", "-n1", "echo", "ran"], env, self.client)
        return None if rc == 0 and b"ran" in out else "the job ended with %d: %r" % (rc, out[:300])

    def variables_of_a_job(self):
        """Export variables that the plugin reads."""
        names = self.r.sample(self.variables, min(len(self.variables), 6))
        env = {n.encode(): text(self.r) for n in names if n != "SLURM_CONF"}
        options = ["--%s=%s" % o for o in self.r.sample([("dl", self.r.choice(["torch", "tf", "jax", "auto", "ps", "paddle", "torchrun", "horovod"])),
                                                        ("dl-bind", "closest,verbose"), ("dl-nccl", "auto")], 2)]
        export = [b"env"] + [k + b"=" + v[:100000] for k, v in env.items()]
        rc, out = self.run(export + [os.fsencode(a) for a in ["srun", "-n1"] + options + ["echo", "ran"]], None, self.client if self.r.random() < .2 else None)
        if rc not in (0, 1, 255):
            return "srun ended with %d: %r" % (rc, out[:300])
        return None

    def arguments(self):
        """Break plugstack.conf: jobs run all the same, with and without an option of the plugin."""
        args = b" ".join(text(self.r, True) if self.r.random() < .5 else
                         self.r.choice(["default", "allow", "deny", "options", "nccl_dir", "dl", "bind", "nccl", "min_roles", "allow_bind"]).encode()
                         + b"=" + text(self.r, True) for _ in range(self.r.randrange(1, 5)))
        with open(self.plugstack, "wb") as f:
            f.write(b"required " + os.fsencode(self.plugin) + b" " + args + b"\n")
        try:
            for options in [], ["--dl=off"]:
                if options and b"options=" in args:
                    continue
                rc, out = self.run(["srun", "-n1"] + options + ["echo", "ran"])
                if rc or b"ran" not in out:
                    return "srun %s ended with %d: %r" % (options, rc, out[:300])
        finally:
            with open(self.plugstack, "w") as f:
                f.write(self.line)
        return None

    # ---- checks after the cases

    def reports(self):
        """Return a sanitizer report about the plugin, or None. Only count reports about Slurm itself."""
        for path in glob.glob("asan.log*"):
            report = open(path, errors="replace").read()
            os.rename(path, "seen." + path)
            if "runtime does not come first" in report:
                continue
            if self.plugin in report or "/spank/" in report or "/runtime/" in report:
                return report[:2000]
            self.others += 1
        return None

    def nodes(self):
        states = subprocess.run(["sinfo", "-h", "-N", "-o", "%T %E"], stdout=subprocess.PIPE, timeout=200, check=True).stdout.decode().splitlines()
        bad = [s for s in states if not re.match("idle|alloc|mixed|completing", s)]
        return "a node is " + bad[0] if bad else None

    def bystander(self):
        rc, out = self.run(["srun", "-n1", "echo", "ran"])
        return None if rc == 0 and b"ran" in out else "the job of somebody else ended with %d: %r" % (rc, out[:300])


def main():
    cases, seed, plugin = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    b = Bench(seed, plugin, os.path.abspath(os.path.dirname(__file__) + "/../.."))
    kinds = [b.typed, b.forged, b.variables_of_a_job, b.arguments]
    for i in range(cases):
        state = b.r.getstate()
        kind = kinds[i % len(kinds)]
        wrong = kind() or b.reports()
        if not wrong and i % 10 == 9:
            wrong = b.nodes() or b.bystander() or b.reports()
        if wrong:
            with open("case", "w") as f:
                f.write("%d %s %r" % (i, kind.__name__, state))
            print("case %d of seed %d, %s: %s" % (i, seed, kind.__name__, wrong))
            return 1
    print("%d cases of seed %d; options %s; %d variables; %d reports about Slurm itself"
          % (cases, seed, " ".join(b.options), len(b.variables), b.others))
    return 0


sys.exit(main())
