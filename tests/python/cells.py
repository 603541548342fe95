# SPDX-License-Identifier: Apache-2.0
"""Run a function that is defined in a notebook cell and uses a class from another cell."""

from check import ok, same
from IPython.core.interactiveshell import InteractiveShell

shell = InteractiveShell.instance()
for cell in (
    "import slurmdl\nclass Net:\n    depth = 2\n\n    def cost(self):\n        return self.depth",
    "def cost():\n    return Net().cost()",
    "def train(x: slurmdl.Float(0, 1)):\n    return cost() + x",
    "sweep = slurmdl.run(train, local=True, max_trials=2).wait(600)",
    "sweep.watch()",
):
    ok(shell.run_cell(cell).success, "cell: " + cell.split("\n")[0])
same(shell.user_ns["sweep"].state, "completed", "a notebook starts a sweep")
