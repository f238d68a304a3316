"""Directories for unix sockets. The path of a socket has 107 bytes at most, whatever TMPDIR is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

SHORT = "/tmp"


@contextmanager
def short_directory() -> Iterator[Path]:
    """A directory with a short path, while the context is open."""
    with TemporaryDirectory(prefix="roost-", dir=SHORT) as made:
        yield Path(made)
