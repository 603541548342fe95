# SPDX-License-Identifier: Apache-2.0
"""Train a small network with dropout, augmentation, AdamW and a schedule, and print a hash of its weights.

train.py DIR EPOCHS WORKERS SECONDS: save also in mid-epoch, and sleep SECONDS after each step.
"""

import hashlib
import random
import sys
import time

import numpy as np
import torch

import slurmdl.torch

folder, epochs, workers, seconds = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])
torch.set_num_threads(1)
run = slurmdl.init(folder)
run.seed_all()


class Noisy(torch.utils.data.Dataset):
    """Augment each sample with random numbers of torch, random and numpy."""

    def __len__(self):
        return 103

    def __getitem__(self, i):
        x = torch.arange(8.0).mul(i % 7 - 3).cos() + torch.randn(8) * 0.1
        return x * (1 + 0.1 * random.random()) + float(np.random.rand()) * 0.1, i % 3


model = torch.nn.Sequential(
    torch.nn.Linear(8, 16), torch.nn.BatchNorm1d(16), torch.nn.Dropout(0.3), torch.nn.ReLU(), torch.nn.Linear(16, 3)
)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.05, total_steps=2000)
scaler = torch.cuda.amp.GradScaler(enabled=False)
loader = slurmdl.torch.ResumableLoader(Noisy(), batch_size=10, shuffle=True, seed=5, num_workers=workers)
parts = dict(model=model, optimizer=optimizer, scheduler=scheduler, scaler=scaler, loader=loader)
restored = slurmdl.torch.restore_model(run, **parts)
step = restored.step if restored else 0
print("from", step, loader.epoch, loader.position, flush=True)
while loader.epoch < epochs and not run.should_stop():
    for x, y in loader:
        step += 1
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        scheduler.step()
        run.log("training/loss", loss, step)
        if step % 7 == 0:
            slurmdl.torch.save_model(run, step, extra={"seen": step}, wait=step % 2 == 0, **parts)
        time.sleep(seconds)
slurmdl.torch.save_model(run, step, extra={"seen": step}, **parts)
run.close()
digest = hashlib.sha256()
for tensor in model.state_dict().values():
    digest.update(tensor.numpy().tobytes())
for values in optimizer.state.values():
    digest.update(values["exp_avg_sq"].numpy().tobytes())
digest.update(torch.rand(1).numpy().tobytes() + np.random.rand(1).tobytes() + str(random.random()).encode())
print("step", step, "weights", digest.hexdigest())
