"""Keys that a person presses while a picture is shown."""

from __future__ import annotations

import os
import select
import sys
import termios
import time
import tty
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def single_keys() -> Iterator[None]:
    """Hear of each key at once, if standard input is a terminal."""
    if not sys.stdin.isatty():
        yield
        return
    before = termios.tcgetattr(sys.stdin)
    try:
        tty.setcbreak(sys.stdin)
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)


def quits_within(seconds: float) -> bool:
    """Wait for this time; return early, and true, if the person presses q."""
    deadline = time.monotonic() + seconds
    if not sys.stdin.isatty():
        time.sleep(seconds)
        return False
    while (rest := deadline - time.monotonic()) > 0:
        ready, _, _ = select.select([sys.stdin], [], [], rest)
        if ready and os.read(sys.stdin.fileno(), 1) in (b"q", b"Q", b""):
            return True
    return False
