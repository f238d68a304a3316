"""The context of log lines, which oslo.log prints in brackets: request ids and the caller."""

from __future__ import annotations

from typing import Any

from oslo_context.context import RequestContext

from roost.api.requests import Caller, Request
from roost.model.text import printable


class _LineContext(RequestContext):
    """The context of one log line."""

    def update_store(self) -> None:
        """Do nothing: oslo.context would make this the thread's context for later lines."""


class ThreadContext(RequestContext):
    """The request that a thread answers, as the context of all log lines of the thread.

    The values are made when a line is written. A request without log lines costs one object.
    """

    def __init__(self, request: Request) -> None:
        self._request = request

    def __getattr__(self, name: str) -> Any:
        # What oslo.log and handlers ask for, such as `request_id`.
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(line_context(self._request), name)

    def get_logging_values(self) -> dict[str, Any]:
        """The values at the time of the line."""
        values: dict[str, Any] = line_context(self._request).get_logging_values()
        return values


class _NoRequest(RequestContext):
    """The context of a thread that answers no request. It is false, so oslo.log ignores it."""

    def __init__(self) -> None:
        pass

    def __bool__(self) -> bool:
        return False


NO_REQUEST = _NoRequest()


def line_context(request: Request) -> RequestContext:
    """The context of one line about a request. Names from headers are made printable."""
    identity = identity_fields(request.caller)
    return _LineContext(
        request_id=request.id,
        global_request_id=request.global_id,
        user_id=identity["user"],
        project_id=identity["project"],
        domain_id=identity["domain"],
        system_scope=identity["system_scope"],
        user_domain_id=identity["user_domain"],
        project_domain_id=identity["project_domain"],
    )


def identity_fields(caller: Caller) -> dict[str, str | None]:
    """What lines say about a caller, by the names of oslo.log, in the order of its usual form."""
    return {
        "user": caller.user and printable(caller.user),
        "project": caller.project and printable(caller.project),
        "domain": caller.domain and printable(caller.domain),
        "system_scope": caller.system_scope and printable(caller.system_scope),
        "user_domain": caller.user_domain and printable(caller.user_domain),
        "project_domain": caller.project_domain and printable(caller.project_domain),
    }


def identity_of(request: Request) -> str:
    """The ids and the caller, as the usual form of oslo.log prints them."""
    caller = request.caller
    # One check of the whole text costs no more than two did; six take 0.8 microseconds more.
    shown = printable(
        f"{caller.user or '-'} {caller.project or '-'} {caller.domain or '-'} "
        f"{caller.system_scope or '-'} {caller.user_domain or '-'} {caller.project_domain or '-'}"
    )
    return f"{request.global_id} {request.id} {shown}"
