"""The output of `roost agent`: lines of text, or a JSON object for each event and log record."""

from __future__ import annotations

import json
import logging
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy
from datetime import UTC, datetime
from typing import Any

import click

from roost.cli.shared.terminal import echo, echo_line
from roost.client.agent import agent
from roost.client.ownership.declarative_reporter import Report
from roost.model.text import counted, done_or_planned, own_lines

WOULD_CHANGE = "would change"
"""The event of a dry run."""

_FORMATTER = logging.Formatter()
# How the parts of a traceback begin that Python makes; the rest is the text of an exception.
_OWN_PARTS = ("Traceback (", "  File ", "\nThe above exception", "\nDuring handling")

REPEAT_SECONDS = 3600
"""A message that was printed is printed again after this time."""
REMEMBERED = 2000
"""The filter remembers at most this number of messages."""

_LIBRARIES = ("urllib3", "requests", "keystoneauth", "openstack", "stevedore", "asyncio")
"""The loggers of libraries whose details may have credentials; their warnings are logged."""


class TextEvents:
    """Prints changes on standard output, and problems on standard error."""

    def report(self, event: str, report: Report) -> None:
        """Print a line for each change."""
        planned = event == WOULD_CHANGE
        lines = report.difference.lines(planned=planned)
        for line in lines:
            echo_line(line)
        for line in report.kept:
            echo_line(f"{done_or_planned('kept', planned=planned)}: {line}")
        if not planned:
            return
        if lines:
            echo_line(f"{counted(len(lines), 'change')} would be made", err=True)
        else:
            echo_line("nothing would change")

    def say(self, event: str, text: str) -> None:
        """Print the text, which names the event."""
        del event
        echo_line(f"roost: {text}", err=True)

    def log(self, record: logging.LogRecord) -> None:
        """Print the message, with its traceback; details begin with their level."""
        is_detail = record.levelno < logging.WARNING
        level = f"{record.levelname.lower()}: " if is_detail else ""
        lines = [f"{level}{record.getMessage()}", *_traceback_lines(record)]
        echo(own_lines(*lines), err=True)


def _traceback_lines(record: logging.LogRecord) -> Iterator[str]:
    """The lines of the traceback of a record; the text of an exception is one line."""
    if not record.exc_info or record.exc_info[0] is None:
        return
    for part in traceback.format_exception(*record.exc_info):
        if part.startswith(_OWN_PARTS):
            yield from part.rstrip("\n").split("\n")
        else:
            yield part.rstrip("\n")


class JsonEvents:
    """Prints all events on standard output, a JSON object in each line."""

    def report(self, event: str, report: Report) -> None:
        """Print all changes of a report in one object."""
        self._print(event, difference=report.difference.as_json(), kept=list(report.kept))

    def say(self, event: str, text: str) -> None:
        """Print the text as `message`."""
        self._print(event, message=text)

    def log(self, record: logging.LogRecord) -> None:
        """Print the message with its traceback, the logger and the level."""
        self._print(
            "log",
            level=record.levelname.lower(),
            logger=record.name,
            message=_FORMATTER.format(record),
        )

    def _print(self, event: str, **facts: Any) -> None:
        time = datetime.now(UTC).isoformat(timespec="seconds")
        click.echo(json.dumps({"time": time, "event": event, **facts}))


Events = TextEvents | JsonEvents


@contextmanager
def logging_to(events: Events, level: int = logging.WARNING) -> Iterator[None]:
    """Print log records of this level and above as events, until the context ends."""
    handler = _EventHandler(events, level)
    handler.addFilter(RepeatFilter())
    root = logging.getLogger()
    before = root.level
    root.addHandler(handler)
    root.setLevel(min(level, logging.WARNING))
    # Warnings of Python, such as those of unchecked certificates, are logged as well.
    logging.captureWarnings(True)
    try:
        yield
    finally:
        logging.captureWarnings(False)
        root.removeHandler(handler)
        root.setLevel(before)


class _EventHandler(logging.Handler):
    def __init__(self, events: Events, level: int) -> None:
        super().__init__(level)
        self._events = events

    def emit(self, record: logging.LogRecord) -> None:
        if record.name.partition(".")[0] in _LIBRARIES:
            if record.levelno < logging.WARNING:
                return
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
