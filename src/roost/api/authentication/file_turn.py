"""The turn of a command that reads a file and replaces it. Commands at the same time lose nothing.

The lock is on the file itself. So no further file is left behind, and a user without access
to the file cannot hold up its commands.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from roost.configuration.regular_files import regular_file
from roost.configuration.settings import ConfigurationError
from roost.model.text import plain_number

WAIT_SECONDS = 10.0
_PAUSE_SECONDS = 0.01


@contextmanager
def file_turn(path: str, *, create: bool = False) -> Iterator[None]:
    """Hold the file alone. A file that `create` makes is empty and belongs to its owner alone."""
    target = Path(path).resolve()
    deadline = time.monotonic() + WAIT_SECONDS
    while True:
        handle = _opened(target, path, create=create)
        try:
            if _locked(handle, path) and _is_file_of(handle, target):
                yield
                return
        finally:
            os.close(handle)
        if time.monotonic() >= deadline:
            raise ConfigurationError(
                f"The file of tokens {path} is locked by another process for "
                f"{plain_number(WAIT_SECONDS)} seconds. Let that process end, and repeat the "
                "command."
            )
        time.sleep(_PAUSE_SECONDS)


def _opened(target: Path, path: str, *, create: bool) -> int:
    try:
        return regular_file(target, os.O_RDONLY | (os.O_CREAT if create else 0))
    except OSError as error:
        verb = "written" if create else "read"
        raise ConfigurationError(
            f"The file of tokens {path} cannot be {verb}: {error.strerror}. Let this user read it "
            "and write to its directory, or name another file."
        ) from None


def _locked(handle: int, path: str) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        raise ConfigurationError(
            f"The file of tokens {path} cannot be locked: {error.strerror}. Move it to a file "
            "system with locks."
        ) from None
    return True


def _is_file_of(handle: int, target: Path) -> bool:
    """Whether the path still leads to the open file. A command before may have replaced it."""
    with suppress(FileNotFoundError):
        return os.path.samestat(os.fstat(handle), target.stat())
    return False
