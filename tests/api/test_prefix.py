"""The service below a path: `[roost]prefix`, a mount of the server, or a proxy that says so."""

from __future__ import annotations

from pathlib import Path

import pytest

from roost.api.application import Application
from roost.model.errors import ConfigurationError
from roost.store.database import Database
from support.api_client import ApiClient, application_client, settings_for

NOAUTH = (
    "[api]\nauth_strategy = noauth2\n[oslo_policy]\nenforce_new_defaults = false\n"
    "[oslo_middleware]\nenable_proxy_headers_parsing = true\n"
)


def client(
    database: Database, directory: Path, prefix: str = "", script_name: str = ""
) -> ApiClient:
    settings = settings_for(database, directory, f"{NOAUTH}[roost]\nprefix = {prefix}\n")
    return application_client(Application(settings, database), script_name)


@pytest.fixture
def mounted(database: Database, tmp_path: Path) -> ApiClient:
    return client(database, tmp_path, "/placement/")


def test_links_and_locations_have_the_prefix(mounted: ApiClient) -> None:
    answer = mounted.post("/placement/resource_providers", {"name": "host"})
    assert answer.status == 200
    uuid = answer.json["uuid"]
    at = f"/placement/resource_providers/{uuid}"
    assert answer.headers["location"] == f"http://roost.example{at}"
    assert {link["href"] for link in answer.json["links"]} == {
        at,
        *(
            f"{at}/{name}"
            for name in ("inventories", "usages", "aggregates", "traits", "allocations")
        ),
    }
    assert mounted.get(at).status == 200


@pytest.mark.parametrize("path", ["/placement", "/placement/"])
def test_the_version_document_is_at_the_prefix(mounted: ApiClient, path: str) -> None:
    assert mounted.get(path).json["versions"][0]["id"] == "v1.0"


@pytest.mark.parametrize(
    "path", ["/", "/traits", "/placements", "/placement2/traits", "//placement/traits"]
)
def test_a_path_outside_is_not_found(mounted: ApiClient, path: str) -> None:
    answer = mounted.get(path)
    assert answer.status == 404
    assert "The service is at /placement ([roost]prefix)." in answer.detail


@pytest.mark.parametrize("prefix", ["", "/placement"])
def test_a_server_may_mount_the_service_itself(
    database: Database, tmp_path: Path, prefix: str
) -> None:
    api = client(database, tmp_path, prefix, script_name="/placement")
    answer = api.put("/traits/CUSTOM_GOLD")
    assert answer.headers["location"] == "http://roost.example/placement/traits/CUSTOM_GOLD"


def test_a_proxy_may_say_the_whole_path_that_clients_see(mounted: ApiClient) -> None:
    answer = mounted.request(
        "PUT", "/placement/traits/CUSTOM_GOLD", headers={"x-forwarded-prefix": "/cloud/placement"}
    )
    assert answer.headers["location"] == "http://roost.example/cloud/placement/traits/CUSTOM_GOLD"


@pytest.mark.parametrize("prefix", ["placement", "//placement", "/a b", "/a?b", "/a//b"])
def test_a_prefix_that_is_no_path_is_refused_at_start(
    database: Database, tmp_path: Path, prefix: str
) -> None:
    with pytest.raises(ConfigurationError, match="prefix"):
        client(database, tmp_path, prefix)
