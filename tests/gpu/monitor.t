#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# case: order 30, seconds 85
"""NVML: compare the monitor's figures with nvidia-smi's, and measure its overhead; dl check and dl top.

monitor.t load SECONDS and monitor.t loop run the monitored programs.
"""

import contextlib
import glob
import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import time

from gpu import PATIENCE, STAND_INS, case, done, figure, folder, median, need, ok, run, same, say, skip

(slurmdl,) = need("slurmdl")
SECONDS = 3 if STAND_INS else 14


def smi(*arguments, seconds=30):
    return run(["nvidia-smi", *arguments], seconds)


# ---- the monitored programs


def load(seconds):
    """Keep the GPU busy with matrix products, and fill 8 GiB of its memory."""
    end = time.monotonic() + float(seconds)
    if STAND_INS:
        sys.stdin.read()
        return
    import torch

    kept = torch.ones(8 << 30, dtype=torch.uint8, device="cuda")
    a = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
    b = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
    print("ready", flush=True)
    n, began = 0, time.monotonic()
    while time.monotonic() < end:
        for _ in range(50):
            torch.mm(a, b)
        torch.cuda.synchronize()
        n += 50
    print(f"product {n * 2 * 8192**3 / (time.monotonic() - began) / 1e12:.1f} TFLOP/s {kept.numel()}", flush=True)


def training(torch, device):
    """Return two loops that a monitor could disturb: one is bound by Python, one by the GPU, far below its power
    limit."""

    def model(width, depth, batch):
        torch.manual_seed(1)
        net = torch.nn.Sequential(*[m for _ in range(depth) for m in (torch.nn.Linear(width, width), torch.nn.ReLU())])
        net = net.to(device)
        optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
        x = torch.randn(batch, width, device=device)

        def step():
            optimizer.zero_grad()
            net(x).square().mean().backward()
            optimizer.step()

        return step

    loops = {"python": model(32, 2, 16) if STAND_INS else model(256, 8, 64)}
    if not STAND_INS:
        try:
            loops["gpu"] = graph_of(torch, model(512, 24, 128))
        except RuntimeError as error:
            print(f"monitor.t: no graph: {error}", file=sys.stderr)
    return loops


