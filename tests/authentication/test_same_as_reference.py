"""Roost and the reference, side by side with one real Keystone: what each caller may do."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from roost.api.routes import ROUTES
from roost.api.routing import Route
from support.api_client import Answer, ApiClient
from support.requirements import reference_environment
from support.servers.live_server import LiveServer, ReferenceServer
from support.servers.real_keystone import ROLES, RealKeystone

pytestmark = pytest.mark.slow

PROVIDER = "c0ffee00-0000-0000-0000-000000000001"
CONSUMER = "c0ffee00-0000-0000-0000-00000000c001"
SYSTEM = {"system": {"all": True}}
DOMAIN = {"domain": {"id": "default"}}
GUARDED = [route for route in ROUTES if route.rule is not None]
INVALID = ("none", "empty", "garbage", "expired", "revoked")
# Without the routes of Roost alone.
COMMON = [route for route in GUARDED if not route.path.startswith("/roost/")]
# What has an id, a time, or a position of its own in each server.
OWN_HEADERS = {
    *("x-openstack-request-id", "date", "server", "connection", "content-length"),
    *("last-modified", "vary", "keep-alive"),
}


def use(client: ApiClient, route: Route, headers: Mapping[str, str] | None = None) -> Answer:
    """Request a route in the last version that knows the route, with an empty body."""
    path = route.path.format(
        uuid=PROVIDER,
        provider=PROVIDER,
        consumer=CONSUMER,
        name="CUSTOM_GOLD",
        resource_class="VCPU",
    )
    body: dict[str, str] | None = {} if route.takes_json else None
    return client.at(str(route.until)).request(route.method, path, body, headers)


def shown(answer: Answer) -> Any:
    """What a client sees of a refusal, without ids."""
    content: Any = answer.body
    if answer.headers.get("content-type", "").startswith("application/json"):
        content = json.loads(answer.body or b"null")
        for error in content.get("errors", []) if isinstance(content, dict) else []:
            error.pop("request_id")
    headers = {name: value for name, value in answer.headers.items() if name not in OWN_HEADERS}
    return answer.status, headers, content


# Servers take seconds to start, and the defaults of the policy decide nothing in these tests.
with_new_defaults = pytest.mark.parametrize("pair", [True], indirect=True)


class Pair:
    """Both servers, live, with the same configuration and one Keystone."""

    def __init__(self, roost: LiveServer, reference: LiveServer) -> None:
        self.server = roost
        self.roost = roost.client()
        self.reference = reference.client()

    def request(
        self, token: str | None, path: str = "/traits", **headers: str
    ) -> tuple[Answer, Answer]:
        """The answers of both to a request."""
        roost, reference = (
            replace(one, token=token).get(path, **headers) for one in (self.roost, self.reference)
        )
        return roost, reference

    def statuses(self, token: str | None, path: str = "/traits", **headers: str) -> list[int]:
        return [answer.status for answer in self.request(token, path, **headers)]


@contextmanager
def serving(directory: Path, section: str, *, new_defaults: bool = True) -> Iterator[Pair]:
    """Both servers with these lines of `placement.conf`."""
    places = directory / "roost", directory / "reference"
    for place in places:
        place.mkdir()
    (places[0] / "policy.yaml").write_text("{}")
    configuration = (
        f"[api]\nauth_strategy = keystone\n[oslo_policy]\nenforce_new_defaults = {new_defaults}\n"
        f"policy_file = {places[0]}/policy.yaml\n{section}"
    )
    roost = LiveServer(f"sqlite:///{places[0]}/r.db", places[0], 1, configuration)
    reference = ReferenceServer(
        reference_environment(),
        places[1],
        strategy="keystone",
        new_defaults=new_defaults,
        configuration=section,
    )
    with roost, reference:
        yield Pair(roost, reference)


@pytest.fixture(scope="module")
def tokens(keystone: RealKeystone) -> dict[str, str | None]:
    """A token for each role and scope, and tokens that are none."""
    made: dict[str, str | None] = {"none": None, "empty": "", "garbage": "gAAAAgarbage"}
    for role in ROLES:
        made[f"project {role}"] = keystone.token(f"{role}-user")
    for role in ("reader", "admin", "service"):
        made[f"system {role}"] = keystone.token(f"{role}-user", SYSTEM)
        made[f"domain {role}"] = keystone.token(f"{role}-user", DOMAIN)
    made["unscoped"] = keystone.token("admin-user", "unscoped")
    made["expired"] = keystone.token("admin-user", seconds=0)
    made["revoked"] = revoked = keystone.token("admin-user")
    keystone.revoke(revoked)
    return made


@pytest.fixture(scope="module", params=[True, False], ids=["new defaults", "legacy defaults"])
def pair(
    request: pytest.FixtureRequest, keystone: RealKeystone, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Pair]:
    """Roost and the reference, with new and with legacy defaults."""
    directory = tmp_path_factory.mktemp("pair")
    with serving(directory, keystone.section, new_defaults=request.param) as running:
        yield running


def test_each_role_and_scope_gets_the_same_status_on_each_route(
    pair: Pair, tokens: dict[str, str | None]
) -> None:
    expected: dict[tuple[str, str], int] = {}
    found: dict[tuple[str, str], int] = {}
    for name, token in tokens.items():
        roost, reference = (replace(one, token=token) for one in (pair.roost, pair.reference))
        # Keystone is asked about an invalid token each time, so these tokens try fewer routes.
        for route in COMMON[::10] if name in INVALID else COMMON:
            key = name, f"{route.method} {route.path} {route.until}"
            expected[key] = use(reference, route).status
            found[key] = use(roost, route).status
    assert found == expected
    # The comparison has seen each kind of answer.
    assert {401, 403, 200} <= set(expected.values())


def test_refusals_look_the_same(
    pair: Pair, tokens: dict[str, str | None], keystone: RealKeystone
) -> None:
    own = keystone.projects["lab"]
    refused = {}
    for name, token in tokens.items():
        for path in ("/traits", "/nowhere", f"/usages?project_id={own}"):
            refused[name, path] = pair.request(token, path)
        refused[name, "as a page"] = pair.request(token, accept="text/html")
    compared = {
        key: answers
        for key, answers in refused.items()
        # Pages of refusals by the policy have words of their own.
        if answers[0].status == 401 or (answers[0].status == 403 and key[1] != "as a page")
    }
    assert {key: shown(one) for key, (one, _) in compared.items()} == {
        key: shown(other) for key, (_, other) in compared.items()
    }
    assert len(compared) > 25


@with_new_defaults
def test_no_token_is_in_the_log(
    pair: Pair, tokens: dict[str, str | None], keystone: RealKeystone
) -> None:
    service = keystone.token("nova", "service")
    for name in ("garbage", "expired", "revoked", "project admin"):
        token = tokens[name]
        assert token
        replace(pair.roost, token=token).get("/traits", x_service_token=service)
        replace(pair.roost, token=token).get("/traits")
        assert token not in pair.server.log
    assert service not in pair.server.log


@with_new_defaults
def test_service_tokens_count_in_the_same_way(
    pair: Pair, tokens: dict[str, str | None], keystone: RealKeystone
) -> None:
    services: dict[str, Any] = {
        "none": "",
        "nova": keystone.token("nova", "service"),
        "expired": keystone.token("nova", "service", seconds=0),
        "member": tokens["project member"],
        "garbage": "gAAAAgarbage",
    }
    found = {
        (user, service): pair.statuses(tokens[user], x_service_token=token)
        for user in ("none", "garbage", "project admin", "project reader", "expired", "revoked")
        for service, token in services.items()
    }
    assert {key: one for key, (one, _) in found.items()} == {
        key: other for key, (_, other) in found.items()
    }
    assert found["expired", "nova"] == [200, 200]


@with_new_defaults
def test_only_roost_decides_by_the_scope_of_the_user_beside_a_service_token(
    pair: Pair, tokens: dict[str, str | None], keystone: RealKeystone
) -> None:
    service = keystone.token("nova", "service")
    assert pair.statuses(tokens["system admin"], x_service_token=service) == [403, 200]


@with_new_defaults
def test_a_disabled_user_and_a_lost_role_count_in_the_same_way(
    pair: Pair, keystone: RealKeystone
) -> None:
    name = f"user-{uuid4()}"
    keystone.add_user(name, {"lab": "admin"})
    known, unknown, disabled = (keystone.token(name) for _ in range(3))
    assert pair.statuses(known) == [200, 200]
    role = f"{keystone.users[name]}/roles/{keystone.roles['admin']}"
    keystone.call("DELETE", f"/projects/{keystone.projects['lab']}/users/{role}")
    # Both have the token in their cache.
    assert pair.statuses(known) == [200, 200]
    roost, reference = pair.statuses(unknown)
    assert roost == reference == 401
    keystone.set_enabled(name, False)
    assert pair.statuses(disabled) == [401, 401]


def test_other_options_of_the_middleware_have_the_same_effect(
    keystone: RealKeystone, tmp_path: Path, tokens: dict[str, str | None]
) -> None:
    section = (
        keystone.section.replace(f"auth_url = {keystone.url}/v3", f"auth_url = {keystone.url}")
        .replace(f"www_authenticate_uri = {keystone.url}/public\n", "")
        .replace("auth_type = password", "auth_plugin = password")
    )
    keystone.add_endpoint("placement", "http://placement.example", f"region-{uuid4()}")
    restricted = restricted_token(keystone, {"service": "placement", "method": "GET"}, "/traits")
    extra = "delay_auth_decision = true\nservice_type = placement\n"
    with serving(tmp_path, section + extra) as pair:
        for token in (tokens["none"], tokens["garbage"], restricted):
            roost, reference = map(shown, pair.request(token, "/resource_classes"))
            assert roost[:2] == reference[:2]
            assert roost[2]["code"] == reference[2]["code"] == "401 Unauthorized"
        assert pair.statuses(tokens["project admin"]) == [200, 200]
        assert pair.statuses(restricted, "/traits") == [200, 200]


@with_new_defaults
def test_access_rules_without_the_type_of_the_service_are_refused_in_the_same_way(
    pair: Pair, keystone: RealKeystone
) -> None:
    keystone.add_endpoint("placement", "http://placement.example", f"region-{uuid4()}")
    restricted = restricted_token(keystone, {"service": "placement", "method": "GET"}, "/traits")
    assert pair.statuses(restricted, "/traits") == [401, 401]


def restricted_token(keystone: RealKeystone, rule: dict[str, str], path: str) -> str:
    """A token of an application credential that is good for one path."""
    user = f"user-{uuid4()}"
    keystone.add_user(user, {"lab": "admin"})
    credential = {"name": str(uuid4()), "access_rules": [rule | {"path": path}]}
    _, made = keystone.call(
        "POST",
        f"/users/{keystone.users[user]}/application_credentials",
        {"application_credential": credential},
        x_auth_token=keystone.token(user),
    )
    found = made["application_credential"]
    return keystone.token_by(
        {
            "methods": ["application_credential"],
            "application_credential": {"id": found["id"], "secret": found["secret"]},
        }
    )
