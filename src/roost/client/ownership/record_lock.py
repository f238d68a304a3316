"""The lock on the records of an owner: one process at a time writes as this owner."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from roost.client.errors import RecordsInUse


@contextmanager
def held_lock(path: Path) -> Iterator[None]:
    """Hold the lock; raises `RecordsInUse` if another process holds it.

    The kernel releases the lock when its process ends, however that happens.
    """
    with _opened(path) as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise RecordsInUse(_described(path)) from None
        _write(handle, f"{os.getpid()}\n")
        try:
            yield
        finally:
            _write(handle, "")


@contextmanager
def _opened(path: Path) -> Iterator[int]:
    """The file of the lock; its directory if the file system takes no new files."""
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError:
        handle = os.open(path if path.exists() else _existing(path.parent), os.O_RDONLY)
    try:
        yield handle
    finally:
        os.close(handle)


def _existing(directory: Path) -> Path:
    """The directory, or the nearest one above it that exists."""
    return next(found for found in (directory, *directory.parents) if found.is_dir())


def _write(handle: int, text: str) -> None:
    """Replace the text of the file; a full disk leaves it empty."""
    with suppress(OSError):
        os.ftruncate(handle, 0)
        os.pwrite(handle, text.encode(), 0)


def _described(path: Path) -> str:
    holder = path.read_text().strip() if path.exists() else ""
    process = f"process {holder}{_command_of(holder)}" if holder else "another process"
    return (
        f"The ownership records in {path.with_suffix('')} are in use by {process}. Two processes "
        "with one owner undo each other: wait until it ends, stop it, or give this one another "
        "--owner"
    )


def _command_of(process_id: str) -> str:
    """The command line of a process, in brackets; empty if the process shows none."""
    try:
        words = Path("/proc", process_id, "cmdline").read_bytes().split(b"\0")
    except OSError:
        return ""
    return f" ({b' '.join(words).decode(errors='replace').strip()[:100]})"