def graph_of(torch, step):
    """Capture the step as a CUDA graph, so that the GPU runs it alone. Follows PyTorch's manual."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph.replay


def loop():
    """Train: for each line "LOOP STEPS" of standard input, print how long the steps took."""
    import torch

    torch.set_num_threads(1)
    loops = training(torch, "cpu" if STAND_INS else "cuda")
    # times vary least if autograd's thread and this one share a core
    for step in loops.values():
        step()
    cores = {max(os.sched_getaffinity(0))}
    for thread in os.listdir("/proc/self/task"):
        with contextlib.suppress(OSError):
            os.sched_setaffinity(int(thread), cores)
    print(" ".join(loops), flush=True)
    for line in sys.stdin:
        name, steps = line.split()
        begun = time.perf_counter()
        for _ in range(int(steps)):
            loops[name]()
        if not STAND_INS:
            torch.cuda.synchronize()
        print(time.perf_counter() - begun, flush=True)


# ---- a step of one rank, with the environment that srun would set


def environment(top):
    return dict(os.environ, SLURM_JOB_ID="1", SLURM_STEP_ID="0", SLURM_PROCID="0", SLURM_LOCALID="0", SLURM_GTIDS="0",
                SLURMD_NODENAME="node", DL_MONITOR_DIR=top, FAKE_NVML=os.path.join(top, "gpus") if STAND_INS else "")


def start_rank(top, *arguments):
    env = environment(top)
    if not STAND_INS:
        env.pop("FAKE_NVML")
    return subprocess.Popen(["sh", "-c", 'SLURM_TASK_PID=$$ exec "$@"', "sh", sys.executable, __file__, *arguments],
                            env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True)


def start_monitor(top, pid, interval=1):
    env = environment(top)
    env["SLURM_TASK_PID"] = str(pid)
    if STAND_INS:
        with open(os.path.join(top, "pid"), "w") as f:
            f.write(str(pid))
        with open(env["FAKE_NVML"], "w") as f:
            f.write(f"97 8192 81559 650 55 4 {top}/pid\n")
    else:
        env.pop("FAKE_NVML")
    return subprocess.Popen(["dl", "sample", str(interval)], env=env, start_new_session=True)


def series(top):
    """Return the samples by name: lists of (time, value)."""
    found = {}
    (path,) = glob.glob(os.path.join(top, "dl-monitor-1.0", "*.h5"))
    rows = slurmdl.read_metrics(path)
    for name in sorted(rows.names):
        r = rows.of(name)
        found[name] = list(zip([float(t) for t in r["time"]], [float(v) for v in r["value"]]))
    return found


FIELDS = ["timestamp", "utilization.gpu", "utilization.memory", "memory.used", "memory.reserved", "power.draw",
          "temperature.gpu", "clocks.sm", "clocks.mem", "clocks_event_reasons.active"]


def smi_samples(text):
    rows = []
    for line in text.splitlines():
        cells = [c.strip() for c in line.split(",")]
        if len(cells) == len(FIELDS):
            rows.append(dict(zip(FIELDS, cells)))
    return rows


def number(text):
    try:
        return float(int(text, 16) if text.startswith("0x") else text)
    except ValueError:
        return None


def figures():
    """Sample the same GPU at the same time with the monitor and with nvidia-smi."""
    with folder() as top:
        rank = start_rank(top, "load", str(SECONDS))
        if not STAND_INS:
            say("load: " + rank.stdout.readline().strip())
        monitor = start_monitor(top, rank.pid)
        beside = None
        if not STAND_INS and shutil.which("nvidia-smi"):
            beside = subprocess.Popen(["nvidia-smi", f"--query-gpu={','.join(FIELDS)}", "--format=csv,noheader,nounits",
                                       "-lms", "500"], stdout=subprocess.PIPE, text=True)
        time.sleep(1 if STAND_INS else SECONDS - 5)
        began, apps = time.time(), ""
        if beside:
            apps = smi("--query-compute-apps=pid,used_memory", "--format=csv,noheader,nounits")[1]
            say("compute apps: " + " | ".join(apps.splitlines()))
        top_says(top, rank.pid)
        try:
            said, _ = rank.communicate(timeout=60 * PATIENCE)
        except subprocess.TimeoutExpired:
            rank.kill()
            said, _ = rank.communicate()
        say(said)
        if beside:
            beside.terminate()
        status = monitor.wait(timeout=30 * PATIENCE)
        same(status, 0, "the monitor ends with its task")
        ours = series(top)
        say("names: " + " ".join(sorted(ours)))
        shown = run(["dl", "monitor", os.path.join(top, "dl-monitor-1.0")])
        say(shown[1])
        status, text = run(["dl", "monitor", "--json", os.path.join(top, "dl-monitor-1.0")])
        gpus = json.loads(text)["nodes"][0]["gpus"] if status == 0 else []
        ok(gpus and gpus[0]["memory"] and gpus[0]["power"], "dl monitor --json has the GPU", text)
        say(json.dumps(gpus))
        rows = smi_samples(beside.communicate()[0]) if beside else []
        beside_smi(ours, rows, began, apps, rank.pid)


def last_of(ours, name, since):
    """Return the values while the GPU was busy. The file has no sample if a value did not change, so repeat the last
    one."""
    rows, values = ours.get(name, []), []
    for at in range(int(since) - max(SECONDS - 10, 1), int(since) + 3):
        values += [v for t, v in rows if t <= at][-1:]
    return values


def beside_smi(ours, rows, began, apps, pid):
    scale = {"memory.used": 2**20}
    pairs = (("memory", "memory.used", 0.01, 0), ("power", "power.draw", 0.05, 0),
             ("temperature", "temperature.gpu", 0, 3), ("clock", "clocks.sm", 0.06, 0),
             ("memory_clock", "clocks.mem", 0, 0), ("busy", "utilization.gpu", 0, 5),
             ("memory_busy", "utilization.memory", 0, 8))
    if not rows:
        skip("the monitor's figures beside nvidia-smi's", "no nvidia-smi" if not STAND_INS else "stand-ins")
        same(last_of(ours, "gpu/0/busy", time.time())[-1:], [97.0], "the monitor has the stand-in's figures")
        return
    full = [r for r in rows if (number(r["utilization.gpu"]) or 0) > 50] or rows
    say(f"nvidia-smi: {len(rows)} samples, {len(full)} of the full GPU; the last: {rows[-1]}")
    for name, theirs, relative, absolute in pairs:
        mine = last_of(ours, f"gpu/0/{name}", began)
        other = [x * scale.get(theirs, 1) for x in (number(r[theirs]) for r in full) if x is not None]
        if not other:
            skip(f"{name} beside nvidia-smi's", f"nvidia-smi has no {theirs}: {rows[-1][theirs]}")
            continue
        if not ok(mine, f"{name}: it is sampled", ours.get(f"gpu/0/{name}")):
            continue
        a, b = median(mine), median(other)
        ok(abs(a - b) <= max(relative * abs(b), absolute), f"{name}: {a:g}, nvidia-smi {b:g}", mine, other)
        figure(f"monitor.{name}", a, "MHz" if "clock" in name else
               {"memory": "B", "power": "W", "temperature": "C"}.get(name, "%"), "nvidia-smi", b)
    reasons(ours, full, began)
    used = [line.split(",") for line in apps.splitlines() if line.count(",") == 1]
    theirs = [float(m) * 2**20 for p, m in used if p.strip() == str(pid) and number(m.strip()) is not None]
    mine = [v for _, v in ours.get("rank/0/gpu/0", [])]
    if theirs and mine:
        ok(abs(max(mine) - theirs[0]) <= 0.02 * theirs[0], f"memory of the process: {max(mine):g}, {theirs[0]:g}",
           apps, mine)
    else:
        ok(bool(theirs) == bool(mine), "the process with its memory is seen by both, or by neither", apps,
           sorted(ours), mine)


def reasons(ours, rows, began):
    """Compare the reasons for low clocks: power or heat."""
    active = [int(r["clocks_event_reasons.active"], 16) for r in rows if r["clocks_event_reasons.active"].startswith("0x")]
    for name, bits in (("capped", 0x4 | 0x80), ("hot", 0x20 | 0x40)):
        mine = last_of(ours, f"gpu/0/{name}", began)
        share = sum(bool(a & bits) for a in active) / len(active) if active else 0
        mean = statistics.fmean(mine) if mine else float("nan")
        ok(mine and abs(mean - share) <= 0.4, f"{name}: {mean:.2f} of the time, nvidia-smi {share:.2f}", mine,
           [hex(a) for a in active])
        figure(f"monitor.{name}", mean, "share", "nvidia-smi", share)


def top_says(top, pid):
    # dl top asks squeue for running jobs; with a directory it needs no Slurm
    until = time.monotonic() + 10 * PATIENCE
    status, text = run(["dl", "top", top], env=environment(top))
    while not re.search(r"(?m)\b1\.0\b", text) and time.monotonic() < until:
        time.sleep(0.3)
        status, text = run(["dl", "top", top], env=environment(top))
    say(text)
    ok(status == 0 and re.search(r"(?m)\b1\.0\b", text), "dl top shows the step and its GPU", status, text)
    say(run(["dl", "top", "--json", top], env=environment(top))[1][:1500])


# ---- overhead of the monitor


EVERY = 5  # s; the default interval of --dl-monitor
BLOCK = 0.1 if STAND_INS else 0.5  # s


def middle(values):
    """Return the mean of the middle half."""
    n = len(values) // 4
    return statistics.fmean(sorted(values)[n:len(values) - n])


class Watched:
    """The training program, whose monitor can be paused."""

    def __init__(self, top):
        self.top = top
        self.rank = start_rank(top, "loop")
        self.loops = self.rank.stdout.readline().split()
        self.steps = {}
        for name in self.loops:
            self.steps[name] = 20
            each = min(self.time(name) for _ in range(5)) / 20
            self.steps[name] = max(int(BLOCK / each), 1)
            say(f"{name}: {1e3 * each:.3f} ms a step")

    def time(self, name):
        self.rank.stdin.write(f"{name} {self.steps[name]}\n")
        self.rank.stdin.flush()
        return float(self.rank.stdout.readline())

    def pairs(self, name, monitor, n):
        """Return the seconds of blocks with and without the monitor, in ABBA order, and when they ran."""
        on, off, begun = [], [], time.time()
        for i in range(2 * n):
            stopped = i % 4 in (0, 3)
            os.killpg(monitor.pid, signal.SIGSTOP if stopped else signal.SIGCONT)
            (off if stopped else on).append(self.time(name))
        os.killpg(monitor.pid, signal.SIGCONT)
        return on, off, (begun, time.time())


def overhead():
    """Compare blocks while the monitor samples every second with blocks while it is paused. This gives the cost of a
    sample, and so the overhead at the default interval."""
    n = 2 if STAND_INS else 16
    with folder() as top:
        watched = Watched(top)
        alone = {name: [watched.time(name) for _ in range(4)] for name in watched.loops}
        monitor = start_monitor(top, watched.rank.pid)
        time.sleep(1)
        found = {name: watched.pairs(name, monitor, n) for name in watched.loops}
        say(f"CPU time of the monitor and its children: {cpu_seconds(monitor.pid):.2f} s")
        watched.rank.stdin.close()
        watched.rank.wait()
        monitor.wait(timeout=30 * PATIENCE)
        times = sorted({int(10 * t) for rows in series(top).values() for t, _ in rows})
        for name, (on, off, (begun, end)) in found.items():
            samples = len([t for t in times if begun <= t / 10 <= end])
            say(f"{name}: {samples} samples; with " + " ".join(f"{t:.4f}" for t in on),
                "without " + " ".join(f"{t:.4f}" for t in off), "no monitor " + " ".join(f"{t:.4f}" for t in alone[name]))
            ratio = middle([a / b - 1 for a, b in zip(on, off)])
            if not samples and STAND_INS:
                continue
            if not ok(samples, f"{name}: there were samples", times):
                continue
            each = ratio * sum(on) / samples
            say(f"{name}: {100 * ratio:+.2f} % with {samples / sum(on):.1f} samples/s: {1e3 * each:+.2f} ms a sample")
            percent = 100 * each / EVERY
            figure(f"monitor.overhead.{name}", percent, "%")
            if not STAND_INS:
                ok(percent <= 0.5, f"a loop that waits for the {name}, monitored each {EVERY} s: {percent:+.3f} %")


def cpu_seconds(group):
    total = 0.0
    for path in glob.glob("/proc/[0-9]*/stat"):
        try:
            with open(path) as f:
                fields = f.read().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[2]) == group:
            total += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return total


# ---- dl check


# of an H100 80GB HBM3: GB/s, and TFLOP/s of an 8192^3 bfloat16 product of random numbers
KNOWN = {"GPU copy": 3000.0, "GPU to host": 54.4, "host to GPU": 53.7, "GPU product": 790.0}


def check():
    status, text = run(["dl", "check", "--full", "--table"], 150)
    say(text)
    # the rates of fakes depend on the load
    ok(status == 0 or (STAND_INS and "half of the nodes" in text), "dl check --full: the machine is good", text)
    rates = {(m[1], m[3]): float(m[2]) for m in
             re.finditer(r"note: ([A-Za-z ]+?)(?: [0-9a-f:.]{7,})?: (?:.* median )?([0-9.e+]+) ?(\S*/s)?$", text, re.M)}
    say(rates)
    ok(any(n.startswith("GPU copy") for n, _ in rates), "it measures the GPU's copy", text)
    is_h100 = not STAND_INS and "H100 80GB HBM3" in text
    for (name, unit), value in rates.items():
        unit = unit or ("TFLOP/s" if "product" in name else "GB/s")
        known = next((v for k, v in KNOWN.items() if name.startswith(k)), None)
        if known and is_h100:
            figure("check." + name.replace(" ", "-"), value, unit, "known", known)
            ok(abs(value / known - 1) <= 0.1, f"{name}: {value:g} {unit}, of this card {known:g}")
        else:
            figure("check." + name.replace(" ", "-"), value, unit)
    events(text)


def events(text):
    """Compare ECC and Xid errors with those that the driver reports."""
    if STAND_INS:
        skip("ECC and Xid beside nvidia-smi's and the kernel's", "stand-ins")
        return
    fields = "ecc.mode.current,ecc.errors.uncorrected.volatile.total,ecc.errors.corrected.volatile.total,persistence_mode"
    ecc = smi(f"--query-gpu={fields}", "--format=csv,noheader")[1].strip()
    say(f"nvidia-smi: {ecc}")
    mode, uncorrected = [c.strip() for c in ecc.split(",")][:2]
    same("ECC is off" in text, mode == "Disabled", "ECC as nvidia-smi says it")
    same("uncorrected ECC" in text, uncorrected not in ("0", "[N/A]", "N/A"), "uncorrected errors as nvidia-smi says it")
    xid = [line for line in run(["dmesg"])[1].splitlines() if "Xid" in line]
    say(*(xid[-5:] or ["no Xid in the kernel's log"]))
    same("Xid" in text, bool(xid), "Xid as the kernel's log says it")


if sys.argv[1:2] == ["load"]:
    load(sys.argv[2])
elif sys.argv[1:2] == ["loop"]:
    loop()
else:
    if not STAND_INS:
        status, text = smi("-L")
        say(text)
    for part in (check, figures, overhead):
        case(part)
    done()
