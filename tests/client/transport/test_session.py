"""The transport through keystoneauth: tokens, endpoints, answers and errors."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from keystoneauth1.adapter import Adapter
from keystoneauth1.exceptions import ClientException, ConnectFailure
from keystoneauth1.identity.generic import Password
from keystoneauth1.noauth import NoAuth
from keystoneauth1.plugin import BaseAuthPlugin
from keystoneauth1.session import Session
from keystoneauth1.token_endpoint import Token

from roost.client.errors import AnswerLost, NotConfigured, PlacementAPIConnectFailure
from roost.client.transport import PlacementRequest
from roost.client.transport.http import Timeouts
from roost.client.transport.retrying import RetryPolicy
from roost.client.transport.session import SessionTransport
from support.servers.live_server import LiveServer
from support.stubs.keystone_stub import KeystoneStub
from support.stubs.placement_stub import (
    HangUp,
    PlacementStub,
    Reply,
    Silence,
    closed_port_url,
    make_certificates,
)

GET = PlacementRequest("GET", "/usages?project_id=x")
POST = PlacementRequest("POST", "/allocations", {"a": "é"}, version="1.36")
AT_ONCE = RetryPolicy(sleep=lambda _: None)
GLOBAL_ID = "req-6d2a3a3c-55a1-4f3c-8f0c-9a0f4a3cf0aa"


@pytest.fixture
def cloud() -> Iterator[KeystoneStub]:
    with KeystoneStub() as stub:
        yield stub


def through(auth: BaseAuthPlugin | None, **options: Any) -> SessionTransport:
    """A transport that owns its session."""
    known: dict[str, Any] = {"retries": AT_ONCE, "owns_session": True}
    return SessionTransport(Session(auth=auth), **(known | options))


def test_the_endpoint_of_the_catalog_receives_the_whole_request(cloud: KeystoneStub) -> None:
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


def test_the_transport_returns_the_whole_answer() -> None:
    reply = Reply(404, {"errors": []}, {"X-OpenStack-Request-ID": "req-1"})
    with PlacementStub(reply) as stub, through(Token(stub.url, "t")) as transport:
        answer = transport.send(GET)
    assert (answer.status, answer.json, answer.request_id) == (404, {"errors": []}, "req-1")


def test_several_requests_use_one_token_and_one_connection(cloud: KeystoneStub) -> None:
    with through(cloud.auth) as transport:
        for _ in range(3):
            assert transport.send(GET).ok
    assert cloud.tokens == 1
    assert cloud.connections == 1


def test_the_session_replaces_an_expired_token_and_repeats_the_request(cloud: KeystoneStub) -> None:
    with through(cloud.auth) as transport:
        transport.send(POST)
        cloud.expire_token()
        assert transport.send(POST).ok
    sent = [request.headers["x-auth-token"] for request in cloud.placement_requests]
    assert sent == ["token-1", "token-1", "token-3"]


def test_interface_and_region_choose_the_endpoint(cloud: KeystoneStub) -> None:
    with through(cloud.auth, interface="internal", region_name="RegionOne") as transport:
        assert transport.send(GET).json["path"].startswith("/placement/internal/usages")
    with (
        through(cloud.auth, region_name="RegionTwo") as transport,
        pytest.raises(NotConfigured, match=r"no endpoint.*'placement'.*RegionTwo"),
    ):
        transport.send(GET)


def test_arguments_take_precedence_over_an_adapter(cloud: KeystoneStub) -> None:
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
        assert transport.send(PlacementRequest("GET", "/")).json["path"] == path
    session.session.close()
    headers = cloud.placement_requests[0].headers
    assert "openstack-api-version" not in headers
    assert (headers["x-openstack-request-id"], headers["x-note"]) == (GLOBAL_ID, "kept")


@pytest.mark.parametrize("mishap", [HangUp(), Reply(503)])
def test_retries_of_the_session_and_the_adapter_do_not_repeat_a_claim(
    mishap: HangUp | Reply,
) -> None:
    with PlacementStub(mishap, Reply()) as stub:
        session = Session(auth=Token(stub.url, "t"), connect_retries=5)
        adapter = Adapter(session, connect_retries=5, status_code_retries=5)
        with suppress(AnswerLost):
            assert SessionTransport(adapter).send(POST).status == 503
        session.session.close()
    assert len(stub.received) == 1


def test_close_leaves_a_session_open_that_the_transport_does_not_own() -> None:
    with PlacementStub() as stub:
        session = Session(auth=Token(stub.url, "t"))
        for _ in range(2):
            with SessionTransport(session) as transport:
                transport.send(GET)
        assert stub.connections == 1
        session.session.close()


def test_an_endpoint_without_credentials_gets_no_token() -> None:
    with PlacementStub() as stub:
        with through(None, endpoint_override=stub.url) as transport:
            assert transport.send(GET).ok
        assert "x-auth-token" not in stub.received[0].headers
    with through(None) as transport, pytest.raises(NotConfigured, match="gave no token"):
        transport.send(GET)


def test_a_request_counts_as_not_sent_after_a_refused_connection() -> None:
    with (
        closed_port_url() as url,
        through(Token(url, "t")) as transport,
        pytest.raises(PlacementAPIConnectFailure, match=r"4 attempts.*refused") as caught,
    ):
        transport.send(POST)
    assert isinstance(caught.value.__cause__, ConnectFailure)


@pytest.mark.parametrize("mishap", [HangUp(), HangUp(unread=True), Reply(200, {"a": 1}, sent=3)])
def test_the_transport_repeats_a_read_but_no_claim_after_a_lost_answer(
    mishap: HangUp | Reply,
) -> None:
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


def test_an_exception_that_the_caller_handles_is_no_cause_of_a_failure() -> None:
    with (
        PlacementStub(HangUp()) as stub,
        through(Token(stub.url, "t")) as transport,
        closed_port_url() as url,
        through(Token(url, "t")) as broken,
    ):
        try:
            broken.send(POST)
        except PlacementAPIConnectFailure:
            with pytest.raises(AnswerLost):
                transport.send(POST)


def test_an_answer_after_the_timeout_is_lost() -> None:
    over = threading.Event()
    with PlacementStub(Silence(over)) as stub:
        with (
            through(Token(stub.url, "t"), timeout=Timeouts(connect=5, read=0.05)) as transport,
            pytest.raises(AnswerLost, match="timed out"),
        ):
            transport.send(POST)
        over.set()


def test_the_timeout_of_the_session_applies() -> None:
    over = threading.Event()
    with PlacementStub(Silence(over)) as stub:
        session = Session(auth=Token(stub.url, "t"), timeout=0.05)
        with (
            SessionTransport(session, owns_session=True) as transport,
            pytest.raises(AnswerLost, match="timed out"),
        ):
            transport.send(POST)
        over.set()


def test_the_transport_repeats_a_read_after_503_and_follows_no_redirect() -> None:
    redirect = Reply(302, headers={"Location": "/elsewhere"})
    with (
        PlacementStub(Reply(503), Reply(200, "done"), redirect) as stub,
        through(Token(stub.url, "t")) as transport,
    ):
        assert transport.send(GET).json == "done"
        with pytest.raises(NotConfigured, match="/elsewhere"):
            transport.send(GET)
    assert len(stub.received) == 3


def test_refused_credentials_are_an_error_of_configuration(cloud: KeystoneStub) -> None:
    cloud.password = "changed"
    with (
        through(cloud.auth) as transport,
        pytest.raises(NotConfigured, match="check the credentials") as caught,
    ):
        transport.send(POST)
    assert (caught.value.status, caught.value.request_id) == (401, "req-from-identity")
    assert cloud.asked == ["POST /v3/auth/tokens"]


def test_credentials_that_are_refused_at_the_renewal_are_an_error_of_configuration(
    cloud: KeystoneStub,
) -> None:
    with through(cloud.auth) as transport:
        transport.send(GET)
        cloud.expire_token()
        cloud.password = "changed"
        with pytest.raises(NotConfigured, match="check the credentials"):
            transport.send(POST)


@pytest.mark.parametrize("mishap", [Reply(503), HangUp()])
@pytest.mark.parametrize("endpoint", [None, "http://placement"])
def test_the_transport_repeats_after_a_failure_of_the_identity_service(
    mishap: Reply | HangUp, endpoint: str | None
) -> None:
    with KeystoneStub(mishap) as cloud, through(cloud.auth) as transport:
        assert transport.send(POST).ok
    with (
        KeystoneStub(*[mishap] * 4) as cloud,
        through(cloud.auth, endpoint_override=endpoint) as transport,
        pytest.raises(PlacementAPIConnectFailure, match="identity service"),
    ):
        transport.send(POST)


def test_an_unreachable_identity_service_is_a_failure_to_connect() -> None:
    with (
        closed_port_url() as url,
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
def test_a_wrong_address_is_an_error_of_configuration(auth: BaseAuthPlugin) -> None:
    with through(auth) as transport, pytest.raises(NotConfigured, match=r"controller:.*http://"):
        transport.send(POST)
    with through(NoAuth()) as transport, pytest.raises(NotConfigured, match="no endpoint"):
        transport.send(POST)


def test_an_untrusted_certificate_is_an_error_of_configuration(tmp_path: Path) -> None:
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


def test_the_description_of_the_transport_has_no_secret() -> None:
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
        answer = transport.send(PlacementRequest("GET", "/resource_classes", version="1.39"))
    assert answer.json["resource_classes"][0]["name"] == "VCPU"
    assert answer.request_id is not None
