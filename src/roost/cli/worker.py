"""What a worker process of `roost serve` does before it answers requests."""

from __future__ import annotations

import ctypes
import signal
import sys
from typing import Any

_PR_SET_PDEATHSIG = 1

# The numbers of glibc's options, and what they are set to.
_KEEP_MEMORY = (
    (-8, 1),  # M_ARENA_MAX: threads share what was freed; they take turns anyway
    (-3, 32 * 1024 * 1024),  # M_MMAP_THRESHOLD
    (-1, 64 * 1024 * 1024),  # M_TRIM_THRESHOLD
)


def load_application(_target: str) -> Any:
    """The WSGI application, in a process that ends when its parent does."""
    # The parent's handlers came along with the fork; until the server sets its own, a signal to
    # stop must stop.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    # A terminal sends these to everybody; the parent hears them and stops its workers in order.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGHUP})
    _end_with_parent()
    _keep_memory()
    # Imported here: the parent needs none of it, and the import opens the database.
    from roost.wsgi import application  # noqa: PLC0415

    _give_back_memory()
    return application


def _keep_memory() -> None:
    """Use the memory of one answer again for the next, instead of giving it back in between.

    An answer of two megabytes has 700 pages. To get them anew for every answer costs more CPU
    than to find and to render its candidates.
    """
    libc = ctypes.CDLL(None)
    if hasattr(libc, "mallopt"):
        for option, value in _KEEP_MEMORY:
            libc.mallopt(option, value)


def _give_back_memory() -> None:
    """Once, after all providers were read, which needs more memory than keeping them."""
    libc = ctypes.CDLL(None)
    if hasattr(libc, "malloc_trim"):
        libc.malloc_trim(0)


def _end_with_parent() -> None:
    """A server that was killed must not leave workers behind that keep its port.

    In an orderly stop the server waits for its workers, so this never interrupts a request there.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
