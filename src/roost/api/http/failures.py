"""From an exception to the answer that the client gets, and to a line in the log."""

from __future__ import annotations

import logging

from roost.api.http import errors
from roost.api.http.errors import HttpError, OverLimit
from roost.api.http.requests import Request
from roost.api.observation.request_log import LogContext
from roost.configuration.limit_log import LIMIT_LOG
from roost.metrics.catalogue import CONFLICTS, DATABASE_FAILURES
from roost.replica.replica import ForestLate
from roost.service.errors import Conflict, ConflictCause, DomainError, ErrorCode
from roost.store.connections.errors import (
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
from roost.turns import SearchTooLong, TooManySearches

_LOG = logging.getLogger(__name__)

# How much of a query a line about a limit has.
_QUERY_LENGTH_MAX = 500


def failure_of(request: Request, error: Exception) -> HttpError:
    """The answer to a request that raised this error. It contains no internals."""
    answer = _answer_to(request, error)
    if isinstance(answer, OverLimit):
        _tell_limit(request, answer)
    return answer


def _answer_to(request: Request, error: Exception) -> HttpError:
    match error:
        case HttpError():
            return error
        case DomainError():
            if isinstance(error, Conflict):
                CONFLICTS.count((error.cause,))
            return errors.from_domain_error(error)
        case TooManySearches():
            text = f"Too much is asked for at once: {error}. Try again."
            return OverLimit(503, text, "searches")
        case ForestLate():
            text = (
                f"The request has waited too long: {error} ([roost]search_wait_seconds). Try again."
            )
            return OverLimit(503, text, "search_wait_seconds")
        case SearchTooLong():
            # The same question would take as long again.
            text = (
                f"The search took {error} ([roost]max_search_seconds). Ask for less, with a limit, "
                "fewer groups or an aggregate, or raise the option."
            )
            return OverLimit(503, text, "max_search_seconds", may_pass=False)
    return _answer_of_store(request, error)


def _answer_of_store(request: Request, error: Exception) -> HttpError:
    """The answer to an error of the database, or to a defect."""
    context = {"context": LogContext(request)}
    match meaning_of(error):
        case Contention():
            CONFLICTS.count((ConflictCause.CONTENTION,))
            text = f"update conflict: {error}. Try again."
            answer = HttpError(409, text, ErrorCode.CONCURRENT_UPDATE)
        case Busy():
            DATABASE_FAILURES.count(("busy",))
            answer = HttpError(503, f"Nothing was written: {error}.")
        case OutcomeUnknown(lost=lost):
            DATABASE_FAILURES.count(("outcome_unknown",))
            _LOG.error("The outcome of a write is not known: %s", error, extra=context)
            answer = HttpError(503, _open_outcome(lost))
        case DatabaseAway() | DatabaseUnusable() | StatementFailed():
            DATABASE_FAILURES.count(("away",))
            _LOG.error("The database cannot be used: %s", reason_of(error), extra=context)
            text = f"The database cannot be used at the moment.{_what_was_written(request)}"
            answer = HttpError(503, text)
        case WriteRefused():
            DATABASE_FAILURES.count(("write_refused",))
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


def _open_outcome(lost: bool) -> str:
    cause = "The connection to the database was lost" if lost else "The database failed"
    return (
        f"{cause} during a commit. The write may have been carried out or not: look before you "
        "repeat it."
    )


def _tell_limit(request: Request, error: OverLimit) -> None:
    """Log which client met which limit, and with which request."""
    environ = request.environ
    query = environ.get("QUERY_STRING", "")[:_QUERY_LENGTH_MAX]
    LIMIT_LOG.warn(
        error.limit,
        f"{error.status} {error.text} Request: {request.method} {request.path[:100]}?{query}",
        environ.get("REMOTE_ADDR"),
    )


def _what_was_written(request: Request) -> str:
    if request.method in ("GET", "HEAD"):
        return ""
    return " The write was carried out." if request.has_written else " Nothing was written."
