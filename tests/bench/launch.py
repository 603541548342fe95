# SPDX-License-Identifier: Apache-2.0
"""launch.py PLUGIN [ROUNDS [OLD]]: measure what the plugin adds to the time of "srun true".

    python3 tests/bench/launch.py build/test/spank/.libs/dl.so 200
    python3 tests/bench/launch.py build/test/spank/.libs/dl.so 200 old/build/spank/.libs/dl.so    # also an older build

Uses the cluster of SLURM_CONF if that is set, else starts a private cluster. Each round launches one step in each way,
in random order, in one allocation, and replaces plugstack.conf in between (Slurm reads it at each launch). Each round
launches "off" twice: the second one shows how much of a difference is noise. Prints the medians, the median of the
paired differences to the first "off" with its 95 % interval (bootstrap with 10,000 samples), and the median of the
ratios. Then it measures only the end of a step in ROUNDS more rounds, for tasks of 0 s and 1 s: from the task's last
action until srun returns. Last, it measures the time inside the plugin's hooks with the fake tests/fakes/spank.
"""
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time

from benchlib import private_cluster, ratios, with_interval

ASKED = ["--dl=torch", "--dl-bind=closest", "--dl-nccl=auto"]
OPTIONS = [ASKED, ["--dl-check=quick"], ["--dl-monitor=30"], ["--dl-debug=hang:600"]]


def line_of(plugin):
    """Return the plugin's line in plugstack.conf, with the dl of the same build."""
    built = os.path.join(os.path.dirname(plugin), "../../launcher/dl")
    return "optional %s%s\n" % (plugin, " dl=" + os.path.realpath(built) if os.path.exists(built) else "")


def ways_of(plugins, all_options, unasked):
    """Return the ways to launch a step: (name, line in plugstack.conf, options of srun)."""
    ways = [("off", "", [])]
    for name, plugin in plugins:
        ways += [(name + ", not asked for", line_of(plugin), [])] if unasked else []
        ways += [(name + ", " + " ".join(options), line_of(plugin), options) for options in all_options]
    return ways


def plugstack(path, line):
    with open(path + ".new", "w") as f:
        f.write(line)
    os.rename(path + ".new", path)


def too_long(*_):
    raise TimeoutError("no end within 60 s")


def bounded(argv, **more):
    """Run with a time limit. subprocess.run(timeout=60) would poll after 1, 3, 7, 15, 31, 63 ms and so on, which is too
    coarse."""
    signal.signal(signal.SIGALRM, too_long)
    signal.alarm(60)
    try:
        return subprocess.run(argv, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True, **more)
    finally:
        signal.alarm(0)


def end(argv):
    """Return the ms from the time that the task prints last until srun returns."""
    said = bounded(argv, stdout=subprocess.PIPE).stdout
    return 1000 * (time.time() - float(said))


def launch(argv):
    start = time.perf_counter()
    bounded(argv, stdout=subprocess.DEVNULL)
    return 1000 * (time.perf_counter() - start)


def step_times(rounds, r, ways, measure=launch, program=("true",)):
    path = os.path.join(os.path.dirname(os.environ["SLURM_CONF"]), "plugstack.conf")
    before = open(path).read()
    job = subprocess.run(["salloc", "--no-shell", "-N1", "-n1"], stderr=subprocess.PIPE, check=True, timeout=60).stderr.decode()
    job = next(word for word in reversed(job.split()) if word.isdigit())
    times = {name: [] for name, _, _ in ways}
    try:
        for _ in range(rounds):
            for name, line, options in r.sample(ways, len(ways)):
                plugstack(path, line)
                times[name].append(measure(["srun", "--jobid=" + job, "--overlap", "-n1", *options, *program]))
    finally:
        plugstack(path, before)
        subprocess.run(["scancel", job], check=False)
    return times


def inside(plugin, options):
    """Return the median and first decile of the microseconds in dlopen(), init with options, and task_init."""
    stub = os.path.join(os.path.dirname(plugin), "../../tests/fakes/spank")
    env = dict(FAKE_TIME="1", SLURM_PROCID="0", SLURM_STEP_NUM_TASKS="8", SLURM_LOCALID="0", SLURM_NODEID="0", SLURM_STEP_NUM_NODES="1",
               SLURM_STEP_TASKS_PER_NODE="8", SLURM_STEP_NODELIST="n1", SLURMD_NODENAME="n1", SLURM_GTIDS="0,1,2,3,4,5,6,7",
               SLURM_STEP_RESV_PORTS="41004-41012", SLURM_CPUS_ON_NODE="64")
    rows = []
    for _ in range(200):
        p = subprocess.run([stub, plugin, "0"] + [o[2:] for o in options], env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=True)
        rows.append([float(x) for x in p.stderr.split()[-3:]])
    return [x for column in zip(*rows) for x in (statistics.median(column), sorted(column)[len(column) // 10])]


def main():
    if "SLURM_CONF" in os.environ:
        measure()
        return
    with private_cluster("launch%d" % os.getpid()):
        measure()


def show(times):
    off = next(iter(times.values()))
    for name, values in times.items():
        d = [b - a for a, b in zip(off, values)]
        line = "%-55s median %.2f" % (name, statistics.median(values))
        if values is not off:
            line += ", difference " + with_interval(d, "%+.2f")
            line += ", ratio %.3f" % statistics.median(ratios(values, off))
        print(line, flush=True)


def measure():
    plugin, rounds = os.path.abspath(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 200
    plugins = [("on", plugin)] + [("old", os.path.abspath(p)) for p in sys.argv[3:4]]
    ways = ways_of(plugins, OPTIONS, True)
    ways.insert(1, ("off again", "", []))
    r = random.Random(1)
    work = tempfile.TemporaryDirectory()  # for files of --dl-monitor and --dl-debug
    os.chdir(work.name)
    step_times(5, r, ways)  # warm up
    times = step_times(rounds, r, ways)
    print("%d rounds; milliseconds; load %.1f" % (rounds, os.getloadavg()[0]))
    show(times)
    for seconds in "0", "1":
        print("the end of a step of %s s" % seconds)
        show(step_times(rounds, r, ways_of(plugins, OPTIONS[-2:], False), end, ("sh", "-c", "sleep %s; exec date +%%s.%%N" % seconds)))
    summary = [os.path.join(os.path.dirname(plugin), "../../launcher/dl"), "monitor"]  # srun runs this at the end
    print("dl monitor                                              median %.2f" % statistics.median(launch(summary) for _ in range(rounds)))
    for options in [], ASKED:
        print("inside, %-47s dlopen %.0f (%.0f), init %.0f (%.0f), task_init %.0f (%.0f) microseconds" % ((" ".join(options) or "not asked for",) + tuple(inside(plugin, options))))


main()
