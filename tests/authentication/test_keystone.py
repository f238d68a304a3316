"""`auth_strategy = keystone`: tokens, scopes, service tokens and the cache, with a small stub."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Hashable
from dataclasses import replace
from typing import Any

import pytest

from roost.api.authentication import token_validation
from roost.api.authentication.token_validation import KnownToken, TokenCache
from support.api_client import Answer, ApiClient, Configured
from support.stubs.identity_stub import IdentityStub

pytestmark = pytest.mark.parametrize("kind", ["sqlite"], indirect=True)

REFUSAL = {
    "error": {
        "code": 401,
        "title": "Unauthorized",
        "message": "The request you have made requires authentication.",
    }
}
SYSTEM = {"project": None, "system": {"all": True}}
DOMAIN = {"project": None, "domain": {"id": "default", "name": "Default"}}


@pytest.fixture
def service(identity: IdentityStub, configured: Configured) -> ApiClient:
    """The API with the usual configuration of an operator."""
    return configured(identity.section)


def ask(api: ApiClient, token: str | None, path: str = "/traits", **headers: str) -> Answer:
    return replace(api, token=token).get(path, **headers)


def status(api: ApiClient, token: str | None, path: str = "/traits", **headers: str) -> int:
    return ask(api, token, path, **headers).status


# Refusals.


@pytest.mark.parametrize("token", [None, "", "garbage", "x" * 9000, "a\tb", "t\u00f6ken"])
@pytest.mark.parametrize("accept", ["application/json", "text/html", "text/plain"])
def test_a_request_without_a_valid_token_is_refused_in_json(
    service: ApiClient, identity: IdentityStub, token: str | None, accept: str
) -> None:
    answer = ask(service, token, accept=accept)
    assert answer.status == 401
    assert answer.json == REFUSAL
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["www-authenticate"] == f'Keystone uri="{identity.url}"'
    assert "x-openstack-request-id" in answer.headers
    assert "openstack-api-version" not in answer.headers


@pytest.mark.parametrize("path", ["/nowhere", "/traits?bad=1", "/resource_providers"])
@pytest.mark.parametrize("method", ["GET", "PATCH", "HEAD"])
def test_authentication_comes_before_routes_methods_and_versions(
    service: ApiClient, method: str, path: str
) -> None:
    stranger = replace(service, token="garbage").at("99.99")
    answer = stranger.request(method, path)
    assert answer.status == 401
    assert answer.body == (b"" if method == "HEAD" else json.dumps(REFUSAL).encode())


def test_the_version_document_ignores_tokens(service: ApiClient, identity: IdentityStub) -> None:
    assert status(service, None, "/") == 200
    assert status(service, "garbage", "/") == 200
    assert identity.requests.total() == 0


def test_texts_that_cannot_be_tokens_are_refused_without_a_question(
    service: ApiClient, identity: IdentityStub
) -> None:
    for token in ("", "x" * 9000, "a\tb", "t\u00f6ken"):
        assert status(service, token) == 401
    assert identity.requests.total() == 0


def test_without_an_address_for_clients_the_challenge_names_auth_url(
    identity: IdentityStub, configured: Configured
) -> None:
    section = identity.section.replace(f"www_authenticate_uri = {identity.url}\n", "")
    answer = ask(configured(section), None)
    assert answer.headers["www-authenticate"] == f'Keystone uri="{identity.url}/v3"'


def test_a_delayed_decision_gets_the_usual_form_of_an_error(
    identity: IdentityStub, configured: Configured
) -> None:
    api = configured(f"{identity.section}delay_auth_decision = true\n")
    for token in (None, "garbage"):
        answer = ask(api, token)
        assert answer.status == 401
        assert answer.json["code"] == "401 Unauthorized"
        assert answer.headers["www-authenticate"] == f'Keystone uri="{identity.url}"'


# Identity comes from the token alone.


def test_the_caller_has_the_roles_and_the_project_of_the_token(
    service: ApiClient, identity: IdentityStub
) -> None:
    identity.add("boss", "admin")
    identity.add("viewer", "reader", project="lab")
    identity.add("nobody")
    assert status(service, "boss") == 200
    assert status(service, "viewer") == 403
    assert status(service, "viewer", "/usages?project_id=lab") == 200
    assert status(service, "viewer", "/usages?project_id=office") == 403
    assert status(service, "nobody") == 403


FORGED = {
    "X-Roles": "admin",
    "X-Role": "admin",
    "X-User-Id": "admin",
    "X-User": "admin",
    "X-Project-Id": "office",
    "X-Tenant-Id": "office",
    "X-Identity-Status": "Confirmed",
    "X-Service-Roles": "service",
    "X-Service-Identity-Status": "Confirmed",
    "X-Is-Admin-Project": "True",
    "X-Domain-Id": "default",
    "OpenStack-System-Scope": "all",
}


@pytest.mark.parametrize("spell", [str, str.lower, lambda name: name.replace("-", "_")])
def test_no_identity_is_taken_from_headers(
    service: ApiClient, identity: IdentityStub, spell: Callable[[str], str]
) -> None:
    identity.add("viewer", "reader", project="lab")
    identity.add("boss", "admin")
    forged = {spell(name): value for name, value in FORGED.items()}
    for token, path, expected in [
        ("viewer", "/traits", 403),
        ("viewer", "/usages?project_id=lab", 200),
        ("viewer", "/usages?project_id=office", 403),
        ("garbage", "/traits", 401),
        (None, "/traits", 401),
        # A forged scope would take the permission away.
        ("boss", "/traits", 200),
    ]:
        client = replace(service, token=token)
        # Cold, then warm.
        for _ in range(2):
            assert client.request("GET", path, headers=forged).status == expected


@pytest.mark.parametrize("content", [SYSTEM, DOMAIN], ids=["system", "domain"])
def test_tokens_of_other_scopes_are_forbidden_whatever_the_role(
    service: ApiClient, identity: IdentityStub, content: dict[str, Any]
) -> None:
    identity.add("boss", "admin", "service", **content)
    answer = ask(service, "boss")
    assert answer.status == 403
    assert answer.detail.split("\n\n")[1].strip() == "placement:traits:list"


def test_an_unscoped_token_is_forbidden(service: ApiClient, identity: IdentityStub) -> None:
    identity.add("nowhere", project=None)
    assert status(service, "nowhere") == 403


def test_policy_files_can_ask_for_what_else_the_token_says(
    identity: IdentityStub, configured: Configured
) -> None:
    policy = {
        "placement:traits:list": "service_roles:service and user_domain_id:default",
        "placement:resource_classes:list": "is_admin_project:True",
    }
    api = configured(identity.section, policy=json.dumps(policy))
    identity.add("ann", "member")
    identity.add("bob", "member", is_admin_project=False)
    identity.add("nova", "service", project="service")
    assert status(api, "ann") == 403
    assert status(api, "ann", x_service_token="nova") == 200
    assert status(api, "ann", "/resource_classes") == 200
    assert status(api, "bob", "/resource_classes") == 403


# Service tokens.


@pytest.mark.parametrize(
    ("user", "service_token", "expected"),
    [
        ("good", "nova", 200),
        ("good", "", 200),
        ("expired", "nova", 200),
        ("expired", "", 401),
        ("expired", "member", 401),
        ("good", "member", 401),
        ("good", "garbage", 401),
        ("good", "late nova", 401),
        ("garbage", "nova", 401),
        ("viewer", "nova", 403),
        (None, "nova", 401),
    ],
)
def test_a_service_token_must_be_valid_and_lets_an_expired_token_pass(
    service: ApiClient, identity: IdentityStub, user: str, service_token: str, expected: int
) -> None:
    identity.add("good", "admin")
    identity.add("viewer", "reader")
    identity.add("expired", "admin", seconds=-60)
    identity.add("nova", "service", project="service")
    identity.add("late nova", "service", project="service", seconds=-60)
    identity.add("member", "member")
    for _ in range(2):
        assert status(service, user, x_service_token=service_token) == expected


@pytest.mark.parametrize("content", [SYSTEM, DOMAIN], ids=["system", "domain"])
def test_the_scope_of_the_user_decides_even_beside_a_service_token(
    service: ApiClient, identity: IdentityStub, content: dict[str, Any]
) -> None:
    identity.add("boss", "admin", **content)
    identity.add("nova", "service", project="service")
    assert status(service, "boss", x_service_token="nova") == 403


def test_an_expired_token_that_a_service_may_use_is_still_refused_alone(
    service: ApiClient, identity: IdentityStub
) -> None:
    identity.add("expired", "admin", seconds=-60)
    identity.add("nova", "service", project="service")
    assert status(service, "expired", x_service_token="nova") == 200
    assert status(service, "expired") == 401


def test_a_service_token_without_the_role_counts_if_the_operator_wants_that(
    identity: IdentityStub, configured: Configured
) -> None:
    api = configured(f"{identity.section}service_token_roles_required = false\n")
    identity.add("good", "admin")
    identity.add("expired", "admin", seconds=-60)
    identity.add("member", "member")
    assert status(api, "good", x_service_token="member") == 200
    assert status(api, "expired", x_service_token="member") == 401


# Access rules of application credentials.

RULES: dict[str, Any] = {
    "application_credential": {
        "id": "1",
        "access_rules": [{"service": "placement", "method": "GET", "path": "/traits/*"}],
    },
    "catalog": [{"type": "placement", "name": "placement", "endpoints": []}],
}


def test_access_rules_need_the_type_of_the_service(
    service: ApiClient, identity: IdentityStub
) -> None:
    identity.add("restricted", "admin", **RULES)
    assert status(service, "restricted", "/traits/HW_CPU_X86_AVX") == 401


def test_access_rules_are_checked_for_each_request(
    identity: IdentityStub, configured: Configured
) -> None:
    api = configured(f"{identity.section}service_type = placement\n")
    identity.add("restricted", "admin", **RULES)
    identity.add("nova", "service", project="service")
    restricted = replace(api, token="restricted")
    for _ in range(2):
        assert restricted.get("/traits/HW_CPU_X86_AVX").status == 204
        assert restricted.get("/traits").status == 401
        assert restricted.put("/traits/CUSTOM_GOLD").status == 401
        assert restricted.get("/traits", x_service_token="nova").status == 200
    assert identity.validations == 3


def test_a_prefix_in_a_header_does_not_widen_access_rules(
    identity: IdentityStub, configured: Configured
) -> None:
    proxies = "[oslo_middleware]\nenable_proxy_headers_parsing = true\n"
    api = configured(f"{identity.section}service_type = placement\n{proxies}")
    identity.add("restricted", "admin", **RULES)
    restricted = replace(api, token="restricted")
    pretended = {"x_forwarded_prefix": "/traits"}
    assert restricted.get("/resource_classes", **pretended).status == 401
    assert restricted.get("/traits/HW_CPU_X86_AVX", **pretended).status == 204


# The cache.


def test_a_token_is_asked_for_once(service: ApiClient, identity: IdentityStub) -> None:
    identity.add("good", "admin")
    identity.add("other", "admin")
    assert [status(service, "good") for _ in range(5)] == [200] * 5
    assert identity.validations == 1
    assert status(service, "other") == 200
    assert identity.validations == 2


def test_an_invalid_token_is_asked_for_each_time(
    service: ApiClient, identity: IdentityStub
) -> None:
    assert status(service, "early") == 401
    identity.add("early", "admin")
    assert status(service, "early") == 200


def test_without_a_cache_each_request_is_a_question(
    identity: IdentityStub, configured: Configured
) -> None:
    api = configured(f"{identity.section}token_cache_time = -1\n")
    identity.add("good", "admin")
    assert [status(api, "good") for _ in range(3)] == [200] * 3
    assert identity.validations == 3
    del identity.tokens["good"]
    assert status(api, "good") == 401


class Clocks:
    """The clocks of the cache, which a test advances."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.seconds = 0.0
        monkeypatch.setattr(token_validation, "time", self)

    def monotonic(self) -> float:
        return time.monotonic() + self.seconds

    def time(self) -> float:
        return time.time() + self.seconds


