"""The terminal of a process: its closing sends the same signal as a wish to reload."""

from __future__ import annotations

import os


def has_terminal() -> bool:
    """Whether the process belongs to a terminal that is still there."""
    try:
        descriptor = os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY)
    except OSError:
        return False
    os.close(descriptor)
    return True
