"""The form of log lines: oslo.log's, with a short way for the line that each request writes."""

from __future__ import annotations

import logging
from typing import Any

from oslo_log.formatters import ContextFormatter

from roost.configuration.json_lines import JsonLineFormatter, shortens
from roost.model.text import own_lines, printable

# The attribute of a record with the ids, the user and the project, as the usual form prints them.
IDENTITY = "identity"

_USUAL_FORM = (
    "%(asctime)s.%(msecs)03d %(process)d %(levelname)s %(name)s "
    "[%(global_request_id)s %(request_id)s %(user_identity)s] %(instance)s%(message)s"
)
_USUAL_IDENTITY = (
    "%(user)s %(project)s %(domain)s %(system_scope)s %(user_domain)s %(project_domain)s"
)


class LineFormatter(ContextFormatter):
    """Formats a record with an identity by itself if the operator kept the usual form.

    A message is one line, whatever is in the names and texts that it tells.
    oslo.log copies the values of the context for each line, and asks for the time zone. That takes
    33 microseconds. The short way takes 2, and writes the same bytes.
    """

    def __init__(self, before: ContextFormatter, *, has_short_way: bool) -> None:
        super().__init__(
            datefmt=before.datefmt,
            project=before.project,
            version=before.version,
            config=before.conf,
        )
        self._is_usual = (
            has_short_way
            and before.datefmt is not None
            and before.conf.logging_context_format_string == _USUAL_FORM
            and before.conf.logging_user_identity_format == _USUAL_IDENTITY
        )
        # The last second that was formatted, and its text.
        self._second: tuple[int, str] = (-1, "")

    def format(self, record: logging.LogRecord) -> str:
        """The line of the record."""
        identity = record.__dict__.get(IDENTITY)
        message = printable(record.getMessage())
        if identity is None or not self._is_usual or record.exc_info:
            return self._long_form(record, message)
        return (
            f"{self._time(record)}.{int(record.msecs):03d} {record.process} {record.levelname} "
            f"{record.name} [{identity}] {message}"
        )

    def _long_form(self, record: logging.LogRecord, message: str) -> str:
        """The line as oslo.log writes it, and the lines of a traceback, each with its prefix."""
        # Some handlers read the context that oslo.log puts into the record, so it is no copy.
        record.msg, record.args = message, ()
        text: str = super().format(record)
        if not record.exc_text:
            return printable(text)
        # The head ends with a summary of the error, in which line feeds are foreign.
        head = text.removesuffix(f"\n{record.exc_text}")
        return own_lines(head, *record.exc_text.split("\n"))

    def _time(self, record: logging.LogRecord) -> str:
        second, text = self._second
        if second != int(record.created):
            text = self.formatTime(record, self.datefmt)
            self._second = int(record.created), text
        return text


def shorten_lines(handler: logging.Handler) -> None:
    """Give a handler that writes lines the short way. Others read the context from the record."""
    formatter: Any = handler.formatter
    writes_lines = isinstance(handler, logging.StreamHandler)
    if type(formatter) is ContextFormatter:
        handler.setFormatter(LineFormatter(formatter, has_short_way=writes_lines))
    elif writes_lines and shortens(formatter):
        handler.setFormatter(JsonLineFormatter(datefmt=formatter.datefmt))
