"""A FIFO in place of a file. A program that opens it as a file waits for ever."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from support.waiting import SECONDS_MAX


@contextmanager
def fifo_instead_of(path: Path) -> Iterator[None]:
    """Put a FIFO without a writer at the path, and end the test if it waits for a writer.

    Afterwards the file is there again.
    """
    kept = path.with_name(f"{path.name}.kept")
    path.rename(kept)
    os.mkfifo(path, 0o600)
    before = signal.signal(signal.SIGALRM, _fail)
    signal.alarm(int(SECONDS_MAX))
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
        kept.replace(path)


def _fail(*_: object) -> None:
    raise AssertionError(f"something waits for the FIFO, for {SECONDS_MAX:g} seconds")
