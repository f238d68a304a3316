"""The log of `roost agent`: each message of drivers and libraries once an hour."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy

from roost.cli.agent_events import Events
from roost.client.agent import agent

REPEAT_SECONDS = 3600
"""A message that was printed is printed again after this time."""
REMEMBERED = 2000
"""The filter remembers at most this number of messages."""


_LIBRARIES = ("urllib3", "requests", "keystoneauth", "openstack", "stevedore", "asyncio")
"""The loggers of libraries whose details may have credentials; their warnings are logged."""


@contextmanager
def logging_to(events: Events, level: int = logging.WARNING) -> Iterator[None]:
    """Print log records of this level and above as events, until the context ends."""
    handler = _EventHandler(events, level)
    handler.addFilter(RepeatFilter())
    root = logging.getLogger()
    levels = {name: logging.getLogger(name).level for name in _LIBRARIES}
    before = root.level
    root.addHandler(handler)
    root.setLevel(min(level, logging.WARNING))
    for name in _LIBRARIES:
        logging.getLogger(name).setLevel(logging.WARNING)
    # Warnings of Python, such as those of unchecked certificates, are logged as well.
    logging.captureWarnings(True)
    try:
        yield
    finally:
        logging.captureWarnings(False)
        root.removeHandler(handler)
        root.setLevel(before)
        for name, earlier in levels.items():
            logging.getLogger(name).setLevel(earlier)


class _EventHandler(logging.Handler):
    def __init__(self, events: Events, level: int) -> None:
        super().__init__(level)
        self._events = events

    def emit(self, record: logging.LogRecord) -> None:
        if record.name.partition(".")[0] in _LIBRARIES:
            # The message says what is odd about an answer. Where a library noticed it is no news.
            record = copy(record)
            record.exc_info = record.exc_text = None
        try:
            self._events.log(record)
        except Exception:
            self.handleError(record)


class RepeatFilter(logging.Filter):
    """Drops a message that was logged within the last hour.

    A driver reads the host every minute, and logs the same warning about the same device each
    time. The agent's own messages pass: its loop limits them itself. Details pass, too: an
    operator has asked for them.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._lock = threading.Lock()
        # The time of each message, the oldest first.
        self._logged_at: dict[tuple[str, str, str], float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the record passes."""
        if record.name == agent.LOG.name or record.levelno < logging.WARNING:
            return True
        error = record.exc_info[1] if record.exc_info else None
        message = (record.name, record.getMessage(), repr(error))
        with self._lock:
            now = self._clock()
            self._forget(now - REPEAT_SECONDS)
            is_new = message not in self._logged_at
            if is_new:
                self._logged_at[message] = now
        return is_new

    def _forget(self, before: float) -> None:
        while self._logged_at:
            oldest, moment = next(iter(self._logged_at.items()))
            if moment > before and len(self._logged_at) < REMEMBERED:
                return
            del self._logged_at[oldest]
