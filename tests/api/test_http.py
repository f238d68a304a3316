"""Behaviour that all routes share: order of checks, headers, errors, media types, log."""

from __future__ import annotations

import io
import logging
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from oslo_log.formatters import ContextFormatter

from roost.api.application import Application
from roost.store.database import Database
from support.api_client import (
    ApiClient,
    application_client,
    in_process_client,
    limited_application,
    limited_client,
    settings_for,
)

pytestmark = pytest.mark.parametrize("kind", ["sqlite"], indirect=True)

PROVIDER = "c0ffee00-0000-0000-0000-000000000001"
NOWHERE = "c0ffee00-0000-0000-0000-00000000dead"
CONSUMER = "c0ffee00-0000-0000-0000-00000000c001"
REQUEST_ID_ANYWHERE = re.compile(r"req-[0-9a-f-]{36}")
REQUEST_ID = re.compile(r"req-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


@pytest.fixture
def provider(api: ApiClient) -> str:
    """The path of a provider."""
    assert api.post("/resource_providers", {"name": "host", "uuid": PROVIDER}).status == 200
    return f"/resource_providers/{PROVIDER}"


# The order of the checks: every check hides all later checks.


def status_of(api: ApiClient, method: str, path: str, body: Any = None, **headers: str) -> int:
    """The status of a request."""
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    return api.request(method, path, body, sent).status


@pytest.mark.parametrize(
    ("version", "path", "headers"),
    [
        ("1.40", "/resource_providers", {}),
        ("nonsense", "/resource_providers", {}),
        ("1.39", "/nowhere", {}),
        ("1.39", "/resource_providers", {"content-length": "x"}),
    ],
)
def test_a_missing_token_hides_every_other_mistake(
    api: ApiClient, version: str, path: str, headers: dict[str, str]
) -> None:
    stranger = replace(api.at(version), token=None)
    assert stranger.request("GET", path, headers=headers).status == 401


def test_a_bad_version_hides_a_bad_content_length(api: ApiClient) -> None:
    assert status_of(api.at("1.40"), "GET", "/nowhere", content_length="x") == 406


@pytest.mark.parametrize(("method", "path"), [("GET", "/nowhere"), ("PATCH", "/traits")])
@pytest.mark.parametrize("length", ["x", "5"])
def test_a_bad_content_length_hides_an_unknown_route(
    api: ApiClient, method: str, path: str, length: str
) -> None:
    assert status_of(api, method, path, content_length=length) == 400


def test_a_wrong_method_hides_an_unknown_version_of_the_route(api: ApiClient) -> None:
    assert status_of(api.at("1.0"), "PATCH", "/traits") == 405


def test_an_unknown_version_of_the_route_hides_wrong_media_types(api: ApiClient) -> None:
    path = f"/resource_providers/{NOWHERE}/traits"
    assert status_of(api.at("1.5"), "GET", path, accept="text/plain") == 404
    assert status_of(api.at("1.5"), "PUT", path, b"{}", content_type="text/plain") == 404


def test_wrong_media_types_hide_the_unknown_version_of_aggregates(api: ApiClient) -> None:
    path = f"/resource_providers/{NOWHERE}/aggregates"
    assert status_of(api.at("1.0"), "GET", path, accept="text/plain") == 406
    assert status_of(api.at("1.0"), "PUT", path, b"[]", content_type="text/plain") == 415
    assert status_of(api.at("1.0"), "GET", path) == 404


def test_wrong_media_types_hide_the_policy(api: ApiClient) -> None:
    assert status_of(api, "GET", "/resource_providers", x_roles="", accept="text/plain") == 406
    assert (
        status_of(api, "POST", "/resource_providers", b"{}", x_roles="", content_type="text/plain")
        == 415
    )


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", f"/resource_providers/{NOWHERE}", None),
        ("GET", "/resource_providers?unknown=1", None),
        ("GET", "/usages", None),
        ("POST", "/resource_providers", b"{"),
        ("PUT", "/allocations/no-uuid", b"{}"),
        ("PUT", "/traits/HW_CPU_X86_VMX", None),
    ],
)
def test_the_policy_hides_mistakes_of_the_request(
    api: ApiClient, method: str, path: str, body: bytes | None
) -> None:
    assert status_of(api, method, path, body, x_roles="") == 403


@pytest.mark.parametrize(
    ("method", "part"),
    [
        ("PUT", ""),
        ("POST", "/inventories"),
        ("PUT", "/inventories"),
        ("PUT", "/inventories/VCPU"),
        ("PUT", "/aggregates"),
    ],
)
def test_a_missing_provider_hides_a_bad_body(api: ApiClient, method: str, part: str) -> None:
    assert status_of(api, method, f"/resource_providers/{NOWHERE}{part}", b"{") == 404


def test_a_bad_body_of_traits_hides_the_missing_provider(api: ApiClient) -> None:
    path = f"/resource_providers/{NOWHERE}/traits"
    assert status_of(api, "PUT", path, {"traits": []}) == 400
    assert status_of(api, "PUT", path, {"traits": [], "resource_provider_generation": 0}) == 404


