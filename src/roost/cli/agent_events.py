"""The output of `roost agent`: lines of text, or a JSON object for each event."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime
from typing import Any, Protocol

import click

from roost.cli.terminal import echo, echo_line
from roost.client.ownership.declarative_reporter import Report
from roost.model.text import counted

_FORMATTER = logging.Formatter()


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
        lines = report.difference.lines()
        for line in lines:
            echo_line(line)
        for line in report.kept:
            echo_line(f"kept: {line}")
        if event == "changed":
            return
        if lines:
            echo_line(f"{counted(len(lines), 'change')} would be made", err=True)
        else:
            echo_line("nothing would change")

    def say(self, event: str, text: str) -> None:
        """Print the text, which names the event."""
        del event
        echo(f"roost: {text}", err=True)

    def log(self, record: logging.LogRecord) -> None:
        """Print the message, with its traceback; details begin with their level."""
        is_detail = record.levelno < logging.WARNING
        level = f"{record.levelname.lower()}: " if is_detail else ""
        echo(level + _FORMATTER.format(record), err=True)


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
