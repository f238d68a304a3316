"""Followers of changes at several servers of one database, which are killed under load."""

from __future__ import annotations

import threading
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest

from roost.model.identifiers import new_uuid
from support.api_client import ApiClient
from support.change_feed import (
    EventStream,
    all_changes,
    changes_path,
    claim,
    events_of,
    make_host,
    now,
    request_id,
    requests_of,
)
from support.servers.live_server import LiveServer
from support.servers.wsgi_servers import PREFIX, GunicornServer, require
from support.waiting import SECONDS_MAX, wait_until

pytestmark = pytest.mark.slow

ENOUGH = 60


class Follower:
    """A client that keeps its last cursor alone, and asks another server after each loss."""

    def __init__(self, servers: list[LiveServer], since: str) -> None:
        self.servers = servers
        self.last = since
        self.requests: list[str] = []
        self.lost = 0
        self.connections = 0

    def follow(self, last_request: list[str]) -> None:
        while not last_request or last_request[0] not in self.requests:
            server = self.servers[self.connections % len(self.servers)]
            self.connections += 1
            try:
                with EventStream(server.port, last=self.last) as stream:
                    self._take(stream, last_request)
            except (ConnectionError, EOFError, OSError):
                self.lost += 1

    def has(self, request: str) -> bool:
        """Whether the change of a request has come."""
        return request in self.requests

    def _take(self, stream: EventStream, last_request: list[str]) -> None:
        event = stream.begin()
        while True:
            self.last = event.id
            self.requests += requests_of(event.changes)
            if last_request and last_request[0] in self.requests:
                return
            event = stream.next()


def test_a_follower_gets_everything_once_however_often_its_server_is_killed(
    database_url: str, tmp_path: Path
) -> None:
    with ExitStack() as stack:
        servers = []
        for name in ("one", "two"):
            directory = tmp_path / name
            directory.mkdir()
            server = LiveServer(database_url, directory, workers=2)
            servers.append(stack.enter_context(server))
        first, second = servers
        host = make_host(first.client(), VCPU=100_000)
        follower = Follower(servers, now(first.client()))
        last_request: list[str] = []
        thread = threading.Thread(target=follower.follow, args=(last_request,))
        thread.start()
        written: list[str] = []
        for server, other in ((first, second), (second, first), (first, second)):
            api = other.client()
            written += claims(api, host)
            wait_until(partial(follower.has, written[-1]))
            server.kill()
            written += claims(api, host)
            server.start()
        written.append(request_id(claim(first.client(), host)))
        last_request.append(written[-1])
        thread.join(SECONDS_MAX)
        assert not thread.is_alive()
    assert follower.lost > 0
    assert follower.requests == written


def claims(api: ApiClient, host: str) -> list[str]:
    """Claims, between which some are refused."""
    found = []
    for _ in range(ENOUGH // 6):
        found.append(request_id(claim(api, host)))
        body = {
            "allocations": {host: {"resources": {"VCPU": 1_000_000}}},
            "project_id": "lab",
            "user_id": "ann",
            "consumer_generation": None,
            "consumer_type": "INSTANCE",
        }
        assert api.put(f"/allocations/{new_uuid()}", body).status == 409
    return found


def test_behind_another_server_a_wait_is_short_and_a_stream_has_one_event(tmp_path: Path) -> None:
    require(GunicornServer)
    with GunicornServer(tmp_path) as server:
        api = below_prefix(server.client())
        host = make_host(api, VCPU=8)
        since = now(api)
        idle = api.get(changes_path(since=since, wait=300)).json
        assert idle["changes"] == []
        stream = api.get(changes_path(since=since), accept="text/event-stream")
        (event,) = events_of(stream.body)
        assert event.page["kind"] == "progress"
        pages: list[list[str]] = []
        waiter = threading.Thread(
            target=lambda: pages.append(
                requests_of(
                    below_prefix(server.client())
                    .get(changes_path(since=since, wait=300))
                    .json["changes"]
                )
            )
        )
        waiter.start()
        written = [request_id(claim(api, host))]
        waiter.join()
        # The wait may have ended before the claim.
        assert pages[0] in (written, [])
        assert requests_of(all_changes(api, idle["next"])) == written


def below_prefix(client: ApiClient) -> ApiClient:
    """The same client, for a service below a prefix."""
    return ApiClient(
        lambda method, path, body, headers: client.send(method, PREFIX + path, body, headers)
    )
