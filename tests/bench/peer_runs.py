# SPDX-License-Identifier: Apache-2.0
"""Runs of dl and of Optuna's journal for peers.py, and checks of the files that they leave."""
import json
import os
import pathlib
import re
import subprocess
import sys
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")

DL = os.environ.get("DL", "dl")
CONF = """name = "b"; entrypoint = {command};
searcher = {{ name = "random"; metric = "loss"; max_trials = {trials}; max_length = 1;
    max_concurrent_trials = {workers}; }};
hyperparameters = {{ x = {{ type = "double"; minval = 0.0; maxval = 1.0; }}; }};
metrics = {{ pattern = "loss {{loss}}"; }};
resources = {{ workers = {workers}; }};
reproducibility = {{ experiment_seed = {seed}; }};
worker = {{ lease = {lease}; heartbeat = 1; grace = 5; }};
"""
TRAIN = '["sh", "-c", "echo $DL_TRIAL $DL_ATTEMPT >>{ran}; sleep {seconds}; echo loss $DL_HP_x"]'


def dl_conf(folder, command, trials, workers, seed=1, lease=300):
    path = pathlib.Path(folder, "b.conf")
    path.write_text(CONF.format(command=command, trials=trials, workers=workers, seed=seed, lease=lease))
    return path


class DlRun:
    """dl run --local, which restarts its workers itself."""

    def __init__(self, folder, trials, workers, seconds, seed):
        self.folder, self.ran, self.errors, self.start = folder, f"{folder}/ran", 0, time.time()
        conf = dl_conf(folder, TRAIN.format(ran=self.ran, seconds=seconds), trials, workers, seed, lease=3)
        self.out = open(f"{folder}/out", "wb")
        self.run = subprocess.Popen([DL, "run", "--local", "--dir", folder, conf], stdout=self.out,
                                    stderr=subprocess.STDOUT)

    def tick(self):
        return self.run.poll() is None

    def pid(self, slot):
        """Return the pid of the worker of a slot, or None while it is being restarted."""
        try:
            children = pathlib.Path(f"/proc/{self.run.pid}/task/{self.run.pid}/children").read_text().split()
        except FileNotFoundError:
            return None
        for child in children:
            try:
                words = pathlib.Path(f"/proc/{child}/cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if any(w.endswith(b"-%d" % (slot + 1)) and w.startswith(b"local-") for w in words):
                return int(child)
        return None

    def finish(self):
        self.out.close()
        said = dict(re.findall(r"trial +(\d+) +length +1 +loss +(\S+)", open(f"{self.folder}/out").read(), re.M))
        results, begun, last, corrupt = dl_results(f"{self.folder}/b-0001")
        shown = subprocess.run([DL, "show", "--json", f"{self.folder}/b-0001"], stdout=subprocess.DEVNULL)
        flat = [v for values in results.values() for v in values]
        return {
            "acknowledged": len(said),
            "lost": sum(not any(abs(v - float(x)) < 1e-5 for v in results.get(int(t), [])) for t, x in said.items()),
            "doubled": sum(len(v) > 1 for v in results.values()) + len(flat) - len(set(flat)),
            "stuck": len(begun - set(results)),
            "results": len(flat),
            "trainings": sum(1 for _ in open(self.ran)),
            "corrupt": corrupt or shown.returncode != 0,
            "ended": self.run.returncode == 0,
            "errors": self.errors,
            "last": last - self.start,
        }


def dl_events(folder):
    for path in sorted(pathlib.Path(folder, "log").glob("[0-9]*[0-9]/[0-9]*")):
        yield from map(json.loads, path.read_bytes().splitlines()[:-1])


def dl_results(folder):
    """Read the log independently of dl. Return the accepted results of each trial, the trials that started, the time of
    the last result, and whether an entry is corrupt."""
    import xxhash

    over, results, begun, last, corrupt = {}, {}, set(), 0, False
    entries = sorted(pathlib.Path(folder, "log").glob("[0-9]*[0-9]/[0-9]*"))
    for n, path in enumerate(entries, 1):
        *lines, sum_line = path.read_bytes().splitlines(keepends=True)
        corrupt |= int(path.name) != n or json.loads(sum_line)["xxh64"] != xxhash.xxh64_hexdigest(b"".join(lines))
        for e in map(json.loads, lines):
            if e["op"] == "begin":
                begun.add(e["trial"])
            if e["op"] in ("result", "fail", "park", "lost", "reject") and e["attempt"] == over.get(e["trial"], 0) + 1:
                over[e["trial"]] = e["attempt"]
                if e["op"] == "result":
                    results.setdefault(e["trial"], []).append(e["metric"])
                    last = e["time"]
    return results, begun, last, corrupt


# ---- Optuna ----

def storage(path, lock, grace=30):
    from optuna.storages import JournalStorage
    from optuna.storages import journal

    kind = {"symlink": journal.JournalFileSymlinkLock, "open": journal.JournalFileOpenLock}[lock]
    return JournalStorage(journal.JournalFileBackend(path, lock_obj=kind(path, grace_period=grace)))


def study(path, lock, create=False, grace=30):
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    make = optuna.create_study if create else optuna.load_study
    return make(study_name="b", storage=storage(path, lock, grace), sampler=optuna.samplers.RandomSampler())


def fork(work, *args):
    """Run in a forked process, which need not import all modules again."""
    pid = os.fork()
    if pid:
        return pid
    try:
        work(*args)
        os._exit(0)
    except BaseException as e:  # noqa: BLE001 - report it and exit
        print(f"worker: {type(e).__name__}: {e}", file=sys.stderr, flush=True)
        os._exit(1)


class OptunaRun:
    """Workers that ask, train and tell until the study is complete. Restarts a worker that dies."""

    def __init__(self, folder, trials, workers, seconds, lock):
        import optuna  # noqa: F401 - import once, for all workers

        self.path, self.lock, self.folder = f"{folder}/journal", lock, folder
        self.trials, self.seconds, self.errors, self.starts, self.begin = trials, seconds, 0, 0, time.time()
        study(self.path, lock, create=True)
        self.pids = [self.start(i) for i in range(workers)]

    def start(self, slot):
        self.starts += 1
        return fork(self.work, f"{self.folder}/said.{slot}.{self.starts}")

    def work(self, said_path):
        import optuna

        done = (optuna.trial.TrialState.COMPLETE,)
        sys.stderr = open(f"{self.folder}/stderr", "a")
        said, ran = (os.open(p, os.O_WRONLY | os.O_CREAT | os.O_APPEND) for p in (said_path, f"{self.folder}/ran"))
        s = study(self.path, self.lock, grace=3)
        while len(s.get_trials(deepcopy=False, states=done)) < self.trials:
            trial = s.ask()
            x = trial.suggest_float("x", 0, 1)
            os.write(ran, f"{trial.number}\n".encode())
            time.sleep(self.seconds)
            s.tell(trial, x)
            os.write(said, f"{trial.number} {x!r}\n".encode())

    def pid(self, slot):
        return self.pids[slot]

    def tick(self):
        for slot, pid in enumerate(self.pids):
            if not pid:
                continue
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                self.errors += os.WIFEXITED(status) and status != 0
                self.pids[slot] = None if status == 0 else self.start(slot)
        return any(self.pids)

    def finish(self):
        import optuna

        said = [line.split() for p in pathlib.Path(self.folder).glob("said.*") for line in open(p)]
        out = {"acknowledged": len(said), "errors": self.errors, "trainings": sum(1 for _ in open(f"{self.folder}/ran"))}
        try:
            trials = study(self.path, self.lock).get_trials(deepcopy=False)
        except Exception as e:  # noqa: BLE001 - any error means that the study is unreadable
            return out | {"corrupt": f"{type(e).__name__}: {e}"}
        state = optuna.trial.TrialState
        value = {t.number: t.value for t in trials if t.state == state.COMPLETE}
        return out | {
            "lost": sum(value.get(int(n)) != float(x) for n, x in said),
            "doubled": len(said) - len({n for n, _ in said}) + len(value) - len(set(value.values())),
            "stuck": sum(t.state == state.RUNNING for t in trials),
            "results": len(value),
            "corrupt": False,
            "ended": not any(self.pids),
            "last": max(t.datetime_complete.timestamp() for t in trials if t.state == state.COMPLETE) - self.begin,
        }
