# SPDX-License-Identifier: Apache-2.0
"""scalars.py FOLDER SEED: check that dl run and dl import read the same YAML scalars with the same warnings."""

import json
import os
import random
import re
import subprocess
import sys

FIXED = """0 -1 +12 017 -017 07 00 08 089 0o17 0o8 0x1F 0xfg -0x1F +0x1 0x 0b101 0b 1_000 1__0 _1 1_ -1_000 1_000.5 0_1 .5 -.5 +.5e3
5. 1e3 1e-05 1.5E+3 1e 1e+ .e3 . + 1.2.3 1e400 -1e400 99999999999999999999 9223372036854775807 9223372036854775808 -9223372036854775808
.inf -.Inf +.INF .nan .NaN .iNF inf nan 0x1p3 infinity true True TRUE tRUE false False FALSE yes Yes YES yES no NO on On OFF off y Y n N
1:30 1:30:00 1:90 12:30:45.5 a:1 190:20:30 2001-12-14 1.0.0 1,5 1e5.0 0.1_0 _ 1._ 1_e3 !!int 0o 0o17_ 0x1_F 0b1_0 0.0 -0.0 1e0 10e-400
"17" '1e3' "yes" "null" !!int;5 !!float;5 !!float;1e-3 !!int;"5" !!bool;TRUE !!float;.inf !!float;0o17""".split()


def token(rng):
    """Return a random scalar of characters that occur in numbers."""
    return "".join(rng.choice("0123456789017_.eE+-xob:nf") for _ in range(rng.randint(1, 7)))


def values_of(folder, *arguments):
    """Run a command and return the hyperparameters, the warnings about YAML 1.1, and standard error."""
    done = subprocess.run(arguments, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=300)
    sample = re.search(r"sample 1: (\{.*\})", done.stdout)
    lines = re.findall(r":(\d+): (.* in YAML 1\.1 .*)", done.stderr)
    return json.loads(sample.group(1)) if sample else None, lines, done.stderr


def main(folder, seed):
    """Print the differences."""
    rng = random.Random(int(seed))
    tokens = [t.replace(";", " ") for t in FIXED if t != "!!int"]
    while len(tokens) < 700:
        t = token(rng)
        # skip tokens that YAML does not read as a single scalar
        if not re.match(r"[-:](\s|$)|---|\.\.\.", t) and not t.endswith(":"):
            tokens.append(t)
    with open(os.path.join(folder, "scalars.yaml"), "w", encoding="utf-8") as f:
        f.write("name: n\nentrypoint: echo\nsearcher: {name: single, metric: loss, smaller_is_better: true}\nresources: {slots_per_trial: 0}\n")
        f.write("hyperparameters:\n" + "".join(f"  h{i}: {t}\n" for i, t in enumerate(tokens)))
    native, native_lines, said = values_of(folder, "dl", "run", "--dry-run", "scalars.yaml")
    _, lines, told = values_of(folder, "dl", "import", "--from=determined", "-o", "scalars.conf", "scalars.yaml")
    imported = values_of(folder, "dl", "run", "--dry-run", "scalars.conf")[0]
    if native is None or imported is None:
        print(said[:500], told[:500])
        return
    for i, text in enumerate(tokens):
        a, b = native.get(f"h{i}"), imported.get(f"h{i}")
        if a != b or type(a) is not type(b):
            print(f"{text}: natively {a!r}, by import {b!r}")
    if sorted(native_lines) != sorted(lines):
        print("lines:", set(native_lines) ^ set(lines))
    print(f"{len(tokens)} scalars, {len(lines)} lines" if len(lines) > 10 else f"few lines: {said[:300]}", file=sys.stderr)


main(*sys.argv[1:])
