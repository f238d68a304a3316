"""Files that a running server reads again: regular files only.

To open a FIFO may wait for ever, and a device may never end. A file can become either of them
while the server runs.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

_NULL = os.makedev(1, 3)


def regular_file(path: str | Path, flags: int, mode: int = 0o600) -> int:
    """An `opener` for `open`: `OSError` unless the path leads to a regular file.

    `/dev/null` passes, because operators use it as an empty file.
    """
    handle = os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY, mode)
    try:
        _refuse_special(path, os.fstat(handle))
    except BaseException:
        os.close(handle)
        raise
    return handle


def check_regular(path: str | Path) -> None:
    """`OSError` unless this process may read the path as a regular file."""
    with open(path, "rb", opener=regular_file):
        pass


def check_not_special(path: str | Path) -> None:
    """`OSError` if there is a FIFO, a socket or a device at this path. A directory passes."""
    try:
        status = os.stat(path)
    except OSError:
        return
    if not stat.S_ISDIR(status.st_mode):
        _refuse_special(path, status)


def _refuse_special(path: str | Path, status: os.stat_result) -> None:
    if stat.S_ISREG(status.st_mode):
        return
    if stat.S_ISCHR(status.st_mode) and status.st_rdev == _NULL:
        return
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    raise OSError(errno.EINVAL, "it is no regular file", str(path))
