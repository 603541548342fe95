#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# case: order 40, seconds 125
"""dl run --local on one GPU: compare four trainings at a time with one at a time; out of memory; slots.

sweep.t train LR WIDTH BATCH runs a trial; sweep.t fill BATCH runs one that runs out of memory with large batches.
"""

import glob
import importlib.util
import json
import os
import signal
import sys
import time

from gpu import STAND_INS, case, device_of, digits, done, figure, folder, need, need_device, ok, run, same, say, skip, skip_all

BEGUN = time.monotonic()
numpy, slurmdl = need("numpy", "slurmdl")
EPOCHS = 2 if STAND_INS else 6


def train(lr, width, batch):
    """Train a convolutional network on the digits, with checkpoints, and log its held-out accuracy."""
    import torch
    import torch.nn.functional as F

    import slurmdl.torch

    device = device_of(torch)
    with slurmdl.init() as handle:
        torch.manual_seed(handle.seed)
        with numpy.load(os.environ["SWEEP_DIGITS"]) as data:
            x, y = (torch.from_numpy(data[k]).to(device) for k in "xy")
        start = time.monotonic()
        n = len(x) * 3 // 4
        model = torch.nn.Sequential(
            torch.nn.Unflatten(1, (1, 8, 8)), torch.nn.Conv2d(1, width, 3, padding=1), torch.nn.ReLU(),
            torch.nn.Conv2d(width, 2 * width, 3, padding=1), torch.nn.ReLU(), torch.nn.MaxPool2d(2), torch.nn.Flatten(),
            torch.nn.Linear(2 * width * 16, 10)).to(device)
        optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
        parts = dict(model=model, optimizer=optimizer)
        epoch = slurmdl.torch.restore_model(handle, **parts) or 0
        last = min(handle.length, 1) * EPOCHS
        while epoch < last and not handle.should_stop():
            order = torch.randperm(n, device=device)
            for i in range(0, n - batch + 1, batch):
                optimizer.zero_grad()
                F.cross_entropy(model(x[order[i:i + batch]]), y[order[i:i + batch]]).backward()
                optimizer.step()
            epoch += 1
            if epoch % 3 == 0:
                slurmdl.torch.save_model(handle, epoch, wait=False, **parts)
        with torch.no_grad():
            accuracy = (model(x[n:]).argmax(1) == y[n:]).float().mean().item()
        handle.log("accuracy", accuracy, 1)
        end = time.monotonic()
        print(f"accuracy {accuracy:.4f} on {device}: {start - BEGUN:.1f} s of start, {end - start:.1f} s of training")
        print(f"devices seen {os.environ.get('CUDA_VISIBLE_DEVICES')}", flush=True)


def fill(batch):
    """Allocate so many rows. 400 rows would fill the GPU, so 256 fit and 512 do not."""
    if STAND_INS:
        if batch > 256:
            raise RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB")
    else:
        import torch

        row = torch.cuda.get_device_properties(0).total_memory // 400
        x = torch.empty((batch, row), dtype=torch.uint8, device="cuda")
        x.fill_(1)
        torch.cuda.synchronize()
    with slurmdl.init() as handle:
        handle.log("loss", 1.0 / batch, 1)


def experiment(name, program, keys, workers, trials, more=""):
    with open(f"{name}.conf", "w") as f:
        f.write(f"""name = "{name}";
entrypoint = "{sys.executable} {os.path.abspath(__file__)} {program}";
searcher = {{ name = "random"; {keys}; max_trials = {trials}; max_length = 1; }};
resources = {{ workers = {workers}; {more} }};
reproducibility = {{ experiment_seed = 5; }};
""")


def hyperparameters(name, text):
    with open(f"{name}.conf", "a") as f:
        f.write(f"hyperparameters = {{ {text} }};\n")


def events(name, op):
    found = []
    for path in sorted(glob.glob(f"{name}-0001/log/0*/0*")):
        with open(path) as f:
            found += [json.loads(line) for line in f if f'"op":"{op}"' in line.replace(" ", "")]
    return found


def shown(name):
    status, text = run(["dl", "show", name, "--json"])
    try:
        return json.loads(text)["trials"]
    except ValueError:
        say(text)
        return []


def outputs(name):
    """Return the output of all attempts."""
    found = []
    for path in sorted(glob.glob(f"{name}-0001/trials/*/a.*/*")):
        if os.path.isfile(path) and not path.endswith(".h5"):
            with open(path, errors="replace") as f:
                found.append(f.read(100000))
    return found


def lines(name, words):
    return [line for text in outputs(name) for line in text.splitlines() if words in line]


def logs(name):
    say(*(text[-1500:] for text in outputs(name)[:3]))


