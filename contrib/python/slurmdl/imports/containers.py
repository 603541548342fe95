# SPDX-License-Identifier: Apache-2.0
"""Containers of pods: their volumes as folders that are bound, and the lines of a script that start them."""

import re
from typing import List, NamedTuple, Optional, Sequence

from . import target
from .document import Node
from .table import NONE, Import


class Mount(NamedTuple):
    """A folder outside, which for a claim is relative, and its name in the container."""

    source: str
    inside: str
    read_only: bool
    node: Node
    volume: Optional[Node]


_PATH = re.compile(r"/[^:,\x00-\x1f]*")


def _source(volume: Optional[Node]) -> str:
    if volume is None:
        return ""
    if volume.has("emptyDir"):
        return "/tmp"
    return volume.string("hostPath", "path") or volume.string("persistentVolumeClaim", "claimName")


def _mount(one: Import, mount: Node, volume: Optional[Node]) -> Optional[Mount]:
    source, inside, part = _source(volume), one.text(mount, "mountPath"), one.text(mount, "subPath")
    only = one.truth(mount, "readOnly") is True
    one.take(mount, "name")
    if inside == "/dev/shm":
        one.mark(mount, NONE, "a process on a node has all of /dev/shm")
        return None
    known = _PATH.fullmatch(source) or re.fullmatch(r"\w[\w.-]*", source, re.A)
    if not known or not _PATH.fullmatch(inside) or not _PATH.fullmatch(f"/{part}") or ".." in part.split("/"):
        if volume is not None and (volume.has("hostPath") or volume.has("persistentVolumeClaim")):
            one.open(volume, "see volumeMounts")
        one.open(mount, "no hostPath, claim or emptyDir: a job sees the file systems of its node, use a path there")
        return None
    return Mount(source + (f"/{part}" if part else ""), inside, only, mount, volume)


def read(one: Import, template: Node, container: Node) -> List[Mount]:
    """The mounts of a container, whose volumes are those of its pod."""
    volumes = dict(template.items("spec", "volumes"))
    mounts = (_mount(one, mount, volumes.get(name)) for name, mount in container.items("volumeMounts"))
    return [mount for mount in mounts if mount]


def _take(one: Import, mount: Mount) -> None:
    """Its volume is bound."""
    for path in (("name",), ("hostPath", "path"), ("persistentVolumeClaim", "claimName")):
        one.take(mount.volume, *path)


def _end(mount: Mount) -> str:
    return f":{mount.inside}" + (":ro" if mount.read_only else "")


def binds_of(one: Import, mounts: Sequence[Mount]) -> List[str]:
    """container.binds, which has no relative paths."""
    for mount in mounts:
        if mount.source[0] != "/":
            one.open(mount.volume, "see volumeMounts")
            one.open(mount.node, f'name the folder of this claim: container.binds = "/FOLDER{_end(mount)}"')
        else:
            _take(one, mount)
    return [mount.source + _end(mount) for mount in mounts if mount.source[0] == "/"]


def _mounts(one: Import, mounts: Sequence[Mount]) -> str:
    """The binds as pyxis and Apptainer have them, for a shell."""
    made = []
    for mount in mounts:
        _take(one, mount)
        if mount.source[0] == "/":
            made.append(target.bash_quote(mount.source + _end(mount)))
            continue
        made.append("$PWD/" + target.bash_quote(mount.source + _end(mount)))
        one.changed(mount.node, f"the claim is the folder {mount.source} where sbatch is called: link it to its data")
    return ",".join(dict.fromkeys(made))


def script_lines(one: Import, image: str, mounts: Sequence[Mount], own: Optional[str]) -> List[str]:
    """The image by pyxis or by Apptainer: "${pyxis[@]}" for srun, "${inside[@]}" before the command.

    'own' are the arguments of the image's own program, which pyxis does not start; None: there is a command."""
    if not image:
        return []
    words = _mounts(one, mounts)
    pyxis, bind = (' --container-mounts="$mounts"', ' --bind "$mounts"') if words else ("", "")
    lines = [f"image=${{DL_IMAGE-{target.bash_quote(image)}}}  # DL_IMAGE= (nothing): without a container"]
    lines += [f"mounts={words}"] if words else []
    if own is not None:
        own = f" {own}".rstrip()
        start = f'[ -z "$image" ] || inside=(apptainer run --nv{bind} "docker://$image"{own})  # its own program'
        return [*lines, f"pyxis=() inside=(./PROGRAM{own})", start]
    return [
        *lines,
        "pyxis=() inside=()",
        'if [ -n "$image" ] && srun --help 2>&1 | grep -q -e --container-image; then',
        f'    pyxis=(--container-image="$image"{pyxis})',
        'elif [ -n "$image" ]; then',
        f'    inside=(apptainer exec --nv{bind} "docker://$image")',
        "fi",
    ]