@pytest.mark.parametrize(
    ("part", "body"),
    [
        ("/inventories", {"inventories": {"VCPU": {"total": 0}}}),
        ("/inventories/VCPU", {"total": 0}),
        ("/aggregates", {"aggregates": ["no uuid"]}),
        ("/traits", {"traits": [1]}),
    ],
)
def test_a_bad_body_hides_a_stale_generation(
    api: ApiClient, provider: str, part: str, body: dict[str, Any]
) -> None:
    assert api.put(provider + part, body | {"resource_provider_generation": 7}).status == 400


@pytest.mark.parametrize(
    ("part", "body"),
    [
        ("/inventories", {"inventories": {"VCPU": {"total": 1, "reserved": 2}}}),
        ("/inventories", {"inventories": {"CUSTOM_NOWHERE": {"total": 1}}}),
        ("/inventories/VCPU", {"total": 1, "reserved": 2}),
        ("/inventories/CUSTOM_NOWHERE", {"total": 1}),
        ("/traits", {"traits": ["CUSTOM_NOWHERE"]}),
    ],
)
def test_a_stale_generation_hides_every_later_mistake(
    api: ApiClient, provider: str, part: str, body: dict[str, Any]
) -> None:
    assert api.put(provider + part, body | {"resource_provider_generation": 7}).status == 409


# Headers.


def test_every_answer_has_a_request_id_of_its_own(api: ApiClient) -> None:
    paths = ["/", "/nowhere", "/resource_providers", "/traits"]
    answers = [api.get(path) for path in paths] + [replace(api, token=None).get("/traits")]
    ids = [answer.headers["x-openstack-request-id"] for answer in answers]
    assert all(REQUEST_ID.fullmatch(id_) for id_ in ids)
    assert len(set(ids)) == len(ids)


def test_the_request_id_of_the_client_is_never_echoed(api: ApiClient) -> None:
    sent = "req-c0ffee00-0000-0000-0000-000000000001"
    answer = api.get("/nowhere", x_openstack_request_id=sent)
    assert answer.headers["x-openstack-request-id"] != sent
    assert answer.error["request_id"] == answer.headers["x-openstack-request-id"]


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/resource_providers", None),
        ("GET", "/nowhere", None),
        ("PUT", "/traits/CUSTOM_GOLD", None),
        ("POST", "/resource_classes", {"name": "CUSTOM_GOLD"}),
        ("DELETE", "/allocations/" + CONSUMER, None),
        ("HEAD", "/resource_providers", None),
    ],
)
def test_content_length_is_always_the_length_of_the_body(
    api: ApiClient, method: str, path: str, body: Any
) -> None:
    answer = api.request(method, path, body)
    assert answer.headers["content-length"] == str(len(answer.body))


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("PUT", "/traits/CUSTOM_GOLD", None, 201),
        ("GET", "/traits/HW_CPU_X86_VMX", None, 204),
        ("POST", "/resource_classes", {"name": "CUSTOM_GOLD"}, 201),
        ("PUT", "/resource_classes/CUSTOM_GOLD", None, 201),
    ],
)
def test_an_answer_without_body_has_no_content_type(
    api: ApiClient, method: str, path: str, body: Any, status: int
) -> None:
    answer = api.request(method, path, body)
    assert (answer.status, answer.body) == (status, b"")
    assert "content-type" not in answer.headers


def test_an_answer_with_a_body_is_json_without_a_charset(api: ApiClient) -> None:
    assert api.get("/resource_providers").headers["content-type"] == "application/json"


def test_conditional_requests_are_answered_in_full(api: ApiClient, provider: str) -> None:
    modified = api.get(provider).headers["last-modified"]
    answer = api.get(provider, if_modified_since=modified, if_none_match="*")
    assert answer.status == 200
    assert "etag" not in answer.headers


# Errors.


@pytest.mark.parametrize(
    ("status", "title", "method", "path", "headers"),
    [
        (400, "Bad Request", "GET", "/resource_providers?unknown=1", {}),
        (403, "Forbidden", "GET", "/resource_providers", {"x-roles": ""}),
        (404, "Not Found", "GET", "/nowhere", {}),
        (405, "Method Not Allowed", "PATCH", "/traits", {}),
        (415, "Unsupported Media Type", "POST", "/resource_providers", {}),
    ],
)
def test_an_error_has_status_title_detail_code_and_request_id(
    api: ApiClient, *, status: int, title: str, method: str, path: str, headers: dict[str, str]
) -> None:
    answer = api.request(method, path, headers=headers)
    assert answer.status == status
    assert answer.headers["content-type"] == "application/json"
    assert answer.error | {"detail": ""} == {
        "status": status,
        "title": title,
        "detail": "",
        "code": "placement.undefined_code",
        "request_id": answer.headers["x-openstack-request-id"],
    }


def test_an_error_409_has_the_title_conflict(api: ApiClient, provider: str) -> None:
    answer = api.post("/resource_providers", {"name": "host"})
    assert (answer.error["status"], answer.error["title"]) == (409, "Conflict")


def test_an_error_406_has_the_title_not_acceptable(api: ApiClient) -> None:
    answer = api.get("/resource_providers", accept="text/plain")
    assert answer.status == 406
    assert answer.body.startswith(b"406 Not Acceptable")


