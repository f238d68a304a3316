"""The lock on the records of an owner: one process at a time writes as this owner."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from roost.client.errors import RecordsInUse
from roost.model.secrets import shown_words

_ATTEMPTS = 5
_ATTEMPT_SECONDS = 0.02

COMMAND_LENGTH_MAX = 100
"""How many characters of a command line a message has."""


@dataclass(frozen=True, slots=True)
class LockHolder:
    """The process that holds a lock; its command is empty if the process shows none.

    The command has no secrets.
    """

    process_id: int
    command: str

    def __str__(self) -> str:
        return f"process {self.process_id}" + (f" ({self.command})" if self.command else "")


def lock_holder(path: Path) -> LockHolder | None:
    """The process that holds the lock; `None` if none holds it.

    A process that crashed leaves its number behind. So the lock decides, not the number.
    """
    try:
        with path.open() as file:
            process_id = file.read().strip()
            if not process_id.isdecimal() or _can_be_locked(file.fileno()):
                return None
    except OSError:
        return None
    return LockHolder(int(process_id), _command_of(process_id))


def _can_be_locked(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@contextmanager
def held_lock(path: Path) -> Iterator[None]:
    """Hold the lock; raises `RecordsInUse` if another process holds it.

    The kernel releases the lock when its process ends, however that happens.
    """
    with _opened(path) as handle:
        if not _is_locked(handle):
            raise RecordsInUse(_described(path))
        _write(handle, f"{os.getpid()}\n")
        try:
            yield
        finally:
            _write(handle, "")


def _is_locked(handle: int) -> bool:
    """Lock a file; whether that succeeded."""
    for _ in range(_ATTEMPTS):
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            # `lock_holder` in another process may have the lock for a moment.
            time.sleep(_ATTEMPT_SECONDS)
        else:
            return True
    return False


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
    process = lock_holder(path) or "another process"
    return (
        f"The ownership records in {path.with_suffix('')} are in use by {process}. Two processes "
        "with one owner undo each other: wait until it ends, stop it, or give this one another "
        "--owner"
    )


def _command_of(process_id: str) -> str:
    """The command line of a process; empty if the process shows none."""
    try:
        words = Path("/proc", process_id, "cmdline").read_bytes().split(b"\0")
    except OSError:
        return ""
    return _shortened([word.decode(errors="replace") for word in words])[:COMMAND_LENGTH_MAX]


def _shortened(words: list[str]) -> str:
    """A command line as an operator types it, without secrets.

    >>> _shortened(["/opt/bin/python3", "/opt/bin/roost", "agent", "--token", "geheim", ""])
    'roost agent --token ***'
    """
    if len(words) > 1 and Path(words[0]).name.startswith("python") and "/" in words[1]:
        words = [Path(words[1]).name, *words[2:]]
    return " ".join(shown_words(words)).strip()