@pytest.mark.parametrize(
    ("line", "kept"), [("", 300), ("token_cache_time = 60\n", 60), ("token_cache_time = 0\n", 0)]
)
def test_a_revoked_token_is_refused_when_its_time_in_the_cache_is_over(
    identity: IdentityStub,
    configured: Configured,
    monkeypatch: pytest.MonkeyPatch,
    line: str,
    kept: int,
) -> None:
    clocks = Clocks(monkeypatch)
    api = configured(identity.section + line)
    identity.add("good", "admin")
    assert status(api, "good") == 200
    del identity.tokens["good"]
    if kept:
        clocks.seconds = kept - 5
        assert status(api, "good") == 200
    clocks.seconds = kept + 1
    assert status(api, "good") == 401


def test_a_token_that_expires_in_the_cache_is_refused_at_that_moment(
    service: ApiClient, identity: IdentityStub, monkeypatch: pytest.MonkeyPatch
) -> None:
    clocks = Clocks(monkeypatch)
    identity.add("short", "admin", seconds=30)
    assert status(service, "short") == 200
    clocks.seconds = 25
    assert status(service, "short") == 200
    # The stub looks at the real clock, so the cache alone refuses.
    del identity.tokens["short"]
    clocks.seconds = 31
    assert status(service, "short") == 401


