"""SIGHUP: a wish of an operator, or the end of the terminal of an interactive process."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager


class ControllingTerminal:
    """The terminal that a process belongs to at its start, if there is one.

    The closing of a terminal sends SIGHUP, and so do `systemctl reload` and `kill -HUP`. A service
    has no terminal. With nohup the signal is ignored at the start: such a process outlives its
    terminal.
    """

    def __init__(self) -> None:
        is_detached = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
        self._ends_process = _has_terminal() and not is_detached

    def was_closed(self) -> bool:
        """Whether the terminal is gone, so that its process shall end. Fit for signal handlers."""
        return self._ends_process and not _has_terminal()


@contextmanager
def keeping_hangups() -> Iterator[None]:
    """Keep SIGHUP until the process can obey it. By default it would end the process."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGHUP})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def obey_hangups() -> None:
    """Let SIGHUP through, also one that came during the start."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGHUP})


def _has_terminal() -> bool:
    try:
        descriptor = os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY)
    except OSError:
        return False
    os.close(descriptor)
    return True
