"""A placement server in memory, as a transport: no process, no socket, no database."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from typing import Any, NamedTuple

from roost.client.claims.consumer_state import ResourcesByProvider
from roost.client.errors import TransportFailed
from roost.client.ownership.store import InMemoryOwnershipStore
from roost.client.provider_tree import ProviderTree
from roost.client.reporting.reporter import Reporter
from roost.client.testing import allocation_routes, name_routes, provider_routes
from roost.client.testing.cloud import FakeCloud, FakeRefusal
from roost.client.testing.fake_request import FakeRequest
from roost.client.testing.faults import Faults, json_answer
from roost.client.transport import PlacementRequest, PlacementResponse
from roost.client.transport.messages import REQUEST_ID
from roost.client.transport.retrying import RetryingTransport, RetryPolicy
from roost.client.versions import NEWEST, ServerVersion
from roost.model.identifiers import is_uuid, new_uuid

_NO_WAIT = RetryPolicy(sleep=lambda seconds: None, random=lambda: 0.0)
_UUID = r"(?P<uuid>[^/]+)"
_NAME = r"(?P<name>[^/]+)"


class _FakeRoute(NamedTuple):
    method: str
    path: str
    since: int
    handler: Callable[..., PlacementResponse]


_PROVIDER = f"/resource_providers/{_UUID}"
_ROUTES = (
    _FakeRoute("GET", "/resource_providers", 0, provider_routes.list_providers),
    _FakeRoute("POST", "/resource_providers", 0, provider_routes.create_provider),
    _FakeRoute("GET", _PROVIDER, 0, provider_routes.show_provider),
    _FakeRoute("PUT", _PROVIDER, 0, provider_routes.update_provider),
    _FakeRoute("DELETE", _PROVIDER, 0, provider_routes.delete_provider),
    _FakeRoute("GET", f"{_PROVIDER}/inventories", 0, provider_routes.list_inventories),
    _FakeRoute("PUT", f"{_PROVIDER}/inventories", 0, provider_routes.replace_inventories),
    _FakeRoute("DELETE", f"{_PROVIDER}/inventories", 5, provider_routes.delete_inventories),
    _FakeRoute("GET", f"{_PROVIDER}/usages", 0, provider_routes.show_usages),
    _FakeRoute("GET", f"{_PROVIDER}/aggregates", 1, provider_routes.list_aggregates),
    _FakeRoute("PUT", f"{_PROVIDER}/aggregates", 1, provider_routes.replace_aggregates),
    _FakeRoute("GET", f"{_PROVIDER}/traits", 6, provider_routes.list_provider_traits),
    _FakeRoute("PUT", f"{_PROVIDER}/traits", 6, provider_routes.replace_provider_traits),
    _FakeRoute("DELETE", f"{_PROVIDER}/traits", 6, provider_routes.delete_provider_traits),
    _FakeRoute("GET", f"{_PROVIDER}/allocations", 0, allocation_routes.list_provider_allocations),
    _FakeRoute("GET", "/traits", 6, name_routes.list_traits),
    _FakeRoute("GET", f"/traits/{_NAME}", 6, name_routes.show_trait),
    _FakeRoute("PUT", f"/traits/{_NAME}", 6, name_routes.ensure_trait),
    _FakeRoute("DELETE", f"/traits/{_NAME}", 6, name_routes.delete_trait),
    _FakeRoute("GET", "/resource_classes", 2, name_routes.list_classes),
    _FakeRoute("POST", "/resource_classes", 2, name_routes.create_class),
    _FakeRoute("GET", f"/resource_classes/{_NAME}", 2, name_routes.show_class),
    _FakeRoute("PUT", f"/resource_classes/{_NAME}", 7, name_routes.ensure_class),
    _FakeRoute("DELETE", f"/resource_classes/{_NAME}", 2, name_routes.delete_class),
    _FakeRoute("POST", "/allocations", 13, allocation_routes.replace_several),
    _FakeRoute("GET", f"/allocations/{_UUID}", 0, allocation_routes.show_allocations),
    _FakeRoute("PUT", f"/allocations/{_UUID}", 12, allocation_routes.replace_allocations),
    _FakeRoute("DELETE", f"/allocations/{_UUID}", 0, allocation_routes.delete_allocations),
    _FakeRoute("POST", "/reshaper", 30, allocation_routes.reshape),
)


class FakePlacement(RetryingTransport):
    """A server for tests: it has what the client writes, and faults as the test plans them.

        server = FakePlacement()
        server.faults.lose_answer("PUT */traits")
        Reporter(server).report(MyDriver(), "host")
        server.tree("host")

    Requests are repeated as over a network, but without waiting. `newest` is the newest version
    that the server speaks. `GET /allocation_candidates` is no part of it: a test answers that with
    `faults.answer`.
    """

    def __init__(self, newest: str = str(NEWEST)) -> None:
        super().__init__(retries=_NO_WAIT)
        self.newest = ServerVersion(*map(int, newest.split(".")))
        self.cloud = FakeCloud()
        self.faults = Faults()
        self.records = InMemoryOwnershipStore()
        """The ownership records of declaring drivers that `report_once` reports here."""
        self.requests: list[PlacementRequest] = []
        """Every request, repeated ones included."""
        self._lock = threading.RLock()
        self._numbers = count(1)

    @property
    def writes(self) -> list[str]:
        """The requests that are not reads, in order, as `PUT /traits/CUSTOM_GOLD`."""
        return [str(request) for request in self.requests if request.method != "GET"]

    def describe(self) -> str:
        """The words of messages for this server."""
        return "the fake placement server"

    def close(self) -> None:
        """Nothing is open."""

    # -- what a test prepares and looks at

    def add_provider(
        self,
        name: str,
        parent: str | None = None,
        *,
        inventories: Mapping[str, Mapping[str, Any]] | None = None,
        traits: tuple[str, ...] = (),
        aggregates: tuple[str, ...] = (),
    ) -> str:
        """Create a provider, below the one with the name `parent`; returns its uuid."""
        body: dict[str, Any] = {"uuid": new_uuid(), "name": name}
        if parent is not None:
            body["parent_provider_uuid"] = self.uuid(parent)
        self.ask("POST", "/resource_providers", body)
        for custom in (*(inventories or {}), *traits):
            if custom.startswith("CUSTOM_"):
                noun = "traits" if custom in traits else "resource_classes"
                self.ask("PUT", f"/{noun}/{custom}")
        parts = {"inventories": inventories, "traits": traits, "aggregates": aggregates}
        for part, value in parts.items():
            if value:
                self._replace(body["uuid"], part, value)
        return str(body["uuid"])

    def claim(
        self, consumer: str, amounts: ResourcesByProvider, consumer_type: str = "TEST"
    ) -> None:
        """Give a consumer exactly these amounts, by the names of providers."""
        known = self.ask("GET", f"/allocations/{consumer}").json
        body = {
            "allocations": {
                self.uuid(name): {"resources": resources} for name, resources in amounts.items()
            },
            "project_id": "project",
            "user_id": "user",
            "consumer_generation": known.get("consumer_generation"),
            "consumer_type": consumer_type,
        }
        self.ask("PUT", f"/allocations/{consumer}", body)

    def holds(self, consumer: str) -> dict[str, dict[str, int]]:
        """What a consumer holds, by the names of providers."""
        found = self.cloud.consumers.get(consumer)
        return {
            self.cloud.providers[uuid].name: dict(amounts)
            for uuid, amounts in (found.holds if found else {}).items()
        }

    def uuid(self, name: str) -> str:
        """The uuid of the provider with this name."""
        found = self.cloud.named(name)
        if found is None:
            names = ", ".join(sorted(each.name for each in self.cloud.providers.values()))
            raise LookupError(f"the fake server has no provider {name!r}; it has {names or 'none'}")
        return found.uuid

    def tree(self, name: str) -> ProviderTree:
        """The tree of the provider with this name, with its sharing providers."""
        return Reporter(_Unrecorded(self)).fetch(self.uuid(name))

    def ask(self, method: str, path: str, body: Any = None) -> PlacementResponse:
        """Send a request at the newest version, without faults and records; it must succeed."""
        answer = self._answer(PlacementRequest(method, path, body, str(self.newest)))
        if not answer.ok:
            raise AssertionError(f"{method} {path}: {answer.status} {answer.detail}")
        return answer

    def _replace(self, uuid: str, part: str, value: Any) -> None:
        path = f"/resource_providers/{uuid}"
        generation = self.ask("GET", path).json["generation"]
        given = value if part == "inventories" else list(value)
        body = {part: given, "resource_provider_generation": generation}
        self.ask("PUT", f"{path}/{part}", body)

    # -- requests

    def attempt(self, request: PlacementRequest) -> PlacementResponse:
        """Answer a request once, with the faults of the test; `send` repeats it as clients do."""
        self.requests.append(request)
        return self.faults.disturb(request, self._answer)

    def _attempt(self, request: PlacementRequest) -> PlacementResponse:
        return self.attempt(request)

    def _answer(self, request: PlacementRequest) -> PlacementResponse:
        with self._lock:
            minor = None
            try:
                asked = FakeRequest.of(request, self.newest.minor)
                minor = asked.minor
                answer = self._handled(asked)
            except FakeRefusal as refusal:
                answer = _error(refusal, minor, self.newest)
        headers = {
            **({} if minor is None else {"openstack-api-version": f"placement 1.{minor}"}),
            REQUEST_ID: f"req-fa4e0000-0000-4000-8000-{next(self._numbers):012}",
            **({"content-type": "application/json"} if answer.content else {}),
            **answer.headers,
        }
        return PlacementResponse(answer.status, headers, answer.content)

    def _handled(self, request: FakeRequest) -> PlacementResponse:
        if request.path in ("", "/"):
            return json_answer({"versions": [_version_document(self.newest)]})
        matching = [
            (route, found.groupdict())
            for route in _ROUTES
            if (found := re.fullmatch(route.path, request.path))
        ]
        usable = [
            (route, names)
            for route, names in matching
            if route.method == request.method and request.minor >= route.since
        ]
        if not usable:
            status = 405 if any(request.minor >= route.since for route, _ in matching) else 404
            detail = (
                f"The fake server does not offer {request.method} {request.path} at this version."
            )
            raise FakeRefusal(status, detail)
        route, names = usable[0]
        if "uuid" in names and is_uuid(names["uuid"]):
            names["uuid"] = names["uuid"].lower()
        return route.handler(self.cloud, request, *names.values())


class _Unrecorded:
    """A transport to a fake server that leaves neither records nor faults."""

    def __init__(self, server: FakePlacement) -> None:
        self._server = server

    def send(self, request: PlacementRequest) -> PlacementResponse:
        return self._server._answer(request)

    def close(self) -> None:
        pass


def _version_document(newest: ServerVersion) -> dict[str, Any]:
    return {
        "id": "v1.0",
        "max_version": str(newest),
        "min_version": "1.0",
        "status": "CURRENT",
        "links": [{"rel": "self", "href": ""}],
    }


def _error(refusal: FakeRefusal, minor: int | None, newest: ServerVersion) -> PlacementResponse:
    error: dict[str, Any] = {
        "status": refusal.status,
        "title": HTTPStatus(refusal.status).phrase,
        "detail": f"{_GENERAL.get(refusal.status, '')}\n\n {refusal.detail}  ",
        "request_id": "",
    }
    if minor is not None and minor >= 23:
        error["code"] = refusal.code
    if minor is None:
        error |= {"max_version": str(newest), "min_version": "1.0"}
    return json_answer({"errors": [error]}, refusal.status)


_GENERAL = {
    400: "The server could not comply with the request since it is either malformed or otherwise "
    "incorrect.",
    404: "The resource could not be found.",
    409: "There was a conflict when trying to complete your request.",
}
"""The sentences before the detail of an error."""


_BODILESS = (204, 304)


@contextmanager
def on_loopback(server: FakePlacement) -> Iterator[str]:
    """Serve a fake server until the block ends; gives its URL, with any token."""

    class Handler(_FakeHandler):
        fake = server

    listener = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    listener.daemon_threads = True
    thread = threading.Thread(target=listener.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.server_port}"
    finally:
        listener.shutdown()
        thread.join()
        listener.server_close()


class _FakeHandler(BaseHTTPRequestHandler):
    fake: FakePlacement
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *arguments: Any) -> None:
        """Tests look at `FakePlacement.requests` instead."""

    def handle_any(self) -> None:
        """Answer a request, or end the connection if the answer is to be lost."""
        length = int(self.headers.get("Content-Length", "0"))
        content = self.rfile.read(length)
        version = self.headers.get("OpenStack-API-Version", "").removeprefix("placement ")
        request = PlacementRequest(
            self.command, self.path, json.loads(content) if content else None, version or None
        )
        try:
            answer = self.fake.attempt(request)
        except TransportFailed:
            self.close_connection = True
            return
        self._send(answer)

    do_GET = do_POST = do_PUT = do_DELETE = handle_any  # noqa: N815  # the names of the base class

    def _send(self, answer: PlacementResponse) -> None:
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        if answer.status not in _BODILESS:
            self.send_header("Content-Length", str(len(answer.content)))
        self.end_headers()
        self.wfile.write(answer.content)
