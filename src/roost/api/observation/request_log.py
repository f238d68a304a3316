"""Requests in the log: the line that each one writes, and the context of all lines about it.

The line has the form that operators of Placement parse. oslo.log prints the context in brackets.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from oslo_context.context import RequestContext

from roost.api.http.requests import Caller, Request
from roost.api.http.responses import Response
from roost.configuration.logs import FIELDS, IDENTITY
from roost.model.text import printable

_LOG = logging.getLogger("placement.requestlog")
_MESSAGE = '%s "%s %s" status: %s len: %s microversion: %s'
# The end of the line of an answer without candidates, if an operator asks for the reason.
_REASON = " reason: %s"


class _LineContext(RequestContext):
    """The context of one log line."""

    def update_store(self) -> None:
        """Do nothing: oslo.context would make this the thread's context for later lines."""


class LogContext(RequestContext):
    """A request as the context of log lines, one line or all lines of the thread that answers it.

    The values are made when a line is written. A request without log lines costs one object.
    """

    def __init__(self, request: Request) -> None:
        self._request = request

    def __getattr__(self, name: str) -> Any:
        # What handlers ask for, such as `request_id`.
        if name.startswith("_"):
            raise AttributeError(name)
        request = self._request
        context = _line_context(_words_of(request.caller).fields)
        context.request_id, context.global_request_id = request.id, request.global_id
        return getattr(context, name)

    def get_logging_values(self) -> dict[str, Any]:
        """The values at the time of the line."""
        request = self._request
        values = _words_of(request.caller).context.copy()
        values["request_id"], values["global_request_id"] = request.id, request.global_id
        return values


def _line_context(fields: Mapping[str, str | None]) -> _LineContext:
    return _LineContext(
        user_id=fields["user"],
        project_id=fields["project"],
        domain_id=fields["domain"],
        system_scope=fields["system_scope"],
        user_domain_id=fields["user_domain"],
        project_domain_id=fields["project_domain"],
    )


class _NoRequest(RequestContext):
    """The context of a thread that answers no request. It is false, so oslo.log ignores it."""

    def __init__(self) -> None:
        pass

    def __bool__(self) -> bool:
        return False


NO_REQUEST = _NoRequest()


_CALLER_FIELDS = (
    "user",
    "project",
    "domain",
    "system_scope",
    "user_domain",
    "project_domain",
)
_KEPT_LENGTH_MAX = 1000


class _CallerWords(NamedTuple):
    """What lines say about a caller. Names from headers are printable."""

    # The fields of JSON, by the names and in the order of oslo.log.
    fields: dict[str, str | None]
    # The fields as the usual form of oslo.log prints them.
    text: str
    # The context of oslo.log, but for the ids of the request.
    context: dict[str, Any]


def _words_of(caller: Caller) -> _CallerWords:
    names = (
        caller.user,
        caller.project,
        caller.domain,
        caller.system_scope,
        caller.user_domain,
        caller.project_domain,
    )
    # Headers may have 64 KiB. Long ones are not worth the memory.
    is_short = sum(len(name) for name in names if name) <= _KEPT_LENGTH_MAX
    return _kept_words(*names) if is_short else _words(*names)


def _words(*names: str | None) -> _CallerWords:
    fields = {
        field: name and printable(name) for field, name in zip(_CALLER_FIELDS, names, strict=True)
    }
    text = " ".join(value or "-" for value in fields.values())
    return _CallerWords(fields, text, _line_context(fields).get_logging_values())


# oslo.context takes 12 microseconds for a context and its values.
_kept_words = lru_cache(maxsize=256)(_words)


def log_request(request: Request, response: Response, size: int, seconds: float) -> None:
    """Write one line about the request. A probe that succeeds gets none, unless for debugging."""
    level = logging.DEBUG if request.is_probe and response.status < 400 else logging.INFO
    if not _LOG.isEnabledFor(level):
        return
    environ = request.environ
    query = environ.get("QUERY_STRING")
    path = request.quoted_path
    arguments = (
        environ.get("REMOTE_ADDR", "-"),
        request.method,
        f"{path}?{printable(query)}" if query else path,
        response.status,
        size,
        request.version_text,
    )
    fields = RequestFields(request, path, response.status, size, seconds)
    record = _record(arguments, request, fields)
    if request.reason is not None:
        record.msg, record.args = _MESSAGE + _REASON, (*arguments, request.reason)
    if level != logging.INFO:
        record.levelno, record.levelname = level, logging.getLevelName(level)
    _LOG.handle(record)


class RequestFields(NamedTuple):
    """What a line says about a request, as fields of JSON."""

    request: Request
    path: str
    status: int
    size: int
    seconds: float

    def copy(self) -> dict[str, Any]:
        """The fields as plain values."""
        request = self.request
        environ = request.environ
        return {
            "request_id": request.id,
            "global_request_id": request.global_id,
            **_words_of(request.caller).fields,
            "remote": environ.get("REMOTE_ADDR"),
            "method": request.method,
            "path": self.path,
            "query": printable(environ.get("QUERY_STRING") or ""),
            "route": request.route,
            "version": request.version_text,
            "status": self.status,
            "bytes": self.size,
            "duration": round(self.seconds, 6),
            "stages": request.times.by_name(),
            **({} if request.reason is None else {"reason": request.reason}),
        }


def _record(
    arguments: tuple[Any, ...], request: Request, fields: RequestFields
) -> logging.LogRecord:
    """The record of a request: a copy of the first one, with all that differs.

    `Logger.info` takes 5 microseconds more, because it looks for its caller.
    """
    record = logging.LogRecord.__new__(logging.LogRecord)
    now = time.time()
    thread = threading.current_thread()
    # To copy and change takes a third of the time of `{**_FIRST, ...}`.
    record.__dict__ = values = _FIRST.copy()
    values["args"] = arguments
    values["created"] = now
    values["msecs"] = now % 1 * 1000 // 1
    values["relativeCreated"] = (now - _LOADED) * 1000
    values["thread"] = thread.ident
    values["threadName"] = thread.name
    values["process"] = os.getpid()
    # For handlers and forms that the operator chose.
    values["context"] = LogContext(request)
    values[IDENTITY] = f"{request.global_id} {request.id} {_words_of(request.caller).text}"
    values[FIELDS] = fields
    return record


_FIRST = vars(
    _LOG.makeRecord(
        _LOG.name,
        logging.INFO,
        __file__,
        log_request.__code__.co_firstlineno,
        _MESSAGE,
        (),
        None,
        log_request.__name__,
    )
)
# When logging was loaded, from which it counts `relativeCreated`.
_LOADED = _FIRST["created"] - _FIRST["relativeCreated"] / 1000
