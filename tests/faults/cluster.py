# SPDX-License-Identifier: Apache-2.0
"""A private Slurm cluster for kill.py: workers are tasks of a job array, and Slurm's daemons are killed, too.

As root, each node has its own network namespace, which is cut off at times, and some trials have two nodes.
"""
import os
import random
import signal
import subprocess
import time

from bench import environment, run


class Cluster:
    """Start workers with Slurm, and inject faults into Slurm."""

    faults = {"stepd": 2, "slurmd": 1, "slurmctld": 1, "stopped": 1, "down": 1, "requeue": 2, "cancel": 1, "preempt": 1}

    def __init__(self, minicluster, workers, seed):
        self.minicluster = os.path.abspath(minicluster)
        self.workers = workers
        self.settings = 'partition = "low";'
        self.random = random.Random(seed)
        self.name = f"faults{os.getpid()}"
        self.asked = 0
        self.tasks = []
        self.later = {}     # broken part: when and how to repair it
        self.high = []
        # munged needs a folder that everyone may enter; that of the bench is private
        os.environ.setdefault("MINICLUSTER_DIR", "/tmp")
        self.hosts = os.geteuid() == 0 and self.up(4, "--hosts") == 0
        if self.hosts:
            self.faults = {**self.faults, "network": 2}
        elif self.up(2) != 0:
            raise SystemExit("no cluster")
        self.conf = run([self.minicluster, "env", self.name])[1].split("SLURM_CONF=", 1)[1].split()[0]
        os.environ["SLURM_CONF"] = self.conf
        self.folder = os.path.dirname(self.conf)
        with open(f"{self.folder}/place") as f:
            self.bridge = "mcb" + f.read().strip()

    def up(self, nodes, *more):
        self.nodes = nodes
        cpus = 2 * ((self.workers + nodes - 1) // nodes)
        status, text = run([self.minicluster, "up", "--name", self.name, "--nodes", str(nodes), "--cpus", str(cpus),
                            "--conf=SlurmdTimeout=10", *more], limit=150)
        if status != 0:
            print(f"no cluster: {text}")
            run([self.minicluster, "down", self.name], limit=60)
        return status

    def wider(self, number):
        """Return settings for trials of two nodes, for every third sweep."""
        return " nodes_per_trial = 2;" if self.hosts and number % 3 == 2 else ""

    def slurm(self, *command):
        return run(list(command), limit=20)

    def start(self, command, log):
        command = ["dl", command[0], "--detach", f"--workers={self.workers}", *command[1:]]
        subprocess.run(command, env=environment(), stdin=subprocess.DEVNULL, stdout=log, stderr=log, timeout=60,
                       check=False)
        self.asked = 0

    def idle(self):
        """Whether fewer than half of the tasks are left."""
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

    def heal(self, at_once=False):
        for what, (when, mend) in list(self.later.items()):
            if at_once or time.time() > when:
                mend()
                del self.later[what]
        self.high = [p for p in self.high if p.poll() is None]

    def mend_later(self, what, least, most, mend):
        self.later[what] = (time.time() + self.random.uniform(least, most), mend)
        return True

    def node(self):
        return f"n{self.random.randint(1, self.nodes)}"

    def start_slurmd(self, node):
        command = ["slurmd", "-N", node, "-f", self.conf]
        if self.hosts:
            command = ["nsenter", f"--net=/var/run/netns/{self.bridge}-{node}", "unshare", "-m", "-u", "sh", "-c",
                       f'hostname {node}; mount --make-rprivate /; mount --bind {self.folder}/hosts /etc/hosts; exec "$@"',
                       "sh", *command]
        self.slurm(*command)

    def signal(self, daemon, number):
        """Send a signal to a daemon of this cluster. Return whether it was running."""
        try:
            with open(f"{self.folder}/run/{daemon}.pid") as f:
                pid = int(f.read())
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                if self.conf.encode() not in f.read():
                    return False
            os.kill(pid, number)
        except (OSError, ValueError):
            return False
        return True

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
        node = self.node()
        if node in self.later or not self.signal(f"slurmd-{node}", signal.SIGKILL):
            return False
        return self.mend_later(node, 0.5, 3, lambda: self.start_slurmd(node))

    def slurmctld(self, _):
        if "slurmctld" in self.later or not self.signal("slurmctld", signal.SIGKILL):
            return False
        return self.mend_later("slurmctld", 0.5, 5, lambda: self.slurm("slurmctld", "-f", self.conf))

    def stopped(self, _):
        """Suspend one of Slurm's daemons."""
        node = self.node()
        what, daemon = self.random.choice([(node, f"slurmd-{node}"), ("slurmctld", "slurmctld")])
        if what in self.later or not self.signal(daemon, signal.SIGSTOP):
            return False
        return self.mend_later(what, 1, 8, lambda: self.signal(daemon, signal.SIGCONT))

    def down(self, _):
        """Set a node down, so that Slurm gives up everything that runs there."""
        node = self.node()
        if node in self.later or "slurmctld" in self.later:
            return False
        self.slurm("scontrol", "update", f"node={node}", "state=down", "reason=fault")
        return self.mend_later(node, 2, 10, lambda: self.slurm("scontrol", "update", f"node={node}", "state=resume"))

    def network(self, _):
        """Cut off a node: Slurm gives it up after 10 s, but its workers keep running."""
        node = self.node()
        link = f"{self.bridge}.{node[1:]}"
        if any(what.startswith("n") for what in self.later):
            return False
        self.slurm("ip", "link", "set", link, "down")
        return self.mend_later(node, 3, 30, lambda: self.slurm("ip", "link", "set", link, "up"))

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

    # ---- cleanup

    def end(self):
        self.heal(at_once=True)
        self.slurm("scancel", "--partition=low")

    def close(self):
        run([self.minicluster, "down", self.name], limit=60)
