# SPDX-License-Identifier: Apache-2.0
"""Measure trials per minute on a Slurm cluster: dl, submitit, Optuna workers in a job array, and a plain job array.

    contrib/minicluster up --name=peers --nodes=2 --cpus=4 && eval "$(contrib/minicluster env peers)"
    python tests/bench/peers_cluster.py --slots 8 --trials 1000 --jobs 200
    contrib/minicluster down peers

Needs `pip install submitit optuna xxhash`, and dl in PATH or $DL. Trials do nothing. dl and Optuna run --trials of
them, submitit and the plain array --jobs (each starts a job, so 1,000 would only take longer). The time is from the
command to the last result.
"""
import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

from peer_runs import DL, dl_conf, dl_results, study


def wait_for(ready, limit):
    end = time.monotonic() + limit
    while not ready():
        if time.monotonic() > end:
            raise TimeoutError("the jobs do not end")
        time.sleep(0.05)


def sbatch(folder, array, command):
    subprocess.run(["sbatch", "--parsable", "--cpus-per-task=1", f"--output={folder}/%a.out", f"--array={array}",
                    f"--wrap={command}"], check=True, stdout=subprocess.DEVNULL)


def run_dl(folder, a):
    conf = dl_conf(folder, '["printf", "loss 0\\\\n"]', a.trials, a.slots)
    subprocess.run([DL, "run", "--dir", folder, conf], check=True, stdout=subprocess.DEVNULL, timeout=a.limit)
    results, _, _, corrupt = dl_results(f"{folder}/b-0001")
    assert len(results) == a.trials and not corrupt
    return a.trials


def nothing(i):
    return i


def run_submitit(folder, a):
    import submitit

    executor = submitit.AutoExecutor(folder=folder, cluster="slurm")
    executor.update_parameters(timeout_min=30, cpus_per_task=1, slurm_array_parallelism=a.slots)
    executor.map_array(nothing, range(a.jobs))
    # not job.result(): it polls sacct, and rarely, and this cluster may have no sacct
    wait_for(lambda: len(list(pathlib.Path(folder).glob("*_result.pkl"))) == a.jobs, a.limit)
    return a.jobs


def run_optuna(folder, a):
    study(f"{folder}/journal", "symlink", create=True)
    sbatch(folder, f"1-{a.slots}", f"{sys.executable} {__file__} --worker {folder} {a.trials // a.slots}")
    wait_for(lambda: len(list(pathlib.Path(folder).glob("*.done"))) == a.slots, a.limit)
    assert len(study(f"{folder}/journal", "symlink").trials) == a.trials // a.slots * a.slots
    return a.trials // a.slots * a.slots


def optuna_worker(folder, n):
    study(f"{folder}/journal", "symlink").optimize(lambda t: t.suggest_float("x", 0, 1), n_trials=n)
    pathlib.Path(folder, f"{os.environ['SLURM_ARRAY_TASK_ID']}.done").touch()


def run_array(folder, a):
    sbatch(folder, f"1-{a.jobs}%{a.slots}", f"touch {folder}/$SLURM_ARRAY_TASK_ID.done")
    wait_for(lambda: len(list(pathlib.Path(folder).glob("*.done"))) == a.jobs, a.limit)
    return a.jobs


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--slots", type=int, default=8)
    p.add_argument("--trials", type=int, default=1000)
    p.add_argument("--jobs", type=int, default=200)
    p.add_argument("--rounds", type=int, default=2)
    p.add_argument("--limit", type=float, default=500)
    p.add_argument("--top", default=tempfile.gettempdir())
    p.add_argument("--worker", nargs=2, help=argparse.SUPPRESS)
    a = p.parse_args()
    if a.worker:
        optuna_worker(a.worker[0], int(a.worker[1]))
        return
    kinds = {"dl run": run_dl, "submitit map_array": run_submitit, "Optuna journal over an array": run_optuna,
             "sbatch --array of touch": run_array}
    print(f"# {os.cpu_count()} cores, {a.slots} slots\n\n| system | round | trials | s | trials a minute | load |\n"
          + "| --- " * 6 + "|", flush=True)
    for r in range(a.rounds):
        for name, work in kinds.items():
            folder = tempfile.mkdtemp(prefix="peers-", dir=a.top)
            start = time.monotonic()
            n = work(folder, a)
            seconds = time.monotonic() - start
            print(f"| {name} | {r + 1} | {n} | {seconds:.1f} | {60 * n / seconds:.0f} | {os.getloadavg()[0]:.1f} |",
                  flush=True)
            time.sleep(2)  # let the jobs finish
            shutil.rmtree(folder)


if __name__ == "__main__":
    main()
