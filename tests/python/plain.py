# SPDX-License-Identifier: Apache-2.0
"""A script that does not use slurmdl and prints its metrics."""

import sys

assert sys.argv[1:] == ["--lr", "0.1"], sys.argv
assert __name__ == "__main__" and sys.stdout is sys.__stdout__
print("started at 12:30:01, data: 60000 images, version 1.2.3")
for epoch in (1, 2):
    print(f"Epoch {epoch}/2, Step [{epoch}00/200], Loss: {1 / epoch:.3f}, time: 3.2s")
    print(f"epoch {epoch} loss {0.5 / epoch} acc: 9{epoch}.5%", end="\n" if epoch == 1 else "")
print("\nval_loss=0.25 lr 1e-3 name=x best=3/4")
sys.stdout.write("iteration 7: nll nan\r")
print(*["x"] * 2000, "loss=9")
sys.exit(3)
