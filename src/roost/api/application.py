"""The WSGI application: what every request passes, in this order.

Request id, CORS, authentication, microversion, sanity of the body's headers, route, and then
the route's own checks: version, media types, policy. A step that fails hides all later ones.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

from sqlalchemy.exc import DataError, OperationalError

from roost.api import errors
from roost.api.accept import quality
from roost.api.answer_cache import AnswerCache
from roost.api.authentication import Unauthorized, strategy
from roost.api.cors import Cors
from roost.api.errors import HttpError
from roost.api.log_context import NO_REQUEST, ThreadContext, line_context
from roost.api.microversions import (
    HEADER,
    MAX_VERSION,
    MIN_VERSION,
    SERVICE_TYPE,
    InvalidVersion,
    UnacceptableVersion,
    negotiate,
)
from roost.api.policy import Policy
from roost.api.proxy_headers import apply_proxy_headers
from roost.api.requests import Request, is_length
from roost.api.responses import Response
from roost.api.routes import ROUTES, Match, Route, Router
from roost.configuration.settings import Settings
from roost.model.printable import printable
from roost.replica.housekeeping import Housekeeping
from roost.replica.replica import Replica
from roost.search.turns import TooManySearches
from roost.service.errors import DomainError, ErrorCode
from roost.store.database import Database
from roost.store.errors import (
    Busy,
    Contention,
    DatabaseAway,
    DatabaseUnusable,
    OutcomeUnknown,
    WriteRefused,
    reason_of,
)

StartResponse = Callable[[str, list[tuple[str, str]]], Any]

_LOG = logging.getLogger(__name__)
_REQUEST_LOG = logging.getLogger("placement.requestlog")
# Clients that are told to come again find the service within a second of its database.
_RETRY_SECONDS = "1"
_REASONS = {status.value: f"{status.value} {status.phrase}" for status in HTTPStatus}


class Application:
    """The service as a WSGI callable."""

    def __init__(self, settings: Settings, database: Database) -> None:
        self._settings = settings
        self._database = database
        self._replica = Replica(database)
        self._housekeeping: Housekeeping | None = None
        self._answers = AnswerCache()
        self._authenticate = strategy(settings.auth_strategy)
        self._policy = Policy(settings.oslo)
        self._cors = Cors(settings.cors) if settings.cors else None
        self._router = Router(ROUTES)

    def prepare(self) -> None:
        """Do ahead what the first request would otherwise wait for: read all providers."""
        self._replica.tidy()

    def keep_house(self) -> None:
        """Let a thread look after the journal, in each process that answers requests."""
        self._housekeeping = Housekeeping(self._database, self._replica)

    def close(self) -> None:
        """Stop the housekeeping, and give all connections back."""
        if self._housekeeping is not None:
            self._housekeeping.close()
        self._database.close()

    def __call__(self, environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
        """Answer one request."""
        if self._housekeeping is not None:
            self._housekeeping.ensure()
        if self._settings.parse_proxy_headers:
            apply_proxy_headers(environ)
        request = Request(environ, self._database, self._settings, self._replica, self._answers)
        ThreadContext(request).update_store()
        try:
            return self._respond(request, start_response)
        finally:
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
        if response.stream is None:
            response.headers.append(("content-length", str(len(response.body))))
        response.headers.append(("x-openstack-request-id", request.id))
        _log_request(request, response)
        start_response(_REASONS[response.status], response.headers)
        if response.stream is not None:
            return _pieces(request, response.stream)
        return [response.body] if request.method != "HEAD" else []

    def _answer(self, request: Request) -> Response:
        """The response to anything but a preflight."""
        try:
            if request.path not in ("", "/"):
                request.context = self._authenticate(request)
        except Unauthorized as error:
            return _error_response(request, HttpError(401, str(error)))
        try:
            request.version = negotiate(request.header(HEADER))
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
        response = self._answer_version(request)
        response.headers += [
            (HEADER, f"{SERVICE_TYPE} {request.version}"),
            ("vary", HEADER),
        ]
        return response

    def _answer_version(self, request: Request) -> Response:
        """The response to a request whose sender and version are known."""
        try:
            return self._dispatch(request)
        except Exception as error:
            return _error_response(request, _http_error(request, error))

    def _dispatch(self, request: Request) -> Response:
        _check_body_headers(request)
        path = _decoded_path(request)
        match = self._router.find(path)
        if match is None:
            raise HttpError(404)
        request.parameters = match.parameters
        route = _route(request, match)
        if route.media_first:
            _check_media_types(request, route)
        if not route.since <= request.version <= route.until:
            if route.unknown_status == 405:
                raise errors.method_not_allowed(request.method, allow=None)
            raise HttpError(route.unknown_status)
        _check_media_types(request, route)
        if route.rule is not None:
            target = (
                request.context.project
                if route.target_project is None
                else route.target_project(request)
            )
            self._policy.authorize(route.rule, request.context, target)
        return route.handler(request)


def _pieces(request: Request, stream: Iterator[bytes]) -> Iterator[bytes]:
    """The pieces of an answer. An error among them is logged here, and the server cuts it off."""
    try:
        yield from stream
    except Exception as error:
        _http_error(request, error)
        raise


def _http_error(request: Request, error: Exception) -> HttpError:
    """What the client is told about anything that was raised; no internals are among it."""
    if isinstance(error, HttpError):
        return error
    if isinstance(error, DomainError):
        return errors.from_domain_error(error)
    context = {"context": line_context(request)}
    match error:
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
        case DatabaseAway() | DatabaseUnusable() | OperationalError():
            _LOG.error("The database cannot be used: %s", reason_of(error), extra=context)
            text = f"The database cannot be used at the moment.{_what_was_written(request)}"
            answer = HttpError(503, text)
        case WriteRefused():
            _LOG.error("The database cannot write: %s", error, extra=context)
            text = f"The database cannot write at the moment.{_what_was_written(request)}"
            answer = HttpError(503, text)
        case DataError():
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


def _decoded_path(request: Request) -> str:
    try:
        path = request.path.encode("latin-1").decode("utf-8")
    except UnicodeDecodeError:
        raise HttpError(400, "The path is not UTF-8.") from None
    if "\0" in path:
        raise HttpError(400, "The path contains a NUL character.")
    return path


def _check_body_headers(request: Request) -> None:
    length = request.environ.get("CONTENT_LENGTH") or ""
    if length and not is_length(length):
        raise HttpError(400, f"content-length header must be an integer. Got: {length[:40]}")
    if length and int(length) > 0 and not request.environ.get("CONTENT_TYPE"):
        raise HttpError(400, "content-type header required when content-length > 0")


def _route(request: Request, match: Match) -> Route:
    """The route for the method: the one that knows the version, else the first."""
    routes = [route for route in match.routes if route.method == request.method]
    if not routes:
        raise errors.method_not_allowed(
            request.method,
            match.allow,
            "The method specified is not allowed for this resource.",
        )
    fitting = (route for route in routes if route.since <= request.version <= route.until)
    return next(fitting, routes[0])


def _check_media_types(request: Request, route: Route) -> None:
    if route.gives_json and not quality(request.header("accept"), "application/json"):
        raise errors.not_acceptable(request.header("accept"), "Only application/json is provided")
    if route.takes_json and request.content_type != "application/json":
        raise errors.unsupported_media_type(
            request.environ.get("CONTENT_TYPE") or "",
            f"The media type {request.content_type} is not supported, use application/json",
        )


def _error_response(request: Request, error: HttpError) -> Response:
    content_type, body = errors.render(
        error, request.header("accept"), request.id, with_code=request.at_least(1, 23)
    )
    if request.method == "HEAD":
        content_type, body = "text/html; charset=UTF-8", b""
    headers = [("content-type", content_type), *error.headers]
    if error.status == 503:
        headers.append(("retry-after", _RETRY_SECONDS))
    return Response(error.status, body, headers)


def _log_request(request: Request, response: Response) -> None:
    """One line a request, in the form that operators of Placement already parse."""
    if not _REQUEST_LOG.isEnabledFor(logging.INFO):
        return
    environ = request.environ
    query = printable(f"?{environ['QUERY_STRING']}") if environ.get("QUERY_STRING") else ""
    version = next((value for name, value in response.headers if name == HEADER), None)
    _REQUEST_LOG.info(
        '%s "%s %s" status: %s len: %s microversion: %s',
        environ.get("REMOTE_ADDR", "-"),
        request.method,
        # As it came: a line feed in the path must not become one in the log.
        request.prefix + quote(request.path.encode("latin-1"), safe="/:@!$&'()*+,;=~") + query,
        response.status,
        "-" if response.stream is not None else len(response.body),
        version.split()[-1] if version else "-",
        extra={"context": line_context(request)},
    )
