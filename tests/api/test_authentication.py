"""The sender of a request, as the tokens of `noauth2` name it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from roost.api.application import Application
from roost.configuration.settings import ConfigurationError
from roost.store.database import Database
from support.api_client import ApiClient, settings_for

pytestmark = pytest.mark.parametrize("kind", ["sqlite"], indirect=True)


def status(
    api: ApiClient, token: str | None, headers: Mapping[str, str], path: str = "/traits"
) -> int:
    """The status of this sender's request: 200 if the sender counts as an administrator."""
    return replace(api, token=token).request("GET", path, headers=headers).status


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/resource_providers"),
        ("POST", "/allocations"),
        ("DELETE", "/traits/CUSTOM_GOLD"),
        ("GET", "/nowhere"),
        ("PATCH", "/"),
        ("HEAD", "/resource_providers"),
    ],
)
def test_a_request_without_a_token_is_refused_except_for_the_version_document(
    api: ApiClient, method: str, path: str
) -> None:
    expected = 405 if path == "/" else 401
    assert replace(api, token=None).request(method, path).status == expected


def test_the_version_document_needs_no_token(api: ApiClient) -> None:
    assert replace(api, token=None).get("/").status == 200


def test_a_refusal_has_a_json_body(api: ApiClient) -> None:
    answer = replace(api, token=None).get("/resource_providers")
    assert answer.headers["content-type"] == "application/json"
    assert answer.json | {"message": ""} == {
        "message": "",
        "code": "401 Unauthorized",
        "title": "Unauthorized",
    }
    assert "X-Auth-Token" in answer.json["message"]
    assert "x-openstack-request-id" in answer.headers


def test_an_empty_token_is_a_token(api: ApiClient) -> None:
    assert status(api, "", {}) == 403
    assert status(api, "", {"x-roles": "admin"}) == 200


@pytest.mark.parametrize(
    ("token", "expected"),
    [
        ("admin", 200),
        ("admin:project", 200),
        ("admin:", 200),
        ("Admin", 403),
        ("administrator", 403),
        ("project:admin", 403),
        ("ann", 403),
        (":admin", 403),
    ],
)
def test_only_the_user_admin_is_an_administrator(api: ApiClient, token: str, expected: int) -> None:
    assert status(api, token, {}) == expected


@pytest.mark.parametrize(
    ("roles", "expected"),
    [
        ("admin", 200),
        ("service", 200),
        ("ADMIN", 200),
        ("reader,admin", 200),
        ("reader, Admin ,member", 200),
        ("", 403),
        (",", 403),
        ("reader", 403),
        ("administrator", 403),
        ("reader admin", 403),
    ],
)
@pytest.mark.parametrize("token", ["admin", "ann:lab"])
def test_roles_that_are_sent_replace_those_of_the_token(
    api: ApiClient, token: str, roles: str, expected: int
) -> None:
    assert status(api, token, {"x-roles": roles}) == expected


# Readers see the usages of their own project only. The answer tells the project of a sender.
@pytest.mark.parametrize(
    ("token", "headers", "project"),
    [
        ("ann:lab", {}, "lab"),
        ("ann:lab:annex", {}, "lab:annex"),
        ("ann", {}, "ann"),
        ("ann:", {}, "ann"),
        ("ann:lab", {"x-project-id": "office"}, "office"),
        ("ann", {"x-project-id": "office"}, "office"),
        ("ann:lab", {"x-tenant-id": "office"}, "lab"),
    ],
)
def test_the_project_is_that_of_the_header_or_of_the_token(
    api: ApiClient, token: str, headers: dict[str, str], project: str
) -> None:
    sent = {"x-roles": "reader", **headers}
    asked = {
        name: status(api, token, sent, f"/usages?project_id={name}")
        for name in ("lab", "lab:annex", "office", "ann")
    }
    assert [name for name, answered in asked.items() if answered == 200] == [project]


def test_a_system_scoped_sender_has_no_project(api: ApiClient) -> None:
    headers = {"openstack-system-scope": "all", "x-roles": "reader"}
    assert status(api, "ann:lab", headers, "/usages?project_id=lab") == 403


def test_an_application_without_a_strategy_names_the_option_to_set(
    database: Database, tmp_path: Path
) -> None:
    settings = replace(settings_for(database, tmp_path), auth_strategy=None)
    with pytest.raises(ConfigurationError, match=r"\[api\]auth_strategy"):
        Application(settings, database)


def test_a_configuration_file_cannot_name_an_unknown_strategy(
    database: Database, tmp_path: Path
) -> None:
    with pytest.raises(ConfigurationError, match="auth_strategy"):
        settings_for(database, tmp_path, "[api]\nauth_strategy = unknown\n")


def test_a_configuration_file_without_a_strategy_means_keystone(
    database: Database, tmp_path: Path
) -> None:
    assert settings_for(database, tmp_path, "[api]\n").auth_strategy == "keystone"