@pytest.mark.parametrize(("version", "has_code"), [("1.0", False), ("1.22", False), ("1.23", True)])
def test_errors_have_a_code_from_1_23_on(api: ApiClient, version: str, has_code: bool) -> None:
    assert ("code" in api.at(version).get("/nowhere").error) is has_code


def test_the_detail_of_404_begins_with_the_sentence_that_clients_match_on(api: ApiClient) -> None:
    assert api.get("/nowhere").detail.startswith("The resource could not be found.")
    detail = api.get(f"/resource_providers/{NOWHERE}").detail
    assert detail.startswith("The resource could not be found.\n\n ")


@pytest.mark.parametrize("method", ["PATCH", "PUT", "DELETE", "OPTIONS"])
def test_the_detail_of_405_names_the_method(api: ApiClient, method: str) -> None:
    detail = api.request(method, "/traits").detail
    assert f"The method {method} is not allowed for this resource." in detail
    assert "The method specified is not allowed for this resource." in detail


def test_tags_are_stripped_from_the_detail(api: ApiClient) -> None:
    detail = api.get("/resource_classes/%3Cscript%3EGOLD").detail
    assert "No such resource class GOLD" in detail


def test_markup_is_escaped_in_an_error_page(api: ApiClient) -> None:
    answer = api.put("/traits/HW%3Cscript%3E", accept="text/html")
    assert answer.status == 400
    assert b"<script>" not in answer.body
    page = api.delete("/traits/%3Cscript%3Ealert", accept="text/html")
    assert page.status == 404
    assert b"<script>" not in page.body


def test_non_ascii_text_survives_in_the_detail(api: ApiClient) -> None:
    detail = api.get("/resource_classes/CUSTOM_%C3%89TAG%C3%88RE").detail
    assert "No such resource class CUSTOM_\u00c9TAG\u00c8RE" in detail


@pytest.mark.parametrize(
    ("accept", "media_type"),
    [
        ("application/json", "application/json"),
        ("*/*", "application/json"),
        ("application/*", "application/json"),
        ("text/html;q=0.5, application/json", "application/json"),
        ("text/plain;q=0.5, application/json;q=0.1", "application/json"),
        ("text/html", "text/html; charset=UTF-8"),
        ("text/*", "text/html; charset=UTF-8"),
        ("text/html, application/json", "text/html; charset=UTF-8"),
        ("text/html, */*;q=0.1", "text/html; charset=UTF-8"),
        ("text/plain", "text/plain; charset=UTF-8"),
        ("image/png", "text/plain; charset=UTF-8"),
        ("application/json;q=0", "text/plain; charset=UTF-8"),
    ],
)
def test_errors_have_the_media_type_that_the_client_prefers(
    api: ApiClient, accept: str, media_type: str
) -> None:
    answer = api.delete("/traits/CUSTOM_NOWHERE", accept=accept)
    assert answer.status == 404
    assert answer.headers["content-type"] == media_type
    assert b"No such trait(s): CUSTOM_NOWHERE." in answer.body


def test_errors_are_json_without_an_accept_header(api: ApiClient) -> None:
    answer = api.send("GET", "/nowhere", b"", {"x-auth-token": "admin"})
    assert answer.headers["content-type"] == "application/json"
    assert answer.error["status"] == 404


def test_an_error_page_has_a_heading(api: ApiClient) -> None:
    assert b"<h1>404 Not Found</h1>" in api.get("/nowhere", accept="text/html").body


# Media types and bodies.

READS = [
    "/resource_providers",
    "/resource_classes",
    "/resource_classes/VCPU",
    "/traits",
    "/usages?project_id=p",
    f"/allocations/{CONSUMER}",
    *(
        f"/resource_providers/{PROVIDER}{part}"
        for part in ("", "/inventories", "/usages", "/aggregates", "/traits", "/allocations")
    ),
]


@pytest.mark.parametrize("path", READS)
def test_a_read_is_refused_if_the_client_does_not_accept_json(
    api: ApiClient, provider: str, path: str
) -> None:
    answer = api.get(path, accept="text/plain")
    assert answer.status == 406
    assert b"Only application/json is provided" in answer.body
    assert api.get(path).status == 200


@pytest.mark.parametrize(
    "accept",
    [
        "",
        "*/*",
        "*/*;q=0.1",
        "application/*",
        "application/json",
        "application/json;q=0.1, text/html",
        "text/html, */*;q=0.1",
        "nonsense",
        # Media types are compared without regard to case.
        "APPLICATION/JSON",
    ],
)
def test_a_read_is_answered_if_the_client_accepts_json_at_all(api: ApiClient, accept: str) -> None:
    assert api.get("/resource_providers", accept=accept).status == 200


def test_a_read_is_answered_without_an_accept_header(api: ApiClient) -> None:
    assert api.send("GET", "/resource_providers", b"", {"x-auth-token": "admin"}).status == 200


