"""A waker that a signal handler may call."""

from __future__ import annotations

import os
import select


class SignalWaker:
    """Ends the wait of a thread. A signal handler may call `wake`.

    The waker is a pipe: `threading.Event.set` needs a lock that the interrupted thread may hold.
    """

    def __init__(self) -> None:
        self._read_end, self._write_end = os.pipe()
        for end in (self._read_end, self._write_end):
            os.set_blocking(end, False)

    def wake(self) -> None:
        """End the wait that is under way, or else the next one."""
        try:
            os.write(self._write_end, b"!")
        except BlockingIOError:
            # The pipe is full of earlier calls: the next wait ends anyway.
            return

    def wait(self, seconds: float) -> bool:
        """Wait for a call of `wake`, at most this long; true if there was one."""
        ready, _, _ = select.select([self._read_end], [], [], max(0.0, seconds))
        if ready:
            os.read(self._read_end, 65536)
        return bool(ready)

    def close(self) -> None:
        """Close the pipe."""
        os.close(self._read_end)
        os.close(self._write_end)
