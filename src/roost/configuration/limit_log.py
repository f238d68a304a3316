"""The log of limits that clients meet. However often a client meets one, the log stays short."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from roost.model.text import printable

_LOG = logging.getLogger(__name__)

# Lines about one limit, in each worker.
LINES_MAX = 10
PERIOD_SECONDS = 60.0
_LENGTH_MAX = 1000


@dataclass(slots=True)
class _Period:
    """The lines about one limit since a moment."""

    began: float
    written: int = 0
    left_out: int = 0


class LimitLog:
    """Writes the first lines about each limit in every period, and counts all further ones."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._periods: dict[str, _Period] = {}

    def warn(self, limit: str, text: str, client: str | None = None) -> None:
        """Log that a client met the limit. `limit` is a name of the service, never of a client."""
        self._write(logging.WARNING, limit, text, client)

    def inform(self, limit: str, text: str, client: str | None = None) -> None:
        """The same for what happens to honest clients, too."""
        self._write(logging.INFO, limit, text, client)

    def _write(self, level: int, limit: str, text: str, client: str | None) -> None:
        left_out = self._take(limit)
        if left_out is None:
            return
        line = printable(text[:_LENGTH_MAX])
        if left_out:
            line += f" ({left_out} lines like this were left out.)"
        _LOG.log(level, "%s: %s", printable(client or "-"), line)

    def _take(self, limit: str) -> int | None:
        """How many lines were left out before this one; `None` if this one is left out, too."""
        now = self._clock()
        with self._lock:
            period = self._periods.get(limit)
            if period is None or now - period.began >= PERIOD_SECONDS:
                left_out = 0 if period is None else period.left_out
                self._periods[limit] = _Period(now, written=1)
                return left_out
            if period.written >= LINES_MAX:
                period.left_out += 1
                return None
            period.written += 1
            return 0


# A process has one log, so all its limits share one count.
LIMIT_LOG = LimitLog()
