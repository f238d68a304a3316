"""A placement server for tests, as a transport: Roost in this process, with planned faults."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from roost.client.claims.consumer_state import ResourcesByProvider
from roost.client.errors import TransportFailed
from roost.client.ownership.store import InMemoryOwnershipStore
from roost.client.provider_tree import ProviderTree
from roost.client.reporting.reporter import Reporter
from roost.client.transport import PlacementRequest, PlacementResponse
from roost.client.transport.retrying import RetryingTransport, RetryPolicy
from roost.client.versions import NEWEST, ServerVersion
from roost.model.identifiers import new_uuid
from roost.testing.faults import Faults, error_answer, json_answer
from roost.testing.in_process import PrivateRoost

_NO_WAIT = RetryPolicy(sleep=lambda seconds: None, random=lambda: 0.0)


class FakePlacement(RetryingTransport):
    """A server for tests: it has what the client writes, and faults as the test plans them.

        server = FakePlacement()
        server.faults.lose_answer("PUT */traits")
        Reporter(server).report(MyDriver(), "host")
        server.tree("host")

    Requests are repeated as over a network, but without waiting. `newest` is the newest version
    that the server speaks.
    """

    def __init__(self, newest: str = str(NEWEST)) -> None:
        super().__init__(retries=_NO_WAIT)
        self.newest = ServerVersion(*map(int, newest.split(".")))
        self.faults = Faults()
        self.records = InMemoryOwnershipStore()
        """The ownership records of declaring drivers that `report_once` reports here."""
        self.requests: list[PlacementRequest] = []
        """Every request, repeated ones included."""
        self._roost = PrivateRoost()
        later = range(self.newest.minor + 1, NEWEST.minor + 1)
        self._refused_versions = {str(ServerVersion(1, minor)) for minor in later}

    @property
    def writes(self) -> list[str]:
        """The requests that are not reads, in order, as `PUT /traits/CUSTOM_GOLD`."""
        return [str(request) for request in self.requests if request.method != "GET"]

    def describe(self) -> str:
        """The words of messages for this server."""
        return "the fake placement server"

    def close(self) -> None:
        """Close the connections to its database. The server keeps what it has."""
        self._roost.close()

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
        names = {uuid: name for name, uuid in self.uuids().items()}
        held = self.ask("GET", f"/allocations/{consumer}").json["allocations"]
        return {names[uuid]: amounts["resources"] for uuid, amounts in held.items()}

    def uuids(self) -> dict[str, str]:
        """The uuids of all providers, by name."""
        found = self.ask("GET", "/resource_providers").json["resource_providers"]
        return {each["name"]: each["uuid"] for each in found}

    def uuid(self, name: str) -> str:
        """The uuid of the provider with this name."""
        known = self.uuids()
        if name not in known:
            names = ", ".join(sorted(known)) or "none"
            raise LookupError(f"the fake server has no provider {name!r}; it has {names}")
        return known[name]

    def tree(self, name: str) -> ProviderTree:
        """The tree of the provider with this name, with its sharing providers."""
        return Reporter(_Unrecorded(self)).fetch(self.uuid(name))

    def ask(self, method: str, path: str, body: Any = None) -> PlacementResponse:
        """Send a request at the newest version, without faults and records; it must succeed."""
        answer = self.undisturbed(PlacementRequest(method, path, body, str(self.newest)))
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

    def _attempt(self, request: PlacementRequest) -> PlacementResponse:
        self.requests.append(request)
        return self.faults.disturb(request, self.undisturbed)

    def undisturbed(self, request: PlacementRequest) -> PlacementResponse:
        """The answer of the server itself, without faults and records."""
        if request.version == "latest":
            request = replace(request, version=str(self.newest))
        elif request.version in self._refused_versions:
            return error_answer(406, f"Unacceptable version header: {request.version}")
        answer = self._roost.answer(request)
        if request.path != "/":
            return answer
        (document,) = answer.json["versions"]
        document["max_version"] = str(self.newest)
        return json_answer({"versions": [document]}, headers=answer.headers)


class _Unrecorded:
    """A transport to a fake server that leaves neither records nor faults."""

    def __init__(self, server: FakePlacement) -> None:
        self.send = server.undisturbed

    def close(self) -> None:
        pass


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
        content = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        version = self.headers.get("OpenStack-API-Version", "").removeprefix("placement ")
        request = PlacementRequest(
            self.command, self.path, json.loads(content) if content else None, version or None
        )
        try:
            answer = self.fake._attempt(request)
        except TransportFailed:
            self.close_connection = True
            return
        self.send_response(answer.status)
        headers = {"content-length": str(len(answer.content)), **answer.headers}
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(answer.content)

    do_GET = do_POST = do_PUT = do_DELETE = handle_any  # noqa: N815  # the names of the base class
