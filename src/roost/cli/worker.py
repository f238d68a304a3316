"""What a worker process of `roost serve` does before it answers requests."""

from __future__ import annotations

import ctypes
import signal
import sys
from typing import Any

_PR_SET_PDEATHSIG = 1


def load_application(_target: str) -> Any:
    """The WSGI application, in a process that ends when its parent does."""
    # The parent's handlers came along with the fork; until the server sets its own, a signal to
    # stop must stop.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    # A terminal sends these to everybody; the parent hears them and stops its workers in order.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGHUP})
    _end_with_parent()
    # Imported here: the parent needs none of it, and the import opens the database.
    from roost.wsgi import application  # noqa: PLC0415

    return application


def _end_with_parent() -> None:
    """A server that was killed must not leave workers behind that keep its port.

    In an orderly stop the server waits for its workers, so this never interrupts a request there.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
