"""The WSGI application: the steps that every request passes, in this order.

Request id, CORS, authentication, microversion, host, headers of the body, route, and then the
checks of the route: version, media types, policy. A step that fails ends the request.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from http import HTTPStatus
from time import perf_counter
from typing import Any

from roost.api.authentication import IdentityUnavailable, Unauthorized, make_strategy
from roost.api.http import errors
from roost.api.http.accept import quality
from roost.api.http.cors import Cors
from roost.api.http.errors import HttpError
from roost.api.http.failures import failure_of
from roost.api.http.microversions import (
    HEADER,
    HISTORY,
    MAX_VERSION,
    MIN_VERSION,
    SERVICE_TYPE,
    InvalidVersion,
    UnacceptableVersion,
    negotiate,
)
from roost.api.http.proxy_headers import OUTSIDE, apply_proxy_headers, is_host, mount
from roost.api.http.requests import Request, is_length
from roost.api.http.responses import Response
from roost.api.observation.observation import OPEN_VERSION, ObservedStream
from roost.api.observation.query_counting import QueryCounting, named_queries
from roost.api.observation.request_log import NO_REQUEST, LogContext
from roost.api.policy.policy import Policy
from roost.api.routes import ROUTES
from roost.api.routing import Match, Route, Router
from roost.api.services import Services
from roost.configuration.settings import Settings
from roost.metrics.counting import TALLY
from roost.metrics.stage_times import Stage
from roost.replica.housekeeping import ChoreThread, Housekeeping
from roost.store.database import Database

StartResponse = Callable[[str, list[tuple[str, str]]], Any]

# The service answers again within a second after its database does.
_RETRY_SECONDS = "1"
_VERSION_TEXTS = {version: str(version) for version, _ in HISTORY}
# The headers of each answer to a request with a version.
_VERSION_HEADERS = {
    version: ((HEADER, f"{SERVICE_TYPE} {text}"), ("vary", HEADER))
    for version, text in _VERSION_TEXTS.items()
}
# What nearly all clients accept.
_USUAL_ACCEPT = frozenset({None, "", "*/*", "application/json"})
_REASONS = {status.value: f"{status.value} {status.phrase}" for status in HTTPStatus}


class Application:
    """The service as a WSGI callable. Several in one process may share a policy."""

    def __init__(
        self, settings: Settings, database: Database, policy: Policy | None = None
    ) -> None:
        self._settings = settings
        self._services = Services.on(settings, database)
        self._observation = self._services.observation
        # Processes that this one forks share the memory of its metrics.
        TALLY.open()
        self._threads: tuple[ChoreThread, ...] = ()
        self._counting = QueryCounting(self._services, named_queries(settings))
        self._authenticate = make_strategy(settings)
        self._policy = Policy(settings.oslo) if policy is None else policy
        self._cors = Cors(settings.cors) if settings.cors else None
        self._router = Router(ROUTES)
        self._prefix = settings.network.prefix
        # Clients need no token for these.
        self._open_router = Router([route for route in ROUTES if route.rule is None])

    def prepare(self) -> None:
        """Read all providers, so that the first request does not wait for that."""
        self._services.replica.tidy()

    def start_housekeeping(self) -> None:
        """Start the threads for regular work; each process that answers requests has them."""
        services = self._services
        self._threads = (
            Housekeeping(services.database, services.replica, services.sample),
            self._counting,
        )

    def prepare_reload(self, settings: Settings) -> Callable[[], None]:
        """Read the policy and queries that these settings name; the result puts them into force."""
        policy, queries = Policy(settings.oslo), named_queries(settings)

        def commit() -> None:
            self._policy = policy
            self._counting.replace(queries)

        return commit

    def close(self) -> None:
        """Stop all threads, and close all connections."""
        for thread in self._threads:
            thread.close()
        self._services.database.close()

    def __call__(self, environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
        """Answer one request."""
        TALLY.ensure()
        for thread in self._threads:
            thread.ensure()
        if self._prefix:
            mount(environ, self._prefix)
        if self._settings.parse_proxy_headers:
            apply_proxy_headers(environ, self._settings.network.trusted_proxies)
        request = Request(environ, self._settings.limits)
        LogContext(request).update_store()
        self._observation.begin(request)
        try:
            return self._respond(request, start_response)
        finally:
            if request.trace is not None:
                request.trace.leave()
            NO_REQUEST.update_store()

    def _respond(self, request: Request, start_response: StartResponse) -> Iterable[bytes]:
        request.receive()
        if self._cors is None:
            response = self._answer(request)
        elif request.method == "OPTIONS":
            response = self._cors.preflight(request)
        else:
            response = self._answer(request)
            self._cors.mark(request, response)
        # The length in a 304 would be that of the content which the client has.
        if response.stream is None and response.status != 304:
            response.headers.append(("content-length", str(len(response.body))))
        response.headers.append(("x-openstack-request-id", request.id))
        if response.stream is None or response.waits:
            size = len(response.body)
            self._observation.end(request, response, size, perf_counter() - request.began)
        start_response(_REASONS[response.status], response.headers)
        if response.stream is not None:
            pieces = _pieces(request, response.stream)
            if response.waits:
                return pieces
            return ObservedStream(self._observation, request, response, pieces)
        return [response.body] if request.method != "HEAD" else []

    def _answer(self, request: Request) -> Response:
        """The response to any request but a preflight."""
        if self._prefix and OUTSIDE in request.environ:
            text = f"The service is at {self._prefix} ([roost]prefix). Put that before the path."
            return _error_response(request, HttpError(404, text))
        try:
            if self._open_router.find(request.path) is None:
                began = perf_counter()
                try:
                    request.caller = self._authenticate(request)
                finally:
                    # A refusal may have waited for Keystone, too.
                    request.times.end(Stage.AUTHENTICATION, began)
        except Unauthorized as error:
            return _unauthorized_response(request, error)
        except IdentityUnavailable:
            # The log says why. It names addresses and accounts, which are no matter of clients.
            text = "The identity service cannot check the token at the moment."
            return _error_response(request, HttpError(503, text))
        try:
            request.version = negotiate(request.header(HEADER))
            request.version_text = _VERSION_TEXTS[request.version]
        except InvalidVersion as error:
            text = f"Invalid microversion: invalid version string: {error}"
            return _error_response(request, HttpError(400, text))
        except UnacceptableVersion as error:
            refusal = errors.not_acceptable(
                request.header("accept"),
                f"Invalid microversion: Unacceptable version header: {error}",
                max_version=str(MAX_VERSION),
                min_version=str(MIN_VERSION),
            )
            return _error_response(request, refusal)
        try:
            response = self._dispatch(request)
        except Exception as error:
            response = _error_response(request, failure_of(request, error))
        response.headers += _VERSION_HEADERS[request.version]
        return response

    def _dispatch(self, request: Request) -> Response:
        """The response to a request whose caller and version are known."""
        _check_headers(request.environ)
        match = self._router.find(_decoded_path(request))
        if match is None:
            raise HttpError(404)
        request.parameters = match.parameters
        request.route = match.path
        route = _route(request, match)
        request.is_probe = route.is_probe
        if route.media_first:
            _check_media_types(request, route)
        if not route.since <= request.version <= route.until:
            if route.unknown_status == 405:
                raise errors.method_not_allowed(request.method, allow=None)
            raise HttpError(route.unknown_status)
        _check_media_types(request, route)
        if route.rule is not None:
            target = (
                request.caller.project
                if route.target_project is None
                else route.target_project(request)
            )
            self._policy.authorize(route.rule, request.caller, target)
            request.version_label = request.version_text
        else:
            request.version_label = OPEN_VERSION
        return route.handler(self._services, request)


def _pieces(request: Request, stream: Iterator[bytes]) -> Iterator[bytes]:
    """The pieces of an answer. After an error, logged here, the server cuts the answer off."""
    try:
        yield from stream
    except Exception as error:
        failure_of(request, error)
        raise
    finally:
        close = getattr(stream, "close", None)
        if close is not None:
            close()


def _decoded_path(request: Request) -> str:
    path = request.path
    if not path.isascii():
        try:
            path = path.encode("latin-1").decode("utf-8")
        except UnicodeDecodeError:
            raise HttpError(400, "The path is not UTF-8.") from None
    if "\0" in path:
        raise HttpError(400, "The path contains a NUL character.")
    return path


def _check_headers(environ: Mapping[str, Any]) -> None:
    """400 unless the host can be a part of links, and the headers of the body fit each other."""
    if not is_host(environ.get("HTTP_HOST", "")):
        raise HttpError(
            400, "The Host header is no host name or address with an optional port. Correct it."
        )
    length = environ.get("CONTENT_LENGTH")
    if not length:
        return
    if not is_length(length):
        raise HttpError(400, f"content-length header must be an integer. Got: {length[:40]}")
    if int(length) > 0 and not environ.get("CONTENT_TYPE"):
        raise HttpError(400, "content-type header required when content-length > 0")


def _route(request: Request, match: Match) -> Route:
    """The route for the method: the one of this version, else the first."""
    routes = match.by_method.get(request.method)
    if routes is None:
        raise errors.method_not_allowed(
            request.method,
            match.allow,
            "The method specified is not allowed for this resource.",
        )
    for route in routes:
        if route.since <= request.version <= route.until:
            return route
    return routes[0]


def _check_media_types(request: Request, route: Route) -> None:
    if route.gives_json:
        accept = request.header("accept")
        if accept not in _USUAL_ACCEPT and not any(
            quality(accept, media_type) for media_type in route.media_types
        ):
            provided = " and ".join(route.media_types)
            verb = "is" if len(route.media_types) == 1 else "are"
            raise errors.not_acceptable(accept, f"Only {provided} {verb} provided")
    if route.takes_json and request.content_type != "application/json":
        raise errors.unsupported_media_type(
            request.environ.get("CONTENT_TYPE") or "",
            f"The media type {request.content_type} is not supported, use application/json",
        )


def _unauthorized_response(request: Request, refusal: Unauthorized) -> Response:
    challenge = refusal.challenge
    headers = (("www-authenticate", challenge),) if challenge is not None else ()
    if refusal.body is None:
        return _error_response(request, HttpError(401, str(refusal), headers=headers))
    return Response(401, refusal.body, [("content-type", "application/json"), *headers])


def _error_response(request: Request, error: HttpError) -> Response:
    content_type, body = errors.render(
        error,
        # Errors of our routes are JSON, whatever a client prefers.
        None if request.is_extension else request.header("accept"),
        request.id,
        with_code=request.at_least(1, 23) or request.is_extension,
    )
    if request.method == "HEAD":
        content_type, body = "text/html; charset=UTF-8", b""
    headers = [("content-type", content_type), *error.headers]
    if error.status == 503 and error.may_pass:
        headers.append(("retry-after", _RETRY_SECONDS))
    return Response(error.status, body, headers)
