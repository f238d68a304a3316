"""Clients that wait for changes, or follow them, at `roost serve`: they hold no thread."""

from __future__ import annotations

import os
import signal
from contextlib import ExitStack
from pathlib import Path

import pytest

from roost.model.identifiers import new_uuid
from support.api_client import ApiClient
from support.change_feed import (
    Event,
    EventStream,
    changes_path,
    claim,
    make_host,
    now,
    request_id,
    requests_of,
)
from support.raw_client import RawClient, request
from support.servers.live_server import LiveServer, Serve, resident_megabytes
from support.servers.tls_server import TlsServer
from support.waiting import wait_until

MANY = 1000
# Their changes are more bytes than a narrow connection and its client take together.
UNREAD = 600


@pytest.fixture
def api(server: LiveServer) -> ApiClient:
    return server.client()


@pytest.fixture
def host(api: ApiClient) -> str:
    return make_host(api, VCPU=100)


def next_changes(stream: EventStream) -> Event:
    """The next event that is no mere progress."""
    while not (event := stream.next()).changes:
        pass
    return event


def following(server: LiveServer) -> int:
    """How many clients the only worker says that it has."""
    text = server.client().get("/metrics").body.decode()
    return next(
        int(float(line.split()[-1]))
        for line in text.splitlines()
        if line.startswith("roost_server_connections{") and 'state="following"' in line
    )


def thread_count(server: LiveServer) -> int:
    (worker,) = server.worker_ids()
    return len(list(Path(f"/proc/{worker}/task").iterdir()))


def make_trait_names(api: ApiClient, count: int) -> None:
    """So many changes."""
    prefix = new_uuid().replace("-", "").upper()
    for number in range(count):
        assert api.put(f"/traits/CUSTOM_{prefix}_{number}").status == 201


def test_a_claim_of_another_client_arrives_in_a_stream(
    server: LiveServer, api: ApiClient, host: str
) -> None:
    with EventStream(server.port) as stream:
        first = stream.begin()
        assert first.page["kind"] == "progress"
        ids = []
        for _ in range(3):
            ids.append(request_id(claim(api, host)))
            event = next_changes(stream)
            assert requests_of(event.changes) == ids[-1:]
            assert event.id == event.page["next"]
    # Another connection goes on after the event that its client names.
    with EventStream(server.port, last=first.id) as again:
        assert requests_of(again.begin().changes) == ids
        ids.append(request_id(claim(api, host)))
        assert requests_of(next_changes(again).changes) == ids[-1:]


def test_a_stream_has_only_what_its_client_wants(
    server: LiveServer, api: ApiClient, host: str
) -> None:
    other = make_host(api, VCPU=100)
    with (
        EventStream(server.port, provider=host) as one,
        EventStream(server.port, root=other, kind="usage") as two,
        EventStream(server.port, kind="provider_created") as three,
    ):
        for stream in (one, two, three):
            stream.begin()
        ids = [request_id(claim(api, each)) for each in (host, other, host, other)]
        make_host(api)
        seen = [*next_changes(one).changes]
        while len(seen) < 2:
            seen += next_changes(one).changes
        assert requests_of(seen) == [ids[0], ids[2]]
        assert requests_of(next_changes(two).changes)[0] == ids[1]
        assert {change["kind"] for change in next_changes(three).changes} == {"provider_created"}


def test_a_client_that_waits_gets_a_page_and_keeps_its_connection(
    server: LiveServer, api: ApiClient, host: str
) -> None:
    since = now(api)
    with RawClient(server.port) as client:
        for _ in range(3):
            client.send(request("GET", changes_path(since=since, wait=300)))
            wait_until(lambda: following(server) > 0)
            written = claim(api, host)
            page = client.answer().json
            assert requests_of(page["changes"]) == [request_id(written)]
            since = page["next"]
        client.send(request("GET", "/"))
        assert client.answer().status == 200


def test_a_wait_ends_without_a_change(server: LiveServer, api: ApiClient) -> None:
    since = now(api)
    with RawClient(server.port) as client:
        client.send(request("GET", changes_path(since=since, wait=1)))
        page = client.answer().json
    assert (page["changes"], page["more"]) == ([], False)


