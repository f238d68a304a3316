"""The gateway of `roost ui`: files of the pages, and requests that it sends on to one server.

It is no open proxy. Requests need the key that the command prints, go to one server only, and only
to paths of the API. The token of that server never reaches the browser.
"""

from __future__ import annotations

import hmac
import json
import re
import threading
import time
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any
from urllib.parse import SplitResult, parse_qsl, unquote, urlencode, urlsplit

from roost.cli.ui.stand_in import CANDIDATES, TREES, tree_answer
from roost.client.errors import NoSuchProvider, PlacementError
from roost.client.placement.placement import Administration
from roost.client.transport import PlacementRequest, PlacementResponse, Transport
from roost.web.files import PAGES, SECURITY_HEADERS, WebFile, page, static_files

# The first parts of all paths that are sent on.
_API = {
    "resource_providers",
    "resource_classes",
    "traits",
    "allocations",
    "allocation_candidates",
    "usages",
    "reshaper",
    "roost",
    "readyz",
    "healthz",
}
_METHODS = frozenset({"GET", "PUT", "POST", "DELETE"})
# No second slash changes where a path leads.
_PATH = re.compile(r"/(?!/)(?!.*//)[\w\-./:@,~%!$&'()*+;=]*")
_DOTS = frozenset({".", ".."})
_EVENTS = "text/event-stream"
_JSON = "application/json"
_PASSED = ("content-type", "openstack-api-version", "x-openstack-request-id")
STREAMS_MAX = 16
_WAIT_SECONDS = 15
# A server that cannot let a request wait answers at once.
_PAUSE_SECONDS = 0.5
_VERSION_MAX = (1, 39)


class EventStream:
    """The events for one window. `close` frees its place, even if no event was taken."""

    def __init__(self, events: Generator[bytes], leave: Callable[[], None]) -> None:
        self._events = events
        self._leave: Callable[[], None] | None = leave

    def __iter__(self) -> EventStream:
        return self

    def __next__(self) -> bytes:
        return next(self._events)

    def close(self) -> None:
        """End the stream; a second end does nothing."""
        self._events.close()
        leave, self._leave = self._leave, None
        if leave is not None:
            leave()


@dataclass(frozen=True, slots=True)
class GatewayAnswer:
    """What the browser gets. A stream has pieces in place of a body."""

    status: int
    headers: list[tuple[str, str]] = field(default_factory=list)
    body: bytes = b""
    # The server closes it.
    stream: EventStream | None = None


