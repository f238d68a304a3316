"""Clients that find Roost through the catalog of a real Keystone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import openstack
import pytest
import yaml
from keystoneauth1 import adapter, session
from keystoneauth1.identity import v3

from roost.client.reporting.reporter import Reporter
from roost.client.transport import PlacementRequest
from roost.client.transport.connecting import connect
from support.servers.live_server import LiveServer
from support.servers.real_keystone import PASSWORD, RealKeystone
from support.stubs.scripted_drivers import EditingDriver

# The SDK deprecates its own default configuration; Python shows that in tests only.
pytestmark = [
    pytest.mark.filterwarnings("ignore:Support for InfluxDB:PendingDeprecationWarning"),
    pytest.mark.filterwarnings("ignore::openstack.warnings.RemovedInSDK50Warning"),
]


@pytest.fixture(scope="module")
def region(keystone: RealKeystone, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The region in which the catalog has a live Roost that asks Keystone."""
    name = f"region-{uuid4()}"
    directory = tmp_path_factory.mktemp("roost")
    configuration = f"[api]\nauth_strategy = keystone\n{keystone.section}"
    with LiveServer(f"sqlite:///{directory}/r.db", directory, 1, configuration) as server:
        keystone.add_endpoint("placement", server.url, name)
        yield name


@pytest.fixture
def credentials(keystone: RealKeystone) -> dict[str, Any]:
    """What an administrator of the project writes into clouds.yaml."""
    return {
        "auth_url": f"{keystone.url}/v3",
        "username": "admin-user",
        "password": PASSWORD,
        "project_name": "lab",
        "user_domain_name": "Default",
        "project_domain_name": "Default",
    }


def test_the_sdk_finds_roost_and_writes_to_it(region: str, credentials: dict[str, Any]) -> None:
    with openstack.connect(auth=credentials, region_name=region) as cloud:
        made = cloud.placement.create_resource_provider(name=f"host {uuid4()}")
        assert made.id in [provider.id for provider in cloud.placement.resource_providers()]


def test_a_session_of_keystoneauth_finds_roost(region: str, credentials: dict[str, Any]) -> None:
    auth = v3.Password(**credentials)
    client = adapter.Adapter(session.Session(auth), service_type="placement", region_name=region)
    assert "HW_CPU_X86_AVX" in client.get("/traits", microversion="1.39").json()["traits"]


def test_the_reporter_finds_roost_and_writes_to_it(
    region: str, credentials: dict[str, Any], tmp_path: Path
) -> None:
    (tmp_path / "secure.yaml").write_text("clouds: {}")
    clouds = {"lab": {"auth": credentials, "region_name": region}}
    (tmp_path / "clouds.yaml").write_text(yaml.safe_dump({"clouds": clouds}))
    environ = {
        "OS_CLIENT_CONFIG_FILE": str(tmp_path / "clouds.yaml"),
        "OS_CLIENT_SECURE_FILE": str(tmp_path / "secure.yaml"),
    }
    host = f"host {uuid4()}"
    driver = EditingDriver(lambda tree: tree.update_traits(host, ["CUSTOM_GOLD"]))
    with connect(cloud="lab", environ=environ) as transport:
        Reporter(transport).report(driver, host)
        query = PlacementRequest("GET", "/resource_providers?required=CUSTOM_GOLD", version="1.39")
        (found,) = transport.send(query).json["resource_providers"]
    assert found["name"] == host