def test_a_request_behind_a_wait_is_answered_after_it(
    server: LiveServer, api: ApiClient, host: str
) -> None:
    with RawClient(server.port) as client:
        client.send(request("GET", changes_path(since=now(api), wait=300)) + request("GET", "/"))
        wait_until(lambda: following(server) > 0)
        # The rest of a further request comes while the client waits.
        client.send(request("GET", "/healthz"))
        written = claim(api, host)
        assert requests_of(client.answer().json["changes"]) == [request_id(written)]
        assert "versions" in client.answer().json
        assert client.answer().status == 200


def test_a_body_behind_a_wait_is_asked_for_after_the_answer(
    server: LiveServer, api: ApiClient, host: str
) -> None:
    body = b'{"name": "host behind a wait"}'
    headers = {"Expect": "100-continue", "Content-Length": str(len(body))}
    headers["Content-Type"] = "application/json"
    with RawClient(server.port) as client:
        client.send(request("GET", changes_path(since=now(api), wait=300)))
        wait_until(lambda: following(server) > 0)
        client.send(request("POST", "/resource_providers", headers))
        written = claim(api, host)
        assert requests_of(client.answer().json["changes"]) == [request_id(written)]
        assert client.answer().status == 100
        client.send(body)
        assert client.answer().status == 200


def test_an_old_client_gets_a_stream_without_chunks(
    server: LiveServer, api: ApiClient, host: str
) -> None:
    headers = {"Accept": "text/event-stream"}
    with RawClient(server.port) as client:
        client.send(request("GET", "/roost/changes", headers, version="1.0"))
        wait_until(lambda: following(server) > 0)
        written = claim(api, host)
        client._until(request_id(written).encode())
        assert client.is_waiting()


def test_a_head_request_holds_nothing(server: LiveServer, api: ApiClient) -> None:
    with RawClient(server.port) as client:
        client.send(request("HEAD", changes_path(wait=300), {"Accept": "text/event-stream"}))
        assert client.answer("HEAD").status == 405
        client.send(request("GET", "/"))
        assert client.answer().status == 200


def test_all_workers_tell_what_one_of_them_wrote(serve: Serve) -> None:
    server = serve("", workers=2)
    api = server.client()
    host = make_host(api, VCPU=100)
    with ExitStack() as stack:
        # With so many connections, each worker has some.
        streams = [stack.enter_context(EventStream(server.port)) for _ in range(12)]
        for stream in streams:
            stream.begin()
        written = request_id(claim(api, host))
        for stream in streams:
            assert requests_of(next_changes(stream).changes) == [written]


def test_a_thousand_followers_hold_no_threads_and_little_memory(
    server: LiveServer, api: ApiClient, host: str
) -> None:
    with EventStream(server.port) as stream:
        stream.begin()
        threads, before = thread_count(server), resident_megabytes(server)
    with ExitStack() as stack:
        streams = [stack.enter_context(EventStream(server.port)) for _ in range(MANY)]
        for stream in streams:
            stream.begin()
        wait_until(lambda: following(server) >= MANY)
        for _ in range(3):
            written = request_id(claim(api, host))
            for stream in streams:
                assert requests_of(next_changes(stream).changes) == [written]
        assert thread_count(server) <= threads
        # About 25 kilobytes for each connection with its follower.
        assert resident_megabytes(server) - before < 80
    # All places are free again.
    wait_until(lambda: following(server) == 0)


def test_a_follower_too_many_is_refused_until_another_leaves(serve: Serve) -> None:
    server = serve("max_followers = 2")
    api = server.client()
    since = now(api)
    with ExitStack() as stack:
        streams = [stack.enter_context(EventStream(server.port)) for _ in range(2)]
        for stream in streams:
            stream.begin()
        refused = api.get(changes_path(since=since, wait=300))
        assert refused.status == 503
        assert "[roost]max_followers" in refused.detail
        assert refused.headers["retry-after"]
        with EventStream(server.port) as third:
            assert third.head().startswith("HTTP/1.1 503")
        # A page needs no place.
        assert api.get(changes_path(since=since)).status == 200
        streams[0].socket.close()
        wait_until(lambda: api.get(changes_path(since=since, wait=1)).status == 200)
    assert "max_followers" in server.log


