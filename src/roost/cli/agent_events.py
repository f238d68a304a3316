"""What `roost agent` prints: lines for people, or an object for each event."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime
from typing import Any, Protocol

import click

from roost.cli.terminal import echo, echo_line
from roost.client.owning.owner import Report

_FORMATTER = logging.Formatter()


class Events(Protocol):
    """Where things that happen are told."""

    def report(self, event: str, report: Report) -> None:
        """What a report changed, or would."""
        ...

    def say(self, event: str, text: str) -> None:
        """Anything else that happened."""
        ...

    def log(self, record: logging.LogRecord) -> None:
        """What drivers and libraries had to say."""
        ...


class TextEvents:
    """Changes as lines on standard output, problems on standard error."""

    def report(self, event: str, report: Report) -> None:
        """A line for each change."""
        lines = report.difference.lines()
        for line in lines:
            echo_line(line)
        for line in report.kept:
            echo_line(f"kept: {line}")
        if not lines and event != "changed":
            echo_line("nothing would change")

    def say(self, event: str, text: str) -> None:
        """The text alone: it says what happened."""
        del event
        echo(f"roost: {text}", err=True)

    def log(self, record: logging.LogRecord) -> None:
        """The message, with its traceback if it has one."""
        echo(_FORMATTER.format(record), err=True)


class JsonEvents:
    """Everything as JSON on standard output, an object in each line."""

    def report(self, event: str, report: Report) -> None:
        """All changes of a report in one object."""
        self._print(event, difference=report.difference.as_json(), kept=list(report.kept))

    def say(self, event: str, text: str) -> None:
        """The text as `message`."""
        self._print(event, message=text)

    def log(self, record: logging.LogRecord) -> None:
        """The message with its traceback if it has one, who said it, and how serious that is."""
        self._print(
            "log",
            level=record.levelname.lower(),
            logger=record.name,
            message=_FORMATTER.format(record),
        )

    def _print(self, event: str, **facts: Any) -> None:
        time = datetime.now(UTC).isoformat(timespec="seconds")
        click.echo(json.dumps({"time": time, "event": event, **facts}))
