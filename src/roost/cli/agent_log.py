"""The log of `roost agent`: what drivers and libraries say, but not every minute again."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from roost.cli.agent_events import Events
from roost.client.agent import agent

REPEAT_SECONDS = 3600
"""How long it is not worth a line that something is still so."""
REMEMBERED = 2000
"""How many different messages are remembered."""


@contextmanager
def logging_to(events: Events) -> Iterator[None]:
    """Have warnings and errors that are logged told as events, for a while."""
    handler = _EventHandler(events)
    handler.addFilter(RepeatFilter())
    root = logging.getLogger()
    root.addHandler(handler)
    # What Python warns of, such as certificates that are not checked, is logged as well.
    logging.captureWarnings(True)
    try:
        yield
    finally:
        logging.captureWarnings(False)
        root.removeHandler(handler)


class _EventHandler(logging.Handler):
    def __init__(self, events: Events) -> None:
        super().__init__(logging.WARNING)
        self._events = events

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._events.log(record)
        except Exception:
            self.handleError(record)


class RepeatFilter(logging.Filter):
    """Lets the same be said again only after a while.

    A driver looks at the host every minute, and has the same to say of the same odd device each
    time. The loop of the agent knows by itself when to say something again.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._lock = threading.Lock()
        # By when it was said last, the oldest first.
        self._said: dict[tuple[str, str, str], float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the record is news."""
        if record.name == agent.LOG.name:
            return True
        error = record.exc_info[1] if record.exc_info else None
        message = (record.name, record.getMessage(), repr(error))
        with self._lock:
            now = self._clock()
            self._forget(now - REPEAT_SECONDS)
            is_news = message not in self._said
            if is_news:
                self._said[message] = now
        return is_news

    def _forget(self, before: float) -> None:
        while self._said:
            oldest, moment = next(iter(self._said.items()))
            if moment > before and len(self._said) < REMEMBERED:
                return
            del self._said[oldest]