@pytest.mark.parametrize("accept", ["text/html", "application/json;q=0", "image/png;q=0.5"])
def test_a_read_is_refused_if_accept_excludes_json(api: ApiClient, accept: str) -> None:
    assert api.get("/resource_providers", accept=accept).status == 406


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("GET", "/", None, 200),
        ("GET", "/traits/HW_CPU_X86_VMX", None, 204),
        ("PUT", "/traits/CUSTOM_GOLD", None, 201),
        ("POST", "/resource_providers", {"name": "host"}, 200),
        ("DELETE", f"/resource_providers/{PROVIDER}/traits", None, 204),
    ],
)
def test_the_accept_header_of_other_requests_is_ignored(
    api: ApiClient, method: str, path: str, body: Any, status: int
) -> None:
    if PROVIDER in path:
        api.post("/resource_providers", {"name": "other", "uuid": PROVIDER})
    assert api.request(method, path, body, {"accept": "text/plain"}).status == status


WRITES = [
    ("POST", "/resource_providers"),
    ("PUT", f"/resource_providers/{NOWHERE}"),
    ("POST", f"/resource_providers/{NOWHERE}/inventories"),
    ("PUT", f"/resource_providers/{NOWHERE}/inventories"),
    ("PUT", f"/resource_providers/{NOWHERE}/inventories/VCPU"),
    ("PUT", f"/resource_providers/{NOWHERE}/aggregates"),
    ("PUT", f"/resource_providers/{NOWHERE}/traits"),
    ("POST", "/resource_classes"),
    ("POST", "/allocations"),
    ("PUT", f"/allocations/{CONSUMER}"),
    ("POST", "/reshaper"),
]


@pytest.mark.parametrize(("method", "path"), WRITES)
def test_a_write_takes_json_only(api: ApiClient, method: str, path: str) -> None:
    answer = api.request(method, path, b"{}", {"content-type": "text/plain"})
    assert answer.status == 415
    assert "The media type text/plain is not supported, use application/json" in answer.detail


@pytest.mark.parametrize(("method", "path"), WRITES)
def test_a_write_without_a_content_type_is_refused(api: ApiClient, method: str, path: str) -> None:
    answer = api.request(method, path)
    assert answer.status == 415
    assert "The media type None is not supported, use application/json" in answer.detail


def test_renaming_a_resource_class_takes_json_only(api: ApiClient) -> None:
    path = "/resource_classes/CUSTOM_GOLD"
    answer = api.at("1.6").request("PUT", path, b"{}", {"content-type": "text/plain"})
    assert answer.status == 415


@pytest.mark.parametrize(
    ("content_type", "status"),
    [
        ("application/json; charset=utf-8", 200),
        ("application/json;charset=latin-1", 200),
        ("application/json;", 200),
        ("Application/JSON", 415),
        ("application/jsonl", 415),
        ("application/*", 415),
        ("json", 415),
        ("application/x-www-form-urlencoded", 415),
    ],
)
def test_parameters_of_the_media_type_are_allowed_and_its_case_matters(
    api: ApiClient, content_type: str, status: int
) -> None:
    body = '{"name": "h\u00f4te"}'.encode()
    answer = api.request("POST", "/resource_providers", body, {"content-type": content_type})
    assert answer.status == status
    if status == 200:
        assert answer.json["name"] == "h\u00f4te"


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("PUT", "/traits/CUSTOM_GOLD", 201),
        ("PUT", "/resource_classes/CUSTOM_GOLD", 201),
        ("DELETE", f"/resource_providers/{PROVIDER}", 204),
        ("GET", f"/resource_providers/{PROVIDER}", 200),
    ],
)
@pytest.mark.parametrize("content_type", ["application/json", "text/plain"])
def test_a_body_that_is_not_needed_is_ignored(
    api: ApiClient, provider: str, *, method: str, path: str, status: int, content_type: str
) -> None:
    answer = api.request(method, path, b"{nonsense", {"content-type": content_type})
    assert answer.status == status


@pytest.mark.parametrize(("method", "path"), [("GET", "/"), ("GET", "/traits"), ("PUT", "/traits")])
@pytest.mark.parametrize("length", ["x", "1.5", "ten", "0x5"])
def test_a_content_length_must_be_an_integer(
    api: ApiClient, method: str, path: str, length: str
) -> None:
    answer = api.request(method, path, headers={"content-length": length})
    assert answer.status == 400
    assert "content-length header must be an integer" in answer.detail


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/"),
        ("GET", "/resource_providers"),
        ("DELETE", f"/resource_providers/{NOWHERE}"),
        ("POST", "/resource_providers"),
        ("PUT", "/traits/CUSTOM_GOLD"),
    ],
)
def test_a_body_must_have_a_content_type(api: ApiClient, method: str, path: str) -> None:
    sent = {"x-auth-token": "admin", "content-length": "2"}
    answer = api.send(method, path, b"{}", sent)
    assert answer.status == 400
    assert "content-type header required when content-length > 0" in answer.detail


def test_an_empty_body_needs_no_content_type(api: ApiClient) -> None:
    sent = {"x-auth-token": "admin", "content-length": "0"}
    assert api.send("GET", "/resource_providers", b"", sent).status == 200


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b" ",
        b"{",
        b'{"name": "host",}',
        b"{'name': 'host'}",
        b'{"name": "host"} more',
        b'\xef\xbb\xbf{"name": "host"}',
        b'{"name": "h\xf4te"}',
        b'{"name": NaN}',
        '{"name": "host"}'.encode("utf-16"),
    ],
)
def test_a_body_that_is_no_json_is_refused(api: ApiClient, body: bytes) -> None:
    answer = api.post("/resource_providers", body)
    assert answer.status == 400
    assert "Malformed JSON: " in answer.detail


