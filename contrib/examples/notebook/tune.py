# SPDX-License-Identifier: Apache-2.0
"""A sweep in ten lines: python3 tune.py on a login node, or the same lines in a notebook."""

from slurmdl import Float, Int, LogUniform, run


def train(lr: LogUniform(1e-4, 1e-1), width: Int(16, 256), dropout: Float(0, 0.5) = 0.1):
    return (lr - 0.01) ** 2 * 1e4 + abs(width - 100) / 100 + dropout  # the loss of a real training


sweep = run(train, max_trials=20, workers=4, local=True)  # without local=True: a Slurm job
print(sweep.wait().best()["hyperparameters"])
