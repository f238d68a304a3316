"""From an exception to the answer that the client gets, and to a line in the log."""

from __future__ import annotations

import logging

from roost.api import errors
from roost.api.errors import HttpError
from roost.api.log_context import line_context
from roost.api.requests import Request
from roost.search.turns import TooManySearches
from roost.service.errors import DomainError, ErrorCode
from roost.store.errors import (
    Busy,
    Contention,
    DatabaseAway,
    DatabaseUnusable,
    OutcomeUnknown,
    StatementFailed,
    ValueRefused,
    WriteRefused,
    meaning_of,
    reason_of,
)

_LOG = logging.getLogger(__name__)


def failure_of(request: Request, error: Exception) -> HttpError:
    """The answer to a request that raised this error. It contains no internals."""
    if isinstance(error, HttpError):
        return error
    if isinstance(error, DomainError):
        return errors.from_domain_error(error)
    context = {"context": line_context(request)}
    match meaning_of(error):
        case Contention():
            text = f"update conflict: {error}. Try again."
            answer = HttpError(409, text, ErrorCode.CONCURRENT_UPDATE)
        case TooManySearches():
            answer = HttpError(503, f"Too much is asked for at once: {error}. Try again.")
        case Busy():
            answer = HttpError(503, f"Nothing was written: {error}.")
        case OutcomeUnknown():
            _LOG.error("The outcome of a write is not known: %s", error, extra=context)
            answer = HttpError(
                503,
                "The connection to the database was lost during a commit. The write may have been "
                "carried out or not: look before you repeat it.",
            )
        case DatabaseAway() | DatabaseUnusable() | StatementFailed():
            _LOG.error("The database cannot be used: %s", reason_of(error), extra=context)
            text = f"The database cannot be used at the moment.{_what_was_written(request)}"
            answer = HttpError(503, text)
        case WriteRefused():
            _LOG.error("The database cannot write: %s", error, extra=context)
            text = f"The database cannot write at the moment.{_what_was_written(request)}"
            answer = HttpError(503, text)
        case ValueRefused():
            _LOG.warning("The database cannot store a value", exc_info=error, extra=context)
            answer = HttpError(400, "The database cannot store a value of this request.")
        case _:
            _LOG.error("The request failed", exc_info=error, extra=context)
            answer = HttpError(500, "This is a defect: please report it.")
    return answer


def _what_was_written(request: Request) -> str:
    if request.method in ("GET", "HEAD"):
        return ""
    return " The write was carried out." if request.has_written else " Nothing was written."