def test_a_follower_that_does_not_read_is_dropped(serve: Serve) -> None:
    server = serve("unread_seconds = 1", narrow=True)
    api = server.client()
    host = make_host(api, VCPU=100)
    with (
        EventStream(server.port, narrow=True) as deaf,
        EventStream(server.port, narrow=True, provider=host) as good,
    ):
        deaf.begin()
        good.begin()
        make_trait_names(api, UNREAD)
        wait_until(
            lambda: "the client reads nothing of its answer ([roost]unread_seconds)" in server.log
        )
        written = request_id(claim(api, host))
        assert requests_of(next_changes(good).changes) == [written]
        with pytest.raises(ConnectionError):
            list(deaf)
        last = deaf.last
    # Its client goes on after the last event that came whole.
    with EventStream(server.port, last=last) as again:
        rest = again.begin().changes
        while rest[-1]["request_id"] != written:
            rest += next_changes(again).changes
    assert len(rest) <= UNREAD + 1
    assert rest[-1]["request_id"] == written


@pytest.mark.slow
def test_a_stream_ends_after_its_time_and_its_client_goes_on(serve: Serve) -> None:
    server = serve("follow_seconds = 5")
    api = server.client()
    host = make_host(api, VCPU=100)
    with EventStream(server.port) as stream:
        stream.begin()
        for _ in stream:
            pass
        # The connection stays, and the client has the cursor.
        written = request_id(claim(api, host))
        stream.send(request("GET", changes_path(since=stream.last)))
        assert requests_of(stream.answer().json["changes"]) == [written]


@pytest.mark.parametrize("drain", [0, 2])
def test_a_stop_ends_streams_and_waits_in_order(serve: Serve, drain: int) -> None:
    server = serve(f"drain_seconds = {drain}")
    since = now(server.client())
    with EventStream(server.port) as stream, RawClient(server.port) as waiting:
        first = stream.begin()
        waiting.send(request("GET", changes_path(since=since, wait=300)))
        wait_until(lambda: following(server) == 2)
        assert server.process is not None
        os.kill(server.process.pid, signal.SIGTERM)
        assert list(stream) == []
        page = waiting.answer().json
        assert page["changes"] == []
        assert server.process.wait() == 0
    server.process = None
    server.start()
    # Both cursors are good after the restart.
    api = server.client()
    written = request_id(claim(api, make_host(api, VCPU=1)))
    for cursor in (first.id, page["next"]):
        found = api.get(changes_path(since=cursor)).json["changes"]
        assert found[-1]["request_id"] == written


def test_a_reload_of_the_configuration_keeps_streams(serve: Serve) -> None:
    server = serve("")
    api = server.client()
    host = make_host(api, VCPU=100)
    with EventStream(server.port) as stream:
        stream.begin()
        assert server.process is not None
        os.kill(server.process.pid, signal.SIGHUP)
        wait_until(lambda: "reload" in server.log.lower())
        written = request_id(claim(api, host))
        assert requests_of(next_changes(stream).changes) == [written]


def test_streams_and_waits_over_tls(tls_server: TlsServer) -> None:
    server = tls_server.live
    api = server.client()
    host = make_host(api, VCPU=100)
    since = now(api)
    with (
        EventStream(server.port, server.tls) as stream,
        RawClient(server.port, server.tls) as waiting,
    ):
        stream.begin()
        waiting.send(request("GET", changes_path(since=since, wait=300)))
        wait_until(lambda: following(server) == 2)
        # A page larger than the buffers of the connection.
        ids = [request_id(claim(api, host)) for _ in range(90)]
        seen: list[str] = []
        while len(seen) < len(ids):
            seen += requests_of(stream.next().changes)
        assert seen == ids
        assert requests_of(waiting.answer().json["changes"])[0] == ids[0]
    wait_until(lambda: following(server) == 0)


def test_a_client_that_leaves_while_it_follows_is_forgotten(
    server: LiveServer, api: ApiClient
) -> None:
    with ExitStack() as stack:
        streams = [stack.enter_context(EventStream(server.port)) for _ in range(20)]
        for stream in streams:
            stream.begin()
        wait_until(lambda: following(server) >= 20)
    wait_until(lambda: following(server) == 0)
    with EventStream(server.port) as stream:
        # A client that sends a further request, and goes.
        stream.begin()
        stream.send(request("GET", "/"))
    make_host(api)
    wait_until(lambda: following(server) == 0)
