# SPDX-License-Identifier: Apache-2.0
"""Containers of pods: their volumes as folders that are bound."""

import re
from typing import List, NamedTuple, Optional, Sequence

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
