# SPDX-License-Identifier: Apache-2.0
"""Determined's CheckpointContext over the checkpoints of the trial."""

import contextlib
import enum
import glob
import grp
import hashlib
import os
import pathlib
import pwd
import shutil
import stat
import tempfile
from typing import Any, Dict, Iterator, List, Optional, Tuple, Union

from .. import _slurmdl
from .._slurmdl import Error
from ..runs import Run
from . import storage
from .distributed import DistributedContext
from .storage import Selector

Folder = Union[str, "os.PathLike[str]"]
Metadata = Optional[Dict[str, Any]]


class DownloadMode(enum.Enum):
    LocalWorkersShareDownload = "LOCAL_WORKERS_SHARE_DOWNLOAD"
    NoSharedDownload = "NO_SHARED_DOWNLOAD"


def _merge(into: Dict[str, Any], more: Dict[str, Any], at: str = "") -> None:
    for key, value in more.items():
        if isinstance(into.get(key), dict) and isinstance(value, dict):
            _merge(into[key], value, f"{at}{key}/")
        elif into.setdefault(key, value) != value:
            raise RuntimeError(f"refusing to upload with metadata conflicts: {at}{key}")


def _step(metadata: Metadata) -> int:
    step = (metadata or {}).get("steps_completed")
    if not isinstance(step, int) or step < 0:
        raise ValueError("metadata must contain 'steps_completed', a number of steps")
    return step


def _same(a: str, b: str) -> bool:
    with open(a, "rb") as x, open(b, "rb") as y:
        while True:
            one, other = x.read(1 << 20), y.read(1 << 20)
            if one != other:
                return False
            if not one:
                return True


