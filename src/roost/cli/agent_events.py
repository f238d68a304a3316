"""The output of `roost agent`: lines of text, or a JSON object for each event."""

from __future__ import annotations

import json
import logging
import traceback
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, Protocol

import click

from roost.cli.terminal import echo, echo_line
from roost.client.ownership.declarative_reporter import Report
from roost.model.text import counted, done_or_planned, own_lines

WOULD_CHANGE = "would change"
"""The event of a dry run."""

_FORMATTER = logging.Formatter()
# How the parts of a traceback begin that Python makes; the rest is the text of an exception.
_OWN_PARTS = ("Traceback (", "  File ", "\nThe above exception", "\nDuring handling")


class Events(Protocol):
    """Prints the events of the agent."""

    def report(self, event: str, report: Report) -> None:
        """Print what a report changed, or would change."""
        ...

    def say(self, event: str, text: str) -> None:
        """Print any other event."""
        ...

    def log(self, record: logging.LogRecord) -> None:
        """Print a log record of a driver or a library."""
        ...


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