@pytest.mark.parametrize("body", [b"null", b"[]", b'"host"', b"1", b"{}"])
def test_json_of_another_shape_is_refused_by_the_schema(api: ApiClient, body: bytes) -> None:
    answer = api.post("/resource_providers", body)
    assert answer.status == 400
    assert "JSON does not validate: " in answer.detail


def test_the_last_of_duplicate_members_counts(api: ApiClient) -> None:
    answer = api.post("/resource_providers", b'{"name": 1, "name": "host"}')
    assert (answer.status, answer.json["name"]) == (200, "host")


@pytest.mark.parametrize("depth", [100, 500, 1000, 100_000])
@pytest.mark.parametrize(("opening", "closing"), [(b"[", b"]"), (b'{"name": ', b"}")])
def test_a_deeply_nested_body_is_a_bad_request(
    api: ApiClient, depth: int, opening: bytes, closing: bytes
) -> None:
    answer = api.post("/resource_providers", opening * depth + b"1" + closing * depth)
    assert answer.status == 400


def test_a_schema_failure_names_its_place(api: ApiClient, provider: str) -> None:
    body = {"inventories": {"VCPU": {"total": 0}}, "resource_provider_generation": 0}
    detail = api.put(f"{provider}/inventories", body).detail
    assert "JSON does not validate: 0 is less than the minimum of 1" in detail
    assert "Failed validating 'minimum' in schema['properties']['inventories']" in detail


# Paths and methods.


@pytest.mark.parametrize(
    "path",
    [
        "/nowhere",
        "/resource_providers/",
        "/resource_providers//inventories",
        f"/resource_providers/{PROVIDER}/",
        f"/resource_providers/{PROVIDER}/inventories/",
        f"/resource_providers/{PROVIDER}/inventories/VCPU/",
        f"/resource_providers/{PROVIDER}//inventories",
        f"/resource_providers/{PROVIDER}/nowhere",
        "/RESOURCE_PROVIDERS",
        "/resource_providers;a=b",
        "/traits/",
        "/allocations/",
        "/v1.0",
    ],
)
def test_an_unknown_path_is_not_found(api: ApiClient, provider: str, path: str) -> None:
    answer = api.get(path)
    assert answer.status == 404
    assert answer.detail.strip() == "The resource could not be found."


def test_a_path_that_begins_with_two_slashes_is_not_found(api: ApiClient) -> None:
    assert api.get("http://roost.example//resource_providers").status == 404


def test_a_path_is_decoded_before_it_is_compared(api: ApiClient, provider: str) -> None:
    assert api.get("/resource%5Fproviders").status == 200
    assert api.get(provider.replace("c0ffee", "%630ffee")).status == 200


@pytest.mark.parametrize("path", ["/resource_providers/%FF", "/resource_classes/%00"])
@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_a_path_that_is_no_text_is_refused(api: ApiClient, method: str, path: str) -> None:
    assert api.request(method, path).status in (400, 404)


ALLOW = [
    ("/", "GET"),
    ("/traits", "GET"),
    ("/usages", "GET"),
    (f"/resource_providers/{NOWHERE}/usages", "GET"),
    (f"/resource_providers/{NOWHERE}/allocations", "GET"),
    ("/resource_providers", "GET, POST"),
    ("/resource_classes", "GET, POST"),
    (f"/resource_providers/{NOWHERE}", "GET, DELETE, PUT"),
    (f"/resource_providers/{NOWHERE}/inventories", "GET, POST, PUT, DELETE"),
    (f"/resource_providers/{NOWHERE}/inventories/VCPU", "GET, PUT, DELETE"),
    (f"/resource_providers/{NOWHERE}/traits", "GET, PUT, DELETE"),
    ("/traits/CUSTOM_GOLD", "GET, PUT, DELETE"),
    ("/resource_classes/CUSTOM_GOLD", "GET, PUT, DELETE"),
    (f"/allocations/{CONSUMER}", "GET, PUT, DELETE"),
    (f"/resource_providers/{NOWHERE}/aggregates", "GET, PUT"),
    ("/allocations", "POST"),
    ("/reshaper", "POST"),
]


