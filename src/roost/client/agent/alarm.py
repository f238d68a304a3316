"""An alarm that a signal handler can ring."""

from __future__ import annotations

import os
import select


class Alarm:
    """Wakes whoever waits for it. `ring` may be called from a signal handler.

    A pipe, since `threading.Event.set` waits for a lock that the interrupted thread may hold.
    """

    def __init__(self) -> None:
        self._reading, self._writing = os.pipe()
        for end in (self._reading, self._writing):
            os.set_blocking(end, False)

    def ring(self) -> None:
        """Wake whoever waits, now or next time."""
        try:
            os.write(self._writing, b"!")
        except BlockingIOError:
            # It has been rung so often that it cannot be missed.
            return

    def wait(self, seconds: float) -> bool:
        """Wait until it rings, or for so long; whether it rang."""
        ready, _, _ = select.select([self._reading], [], [], max(0.0, seconds))
        if ready:
            os.read(self._reading, 65536)
        return bool(ready)

    def close(self) -> None:
        """Let go of the pipe."""
        os.close(self._reading)
        os.close(self._writing)
