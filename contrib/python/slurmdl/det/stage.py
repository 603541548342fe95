# SPDX-License-Identifier: Apache-2.0
"""The folder in which the files of a checkpoint are assembled: one that nobody else can replace.

It is in the attempt's folder, which all ranks see.  Other members of the experiment could put a symbolic link in its
place, to read what is packed later, or to make the script write elsewhere: if others may write there, the user's own
state directory is used.
"""

import contextlib
import glob
import grp
import hashlib
import os
import pwd
import shutil
import stat
import tempfile

from .._slurmdl import Error

_PREFIX = "det.tmp."


def _is_alone(gid: int) -> bool:
    """Whether nobody else is in a group: many systems give each user a group of the same name."""
    try:
        group = grp.getgrgid(gid)
        return group.gr_name == pwd.getpwuid(os.geteuid()).pw_name and not group.gr_mem
    except KeyError:
        return False


def is_shared(folder: str) -> bool:
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
            raise Error(f"{folder}: others may write there: XDG_STATE_HOME names another folder")
    return folder


def place(run_dir: str) -> str:
    """The folder for the stages of this attempt."""
    above = [run_dir]
    for _ in range(3):  # the trial, trials, the experiment
        above.append(os.path.dirname(above[-1]))
    own = "DL_ATTEMPT_DIR" in os.environ and any(is_shared(folder) for folder in above)
    return _own_folder(above[1]) if own else run_dir


def clear(run_dir: str) -> None:
    """Remove what killed attempts have left."""
    folder = place(run_dir)
    pattern = os.path.join(glob.escape(folder), _PREFIX + "*")
    if folder == run_dir:  # its contents belong to this attempt
        pattern = os.path.join(glob.escape(os.path.dirname(run_dir)), "a.*", _PREFIX + "*")
    for stage in glob.glob(pattern):
        if os.path.dirname(stage) != run_dir:
            shutil.rmtree(stage, ignore_errors=True)


def make(run_dir: str) -> str:
    return tempfile.mkdtemp(dir=place(run_dir), prefix=_PREFIX)


def temporary() -> str:
    """TMPDIR, or /tmp if others could replace its contents."""
    folder = tempfile.gettempdir()
    of = os.stat(folder)
    safe = of.st_uid in (0, os.geteuid()) and (of.st_mode & stat.S_ISVTX or not is_shared(folder))
    return folder if safe else "/tmp"


def remove(stage: str) -> None:
    shutil.rmtree(stage, ignore_errors=True)
    if os.path.basename(os.path.dirname(os.path.dirname(stage))) == "det":
        with contextlib.suppress(OSError):  # it exists already
            os.rmdir(os.path.dirname(stage))