def dl_run(name):
    say(f"{name}: dl run begins")
    began = time.monotonic()
    status, text = run(["dl", "run", "--local", f"{name}.conf"], 90)
    say(f"{name}: {time.monotonic() - began:.1f} s")
    return status, text, time.monotonic() - began


def sweep():
    """Run the same trials with four workers that share the GPU, and with one."""
    seconds, trials = {}, 2 if STAND_INS else 4
    for workers in (4, 1):
        name = f"digits{workers}"
        experiment(name, "train {lr} {width} {batch}", 'metric = "accuracy"; smaller_is_better = false', workers, trials)
        hyperparameters(name, 'lr = { type = "loguniform"; minval = 0.02; maxval = 0.1; }; '
                        'width = { type = "categorical"; vals = [16, 32, 64]; }; '
                        'batch = { type = "categorical"; vals = [32, 64]; };')
        status, text, seconds[workers] = dl_run(name)
        say(*lines(name, "accuracy "))
        found = shown(name)
        if not same(status, 0, f"a sweep by {workers} worker(s): completed"):
            say(text[-3000:])
            logs(name)
        same([t.get("state") for t in found], ["completed"] * trials, f"{workers} worker(s): all trials are completed")
        best = max((t.get("best") or 0 for t in found), default=0)
        ok(STAND_INS or best > 0.9, f"{workers} worker(s): the best has an accuracy of {best:.3f}", found)
    figure("sweep.four-share-the-gpu", 60 * trials / seconds[4], "trials/min", "one-after-the-other",
           60 * trials / seconds[1])
    frame()


def frame():
    try:
        import pandas  # noqa: F401
    except ImportError as error:
        skip("the trials as a DataFrame", str(error))
        return
    found = slurmdl.Experiment(glob.glob("digits4-0001")[0]).trials()
    ok(len(found) >= 2 and "lr" in found.columns, "the trials as a DataFrame", found)
    say(found.to_string())


def out_of_memory():
    """If CUDA runs out of memory, dl halves the batch and prints the reason."""
    experiment("halve", "fill {batch}", 'metric = "loss"', 1, 1)
    hyperparameters("halve", 'batch = { type = "int"; minval = 16; maxval = 4096; default = 1024; on_oom = "halve"; };')
    status, text, _ = dl_run("halve")
    say(text)
    same(status, 0, "CUDA out of memory: the trial is completed with a smaller batch")
    fails = events("halve", "fail")
    say(*lines("halve", "out of memory"))
    ok("CUDA OOM" in text or "out of memory" in text.lower(), "dl run says what happened", text)
    tried = [e.get("hparams", {}).get("batch") for e in fails]
    same(tried, [512, 256], "1024 is halved to 512 and to 256")
    ok(fails and all(e.get("free") for e in fails), "no failure counts", fails)
    found = shown("halve")
    same([t["hyperparameters"]["batch"] for t in found], [256], "the result belongs to 256")
    if status or tried != [512, 256]:
        say(fails, found)
        logs("halve")


def slots():
    """With slots_per_trial=1, dl starts one worker for each GPU, and each trial sees only the GPU of its worker."""
    if STAND_INS:
        os.environ["CUDA_VISIBLE_DEVICES"] = "0,1"
    gpus = os.environ.get("CUDA_VISIBLE_DEVICES")
    gpus = gpus.split(",") if gpus else [os.path.basename(p)[6:] for p in glob.glob("/dev/nvidia[0-9]*")]
    experiment("slots", "train {lr} 16 64", 'metric = "accuracy"; smaller_is_better = false', len(gpus) + 3,
               len(gpus) + 1, "slots_per_trial = 1;")
    hyperparameters("slots", 'lr = { type = "loguniform"; minval = 0.05; maxval = 0.2; };')
    status, text, _ = dl_run("slots")
    say(text)
    same(status, 0, "a GPU for each trial: completed")
    ok(f"{len(gpus)} of {len(gpus) + 3} workers: " in text, "dl run starts as many workers as there are GPUs", text)
    seen = lines("slots", "devices seen ")
    ok(len(seen) == len(gpus) + 1 and {s.split()[-1] for s in seen} <= set(gpus),
       "each trial sees one GPU", seen)
    os.environ.pop("CUDA_VISIBLE_DEVICES", None)


def main():
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # the traceback shows where it was
    if not importlib.util.find_spec("torch"):
        skip_all("no torch")
    need_device()
    with folder(os.getcwd()) as top:
        os.chdir(top)
        numpy.savez("digits.npz", **dict(zip("xy", digits())))
        os.environ["SWEEP_DIGITS"] = os.path.abspath("digits.npz")
        for part in (out_of_memory, sweep, slots):
            case(part)
        os.chdir("/")
    done()


if sys.argv[1:2] == ["train"]:
    train(float(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
elif sys.argv[1:2] == ["fill"]:
    fill(int(sys.argv[2]))
else:
    main()
