# SPDX-License-Identifier: Apache-2.0
"""imported.py FOLDER SEED: check how dl import handles unexpected values.

Give each field of each file in the folder strange values, one at a time.  The import must fail, print a line that names
the field, or write a result that differs both from that of the original file and from that of the file without the
field.  Otherwise dl import silently ignored the value or replaced it by a default.
"""

import copy
import json
import os
import random
import re
import sys
import tempfile

import yaml

from slurmdl import imports
from slurmdl.imports import target
from slurmdl.imports.document import BadInput
from slurmdl.imports.table import CHANGED, MAPPED

STRANGE = ["zzz", "maximum", "${x}", "{{x}}", -7, 0, 1.5, 12345, True, False, [3, 4], {"a": 1}, [], "1e-3", "017", " "]


def places(value, path=()):
    """Yield the paths of all values."""
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in entries:
        yield (*path, key)
        yield from places(inner, (*path, key))


def at(value, path):
    for key in path:
        value = value[key]
    return value


def with_value(document, path, value):
    made = copy.deepcopy(document)
    at(made, path[:-1])[path[-1]] = value
    return made


def without(document, path):
    made = copy.deepcopy(document)
    del at(made, path[:-1])[path[-1]]
    return made


def texts_of(folder, name, documents):
    """Import documents.

    Return the lines without comments, the fields that are converted without a message, and the messages, or None after
    an error.
    """
    path = os.path.join(folder, name)
    with open(path, "w", encoding="utf-8") as f:
        yaml.safe_dump_all(documents, f) if name.endswith(".yaml") else json.dump(documents[0], f)
    options = imports._Options("dl", "", "", "", False, [])
    try:
        made = imports._imports(path, options)
    except BadInput:
        return None
    texts, silent, said = [], set(), []
    for one in made:
        lines = target.experiment_text(one, name).splitlines()
        texts += [line for line in lines if not line.startswith(("#   ", "# Without", "# Not", "# Different"))]
        said += [text for _, text in one.general()]
        silent |= {field.names for field in one.fields() if field.state == MAPPED}
    return texts, silent, said


def same(a, b):
    """Return whether two values are the same in YAML."""
    try:
        return a == b or str(a) == str(b) or float(a) == float(b)
    except (TypeError, ValueError):
        return False


def names_of(document, path):
    """Convert a path to the names that a Node's fields have."""
    names = []
    for key in path:
        value = at(document, path[: len(names)])
        if isinstance(value, list):
            entry = value[key]
            key = (entry.get("name") if isinstance(entry, dict) else None) or str(key)
        names.append(str(key))
    return tuple(names)


def main(source, seed):
    """Try strange values in all fields and print each that is silently ignored."""
    rng = random.Random(int(seed))
    tried = 0
    with tempfile.TemporaryDirectory() as folder:
        for helper in ("train.py", "ps.py", "main.py"):
            with open(os.path.join(folder, helper), "w", encoding="utf-8") as f:
                f.write("@hydra.main(config_path='.')\n" if helper == "main.py" else "wandb.config\n")
        for name in sorted(os.listdir(source)):
            if not name.endswith((".yaml", ".json")):
                continue
            with open(os.path.join(source, name), encoding="utf-8") as f:
                documents = [d for d in yaml.safe_load_all(f) if d is not None]
            runtimes = [d for d in documents if str(d.get("kind", "")).endswith("Runtime")]
            for document in documents:
                rest = runtimes if document.get("kind") == "TrainJob" else []
                before = texts_of(folder, name, [document, *rest])
                for path in places(document):
                    old = at(document, path)
                    if isinstance(old, dict) and old or rest and path[0] == "metadata":
                        continue
                    names = names_of(document, path)
                    if before and names not in before[1]:
                        continue  # the field has no meaning, or is reported with any value
                    gone = texts_of(folder, name, [without(document, path), *rest])
                    for value in rng.sample(STRANGE, 3):
                        if same(value, old) or name == "wandb.yaml" and path[-1] == "min":
                            continue  # wandb rounds the bounds to multiples of q
                        tried += 1
                        now = texts_of(folder, name, [with_value(document, path, value), *rest])
                        if now is None or now[2] != before[2] or not any(n[: len(names)] == names for n in now[1]):
                            continue
                        nothing = value in (0, [], " ") or path[-1] == "zip_id"  # means the same as no value
                        kinds = [(before, "changes nothing")] + [(gone, "is as if it were not there")] * (not nothing)
                        for other, what in kinds:
                            if other is not None and now[0] == other[0]:
                                print(f"{name}: {'.'.join(names)} = {value!r} {what}, and nothing says so")
    print(f"{tried} values", file=sys.stderr)


main(*sys.argv[1:])
