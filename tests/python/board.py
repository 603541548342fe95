# SPDX-License-Identifier: Apache-2.0
"""board.py MODULE: a script that does not use slurmdl and writes to TensorBoard."""

import importlib
import sys

import numpy as np

writer = importlib.import_module(sys.argv[1]).SummaryWriter("board-" + sys.argv[1].split(".")[0])
for step in range(3):
    writer.add_scalar("training/loss", np.float32(1.0 / (step + 1)), step)
    writer.add_scalar("plain", 2 * step)
    writer.add_scalars("both", {"a": step, "b": -step}, global_step=step)
writer.add_histogram("weights", np.arange(100.0), 2)
writer.add_text("note", "hello", 1)
writer.add_image("image", np.zeros((3, 4, 5), dtype="u1"), 1)
writer.add_image("grey", np.zeros((4, 5, 1), dtype="u1"), 1, dataformats="HWC")
try:
    writer.add_scalar("bad", "no number", 1)
except Exception as error:
    print("the script's own error:", type(error).__name__)
writer.close()
