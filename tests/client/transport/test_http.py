"""The HTTP transport: the requests that it sends, its answers and its errors."""

from __future__ import annotations

import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import urllib3

from roost.client.errors import AnswerLost, NotConfigured, PlacementAPIConnectFailure
from roost.client.outcome import Outcome, outcome_of
from roost.client.transport import PlacementRequest
from roost.client.transport import http as http_transport
from roost.client.transport.http import HttpTransport, Timeouts, server_url
from roost.client.transport.retrying import RetryPolicy
from support.servers.live_server import LiveServer
from support.stubs.placement_stub import (
    Certificates,
    HangUp,
    PlacementStub,
    Received,
    Reply,
    Silence,
    closed_port_url,
    make_certificates,
)

GET = PlacementRequest("GET", "/usages?project_id=x")
POST = PlacementRequest("POST", "/allocations", {"a": "é"}, version="1.36")
AT_ONCE = RetryPolicy(sleep=lambda _: None)
GLOBAL_ID = "req-6d2a3a3c-55a1-4f3c-8f0c-9a0f4a3cf0aa"


def to(stub: PlacementStub, path: str = "") -> HttpTransport:
    return HttpTransport(stub.url + path, "admin", retries=AT_ONCE)


@pytest.fixture(autouse=True)
def _no_idle_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a slow machine a connection may be idle for long between two requests."""
    monkeypatch.setattr(http_transport, "IDLE_SECONDS", 3600.0)


@pytest.fixture
def certificates(tmp_path: Path) -> Certificates:
    return make_certificates(tmp_path)


def test_the_server_receives_the_whole_request() -> None:
    with (
        PlacementStub() as stub,
        HttpTransport(stub.url, "secret", global_request_id=GLOBAL_ID) as transport,
    ):
        transport.send(POST)
    (received,) = stub.received
    assert (received.method, received.path) == ("POST", "/allocations")
    assert received.json == {"a": "é"}
    assert received.headers["content-type"] == "application/json"
    assert received.headers["openstack-api-version"] == "placement 1.36"
    assert received.headers["x-auth-token"] == "secret"
    assert received.headers["x-openstack-request-id"] == GLOBAL_ID
    assert received.headers["user-agent"].startswith("roost/")


def test_the_transport_sends_no_header_without_a_value() -> None:
    with PlacementStub() as stub, HttpTransport(stub.url) as transport:
        transport.send(GET)
    (received,) = stub.received
    assert received.path == "/usages?project_id=x"
    absent = {"x-auth-token", "x-openstack-request-id", "content-type", "openstack-api-version"}
    assert not absent & set(received.headers)


def test_the_transport_returns_the_whole_answer() -> None:
    reply = Reply(404, {"errors": []}, {"X-OpenStack-Request-ID": "req-1", "Vary": "a, b"})
    with PlacementStub(reply) as stub, to(stub) as transport:
        answer = transport.send(GET)
    assert (answer.status, answer.json, answer.request_id) == (404, {"errors": []}, "req-1")
    assert answer.headers["vary"] == "a, b"


@pytest.mark.parametrize("path", ["/placement", "/placement/"])
def test_a_url_may_have_a_path(path: str) -> None:
    with PlacementStub() as stub, to(stub, path) as transport:
        transport.send(GET)
    assert stub.asked == ["GET /placement/usages?project_id=x"]


def test_the_transport_uses_a_connection_again() -> None:
    with PlacementStub() as stub, to(stub) as transport:
        for _ in range(3):
            transport.send(POST)
    assert stub.connections == 1


def test_threads_use_separate_connections_which_later_threads_use_again() -> None:
    together = threading.Barrier(4)

    def answer(_: Received) -> Reply:
        together.wait()
        return Reply()

    with PlacementStub(otherwise=answer) as stub, to(stub) as transport:
        for _ in range(2):
            with ThreadPoolExecutor(4) as threads:
                answers = list(threads.map(transport.send, [POST] * 4))
            assert [answer.status for answer in answers] == [200] * 4
    assert stub.connections == 4


def test_the_transport_replaces_a_connection_that_the_server_closed() -> None:
    with PlacementStub() as stub, to(stub) as transport:
        transport.send(POST)
        stub.drop_connections()
        assert transport.send(POST).ok
    assert stub.asked == ["POST /allocations"] * 2


def test_the_transport_replaces_a_connection_that_was_idle_for_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with PlacementStub() as stub, to(stub) as transport:
        transport.send(POST)
        monkeypatch.setattr(http_transport, "IDLE_SECONDS", 0.0)
        transport.send(POST)
    assert stub.connections == 2


def test_a_request_counts_as_not_sent_after_a_refused_connection() -> None:
    with (
        closed_port_url() as url,
        HttpTransport(url, retries=AT_ONCE) as transport,
        pytest.raises(PlacementAPIConnectFailure) as caught,
    ):
        transport.send(POST)
    assert outcome_of(caught.value) is Outcome.NOT_DONE
    assert str(caught.value).startswith(f"no connection to {url}")
    assert "(4 attempts): Connection refused" in str(caught.value)


def test_a_request_counts_as_not_sent_without_an_address_of_the_host() -> None:
    with (
        HttpTransport("http://nobody.invalid", retries=AT_ONCE) as transport,
        pytest.raises(PlacementAPIConnectFailure, match=r"nobody\.invalid"),
    ):
        transport.send(POST)


@pytest.mark.parametrize("mishap", [HangUp(), HangUp(unread=True), Reply(200, {"a": 1}, sent=3)])
def test_the_transport_does_not_repeat_a_claim_without_whole_answer(mishap: HangUp | Reply) -> None:
    with (
        PlacementStub(mishap) as stub,
        to(stub) as transport,
        pytest.raises(AnswerLost, match=r"1 attempt") as caught,
    ):
        transport.send(POST)
    assert outcome_of(caught.value) is Outcome.UNKNOWN
    assert stub.connections == 1


@pytest.mark.parametrize("mishap", [HangUp(), HangUp(unread=True), Reply(200, {"a": 1}, sent=3)])
def test_the_transport_repeats_a_read_without_whole_answer(mishap: HangUp | Reply) -> None:
    with PlacementStub(Reply(), mishap, Reply(200, "all")) as stub, to(stub) as transport:
        transport.send(GET)
        assert transport.send(GET).json == "all"
    assert stub.connections == 2


def test_the_http_library_repeats_nothing() -> None:
    with (
        PlacementStub(HangUp()) as stub,
        HttpTransport(stub.url, retries=RetryPolicy(repeats=0)) as transport,
        pytest.raises(AnswerLost, match="1 attempt"),
    ):
        transport.send(GET)
    assert len(stub.received) == 1


def test_close_closes_the_connections() -> None:
    with PlacementStub() as stub:
        with to(stub) as transport:
            transport.send(GET)
        assert stub.all_hung_up()


def test_the_error_for_an_incomplete_answer_has_its_request_id() -> None:
    reply = Reply(200, {"a": 1}, {"X-OpenStack-Request-ID": "req-1"}, sent=3)
    with (
        PlacementStub(reply) as stub,
        to(stub) as transport,
        pytest.raises(AnswerLost, match="broke off") as caught,
    ):
        transport.send(POST)
    assert caught.value.request_id == "req-1"


def test_an_answer_after_the_timeout_is_lost() -> None:
    over = threading.Event()
    with PlacementStub(Silence(over)) as stub:
        with (
            HttpTransport(stub.url, timeout=Timeouts(connect=5, read=0.05)) as transport,
            pytest.raises(AnswerLost, match="timed out"),
        ):
            transport.send(POST)
        over.set()


def test_the_transport_repeats_a_read_but_no_claim_after_503() -> None:
    script = [Reply(503), Reply(504), Reply(200, "done")]
    with PlacementStub(*script) as stub, to(stub) as transport:
        assert transport.send(GET).json == "done"
    with PlacementStub(Reply(503), Reply(200)) as stub, to(stub) as transport:
        assert transport.send(POST).status == 503


def test_a_redirect_is_an_error_that_names_its_target() -> None:
    with (
        PlacementStub(Reply(302, headers={"Location": "/elsewhere"})) as stub,
        to(stub) as transport,
        pytest.raises(NotConfigured, match="/elsewhere"),
    ):
        transport.send(GET)
    assert len(stub.received) == 1


def test_the_transport_ignores_proxies_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    with closed_port_url() as url, PlacementStub() as stub, to(stub) as transport:
        monkeypatch.setenv("http_proxy", url)
        assert transport.send(GET).ok


def test_the_description_of_the_transport_has_no_secret() -> None:
    with HttpTransport("http://controller/placement/", "secret") as transport:
        assert str(transport) == transport.describe() == "http://controller/placement"
        assert "secret" not in repr(transport)


@pytest.mark.parametrize(
    ("url", "hint"),
    [
        ("127.0.0.1:8778", "begin with http://"),
        ("localhost:8778", "begin with http://"),
        ("controller/placement", "begin with http://"),
        ("ftp://controller", "begin with http://"),
        ("", "begin with http://"),
        ("http://", "names no host"),
        ("http://:8778", "names no host"),
        ("http://controller:port", "cannot be read"),
        ("http://controller:99999", "cannot be read"),
        ("http://[::1", "cannot be read"),
        ("http://controller/placement?x=1", "query"),
        ("http://con troller", "space"),
        ("http://admin:secret@controller", "http_basic"),
        ("admin:secret@controller", "begin with http://"),
    ],
)
def test_an_error_explains_a_wrong_url_without_its_secrets(url: str, hint: str) -> None:
    with pytest.raises(NotConfigured, match="the URL") as caught:
        HttpTransport(url)
    assert hint in str(caught.value)
    assert "secret" not in str(caught.value)


def test_a_url_may_have_spaces_around_it_and_capitals() -> None:
    assert server_url(" HTTP://Controller:8778/ ") == "http://Controller:8778"


@pytest.mark.parametrize("token", ["", "line\n", "tökén"])
def test_a_token_that_no_header_can_contain_is_refused(token: str) -> None:
    with pytest.raises(NotConfigured, match="token"):
        HttpTransport("http://controller", token)


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), float("inf")])
def test_a_timeout_must_be_positive_and_finite(seconds: float) -> None:
    with pytest.raises(NotConfigured, match="connect timeout"):
        HttpTransport("http://controller", timeout=seconds)


def test_the_transport_checks_the_certificate_against_the_given_authority(
    certificates: Certificates,
) -> None:
    with PlacementStub(tls=certificates.server) as stub:
        with HttpTransport(stub.url, ca_file=certificates.authority) as transport:
            assert transport.send(GET).ok
        with (
            HttpTransport(stub.url, retries=AT_ONCE) as transport,
            pytest.raises(NotConfigured, match=r"is not trusted.*CA file"),
        ):
            transport.send(POST)
        assert len(stub.received) == 1
        with (
            HttpTransport(stub.url, insecure=True) as transport,
            pytest.warns(urllib3.exceptions.InsecureRequestWarning),
        ):
            assert transport.send(GET).ok


def test_a_request_counts_as_not_sent_after_a_failed_handshake() -> None:
    with (
        PlacementStub(*[HangUp(unread=True)] * 4) as stub,
        HttpTransport(f"https://127.0.0.1:{stub.port}", retries=AT_ONCE) as transport,
        pytest.raises(PlacementAPIConnectFailure, match="4 attempts"),
    ):
        transport.send(POST)


def test_a_request_counts_as_not_sent_after_a_slow_handshake() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as silent,
        HttpTransport(
            f"https://127.0.0.1:{silent.getsockname()[1]}",
            timeout=0.05,
            retries=RetryPolicy(repeats=0),
        ) as transport,
        pytest.raises(PlacementAPIConnectFailure, match="timed out"),
    ):
        transport.send(POST)


@pytest.mark.parametrize("content", [None, "no certificate"])
def test_an_error_names_a_ca_file_that_cannot_be_used(tmp_path: Path, content: str | None) -> None:
    file = tmp_path / "ca.pem"
    if content is not None:
        file.write_text(content)
    with pytest.raises(NotConfigured, match=r"ca\.pem cannot be used"):
        HttpTransport("https://controller", ca_file=str(file))
    with pytest.raises(NotConfigured, match="insecure"):
        HttpTransport("https://controller", ca_file=str(file), insecure=True)


def test_a_real_server_answers(server: LiveServer) -> None:
    with HttpTransport(
        f"http://127.0.0.1:{server.port}", "admin", global_request_id=GLOBAL_ID
    ) as transport:
        answer = transport.send(PlacementRequest("GET", "/resource_classes", version="1.39"))
        missing = transport.send(
            PlacementRequest("GET", "/resource_classes/CUSTOM_NO", version="1.39")
        )
    assert {"name": "VCPU"}.items() <= answer.json["resource_classes"][0].items()
    assert missing.status == 404
    assert missing.request_id is not None
    assert missing.request_id.startswith("req-")