class Gateway:
    """Answers browsers on behalf of one placement server."""

    def __init__(
        self, transport: Transport, key: str, rest: Callable[[float], None] = time.sleep
    ) -> None:
        self._transport = transport
        self._key = key
        self._rest = rest
        self._streams = threading.BoundedSemaphore(STREAMS_MAX)
        self._version: str | None = None

    def knows(self, headers: Mapping[str, str]) -> bool:
        """Whether a request has the key; names of headers are lower case."""
        given = headers.get("x-auth-token", "")
        return hmac.compare_digest(given.encode(), self._key.encode())

    def answer(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes
    ) -> GatewayAnswer:
        """The answer to a request; names of headers are lower case."""
        split = _own_path(target)
        if split is None:
            return refusal(404, "This path is none of the API.")
        first = split.path.split("/")[1]
        if method == "GET" and first in ("", "ui"):
            return _file(split.path)
        if method not in _METHODS or first not in _API:
            return refusal(404, f"{method[:20]} {split.path[:80]} is no request of the API.")
        if not self.knows(headers):
            return without_key()
        if split.path == "/roost/changes" and _EVENTS in headers.get("accept", ""):
            return self._events(dict(parse_qsl(split.query)))
        return self._sent_on(method, split.path, split.query, body)

    # Requests.

    def _sent_on(self, method: str, path: str, query: str, body: bytes) -> GatewayAnswer:
        try:
            content = json.loads(body) if body else None
        except ValueError:
            return refusal(400, "The body is no JSON.")
        try:
            answer = self._send(method, f"{path}?{query}" if query else path, content)
            if method == "GET" and _is_not_offered(path, answer):
                return self._stood_in(path, query)
        except NoSuchProvider as error:
            return refusal(404, str(error), "roost.no_such_provider")
        except PlacementError as error:
            return refusal(502, f"The placement server cannot be asked: {error}")
        if answer.status == HTTPStatus.UNAUTHORIZED:
            # The browser would take it for a refusal of the key.
            return refusal(
                502, "The placement server refuses the token of `roost ui`. Start it anew."
            )
        return _passed(answer)

    def _send(self, method: str, path: str, content: Any = None) -> PlacementResponse:
        return self._transport.send(
            PlacementRequest(
                method, path, content, self._newest_version(), repeatable=method == "GET"
            )
        )

    def _newest_version(self) -> str:
        """The newest version that the pages and the server know."""
        if self._version is None:
            answer = self._transport.send(PlacementRequest("GET", "/", repeatable=True))
            try:
                text = str(answer.json["versions"][0]["max_version"])
                newest = min(_VERSION_MAX, tuple(map(int, text.split("."))))
            except (PlacementError, LookupError, TypeError, ValueError):
                # The next request asks again: this answer may come from a proxy.
                return _version_text(_VERSION_MAX)
            self._version = _version_text(newest)
        return self._version

    def _stood_in(self, path: str, query: str) -> GatewayAnswer:
        """An answer out of the requests that every placement server has, if that is possible."""
        if path.startswith(TREES):
            return _json(200, tree_answer(Administration(self._transport), path))
        if path == CANDIDATES:
            return _passed(self._send("GET", f"/allocation_candidates?{query}"))
        return refusal(404, f"This server does not offer {path}.")

    # Changes.

    def _events(self, query: Mapping[str, str]) -> GatewayAnswer:
        """A stream of changes, which the gateway gets by waiting requests."""
        first = self._page({**query, "wait": "0"})
        if isinstance(first, GatewayAnswer):
            return first
        if not self._streams.acquire(blocking=False):
            return refusal(503, f"{STREAMS_MAX} windows follow changes already. Close some.")
        headers = [("content-type", _EVENTS), ("cache-control", "no-store")]
        stream = EventStream(self._pages(query, first), self._streams.release)
        return GatewayAnswer(200, headers, stream=stream)

    def _pages(self, query: Mapping[str, str], page: dict[str, Any]) -> Generator[bytes]:
        while True:
            yield f"id: {page['next']}\ndata: {json.dumps(page)}\n\n".encode()
            if not page["changes"]:
                self._rest(_PAUSE_SECONDS)
            found = self._page({**query, "since": page["next"], "wait": str(_WAIT_SECONDS)})
            if isinstance(found, GatewayAnswer):
                return
            page = found

    def _page(self, query: Mapping[str, str]) -> dict[str, Any] | GatewayAnswer:
        answer = self._sent_on("GET", "/roost/changes", urlencode(query), b"")
        if answer.status != HTTPStatus.OK:
            return answer
        found: dict[str, Any] = json.loads(answer.body)
        return found


def _own_path(target: str) -> SplitResult | None:
    """The parts of a target that stays on the server; `None` for any other.

    Some libraries and proxies resolve dots that a path has in encoded form.
    """
    try:
        split = urlsplit(target)
    except ValueError:
        return None
    if split.scheme or split.netloc or not _PATH.fullmatch(split.path):
        return None
    return split if _DOTS.isdisjoint(unquote(split.path).split("/")) else None


def _version_text(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))


def _file(path: str) -> GatewayAnswer:
    name = path.removeprefix("/ui/")
    if path in ("/", "/ui"):
        return GatewayAnswer(308, [("location", "/ui/")])
    if name in PAGES:
        return _web_file(page(name, token=""))
    found = static_files().get(name.removeprefix("static/"))
    if found is None:
        return refusal(404, "The pages have no such file.")
    return _web_file(found)


def _web_file(file: WebFile) -> GatewayAnswer:
    return GatewayAnswer(200, [("content-type", file.media_type), *SECURITY_HEADERS], file.body)


def _is_not_offered(path: str, answer: PlacementResponse) -> bool:
    """Whether a server has no such route, rather than no such thing."""
    if answer.status != HTTPStatus.NOT_FOUND or not path.startswith("/roost/"):
        return False
    return b'"roost.' not in answer.content


def _passed(answer: PlacementResponse) -> GatewayAnswer:
    headers = [(name, answer.headers[name]) for name in _PASSED if name in answer.headers]
    return GatewayAnswer(answer.status, headers, answer.content)


def _json(status: int, value: Any) -> GatewayAnswer:
    return GatewayAnswer(status, [("content-type", _JSON)], json.dumps(value).encode())


def without_key() -> GatewayAnswer:
    """The refusal of a request without the key."""
    return refusal(401, "Open the link that `roost ui` has printed: it has the key.")


def refusal(status: int, detail: str, code: str = "placement.undefined_code") -> GatewayAnswer:
    """A refusal in the shape of the API."""
    error = {"status": status, "title": HTTPStatus(status).phrase, "detail": detail, "code": code}
    return _json(status, {"errors": [error]})
