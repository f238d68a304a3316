"""The server of `roost ui`: what its browsers and other programs of the machine may cost."""

from __future__ import annotations

import json
import socket
from contextlib import ExitStack, closing
from urllib.request import urlopen

import pytest

from roost.cli.ui import command
from roost.cli.ui.gateway import STREAMS_MAX, Gateway
from roost.client.transport import PlacementRequest, PlacementResponse
from support.page_server import serving
from support.raw_client import RawClient
from support.waiting import wait_until

KEY = "the-key"
WITH_KEY = {"x-auth-token": KEY}
FOLLOWING = WITH_KEY | {"accept": "text/event-stream"}


class ScriptedPlacement:
    """A server that gives these answers in turn, and the last one for ever."""

    def __init__(self, *answers: PlacementResponse) -> None:
        self._answers = list(answers)
        self.requests: list[PlacementRequest] = []

    def send(self, request: PlacementRequest) -> PlacementResponse:
        self.requests.append(request)
        return self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]

    def close(self) -> None:
        pass


NOTHING = {"changes": [], "next": "here", "more": False}


def quiet_gateway() -> Gateway:
    """A gateway to a server at which nothing changes."""
    return Gateway(ScriptedPlacement(PlacementResponse(200, {}, json.dumps(NOTHING).encode())), KEY)


@pytest.mark.parametrize(
    "place", ["%2e%2e/metrics", "%2E./metrics", "a%2F..%2F..%2Fmetrics", "%2e"]
)
def test_dots_in_encoded_form_lead_nowhere_else(place: str) -> None:
    placement = ScriptedPlacement(PlacementResponse(200))
    answer = Gateway(placement, KEY).answer("GET", f"/traits/{place}", WITH_KEY, b"")
    assert answer.status == 404
    assert placement.requests == []


def test_a_token_that_the_server_refuses_is_no_matter_of_the_key() -> None:
    gateway = Gateway(ScriptedPlacement(PlacementResponse(401)), KEY)
    answer = gateway.answer("GET", "/traits", WITH_KEY, b"")
    assert answer.status == 502
    assert b"refuses the token of `roost ui`" in answer.body


def test_the_version_of_the_server_is_asked_again_after_a_failure() -> None:
    versions = json.dumps({"versions": [{"max_version": "1.10"}]}).encode()
    failed, found = PlacementResponse(503), PlacementResponse(200, {}, versions)
    placement = ScriptedPlacement(failed, failed, found)
    gateway = Gateway(placement, KEY)
    for _ in range(3):
        gateway.answer("GET", "/traits", WITH_KEY, b"")
    sent = [request.version for request in placement.requests if request.path == "/traits"]
    assert sent == ["1.39", "1.10", "1.10"]


def test_a_window_that_leaves_before_its_first_event_frees_its_place() -> None:
    gateway = quiet_gateway()
    for _ in range(STREAMS_MAX + 1):
        answer = gateway.answer("GET", "/roost/changes", FOLLOWING, b"")
        assert answer.status == 200
        assert answer.stream is not None
        answer.stream.close()


def test_a_window_too_many_is_refused() -> None:
    gateway = quiet_gateway()
    with ExitStack() as stack:
        for _ in range(STREAMS_MAX):
            answer = gateway.answer("GET", "/roost/changes", FOLLOWING, b"")
            assert answer.stream is not None
            stack.enter_context(closing(answer.stream))
        assert gateway.answer("GET", "/roost/changes", FOLLOWING, b"").status == 503


def test_a_server_that_lets_no_request_wait_is_asked_with_pauses() -> None:
    rests: list[float] = []
    placement = ScriptedPlacement(PlacementResponse(200, {}, json.dumps(NOTHING).encode()))
    answer = Gateway(placement, KEY, rests.append).answer("GET", "/roost/changes", FOLLOWING, b"")
    assert answer.stream is not None
    with closing(answer.stream):
        for _ in range(3):
            next(answer.stream)
    assert len(rests) == 2
    assert min(rests) > 0


def port_of(url: str) -> int:
    return int(url.rpartition(":")[2])


@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="this machine has no IPv6")
def test_the_pages_are_served_over_ipv6() -> None:
    with (
        serving(quiet_gateway(), "::1") as url,
        urlopen(f"{url}/ui/") as answer,
    ):
        assert answer.status == 200


def test_a_body_without_the_key_is_not_read() -> None:
    gateway = quiet_gateway()
    with serving(gateway) as url, RawClient(port_of(url)) as client:
        client.send(b"POST /resource_providers HTTP/1.1\r\nContent-Length: 1000000\r\n\r\n")
        answer = client.answer()
        assert (answer.status, answer.headers["connection"]) == (401, "close")


@pytest.mark.parametrize("length", ["-1", "+1", "1_0", "16777217", "9" * 5000])
def test_a_length_that_is_none_or_too_large_is_refused(length: str) -> None:
    gateway = quiet_gateway()
    head = f"POST /traits HTTP/1.1\r\nX-Auth-Token: {KEY}\r\nContent-Length: {length}\r\n\r\n"
    with serving(gateway) as url, RawClient(port_of(url)) as client:
        client.send(head.encode())
        assert client.answer().status == 413


def test_connections_have_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "CONNECTIONS_MAX", 2)

    def is_served() -> bool:
        with RawClient(port_of(url)) as client:
            client.send(b"GET /ui/ HTTP/1.1\r\nConnection: close\r\n\r\n")
            return not client.is_closed()

    with serving(quiet_gateway()) as url:
        with RawClient(port_of(url)), RawClient(port_of(url)):
            assert not is_served()
        wait_until(is_served)
