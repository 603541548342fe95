# SPDX-License-Identifier: Apache-2.0
"""A private Slurm cluster under kill.py: workers are tasks of a job array, and Slurm itself is killed, too."""
import os
import random
import signal
import subprocess
import time

from bench import environment, run


class Cluster:
    """Workers that Slurm starts; Slurm's own faults."""

    faults = {"stepd": 2, "slurmd": 1, "requeue": 2, "cancel": 1, "preempt": 1}
    nodes = 2

    def __init__(self, minicluster, workers, seed):
        self.minicluster = os.path.abspath(minicluster)
        self.workers = workers
        self.settings = 'partition = "low";'
        self.random = random.Random(seed)
        self.name = f"faults{os.getpid()}"
        self.asked = 0
        self.tasks = []
        self.dead = {}      # node: when its slurmd starts again
        self.high = []
        # munged wants a folder that all may enter, which that of the bench is not
        os.environ.setdefault("MINICLUSTER_DIR", "/tmp")
        status, text = run([self.minicluster, "up", "--name", self.name, "--nodes", str(self.nodes), "--cpus",
                            str((workers + self.nodes - 1) // self.nodes)], limit=90)
        if status != 0:
            raise SystemExit(f"no cluster: {text}")
        self.conf = run([self.minicluster, "env", self.name])[1].split("=", 1)[1].strip()
        os.environ["SLURM_CONF"] = self.conf
        self.folder = os.path.dirname(self.conf)

    def slurm(self, *command):
        return run(list(command), limit=20)

    def start(self, command, log):
        command = ["dl", command[0], "--detach", f"--workers={self.workers}", *command[1:]]
        subprocess.run(command, env=environment(), stdin=subprocess.DEVNULL, stdout=log, stderr=log, timeout=60,
                       check=False)
        self.asked = 0

    def idle(self):
        """Fewer than half of the tasks are left."""
        self.heal()
        if time.time() - self.asked > 1:
            status, text = self.slurm("squeue", "--noheader", "--array", "--partition=low",
                                      "--states=all", "--format=%i %T")
            if status != 0:
                return False
            self.asked = time.time()
            self.tasks = [line.split() for line in text.splitlines()]
        alive = [t for t in self.tasks if t[1] in ("RUNNING", "PENDING", "COMPLETING", "REQUEUED", "CONFIGURING")]
        return len(alive) < self.workers / 2

    def heal(self):
        for node, when in list(self.dead.items()):
            if time.time() > when:
                self.slurm("slurmd", "-N", node, "-f", self.conf)
                del self.dead[node]
        self.high = [p for p in self.high if p.poll() is None]

    def running(self):
        tasks = [t[0] for t in self.tasks if t[1] == "RUNNING"]
        return self.random.choice(tasks) if tasks else None

    # ---- faults

    def stepd(self, _):
        pids = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/comm") as f, open(f"/proc/{pid}/environ", "rb") as e:
                    if f.read().strip() == "slurmstepd" and f"SLURM_CONF={self.conf}".encode() in e.read().split(b"\0"):
                        pids.append(int(pid))
            except OSError:
                continue
        if pids:
            os.kill(self.random.choice(pids), signal.SIGKILL)
        return bool(pids)

    def slurmd(self, _):
        node = f"n{self.random.randint(1, self.nodes)}"
        if node in self.dead:
            return False
        try:
            with open(f"{self.folder}/run/slurmd-{node}.pid") as f:
                pid = int(f.read())
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                if self.conf.encode() not in f.read():
                    return False
            os.kill(pid, signal.SIGKILL)
        except (OSError, ValueError):
            return False
        self.dead[node] = time.time() + self.random.uniform(0.5, 3)
        return True

    def requeue(self, _):
        task = self.running()
        return bool(task) and self.slurm("scontrol", "requeue", task)[0] == 0

    def cancel(self, _):
        task = self.running()
        return bool(task) and self.slurm("scancel", task)[0] == 0

    def preempt(self, _):
        if self.high:
            return False
        self.high.append(subprocess.Popen(["timeout", "60", "srun", "--quiet", "-p", "high", "-N1", "-n1", "true"],
                                          env=environment(), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                          stderr=subprocess.DEVNULL))
        return True

    # ---- the end

    def end(self):
        self.slurm("scancel", "--partition=low")
        self.heal()

    def close(self):
        run([self.minicluster, "down", self.name], limit=60)
