"""The signal by which the supervisor tells a worker to read its configuration again.

All threads of a worker block the signal, and one thread waits for it. So a signal that comes while
the worker starts is kept until that thread runs, and no request is interrupted.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable

RELOAD_SIGNAL = signal.SIGUSR1


def hold_reload_signal() -> None:
    """Keep the signal for later, in this thread and in all that it starts or forks."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {RELOAD_SIGNAL})


def call_at_reload_signal(reload: Callable[[], None]) -> None:
    """Let a thread call `reload` for each signal."""
    hold_reload_signal()

    def attend() -> None:
        while True:
            signal.sigwait({RELOAD_SIGNAL})
            reload()

    threading.Thread(target=attend, name="reload", daemon=True).start()