def _copy(source: str, to: str, names: List[str]) -> None:
    for name in names:
        path = os.path.join(to, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        shutil.copyfile(os.path.join(source, name), path)


# ---- the stage: the directory in which the files of a checkpoint are assembled
#
# It is in the attempt's folder, which all ranks see, unless others may write there: a member of the experiment could
# replace the stage with a symbolic link, to read what is packed later or to make the script write elsewhere.  Then the
# stage is in the user's own state directory.

_STAGE_PREFIX = "det.tmp."


def _is_alone(gid: int) -> bool:
    """Whether the user is the only member of a group: many systems give each user a group of the same name."""
    try:
        group = grp.getgrgid(gid)
        return group.gr_name == pwd.getpwuid(os.geteuid()).pw_name and not group.gr_mem
    except KeyError:
        return False


def _is_shared(folder: str) -> bool:
    """Whether others may write to a folder."""
    of = os.stat(folder)
    return bool(of.st_mode & stat.S_IWOTH or (of.st_mode & stat.S_IWGRP and not _is_alone(of.st_gid)))


def _own_folder(trial_dir: str) -> str:
    """The trial's folder in the user's state directory, which others cannot access."""
    state = os.environ.get("XDG_STATE_HOME", "")
    state = state if os.path.isabs(state) else os.path.join(os.path.expanduser("~"), ".local", "state")
    os.makedirs(state, 0o700, exist_ok=True)
    folder = os.path.realpath(state)
    for name in ("slurm-dl", "det", hashlib.sha256(os.fsencode(os.path.abspath(trial_dir))).hexdigest()[:32]):
        folder = os.path.join(folder, name)
        with contextlib.suppress(FileExistsError):
            os.mkdir(folder, 0o700)
        of = os.lstat(folder)
        if not stat.S_ISDIR(of.st_mode) or of.st_uid != os.geteuid() or of.st_mode & 0o022:
            raise Error(f"{folder}: others may write to it: set XDG_STATE_HOME to another folder")
    return folder


def _stage_folder(run_dir: str) -> str:
    """The folder for the stages of this attempt."""
    above = [run_dir]
    for _ in range(3):  # the trial, trials, the experiment
        above.append(os.path.dirname(above[-1]))
    own = "DL_ATTEMPT_DIR" in os.environ and any(_is_shared(folder) for folder in above)
    return _own_folder(above[1]) if own else run_dir


def _clear_stages(run_dir: str) -> None:
    """Remove what killed attempts have left."""
    folder = _stage_folder(run_dir)
    pattern = os.path.join(glob.escape(folder), _STAGE_PREFIX + "*")
    if folder == run_dir:  # its contents belong to this attempt
        pattern = os.path.join(glob.escape(os.path.dirname(run_dir)), "a.*", _STAGE_PREFIX + "*")
    for stage in glob.glob(pattern):
        if os.path.dirname(stage) != run_dir:
            shutil.rmtree(stage, ignore_errors=True)


def _make_stage(run_dir: str) -> str:
    return tempfile.mkdtemp(dir=_stage_folder(run_dir), prefix=_STAGE_PREFIX)


def _temporary() -> str:
    """TMPDIR, or /tmp if others could replace its contents."""
    folder = tempfile.gettempdir()
    of = os.stat(folder)
    safe = of.st_uid in (0, os.geteuid()) and (of.st_mode & stat.S_ISVTX or not _is_shared(folder))
    return folder if safe else "/tmp"


def _remove_stage(stage: str) -> None:
    shutil.rmtree(stage, ignore_errors=True)
    if os.path.basename(os.path.dirname(os.path.dirname(stage))) == "det":
        with contextlib.suppress(OSError):  # it exists already
            os.rmdir(os.path.dirname(stage))


# ---- the context


class CheckpointContext:
    """upload(), download(), store_path(), restore_path(), get_metadata(), delete()."""

    def __init__(self, run: Run, dist: DistributedContext) -> None:
        self._run, self._dist = run, dist
        if dist.rank == 0:
            _clear_stages(run.dir)

    def _chief(self, call: str) -> None:
        if self._dist.rank != 0:
            raise RuntimeError(f"cannot call {call} from non-chief worker (rank={self._dist.rank})")

    def _publish(self, stage: str, metadata: Dict[str, Any]) -> str:
        """Turn the files of a folder into the checkpoint.  Returns its storage_id."""
        step = _step(metadata)
        path = os.path.join(self._run.dir, "ckpt", f"{step:08d}.h5")
        self._run.flush()
        storage.pack(stage, path, step, metadata)
        return storage.storage_id_of(path, self._run.trial_dir)

    @contextlib.contextmanager
    def _stage(self) -> Iterator[str]:
        """A new folder; shared by all ranks if they call it together."""
        stage = _make_stage(self._run.dir)
        try:
            yield stage
        finally:
            _remove_stage(stage)

    @contextlib.contextmanager
    def _shared_stage(self) -> Iterator[str]:
        with contextlib.ExitStack() as stack:
            stage = stack.enter_context(self._stage()) if self._dist.rank == 0 else None
            yield self._dist.broadcast(stage)

    def _together(self, stage: str, metadata: Metadata, bad: Optional[str] = None) -> str:
        """The end of a sharded checkpoint: rank 0 makes one checkpoint of all files, and an error of one rank becomes
        that of all."""
        every = self._dist.allgather((metadata or {}, bad))
        found: Tuple[Optional[str], str] = (None, "")
        if self._dist.rank == 0:
            try:
                merged: Dict[str, Any] = {}
                for rank, (more, conflict) in enumerate(every):
                    if conflict:
                        raise RuntimeError(f"refusing to upload with files conflicts: {conflict} of rank {rank}")
                    _merge(merged, more)
                found = (self._publish(stage, merged), "")
            except (RuntimeError, ValueError, OSError) as error:
                found = (None, str(error))
        storage_id, why = self._dist.broadcast(found)
        if storage_id is None:
            raise RuntimeError(why)
        return str(storage_id)

    def _collect(self, folder: Optional[str], stage: str, selector: Selector) -> Optional[str]:
        """Collect the files of each rank, each from the first rank that has it.  Returns the name of a file that
        differs."""
        names = [n for n in storage.files_below(folder) if selector is None or selector(n)] if folder else []
        before = set().union(*self._dist.allgather(names)[: self._dist.rank])
        _copy(folder or "", stage, [n for n in names if n not in before])
        self._dist.barrier()
        again = [n for n in names if n in before]
        twice = [n for n in again if not _same(os.path.join(folder or "", n), os.path.join(stage, n))]
        return twice[0] if twice else None

    @contextlib.contextmanager
    def store_path(self, metadata: Metadata = None, *, shard: bool = False) -> Iterator[Tuple[pathlib.Path, str]]:
        """A folder to save to, and its storage_id; it becomes the trial's checkpoint of the step
        metadata["steps_completed"] when the block ends without an error. shard=True: all ranks call it, and save into
        the same folder."""
        if not shard:
            self._chief("CheckpointContext.store_path(shard=False)")
        step = _step(self._dist.broadcast(metadata) if shard else metadata)
        path = os.path.join(self._run.dir, "ckpt", f"{step:08d}.h5")
        storage_id = storage.storage_id_of(path, self._run.trial_dir)
        with self._shared_stage() if shard else self._stage() as stage:
            yield pathlib.Path(stage), storage_id
            if shard:
                self._together(stage, metadata)
            else:
                self._publish(stage, metadata or {})

    def upload(
        self, ckpt_dir: Optional[Folder], metadata: Metadata = None, *, shard: bool = False, selector: Selector = None
    ) -> str:
        """Turn the files of a folder into a checkpoint; with shard=True, the files of all ranks' folders.  Returns its
        storage_id."""
        if not shard:
            self._chief(".upload(shard=False)")
            if ckpt_dir is None:
                raise RuntimeError("cannot call .upload(ckpt_dir=None, shard=False): there is nothing to upload")
        elif not any(self._dist.allgather(ckpt_dir is not None)):
            raise RuntimeError("cannot call .upload(ckpt_dir=None, shard=True) from all ranks")
        _step(self._dist.broadcast(metadata) if shard else metadata)
        folder = os.fspath(ckpt_dir) if ckpt_dir is not None else None
        if not shard:
            with self._stage() as stage:
                _copy(str(folder), stage, [n for n in storage.files_below(str(folder)) if not selector or selector(n)])
                return self._publish(stage, metadata or {})
        with self._shared_stage() as stage:
            return self._together(stage, metadata, self._collect(folder, stage, selector))

    def _wanted(self, selector: Selector) -> Selector:
        """The files that any rank of the node selects: its rank 0 asks the others for each file."""
        if not any(self._dist.allgather_local(selector is not None)):
            return None

        def any_rank(name: str) -> bool:
            self._dist.broadcast_local(name)
            return any(self._dist.allgather_local(selector is None or selector(name)))

        return any_rank

    def _answer(self, selector: Selector) -> None:
        """The other ranks' side of _wanted()."""
        if not any(self._dist.allgather_local(selector is not None)):
            return
        while True:
            name = self._dist.broadcast_local()
            if name is None:
                return
            self._dist.allgather_local(selector is None or selector(name))

    def download(
        self,
        storage_id: str,
        ckpt_dir: Folder,
        download_mode: DownloadMode = DownloadMode.LocalWorkersShareDownload,
        *,
        selector: Selector = None,
    ) -> None:
        """Write the files of a checkpoint to a folder; one rank of each node does so, unless NoSharedDownload."""
        if DownloadMode(download_mode) == DownloadMode.NoSharedDownload:
            self._read(storage_id, os.fspath(ckpt_dir), selector)
            return
        why: Optional[str] = None
        if self._dist.local_rank == 0:
            wanted = self._wanted(selector)
            try:
                self._read(storage_id, os.fspath(ckpt_dir), wanted)
            except (Error, OSError) as error:
                why = str(error)
            if wanted is not None:
                self._dist.broadcast_local(None)
        else:
            self._answer(selector)
        why = self._dist.broadcast_local(why)
        if why is not None:
            raise Error(why)

    def _read(self, storage_id: str, folder: str, selector: Selector) -> None:
        path = storage.path_of(storage_id, self._run.trial_dir)
        os.makedirs(folder, exist_ok=True)
        storage.unpack(path, folder, selector)

    @contextlib.contextmanager
    def restore_path(
        self,
        storage_id: str,
        download_mode: DownloadMode = DownloadMode.LocalWorkersShareDownload,
        *,
        selector: Selector = None,
    ) -> Iterator[pathlib.Path]:
        """A folder with the files of a checkpoint, below TMPDIR; it exists until the end of the block.  The ranks of a
        node share it, unless NoSharedDownload."""
        alone = DownloadMode(download_mode) == DownloadMode.NoSharedDownload
        first = alone or self._dist.local_rank == 0
        folder = tempfile.mkdtemp(prefix="slurmdl-", dir=_temporary()) if first else ""
        folder = folder if alone else self._dist.broadcast_local(folder)
        try:
            self.download(storage_id, folder, download_mode, selector=selector)
            yield pathlib.Path(folder)
            if not alone:
                # the others may still read it
                self._dist.allgather_local(None)
        finally:
            if first:
                shutil.rmtree(folder, ignore_errors=True)

    def get_metadata(self, storage_id: str) -> Dict[str, Any]:
        return storage.metadata_of(storage.path_of(storage_id, self._run.trial_dir))

    def delete(self, storage_id: str) -> None:
        _slurmdl.remove_checkpoint(storage.path_of(storage_id, self._run.trial_dir))
