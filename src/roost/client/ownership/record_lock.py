"""The lock on the records of an owner: one process at a time writes as this owner."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from roost.client.errors import RecordsInUse


@contextmanager
def held_lock(path: Path) -> Iterator[None]:
    """Hold the lock; raises `RecordsInUse` if another process holds it.

    The kernel releases the lock when its process ends, however that happens.
    """
    with path.open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise RecordsInUse(_described(path)) from None
        file.truncate(0)
        file.write(f"{os.getpid()}\n")
        file.flush()
        try:
            yield
        finally:
            file.truncate(0)


def _described(path: Path) -> str:
    holder = path.read_text().strip()
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
