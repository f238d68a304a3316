"""Requests through keystoneauth: tokens, endpoints, and what a mishap is called."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from keystoneauth1.adapter import Adapter
from keystoneauth1.exceptions import ClientException, ConnectFailure
from keystoneauth1.identity.generic import Password
from keystoneauth1.noauth import NoAuth
from keystoneauth1.plugin import BaseAuthPlugin
from keystoneauth1.session import Session
from keystoneauth1.token_endpoint import Token

from roost.client.errors import AnswerLost, NotConfigured, PlacementAPIConnectFailure
from roost.client.transport import Request
from roost.client.transport.http import Timeouts
from roost.client.transport.retrying import RetryPolicy
from roost.client.transport.session import SessionTransport
from support.cloud_stub import CloudStub
from support.live_server import LiveServer
from support.placement_stub import (
    HangUp,
    PlacementStub,
    Reply,
    Silence,
    make_certificates,
    nobody,
)

GET = Request("GET", "/usages?project_id=x")
POST = Request("POST", "/allocations", {"a": "é"}, version="1.36")
AT_ONCE = RetryPolicy(sleep=lambda _: None)
GLOBAL_ID = "req-6d2a3a3c-55a1-4f3c-8f0c-9a0f4a3cf0aa"


@pytest.fixture
def cloud() -> Iterator[CloudStub]:
    with CloudStub() as stub:
        yield stub


def through(auth: BaseAuthPlugin | None, **options: object) -> SessionTransport:
    """A transport with a session of its own."""
    known: dict[str, object] = {"retries": AT_ONCE, "owns_session": True}
    return SessionTransport(Session(auth=auth), **(known | options))  # type: ignore[arg-type]


def test_a_request_arrives_whole_where_the_catalog_says(cloud: CloudStub) -> None:
    with through(cloud.auth, global_request_id=GLOBAL_ID) as transport:
        answer = transport.send(POST)
    assert answer.json == {"path": "/placement/allocations"}
    (received,) = cloud.placement_requests
    assert received.json == {"a": "é"}
    assert received.headers["content-type"] == "application/json"
    assert received.headers["accept"] == "application/json"
    assert received.headers["openstack-api-version"] == "placement 1.36"
    assert received.headers["x-auth-token"] == "token-1"
    assert received.headers["x-openstack-request-id"] == GLOBAL_ID


def test_an_answer_comes_back_whole() -> None:
    reply = Reply(404, {"errors": []}, {"X-OpenStack-Request-ID": "req-1"})
    with PlacementStub(reply) as stub, through(Token(stub.url, "t")) as transport:
        answer = transport.send(GET)
    assert (answer.status, answer.json, answer.request_id) == (404, {"errors": []}, "req-1")


def test_one_token_serves_many_requests(cloud: CloudStub) -> None:
    with through(cloud.auth) as transport:
        for _ in range(3):
            assert transport.send(GET).ok
    assert cloud.tokens == 1
    assert cloud.connections == 1


def test_a_token_that_expired_is_replaced_and_the_request_sent_again(cloud: CloudStub) -> None:
    with through(cloud.auth) as transport:
        transport.send(POST)
        cloud.expire_token()
        assert transport.send(POST).ok
    sent = [request.headers["x-auth-token"] for request in cloud.placement_requests]
    assert sent == ["token-1", "token-1", "token-3"]


def test_interface_and_region_choose_the_endpoint(cloud: CloudStub) -> None:
    with through(cloud.auth, interface="internal", region_name="RegionOne") as transport:
        assert transport.send(GET).json["path"].startswith("/placement/internal/usages")
    with (
        through(cloud.auth, region_name="RegionTwo") as transport,
        pytest.raises(NotConfigured, match=r"no endpoint.*'placement'.*RegionTwo"),
    ):
        transport.send(GET)


def test_an_adapter_says_where_and_arguments_go_before_it(cloud: CloudStub) -> None:
    session = Session(auth=cloud.auth)
    adapter = Adapter(
        session,
        service_type="placement",
        interface="internal",
        default_microversion="1.2",
        global_request_id=GLOBAL_ID,
        additional_headers={"X-Note": "kept"},
    )
    for interface, path in ((None, "/placement/internal/"), ("public", "/placement/")):
        transport = SessionTransport(adapter, interface=interface)
        assert transport.send(Request("GET", "/")).json["path"] == path
    session.session.close()
    headers = cloud.placement_requests[0].headers
    assert "openstack-api-version" not in headers
    assert (headers["x-openstack-request-id"], headers["x-note"]) == (GLOBAL_ID, "kept")


@pytest.mark.parametrize("mishap", [HangUp(), Reply(503)])
def test_retries_of_others_do_not_repeat_a_claim(mishap: HangUp | Reply) -> None:
    with PlacementStub(mishap, Reply()) as stub:
        session = Session(auth=Token(stub.url, "t"), connect_retries=5)
        adapter = Adapter(session, connect_retries=5, status_code_retries=5)
        with suppress(AnswerLost):
            assert SessionTransport(adapter).send(POST).status == 503
        session.session.close()
    assert len(stub.received) == 1


def test_a_session_is_its_owners_to_close() -> None:
    with PlacementStub() as stub:
        session = Session(auth=Token(stub.url, "t"))
        for _ in range(2):
            with SessionTransport(session) as transport:
                transport.send(GET)
        assert stub.connections == 1
        session.session.close()


def test_an_endpoint_and_no_credentials_are_enough() -> None:
    with PlacementStub() as stub:
        with through(None, endpoint_override=stub.url) as transport:
            assert transport.send(GET).ok
        assert "x-auth-token" not in stub.received[0].headers
    with through(None) as transport, pytest.raises(NotConfigured, match="gave no token"):
        transport.send(GET)


def test_a_refused_connection_is_a_request_that_was_not_sent() -> None:
    with (
        nobody() as url,
        through(Token(url, "t")) as transport,
        pytest.raises(PlacementAPIConnectFailure, match=r"4 attempts.*refused") as caught,
    ):
        transport.send(POST)
    assert isinstance(caught.value.__cause__, ConnectFailure)


@pytest.mark.parametrize("mishap", [HangUp(), HangUp(unread=True), Reply(200, {"a": 1}, sent=3)])
def test_only_a_question_is_asked_again_if_the_answer_is_lost(mishap: HangUp | Reply) -> None:
    with (
        PlacementStub(mishap, Reply(200, "all")) as stub,
        through(Token(stub.url, "t")) as transport,
    ):
        assert transport.send(GET).json == "all"
    with (
        PlacementStub(mishap) as stub,
        through(Token(stub.url, "t"), global_request_id=GLOBAL_ID) as transport,
        pytest.raises(AnswerLost, match="1 attempt") as caught,
    ):
        transport.send(POST)
    assert isinstance(caught.value.__cause__, ClientException)
    assert caught.value.request_id == GLOBAL_ID


def test_a_failure_that_somebody_is_handling_is_not_mistaken_for_a_new_one() -> None:
    with (
        PlacementStub(HangUp()) as stub,
        through(Token(stub.url, "t")) as transport,
        nobody() as url,
        through(Token(url, "t")) as broken,
    ):
        try:
            broken.send(POST)
        except PlacementAPIConnectFailure:
            with pytest.raises(AnswerLost):
                transport.send(POST)


def test_an_answer_that_takes_too_long_is_lost() -> None:
    over = threading.Event()
    with PlacementStub(Silence(over)) as stub:
        with (
            through(Token(stub.url, "t"), timeout=Timeouts(connect=5, read=0.05)) as transport,
            pytest.raises(AnswerLost, match="timed out"),
        ):
            transport.send(POST)
        over.set()


def test_the_timeout_of_the_session_holds() -> None:
    over = threading.Event()
    with PlacementStub(Silence(over)) as stub:
        session = Session(auth=Token(stub.url, "t"), timeout=0.05)
        with (
            SessionTransport(session, owns_session=True) as transport,
            pytest.raises(AnswerLost, match="timed out"),
        ):
            transport.send(POST)
        over.set()


def test_busy_servers_are_asked_again_and_redirects_not_followed() -> None:
    away = Reply(302, headers={"Location": "/elsewhere"})
    with (
        PlacementStub(Reply(503), Reply(200, "done"), away) as stub,
        through(Token(stub.url, "t")) as transport,
    ):
        assert transport.send(GET).json == "done"
        with pytest.raises(NotConfigured, match="/elsewhere"):
            transport.send(GET)
    assert len(stub.received) == 3


def test_refused_credentials_are_no_matter_for_repeating(cloud: CloudStub) -> None:
    cloud.password = "changed"
    with (
        through(cloud.auth) as transport,
        pytest.raises(NotConfigured, match="check the credentials") as caught,
    ):
        transport.send(POST)
    assert (caught.value.status, caught.value.request_id) == (401, "req-from-identity")
    assert cloud.asked == ["POST /v3/auth/tokens"]


def test_credentials_that_are_refused_later_are_the_same_matter(cloud: CloudStub) -> None:
    with through(cloud.auth) as transport:
        transport.send(GET)
        cloud.expire_token()
        cloud.password = "changed"
        with pytest.raises(NotConfigured, match="check the credentials"):
            transport.send(POST)


@pytest.mark.parametrize("mishap", [Reply(503), HangUp()])
@pytest.mark.parametrize("endpoint", [None, "http://placement"])
def test_an_identity_service_in_trouble_is_asked_again(
    mishap: Reply | HangUp, endpoint: str | None
) -> None:
    with CloudStub(mishap) as cloud, through(cloud.auth) as transport:
        assert transport.send(POST).ok
    with (
        CloudStub(*[mishap] * 4) as cloud,
        through(cloud.auth, endpoint_override=endpoint) as transport,
        pytest.raises(PlacementAPIConnectFailure, match="identity service"),
    ):
        transport.send(POST)


def test_an_identity_service_that_is_away_is_not_bad_configuration() -> None:
    with (
        nobody() as url,
        through(Password(auth_url=url, username="u", password="p")) as transport,
        pytest.raises(PlacementAPIConnectFailure, match=r"identity service.*refused"),
    ):
        transport.send(POST)


@pytest.mark.parametrize(
    "auth",
    [
        Password(auth_url="controller:5000", username="u", password="p"),
        Token("controller:8778", "t"),
    ],
)
def test_an_address_that_is_none_is_bad_configuration(auth: BaseAuthPlugin) -> None:
    with through(auth) as transport, pytest.raises(NotConfigured, match=r"controller:.*http://"):
        transport.send(POST)
    with through(NoAuth()) as transport, pytest.raises(NotConfigured, match="no endpoint"):
        transport.send(POST)


def test_a_certificate_that_is_not_trusted_is_bad_configuration(tmp_path: Path) -> None:
    certificates = make_certificates(tmp_path)
    with PlacementStub(tls=certificates.server) as stub:
        with (
            through(Token(stub.url, "t")) as transport,
            pytest.raises(NotConfigured, match=r"not trusted.*cacert"),
        ):
            transport.send(POST)
        session = Session(auth=Token(stub.url, "t"), verify=certificates.authority)
        with SessionTransport(session, owns_session=True) as transport:
            assert transport.send(POST).ok


def test_it_tells_where_it_talks_to_and_no_secret() -> None:
    password = Password(auth_url="http://u:secret@keystone/v3", username="u", password="secret")
    for transport, where in (
        (through(password), "the cloud of ...@keystone/v3"),
        (through(password, endpoint_override="http://placement"), "http://placement"),
        (through(Token("http://placement", "secret")), "http://placement"),
        (through(password, description="my cloud"), "my cloud"),
    ):
        assert str(transport) == where
        transport.close()


def test_a_real_server_answers(server: LiveServer) -> None:
    with through(Token(f"http://127.0.0.1:{server.port}", "admin")) as transport:
        answer = transport.send(Request("GET", "/resource_classes", version="1.39"))
    assert answer.json["resource_classes"][0]["name"] == "VCPU"
    assert answer.request_id is not None
