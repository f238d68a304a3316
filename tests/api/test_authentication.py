"""Who sends a request, with the tokens of `noauth2`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from roost.api.application import Application
from roost.configuration.settings import ConfigurationError
from roost.store.database import Database
from support.client import ApiClient, settings_for

pytestmark = pytest.mark.parametrize("kind", ["sqlite"], indirect=True)


def status(
    api: ApiClient, token: str | None, headers: Mapping[str, str], path: str = "/traits"
) -> int:
    """How the request of this sender is answered: 200 if it counts as an administrator."""
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
def test_nothing_but_the_version_document_is_answered_without_a_token(
    api: ApiClient, method: str, path: str
) -> None:
    expected = 405 if path == "/" else 401
    assert replace(api, token=None).request(method, path).status == expected


def test_the_version_document_needs_no_token(api: ApiClient) -> None:
    assert replace(api, token=None).get("/").status == 200


def test_a_refused_request_is_told_so_in_json(api: ApiClient) -> None:
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
def test_the_user_admin_is_an_administrator_and_nobody_else(
    api: ApiClient, token: str, expected: int
) -> None:
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


# What a project uses is shown to its readers: that tells which project a sender is in.
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


def test_an_application_without_a_strategy_says_what_to_set(
    database: Database, tmp_path: Path
) -> None:
    settings = replace(settings_for(database, tmp_path), auth_strategy=None)
    with pytest.raises(ConfigurationError, match=r"\[api\]auth_strategy"):
        Application(settings, database)


def test_a_configuration_file_cannot_name_an_unknown_strategy(
    database: Database, tmp_path: Path
) -> None:
    with pytest.raises(ConfigurationError, match="auth_strategy"):
        settings_for(database, tmp_path, "[api]\nauth_strategy = nobody\n")


def test_a_configuration_file_without_a_strategy_does_not_open_the_door(
    database: Database, tmp_path: Path
) -> None:
    assert settings_for(database, tmp_path, "[api]\n").auth_strategy == "keystone"
