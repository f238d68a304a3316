"""The permissions of pages of other origins, which the operator configures."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from roost.store.database import Database
from support.api_client import Answer, ApiClient, in_process_client

pytestmark = pytest.mark.parametrize("kind", ["sqlite"], indirect=True)

HORIZON = "https://horizon.example"
SKYLINE = "https://skyline.example:9999"
CONFIGURATION = (
    "[api]\nauth_strategy = noauth2\n[oslo_policy]\nenforce_new_defaults = false\n"
    f"[cors]\nallowed_origin = {HORIZON},{SKYLINE}\n"
)


@pytest.fixture
def shared(database: Database, tmp_path: Path) -> ApiClient:
    """The API, open to pages of two origins."""
    return in_process_client(database, tmp_path, CONFIGURATION)


def preflight(
    client: ApiClient, origin: str | None, method: str | None, asked: str | None = None
) -> Answer:
    """The answer to the OPTIONS request that a browser sends first, without a token."""
    headers = {
        "origin": origin,
        "access-control-request-method": method,
        "access-control-request-headers": asked,
    }
    sent = {name: value for name, value in headers.items() if value is not None}
    return client.send("OPTIONS", "/resource_providers", b"", sent)


def granted(answer: Answer) -> dict[str, str]:
    return {
        name.removeprefix("access-control-"): value
        for name, value in answer.headers.items()
        if name.startswith("access-control-")
    }


def names(header: str) -> list[str]:
    return [name.strip() for name in header.split(",")]


def test_an_origin_is_granted_nothing_without_configuration(api: ApiClient) -> None:
    answer = api.get("/resource_providers", origin=HORIZON)
    assert answer.status == 200
    assert granted(answer) == {}
    assert answer.headers["vary"] == "openstack-api-version"


def test_options_is_no_method_without_configuration(api: ApiClient) -> None:
    answer = preflight(replace(api, token=None), HORIZON, "GET")
    assert answer.status == 401
    assert api.request("OPTIONS", "/resource_providers").status == 405


@pytest.mark.parametrize("method", ["GET", "PUT", "POST", "DELETE", "PATCH"])
@pytest.mark.parametrize("origin", [HORIZON, SKYLINE])
def test_a_preflight_of_an_allowed_origin_is_granted(
    shared: ApiClient, origin: str, method: str
) -> None:
    answer = preflight(shared, origin, method)
    assert (answer.status, answer.body) == (200, b"")
    assert granted(answer) == {
        "allow-origin": origin,
        "allow-credentials": "true",
        "max-age": "3600",
        "allow-methods": method,
    }
    assert answer.headers["vary"] == "Origin"


@pytest.mark.parametrize(
    "asked",
    [
        "X-Auth-Token",
        "x-auth-token",
        "X-Auth-Token,OpenStack-API-Version",
        "X-Openstack-Request-Id, X-Identity-Status, X-Roles",
        "X-Service-Catalog, X-User-Id, X-Tenant-Id",
        "Accept, Content-Type, Cache-Control, X-Auth-Token",
    ],
)
def test_a_preflight_is_granted_the_headers_that_it_asks_for(shared: ApiClient, asked: str) -> None:
    answer = preflight(shared, HORIZON, "GET", asked)
    assert names(granted(answer)["allow-headers"]) == names(asked)


@pytest.mark.parametrize(
    ("origin", "method", "asked"),
    [
        ("https://elsewhere.example", "GET", None),
        ("http://horizon.example", "GET", None),
        (HORIZON + ":8443", "GET", None),
        (HORIZON.upper(), "GET", None),
        ("null", "GET", None),
        (None, "GET", None),
        (HORIZON, None, None),
        (HORIZON, "TRACE", None),
        (HORIZON, "get", None),
        (HORIZON, "GET", "X-Secret"),
        (HORIZON, "GET", "X-Auth-Token, X-Secret"),
    ],
)
def test_a_preflight_outside_the_configuration_is_granted_nothing(
    shared: ApiClient, origin: str | None, method: str | None, asked: str | None
) -> None:
    answer = preflight(shared, origin, method, asked)
    assert (answer.status, answer.body) == (200, b"")
    assert granted(answer) == {}


@pytest.mark.parametrize("path", ["/", "/nowhere", "/resource_providers", "/traits/CUSTOM_GOLD"])
def test_every_options_request_is_answered_without_a_token(shared: ApiClient, path: str) -> None:
    answer = replace(shared, token=None, version=None).request("OPTIONS", path)
    assert (answer.status, answer.body) == (200, b"")
    assert answer.headers["content-length"] == "0"
    assert "x-openstack-request-id" in answer.headers


@pytest.mark.parametrize(
    ("method", "path", "token", "status"),
    [
        ("GET", "/resource_providers", "admin", 200),
        ("PUT", "/traits/CUSTOM_GOLD", "admin", 201),
        ("GET", "/nowhere", "admin", 404),
        ("GET", "/resource_providers", "ann", 403),
        ("GET", "/resource_providers", None, 401),
    ],
)
def test_pages_of_an_allowed_origin_may_read_answers_and_errors(
    shared: ApiClient, method: str, path: str, token: str | None, status: int
) -> None:
    client = replace(shared, token=token)
    answer = client.request(method, path, headers={"origin": HORIZON})
    assert answer.status == status
    assert granted(answer) | {"expose-headers": ""} == {
        "allow-origin": HORIZON,
        "allow-credentials": "true",
        "expose-headers": "",
    }
    assert "Origin" in names(answer.headers["vary"])


def test_the_answer_varies_by_version_and_origin(shared: ApiClient) -> None:
    answer = shared.get("/resource_providers", origin=HORIZON)
    assert set(names(answer.headers["vary"])) == {"openstack-api-version", "Origin"}


def test_pages_may_read_the_headers_of_the_default_configuration(shared: ApiClient) -> None:
    answer = shared.get("/resource_providers", origin=HORIZON)
    assert names(granted(answer)["expose-headers"]) == [
        "X-Auth-Token",
        "X-Openstack-Request-Id",
        "X-Subject-Token",
        "X-Service-Token",
        "OpenStack-API-Version",
    ]


@pytest.mark.parametrize("origin", ["https://elsewhere.example", "null", ""])
def test_pages_of_other_origins_are_answered_and_granted_nothing(
    shared: ApiClient, origin: str
) -> None:
    answer = shared.get("/resource_providers", origin=origin)
    assert answer.status == 200
    assert granted(answer) == {}


def test_requests_without_origin_are_answered_without_cors_headers(shared: ApiClient) -> None:
    answer = shared.get("/resource_providers")
    assert answer.status == 200
    assert granted(answer) == {}


def test_the_operator_chooses_methods_headers_age_and_credentials(
    database: Database, tmp_path: Path
) -> None:
    chosen = (
        "allow_methods = GET\nallow_headers = X-Auth-Token,X-Shop\nmax_age = 60\n"
        "allow_credentials = false\nexpose_headers = X-Shop\n"
    )
    client = in_process_client(database, tmp_path, CONFIGURATION + chosen)
    assert granted(preflight(client, HORIZON, "GET", "X-Shop")) == {
        "allow-origin": HORIZON,
        "max-age": "60",
        "allow-methods": "GET",
        "allow-headers": "X-Shop",
    }
    assert granted(preflight(client, HORIZON, "PUT")) == {}
    assert granted(preflight(client, HORIZON, "GET", "X-Roles")) == {}
    answer = client.get("/resource_providers", origin=HORIZON)
    assert granted(answer) == {"allow-origin": HORIZON, "expose-headers": "X-Shop"}


def test_an_asterisk_allows_every_origin(database: Database, tmp_path: Path) -> None:
    configuration = CONFIGURATION.replace(f"{HORIZON},{SKYLINE}", "*")
    client = in_process_client(database, tmp_path, configuration)
    answer = client.get("/resource_providers", origin="https://anywhere.example")
    assert "allow-origin" in granted(answer)
