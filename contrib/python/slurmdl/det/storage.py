# SPDX-License-Identifier: Apache-2.0
"""Folders of files as checkpoints of the trial: one checkpoint file for each folder, with the files as its tensors.

A checkpoint is therefore complete or absent, is verified when it is read, and is known to checkpoint_policy, `dl ckpt`,
`dl best` and `dl model`.
"""

import contextlib
import json
import os
import re
from typing import Any, Callable, Dict, List, Optional

from .. import _slurmdl
from .._slurmdl import Error
from ..arrays import memory_of
from ..trust import Reader

_FILES, METADATA, _METADATA_MAX = "files/", "metadata.json", 64 << 20

Selector = Optional[Callable[[str], bool]]


def storage_id_of(path: str, own: str) -> str:
    """TRIAL-ATTEMPT-STEP for a checkpoint in this trial's folder or in a sibling's; else its path."""
    found = re.fullmatch(r"(.*)/a\.(\d+)/ckpt/(\d+)\.h5", os.path.abspath(path))
    if found and os.path.dirname(found.group(1)) == os.path.dirname(os.path.abspath(own)):
        return f"{os.path.basename(found.group(1))}-{found.group(2)}-{found.group(3)}"
    return os.path.abspath(path)


def path_of(storage_id: str, own: str) -> str:
    """The checkpoint's file."""
    found = re.fullmatch(r"([^/]+)-(\d+)-(\d+)", storage_id)
    path = storage_id
    if found and found.group(1) not in (".", ".."):
        trial = os.path.join(os.path.dirname(os.path.abspath(own)), found.group(1))
        path = os.path.join(trial, f"a.{found.group(2)}", "ckpt", f"{found.group(3)}.h5")
    if not os.path.isabs(path) or not os.path.isfile(path):
        raise Error(f"{storage_id}: no such checkpoint: must be a storage_id of this experiment or a path")
    return path


def files_below(folder: str) -> Dict[str, int]:
    """Sizes of the files, by path; a symbolic link counts as its target."""
    found = {}
    for at, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(at, name)
            found[os.path.relpath(path, folder)] = os.path.getsize(path)
    return found


def _bytes_of(path: str) -> Any:
    """The file as an array, which is read on first use."""
    import numpy

    return numpy.memmap(path, "u1", "r") if os.path.getsize(path) else numpy.empty(0, "u1")


def _no_loss(path: str, names: List[str]) -> None:
    """A second checkpoint of a step replaces the first if it contains everything that the first does."""
    if not os.path.exists(path):
        return
    lost = set(_names(_slurmdl.Checkpoint(path))) - set(names)
    if lost:
        raise Error(
            f"{path}: the checkpoint of this step has {min(lost)}, which the new one lacks: store both in one folder, "
            "or with another steps_completed"
        )


def pack(folder: str, path: str, step: int, metadata: Dict[str, Any]) -> None:
    """Write the files below a folder, and metadata.json, as the checkpoint 'path'."""
    with open(os.path.join(folder, METADATA), "w", encoding="utf-8") as f:
        json.dump(metadata, f, indent=2)
    names = sorted(files_below(folder))
    os.makedirs(os.path.dirname(path), exist_ok=True)
    _no_loss(path, names)
    file = _slurmdl.Writer(path, step)
    try:
        for name in names:
            memory = memory_of(_bytes_of(os.path.join(folder, name)))
            file.add(_FILES + name, memory.type, memory.shape, memory.where, False)
    except BaseException:
        file.abort()
        raise
    file.commit()


def _names(file: _slurmdl.Checkpoint) -> List[str]:
    return [name[len(_FILES) :] for name, _, _, _ in file.tensors() if name.startswith(_FILES)]


def unpack(path: str, folder: str, selector: Selector = None) -> None:
    """Verify the files of a checkpoint and write them below 'folder'. slurmdl.Error for another user's: the files that
    a script loads are usually pickles."""
    file = _slurmdl.Checkpoint(path)
    Reader(file.origin()).check("files for the script")
    names = _names(file)
    if not names:
        raise Error(f"{path}: the checkpoint was not stored by slurmdl.det: it has no files")
    if any(type != "u8" or len(shape) != 1 for name, type, shape, _ in file.tensors() if name.startswith(_FILES)):
        raise Error(f"{path}: damaged: not all of its files are bytes")
    for name in names:
        if os.path.normpath(name) != name or os.path.isabs(name) or name.split("/")[0] == "..":
            raise Error(f"{path}: damaged: invalid file name {name!r}")
        if selector is None or selector(name):
            _write(file, name, os.path.join(folder, name))


def _write(file: _slurmdl.Checkpoint, name: str, to: str) -> None:
    import numpy

    (shape,) = [shape for n, _, shape, _ in file.tensors() if n == _FILES + name]
    os.makedirs(os.path.dirname(to), exist_ok=True)
    with open(to, "wb") as f:
        f.truncate(shape[0])
    if shape[0]:
        file.read(_FILES + name, memory_of(numpy.memmap(to, "u1", "r+")).where)


def metadata_of(path: str) -> Dict[str, Any]:
    file = _slurmdl.Checkpoint(path)
    for name, type, shape, _ in file.tensors():
        if name == _FILES + METADATA:
            found = None
            if type == "u8" and len(shape) == 1 and shape[0] <= _METADATA_MAX:
                data = bytearray(shape[0])
                file.read(name, memory_of(data).where)
                with contextlib.suppress(ValueError, RecursionError):
                    found = json.loads(data)
            if not isinstance(found, dict):
                raise Error(f"{path}: damaged: its {METADATA} is not a JSON object")
            return found
    raise Error(f"{path}: the checkpoint was not stored by slurmdl.det: it has no metadata")
