"""The context of log lines, which oslo.log prints in brackets: request ids, user and project."""

from __future__ import annotations

from typing import Any

from oslo_context.context import RequestContext

from roost.api.requests import Request
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
    caller = request.caller
    return _LineContext(
        request_id=request.id,
        global_request_id=request.global_id,
        user_id=caller.user and printable(caller.user),
        project_id=caller.project and printable(caller.project),
    )


def identity_of(request: Request) -> str:
    """The ids, the user and the project, as the usual form of oslo.log prints them."""
    caller = request.caller
    user, project = printable(caller.user or "-"), printable(caller.project or "-")
    return f"{request.global_id} {request.id} {user} {project} - - - -"
