"""The microversion of a request, and the version document."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

import pytest

from support.api_client import ApiClient

pytestmark = pytest.mark.parametrize("kind", ["sqlite"], indirect=True)

PROVIDER = "c0ffee00-0000-0000-0000-000000000001"
VERSION_DOCUMENT = {
    "versions": [
        {
            "id": "v1.0",
            "max_version": "1.39",
            "min_version": "1.0",
            "status": "CURRENT",
            "links": [{"rel": "self", "href": ""}],
        }
    ]
}


def spoken(api: ApiClient, header: str | None, path: str = "/resource_providers") -> str | None:
    """The version of the answer to a request with this value of the header."""
    sent = {"x-auth-token": "admin"}
    if header is not None:
        sent["openstack-api-version"] = header
    return api.send("GET", path, b"", sent).headers.get("openstack-api-version")


@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        "compute 2.1",
        "compute 2.1, identity 3.14",
        "placement",
        "1.10",
        "latest",
        "placements 1.10",
        "placement:1.10",
    ],
)
def test_a_header_without_an_entry_for_placement_means_the_oldest_version(
    api: ApiClient, header: str | None
) -> None:
    assert spoken(api, header) == "placement 1.0"


@pytest.mark.parametrize(
    ("header", "version"),
    [
        ("placement 1.0", "1.0"),
        ("placement 1.9", "1.9"),
        ("placement 1.10", "1.10"),
        ("placement 1.39", "1.39"),
        ("placement latest", "1.39"),
        ("PLACEMENT 1.10", "1.10"),
        ("Placement latest", "1.39"),
        ("placement    1.10", "1.10"),
        ("placement\t1.10", "1.10"),
        (" placement 1.10 ", "1.10"),
        ("placement 01.4", "1.4"),
        ("placement 1.04", "1.4"),
        ("compute 2.53, placement 1.10", "1.10"),
        ("placement 1.10, compute 99.9", "1.10"),
        ("placement 1.10,compute 2.53,,", "1.10"),
        ("placement 1.10, placement 1.12", "1.12"),
        ("placement 1.12, placement 1.10", "1.10"),
        ("placement nonsense, placement 1.10", "1.10"),
        ("placement 1.10, placement", "1.10"),
    ],
)
def test_the_last_entry_for_placement_decides(api: ApiClient, header: str, version: str) -> None:
    assert spoken(api, header) == f"placement {version}"


def test_all_forty_versions_are_known(api: ApiClient) -> None:
    versions = [f"1.{minor}" for minor in range(40)]
    answered = [api.at(version).get("/resource_providers") for version in versions]
    assert [answer.status for answer in answered] == [200] * 40
    assert [answer.headers["openstack-api-version"] for answer in answered] == [
        f"placement {version}" for version in versions
    ]


@pytest.mark.parametrize("version", ["1.40", "2.0", "0.5", "0.39", "-1.4", "1.-4", "1.100", "10.1"])
def test_an_unknown_version_is_refused_with_406(api: ApiClient, version: str) -> None:
    answer = api.at(version).get("/resource_providers")
    assert answer.status == 406
    assert answer.error["title"] == "Not Acceptable"
    assert f"Invalid microversion: Unacceptable version header: {version}" in answer.detail


def test_the_406_has_the_bounds_that_osc_placement_reads(api: ApiClient) -> None:
    error = api.at("1.40").get("/resource_providers").error
    assert (error["min_version"], error["max_version"]) == ("1.0", "1.39")


@pytest.mark.parametrize(
    "version", ["1", "1.2.3", "abc", "LATEST", "Latest", "1.4 x", "1.x", ".4", "1.", "v1.4", "1,4"]
)
def test_a_malformed_version_is_refused_with_400(api: ApiClient, version: str) -> None:
    answer = api.at(version).get("/resource_providers")
    assert answer.status == 400
    shown = version.split(",", maxsplit=1)[0]
    assert f"Invalid microversion: invalid version string: {shown}" in answer.detail


@pytest.mark.parametrize(("version", "status"), [("1.40", 406), ("abc", 400)])
def test_the_refusal_of_a_version_has_no_version(api: ApiClient, version: str, status: int) -> None:
    answer = api.at(version).get("/resource_providers")
    assert answer.status == status
    assert answer.headers["content-type"] == "application/json"
    assert "openstack-api-version" not in answer.headers
    assert "vary" not in answer.headers
    assert "code" not in answer.error
    assert answer.error["request_id"] == answer.headers["x-openstack-request-id"]


@pytest.mark.parametrize(
    ("version", "headers"),
    [("abc", {}), ("1.39", {"accept": "text/plain, application/json;q=0"})],
    ids=["unreadable version", "unacceptable media type"],
)
def test_any_other_refusal_has_no_bounds(
    api: ApiClient, version: str, headers: dict[str, str]
) -> None:
    answer = api.at(version).request("GET", "/resource_providers", headers=headers)
    assert answer.status in (400, 406)
    assert b"max_version" not in answer.body
    assert b"min_version" not in answer.body


def test_the_header_of_the_first_releases_is_ignored(api: ApiClient) -> None:
    answer = api.at(None).get(
        "/resource_providers", openstack_placement_api_version="placement 1.10"
    )
    assert answer.headers["openstack-api-version"] == "placement 1.0"


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("GET", "/", None, 200),
        ("GET", "/resource_providers", None, 200),
        ("GET", "/resource_providers?unknown=1", None, 400),
        ("GET", "/traits/CUSTOM_NOWHERE", None, 404),
        ("PATCH", "/resource_providers", None, 405),
        ("PUT", "/traits/CUSTOM_GOLD", None, 201),
        ("POST", "/resource_providers", b"{", 400),
        ("DELETE", "/allocations/c0ffee00-0000-0000-0000-000000000009", None, 404),
    ],
)
def test_answers_have_their_version_and_vary_by_it(
    api: ApiClient, method: str, path: str, body: bytes | None, status: int
) -> None:
    answer = api.at("1.25").request(method, path, body)
    assert answer.status == status
    assert answer.headers["openstack-api-version"] == "placement 1.25"
    assert answer.headers["vary"] == "openstack-api-version"


@pytest.mark.parametrize(
    ("method", "path", "headers", "status"),
    [
        ("GET", "/nowhere", {}, 404),
        ("GET", f"/resource_providers/{PROVIDER}", {}, 404),
        ("GET", "/resource_classes/CUSTOM_NOWHERE", {}, 404),
        ("GET", "/resource_providers", {"x-roles": ""}, 403),
        ("GET", "/resource_providers", {"content-length": "x"}, 400),
        ("GET", "/resource_providers", {"accept": "text/plain"}, 406),
        ("POST", "/resource_providers", {"content-type": "text/plain"}, 415),
    ],
)
def test_refusals_have_their_version(
    api: ApiClient, method: str, path: str, headers: dict[str, str], status: int
) -> None:
    answer = api.at("1.25").request(method, path, headers=headers)
    assert answer.status == status
    assert answer.headers["openstack-api-version"] == "placement 1.25"


def test_an_answer_401_has_no_version(api: ApiClient) -> None:
    answer = replace(api, token=None).get("/resource_providers")
    assert answer.status == 401
    assert "openstack-api-version" not in answer.headers
    assert "vary" not in answer.headers


# The routes that each version added.
@pytest.mark.parametrize(
    ("method", "path", "since"),
    [
        ("GET", f"/resource_providers/{PROVIDER}/aggregates", 1),
        ("PUT", f"/resource_providers/{PROVIDER}/aggregates", 1),
        ("GET", "/resource_classes", 2),
        ("POST", "/resource_classes", 2),
        ("GET", "/resource_classes/VCPU", 2),
        ("PUT", "/resource_classes/CUSTOM_GOLD", 2),
        ("DELETE", "/resource_classes/CUSTOM_GOLD", 2),
        ("GET", "/traits", 6),
        ("GET", "/traits/CUSTOM_GOLD", 6),
        ("PUT", "/traits/CUSTOM_GOLD", 6),
        ("DELETE", "/traits/CUSTOM_GOLD", 6),
        ("GET", f"/resource_providers/{PROVIDER}/traits", 6),
        ("PUT", f"/resource_providers/{PROVIDER}/traits", 6),
        ("DELETE", f"/resource_providers/{PROVIDER}/traits", 6),
        ("GET", "/usages?project_id=p", 9),
        ("POST", "/allocations", 13),
        ("POST", "/reshaper", 30),
    ],
)
def test_a_route_is_unknown_before_the_version_that_added_it(
    api: ApiClient, method: str, path: str, since: int
) -> None:
    body: dict[str, str] | None = {} if method in ("PUT", "POST") else None
    before = api.at(f"1.{since - 1}").request(method, path, body)
    assert before.status == 404
    assert before.detail.strip() == "The resource could not be found."
    after = api.at(f"1.{since}").request(method, path, body)
    assert after.status != 404 or after.detail.strip() != "The resource could not be found."


@pytest.mark.parametrize("version", [None, "1.0", "1.14", "1.39", "latest"])
def test_the_version_document_is_the_same_in_every_version(
    api: ApiClient, version: str | None
) -> None:
    answer = api.at(version).get("/")
    assert answer.status == 200
    assert answer.headers["content-type"] == "application/json"
    assert answer.json == VERSION_DOCUMENT


def test_the_version_document_needs_no_token(api: ApiClient) -> None:
    answer = replace(api, token=None).get("/")
    assert answer.status == 200
    assert answer.json == VERSION_DOCUMENT


def test_the_version_document_is_refused_in_an_unknown_version(api: ApiClient) -> None:
    assert api.at("1.40").get("/").status == 406
    assert api.at("nonsense").get("/").status == 400


def test_last_modified_of_the_version_document_is_now_from_1_15_on(api: ApiClient) -> None:
    assert "last-modified" not in api.at("1.14").get("/").headers
    answer = api.at("1.15").get("/")
    assert answer.headers["cache-control"] == "no-cache"
    age = datetime.now(UTC) - parsedate_to_datetime(answer.headers["last-modified"])
    assert abs(age) < timedelta(minutes=5)
