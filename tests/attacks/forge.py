# SPDX-License-Identifier: Apache-2.0
"""forge.py EXPERIMENT STATEMENT: change 'line', the first event of the decision log, and correct the checksum."""

import hashlib  # noqa: F401: statements use it
import json
import os
import sys

sys.path.insert(0, os.path.join(os.environ["srcdir"], "tests/faults"))
import replay

exp, statement = sys.argv[1:]
path = exp + "/log/000000/00000001"
with open(path) as f:
    line = json.loads(f.readline())
exec(statement)
text = json.dumps(line, separators=(",", ":")) + "\n"
os.umask(0)
with open(path + "x", "w") as f:
    f.write(text + '{"xxh64": "%016x"}\n' % replay.xxh64(text.encode()))
os.rename(path + "x", path)
for name in os.listdir(exp + "/log"):
    if name.endswith(".pack"):
        os.unlink(os.path.join(exp, "log", name))