def test_the_verdict_beside_a_service_token_ends_with_the_service_token(
    service: ApiClient, identity: IdentityStub, monkeypatch: pytest.MonkeyPatch
) -> None:
    clocks = Clocks(monkeypatch)
    identity.add("expired", "admin", seconds=-60)
    identity.add("nova", "service", project="service", seconds=30)
    assert status(service, "expired", x_service_token="nova") == 200
    del identity.tokens["nova"]
    clocks.seconds = 25
    assert status(service, "expired", x_service_token="nova") == 200
    clocks.seconds = 31
    assert status(service, "expired", x_service_token="nova") == 401


def test_the_cache_has_no_token_in_it(
    identity: IdentityStub, configured: Configured, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept: list[object] = []
    keep = TokenCache.keep

    def watch(cache: TokenCache, key: Hashable, token: KnownToken) -> None:
        kept.extend([key, token])
        keep(cache, key, token)

    monkeypatch.setattr(TokenCache, "keep", watch)
    api = configured(identity.section)
    identity.add("confidential", "admin")
    identity.add("confidential service", "service")
    for token in identity.tokens.values():
        token["user"]["id"] = "ann"
    assert status(api, "confidential", x_service_token="confidential service") == 200
    assert kept
    assert "confidential" not in repr(kept)