@pytest.mark.parametrize(("path", "allow"), ALLOW)
def test_the_refusal_of_a_wrong_method_lists_the_right_methods_in_every_version(
    api: ApiClient, path: str, allow: str
) -> None:
    methods = {"GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "PROPFIND"}
    for method in sorted(methods - set(allow.split(", "))):
        for version in ("1.0", "1.39"):
            answer = api.at(version).request(method, path, headers={"x-roles": ""})
            assert (method, answer.status) == (method, 405)
            assert answer.headers["allow"] == allow


@pytest.mark.parametrize("path", ["/", "/resource_providers", "/traits", "/allocations"])
def test_head_is_not_implied_by_get(api: ApiClient, path: str) -> None:
    answer = api.request("HEAD", path)
    assert (answer.status, answer.body) == (405, b"")
    assert answer.headers["content-type"] == "text/html; charset=UTF-8"
    assert "allow" in answer.headers


def test_delete_is_no_method_of_inventories_below_1_5(api: ApiClient, provider: str) -> None:
    answer = api.at("1.4").delete(f"{provider}/inventories")
    assert answer.status == 405
    assert "allow" not in answer.headers
    assert "The method DELETE is not allowed for this resource." in answer.detail
    assert api.at("1.5").delete(f"{provider}/inventories").status == 204


# The service under a prefix.


@pytest.fixture
def mounted(database: Database, tmp_path: Path) -> ApiClient:
    """The API under a prefix."""
    application = Application(settings_for(database, tmp_path), database)
    return application_client(application, script_name="/placement")


def test_links_begin_with_the_prefix(mounted: ApiClient) -> None:
    body = {"name": "host", "uuid": PROVIDER}
    shown = mounted.post("/resource_providers", body).json
    assert [link["href"] for link in shown["links"]] == [
        f"/placement/resource_providers/{PROVIDER}{part}"
        for part in ("", "/inventories", "/usages", "/aggregates", "/traits", "/allocations")
    ]
    listed = mounted.get("/resource_providers").json["resource_providers"]
    assert listed == [shown]
    assert mounted.get("/resource_classes/VCPU").json["links"] == [
        {"rel": "self", "href": "/placement/resource_classes/VCPU"}
    ]


@pytest.mark.parametrize(
    ("method", "path", "body", "location"),
    [
        (
            "POST",
            "/resource_providers",
            {"name": "other", "uuid": NOWHERE},
            f"/resource_providers/{NOWHERE}",
        ),
        ("POST", "/resource_classes", {"name": "CUSTOM_A"}, "/resource_classes/CUSTOM_A"),
        ("PUT", "/resource_classes/CUSTOM_B", None, "/resource_classes/CUSTOM_B"),
        ("PUT", "/traits/CUSTOM_C", None, "/traits/CUSTOM_C"),
        (
            "POST",
            f"/resource_providers/{PROVIDER}/inventories",
            {"resource_class": "VCPU", "total": 1},
            f"/resource_providers/{PROVIDER}/inventories/VCPU",
        ),
    ],
)
def test_locations_are_absolute_and_contain_the_prefix(
    mounted: ApiClient, method: str, path: str, body: Any, location: str
) -> None:
    mounted.post("/resource_providers", {"name": "host", "uuid": PROVIDER})
    answer = mounted.request(method, path, body)
    assert answer.headers["location"] == f"http://roost.example/placement{location}"


@pytest.mark.parametrize("path", ["", "/"])
def test_the_prefix_with_and_without_a_slash_is_the_root(mounted: ApiClient, path: str) -> None:
    answer = replace(mounted, token=None).get(path)
    assert answer.status == 200
    assert answer.json["versions"][0]["id"] == "v1.0"


def test_a_location_has_the_host_of_the_request(api: ApiClient) -> None:
    answer = api.put("/traits/CUSTOM_GOLD", host="placement.example:8778")
    assert answer.headers["location"] == "http://placement.example:8778/traits/CUSTOM_GOLD"


@pytest.mark.parametrize(
    "host",
    [
        "PLACEMENT.Example",
        "placement_api.internal:8778",
        "127.0.0.1:8778",
        "[2001:db8::1]",
        "[fe80::1%25eth0]:8778",
        "%2Frun%2Froost.sock",
        "placement.example:",
    ],
)
def test_a_host_of_a_usual_client_is_accepted(api: ApiClient, host: str) -> None:
    answer = api.put("/traits/CUSTOM_GOLD", host=host)
    assert answer.headers["location"] == f"http://{host}/traits/CUSTOM_GOLD"


@pytest.mark.parametrize(
    "host",
    [
        'evil"><script>',
        "evil.example/path",
        "evil.example?query",
        "evil.example#part",
        "user@evil.example",
        "evil.example, roost.example",
        "evil example",
        "evil.example:port",
        "evil.example:80:80",
        "2001:db8::1",
        "[2001:db8::1",
        "evil\\example",
        "\xe9vil.example",
        "%zz",
        ":8778",
    ],
)
@pytest.mark.parametrize("path", ["/traits/CUSTOM_GOLD", "/", "/nowhere"])
def test_a_host_that_is_none_is_refused(api: ApiClient, host: str, path: str) -> None:
    answer = api.put(path, host=host)
    assert answer.status == 400
    assert "Host header" in answer.detail
    assert answer.error["code"] == "placement.undefined_code"
    assert answer.error["request_id"] == answer.headers["x-openstack-request-id"]
    assert "location" not in answer.headers
    assert host.encode() not in answer.body
    assert api.get("/traits/CUSTOM_GOLD").status == 404


FORWARDED = {
    "x-forwarded-proto": "https",
    "x-forwarded-host": "cloud.example",
    "x-forwarded-prefix": "/placement",
}


def test_the_headers_of_a_proxy_are_ignored_by_default(api: ApiClient) -> None:
    answer = api.request("PUT", "/traits/CUSTOM_GOLD", headers=FORWARDED)
    assert answer.headers["location"] == "http://roost.example/traits/CUSTOM_GOLD"


@pytest.mark.parametrize(
    ("headers", "location"),
    [
        (FORWARDED, "https://cloud.example/placement/traits/CUSTOM_GOLD"),
        (
            {"forwarded": 'for=192.0.2.1;proto=https;host="cloud.example"'},
            "https://cloud.example/traits/CUSTOM_GOLD",
        ),
        ({}, "http://roost.example/traits/CUSTOM_GOLD"),
    ],
    ids=["x-forwarded", "forwarded", "neither"],
)
def test_the_headers_of_a_proxy_count_if_the_operator_enables_them(
    database: Database, tmp_path: Path, headers: dict[str, str], location: str
) -> None:
    configuration = (
        "[api]\nauth_strategy = noauth2\n[oslo_middleware]\nenable_proxy_headers_parsing = true\n"
    )
    behind_proxy = in_process_client(database, tmp_path, configuration)
    answer = behind_proxy.request("PUT", "/traits/CUSTOM_GOLD", headers=headers)
    assert answer.headers["location"] == location


# The size of a body.


def test_a_body_of_the_largest_size_is_read(database: Database, tmp_path: Path) -> None:
    body = b'{"name": "host"}'
    api = limited_client(database, tmp_path, max_body_bytes=len(body))
    assert api.post("/resource_providers", body).status == 200


def test_a_larger_body_is_refused(database: Database, tmp_path: Path) -> None:
    body = b'{"name": "host"}'
    api = limited_client(database, tmp_path, max_body_bytes=len(body) - 1)
    answer = api.post("/resource_providers", body)
    assert answer.status == 413
    assert answer.error["status"] == 413
    assert api.get("/resource_providers").json == {"resource_providers": []}


class Endless(io.RawIOBase):
    """A body without end and without a declared length."""

    def __init__(self) -> None:
        self.given = 0

    def read(self, size: int = -1) -> bytes:
        assert size >= 0, "the server must not read an endless body to its end"
        self.given += size
        return b" " * size


def test_a_body_of_unknown_length_is_not_read_to_its_end(
    database: Database, tmp_path: Path
) -> None:
    application = limited_application(database, tmp_path, max_body_bytes=1000)
    body = Endless()
    environ = {
        "REQUEST_METHOD": "POST",
        "PATH_INFO": "/resource_providers",
        "SERVER_NAME": "roost.example",
        "SERVER_PORT": "80",
        "CONTENT_TYPE": "application/json",
        "HTTP_X_AUTH_TOKEN": "admin",
        "wsgi.url_scheme": "http",
        "wsgi.input": body,
    }
    statuses: list[str] = []
    list(application(environ, lambda status, _: statuses.append(status)))
    assert [status[:3] for status in statuses] == ["413"]
    assert body.given <= 2000


# The log.


@pytest.fixture
def request_log(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    """The log, at the level at which the server writes a line for each request."""
    caplog.set_level(logging.INFO, logger="placement.requestlog")
    return caplog


def lines(log: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in log.records if record.name == "placement.requestlog"]


def test_each_request_is_one_line_that_operators_can_parse(
    api: ApiClient, request_log: pytest.LogCaptureFixture
) -> None:
    answer = api.at("1.10").get("/resource_providers?name=a%20b")
    length = len(answer.body)
    assert lines(request_log) == [
        f'- "GET /resource_providers?name=a%20b" status: 200 len: {length} microversion: 1.10'
    ]


@pytest.mark.parametrize(
    ("method", "path", "status"), [("GET", "/traits/HW_CPU_X86_VMX", 204), ("HEAD", "/", 405)]
)
def test_an_answer_without_body_is_logged_with_length_0(
    api: ApiClient, request_log: pytest.LogCaptureFixture, method: str, path: str, status: int
) -> None:
    api.request(method, path)
    assert lines(request_log) == [f'- "{method} {path}" status: {status} len: 0 microversion: 1.39']


@pytest.mark.parametrize(
    ("version", "token", "status"), [("1.39", None, 401), ("1.40", "admin", 406)]
)
def test_a_request_without_version_is_logged_with_a_dash(
    api: ApiClient,
    request_log: pytest.LogCaptureFixture,
    version: str,
    token: str | None,
    status: int,
) -> None:
    answer = replace(api.at(version), token=token).get("/traits")
    assert lines(request_log) == [
        f'- "GET /traits" status: {status} len: {len(answer.body)} microversion: -'
    ]


def test_the_log_names_the_path_with_its_prefix(
    mounted: ApiClient, request_log: pytest.LogCaptureFixture
) -> None:
    mounted.get("/resource_classes/VCPU")
    (line,) = lines(request_log)
    assert '"GET /placement/resource_classes/VCPU"' in line


def test_a_path_cannot_add_a_line_to_the_log(
    api: ApiClient, request_log: pytest.LogCaptureFixture
) -> None:
    api.get("/nowhere%0Aa%20forged%20line%0D")
    (line,) = lines(request_log)
    assert len(line.splitlines()) == 1


def test_a_token_is_never_in_the_log(api: ApiClient, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        replace(api, token="secret-token").get("/resource_providers")
    assert "secret-token" not in caplog.text


def logged_context(log: pytest.LogCaptureFixture) -> Any:
    (record,) = (record for record in log.records if record.name == "placement.requestlog")
    return vars(record)["context"]


def test_the_log_has_the_request_id_of_the_answer(
    api: ApiClient, request_log: pytest.LogCaptureFixture
) -> None:
    answer = api.get("/resource_providers")
    context = logged_context(request_log)
    assert context.request_id == answer.headers["x-openstack-request-id"]
    assert context.global_request_id is None


def test_the_log_has_the_user_and_the_project_of_the_caller(
    api: ApiClient, request_log: pytest.LogCaptureFixture
) -> None:
    replace(api, token="ann:lab").get("/resource_providers")
    context = logged_context(request_log)
    assert (context.user_id, context.project_id) == ("ann", "lab")


def test_the_request_id_of_the_calling_service_is_logged_as_the_global_request_id(
    api: ApiClient, request_log: pytest.LogCaptureFixture
) -> None:
    sent = "req-c0ffee00-0000-0000-0000-000000000001"
    answer = api.get("/resource_providers", x_openstack_request_id=sent)
    context = logged_context(request_log)
    assert context.global_request_id == sent
    assert context.request_id == answer.headers["x-openstack-request-id"] != sent


@pytest.mark.parametrize(
    "sent",
    [
        "c0ffee00-0000-0000-0000-000000000001",
        "req-C0FFEE00-0000-0000-0000-000000000001",
        "req-c0ffee00-0000-0000-0000-000000000001-more",
        "req-nonsense",
        "",
    ],
)
def test_a_malformed_request_id_is_not_logged_as_the_global_request_id(
    api: ApiClient, request_log: pytest.LogCaptureFixture, sent: str
) -> None:
    api.get("/resource_providers", x_openstack_request_id=sent)
    assert logged_context(request_log).global_request_id is None


# Failures of the server, and bodies that are cut short.


def test_the_cause_of_a_500_is_in_the_log_and_not_in_the_answer(
    api: ApiClient,
    database: Database,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def read(*_: object) -> None:
        raise RuntimeError("the secret of the house")

    monkeypatch.setattr(database, "read", read)
    answer = api.get("/resource_providers")
    assert answer.status == 500
    assert answer.error["title"] == "Internal Server Error"
    assert b"secret of the house" not in answer.body
    assert "the secret of the house" in caplog.text


def test_a_body_that_was_cut_short_is_refused(api: ApiClient) -> None:
    answer = api.post("/resource_providers", {"name": "half"}, content_length="100")
    assert answer.status == 400
    assert "of 100 bytes" in answer.detail
    assert api.get("/resource_providers").json == {"resource_providers": []}


# The request ids of log lines.


@pytest.fixture
def formatted(database: Database, tmp_path: Path) -> Iterator[list[str]]:
    """All log lines in the format of oslo.log: the ids in brackets, then the message."""
    written: list[str] = []

    class Listing(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            written.append(self.format(record))

    configuration = settings_for(database, tmp_path).oslo
    handler = Listing(logging.INFO)
    handler.setFormatter(ContextFormatter(config=configuration))
    logger = logging.getLogger()
    logger.addHandler(handler)
    yield written
    logger.removeHandler(handler)


def line_with(lines: list[str], message: str) -> str:
    (line,) = (line for line in lines if message in line)
    return line


def test_a_line_between_requests_has_no_request_id(api: ApiClient, formatted: list[str]) -> None:
    api.get("/resource_providers")
    logging.getLogger("roost.library").warning("between two requests")
    assert "req-" not in line_with(formatted, "between two requests")


def test_a_line_of_a_library_has_the_id_of_the_present_request(
    api: ApiClient, database: Database, monkeypatch: pytest.MonkeyPatch, formatted: list[str]
) -> None:
    answers = []
    read = database.read
    for number in range(3):

        def reading(*args: Any, number: int = number) -> Any:
            logging.getLogger("roost.library").warning("reading for request %d", number)
            return read(*args)

        monkeypatch.setattr(database, "read", reading)
        answers.append(replace(api, token="ann:lab").get("/resource_providers", x_roles="admin"))
    for number, answer in enumerate(answers):
        line = line_with(formatted, f"reading for request {number}")
        assert set(REQUEST_ID_ANYWHERE.findall(line)) == {answer.headers["x-openstack-request-id"]}
        assert "ann lab" in line


def test_a_line_after_a_failed_request_has_no_request_id(
    api: ApiClient, database: Database, monkeypatch: pytest.MonkeyPatch, formatted: list[str]
) -> None:
    def read(*_: object) -> None:
        raise RuntimeError("broken")

    monkeypatch.setattr(database, "read", read)
    answer = api.get("/resource_providers")
    logging.getLogger("roost.library").warning("after the failure")
    assert answer.headers["x-openstack-request-id"] in line_with(formatted, "The request failed")
    assert "req-" not in line_with(formatted, "after the failure")


@pytest.mark.parametrize(
    ("path", "headers"),
    [
        ("/traits?name=\x9b31m\xe4%0A", {}),
        ("/traits", {"x-project-id": "lab\x9b31m", "x-auth-token": "\x85admin"}),
    ],
)
def test_a_log_line_has_no_control_characters_of_the_client(
    api: ApiClient, formatted: list[str], path: str, headers: dict[str, str]
) -> None:
    logging.getLogger("placement.requestlog").setLevel(logging.INFO)
    api.request("GET", path, headers=headers)
    logging.getLogger("placement.requestlog").setLevel(logging.NOTSET)
    line = line_with(formatted, "status: ")
    assert line.isprintable()
