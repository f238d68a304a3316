"""What oslo.log prints in brackets before a message: request ids, user and project."""

from __future__ import annotations

from typing import Any

from oslo_context.context import RequestContext

from roost.api.requests import Request
from roost.model.printable import printable


class _LineContext(RequestContext):
    """The context of one log line."""

    def update_store(self) -> None:
        """Leave the thread's context alone: oslo.context would keep this one for later lines."""


class ThreadContext(RequestContext):
    """The request that a thread answers; its log lines that name none carry its id.

    A line that is written makes the values. A request that logs nothing pays for one object.
    """

    def __init__(self, request: Request) -> None:
        self._request = request

    def get_logging_values(self) -> dict[str, Any]:
        """The values as they are known when the line is written."""
        values: dict[str, Any] = line_context(self._request).get_logging_values()
        return values


class _NoRequest(RequestContext):
    """The context of a thread that answers no request: oslo.log takes it for none at all."""

    def __init__(self) -> None:
        pass

    def __bool__(self) -> bool:
        return False


NO_REQUEST = _NoRequest()


def line_context(request: Request) -> RequestContext:
    """The context of one line about a request. Names come from headers, so they are spelt out."""
    context = request.context
    return _LineContext(
        request_id=request.id,
        global_request_id=request.global_id,
        user_id=context.user and printable(context.user),
        project_id=context.project and printable(context.project),
    )
