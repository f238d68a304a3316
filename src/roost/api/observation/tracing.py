"""Spans of OpenTelemetry: one for each request, with a child for each stage.

The package `opentelemetry-api` is optional. Without it, or as long as the operator has configured
no provider of tracers, a request costs one comparison.
"""

from __future__ import annotations

import time
from math import inf
from typing import TYPE_CHECKING, Any

import roost
from roost.metrics.stage_times import STAGE_NAMES

if TYPE_CHECKING:
    from roost.api.http.requests import Request

try:
    from opentelemetry import context, propagate, trace
except ModuleNotFoundError:
    _IS_INSTALLED = False
else:
    _IS_INSTALLED = True

_HTTP_VERSION = "HTTP/"
# How long a new provider may go unnoticed.
_LOOK_SECONDS = 1.0


class RequestTrace:
    """The span of one request, current in the thread that answers."""

    def __init__(self, request: Request, tracer: Any) -> None:
        environ = request.environ
        parent = propagate.extract(environ, getter=_HEADERS)
        self._tracer = tracer
        # From readings of `perf_counter` to nanoseconds since 1970.
        self._offset = time.time_ns() - int(time.perf_counter() * 1e9)
        self._span = tracer.start_span(
            request.method,
            context=parent,
            kind=trace.SpanKind.SERVER,
            attributes=_request_attributes(request),
            start_time=self._nanoseconds(request.began),
        )
        self._context = trace.set_span_in_context(self._span, parent)
        self._token = context.attach(self._context)
        request.times.spans = []

    def leave(self) -> None:
        """Make the span no longer the current one of this thread."""
        context.detach(self._token)

    def end(self, request: Request, status: int, size: int) -> None:
        """End the span, after spans for the stages."""
        for stage, began, ended in request.times.spans or ():
            child = self._tracer.start_span(
                STAGE_NAMES[stage], context=self._context, start_time=self._nanoseconds(began)
            )
            child.end(end_time=self._nanoseconds(ended))
        span = self._span
        span.update_name(f"{request.method} {request.route}")
        span.set_attribute("http.route", request.route)
        span.set_attribute("http.response.status_code", status)
        span.set_attribute("http.response.body.size", size)
        span.set_attribute("openstack.request_id", request.id)
        span.set_attribute("openstack.api.version", request.version_text)
        if status >= 500:
            span.set_attribute("error.type", str(status))
            span.set_status(trace.Status(trace.StatusCode.ERROR))
        span.end()

    def _nanoseconds(self, moment: float) -> int:
        return int(moment * 1e9) + self._offset


class _ProviderLook:
    """When to look next whether the operator has configured a provider of tracers.

    The answer is in the environment as long as there is none, and to look there for each request
    takes more than a microsecond.
    """

    def __init__(self) -> None:
        self.due = -inf if _IS_INSTALLED else inf


LOOK = _ProviderLook()


def begin_trace(request: Request) -> RequestTrace | None:
    """The trace of a request; `None` if nothing collects traces."""
    provider = trace.get_tracer_provider()
    if isinstance(provider, _WITHOUT_SPANS):
        LOOK.due = request.began + _LOOK_SECONDS
        return None
    return RequestTrace(request, provider.get_tracer("roost", roost.__version__))


def _request_attributes(request: Request) -> dict[str, str | int]:
    """What the semantic conventions of HTTP say about a request."""
    environ = request.environ
    attributes: dict[str, str | int] = {
        "http.request.method": request.method,
        "url.path": request.prefix + request.path,
        "url.scheme": environ.get("wsgi.url_scheme", "http"),
        "server.address": environ.get("SERVER_NAME", ""),
        "client.address": environ.get("REMOTE_ADDR", ""),
    }
    port, agent = environ.get("SERVER_PORT", ""), environ.get("HTTP_USER_AGENT")
    if port.isdigit():
        attributes["server.port"] = int(port)
    if agent:
        attributes["user_agent.original"] = agent
    protocol = environ.get("SERVER_PROTOCOL", "")
    if protocol.startswith(_HTTP_VERSION):
        attributes["network.protocol.version"] = protocol.removeprefix(_HTTP_VERSION)
    if environ.get("QUERY_STRING"):
        attributes["url.query"] = environ["QUERY_STRING"]
    return attributes


if _IS_INSTALLED:
    from opentelemetry.propagators.textmap import Getter

    _WITHOUT_SPANS = (trace.ProxyTracerProvider, trace.NoOpTracerProvider)

    class _EnvironHeaders(Getter[dict[str, Any]]):
        """Reads headers from the environment of a WSGI request."""

        def get(self, carrier: dict[str, Any], key: str) -> list[str] | None:
            """The values of a header."""
            value = carrier.get("HTTP_" + key.upper().replace("-", "_"))
            return None if value is None else [value]

        def keys(self, carrier: dict[str, Any]) -> list[str]:
            """The names of all headers."""
            return [
                key.removeprefix("HTTP_").replace("_", "-").lower()
                for key in carrier
                if key.startswith("HTTP_")
            ]

    _HEADERS = _EnvironHeaders()
