"""`roost audit --against openstack`: Nova says which consumers exist."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from support.api_client import ApiClient
from support.roost_command import Outcome, roost
from support.servers.live_server import LiveServer
from support.stubs.nova_stub import NovaStub

# The SDK deprecates parts of itself; Python shows that in tests only.
pytestmark = pytest.mark.filterwarnings(
    "ignore::DeprecationWarning:openstack", "ignore::PendingDeprecationWarning:openstack"
)

AUDIT = ("audit", "--against", "openstack", "--json")
DELETION = ("--delete", "--at-most-percent", "50")


@pytest.fixture
def nova(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[NovaStub]:
    """The cloud that the environment names."""
    with NovaStub() as stub:
        stub.write_clouds(tmp_path / "clouds.yaml")
        monkeypatch.setenv("OS_CLIENT_CONFIG_FILE", str(tmp_path / "clouds.yaml"))
        monkeypatch.setenv("OS_CLOUD", "stub")
        yield stub


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[ApiClient]:
    """A placement server of its own: Nova has no consumer of other tests."""
    with LiveServer(f"sqlite:///{tmp_path}/audit.db", tmp_path, workers=1) as server:
        monkeypatch.setenv("ROOST_URL", server.url)
        yield server.client()


def claims(api: ApiClient, *kinds: str | None) -> list[str]:
    """A consumer of each type; `None` is a client that gives no type, as Nova does."""
    host = str(uuid4())
    assert api.post("/resource_providers", {"name": host, "uuid": host}).status == 200
    inventories = {"VCPU": {"total": 16}}
    path = f"/resource_providers/{host}/inventories"
    api.put(path, {"resource_provider_generation": 0, "inventories": inventories})
    made = []
    for kind in kinds:
        body = {
            "allocations": {host: {"resources": {"VCPU": 1}}},
            "project_id": "project",
            "user_id": "user",
            "consumer_generation": None,
        }
        client = api.at("1.36") if kind is None else api
        body |= {} if kind is None else {"consumer_type": kind}
        made.append(str(uuid4()))
        assert client.put(f"/allocations/{made[-1]}", body).status == 204
    # The list begins a second after the claims, so they are not too new for it.
    time.sleep(1.1)
    return made


def orphans(outcome: Outcome) -> set[str]:
    findings = outcome.json["findings"]
    return {one["consumer"] for one in findings if one["kind"] == "orphan"}


def holders(api: ApiClient, uuids: list[str]) -> list[str]:
    return [uuid for uuid in uuids if api.get(f"/allocations/{uuid}").json["allocations"]]


def test_a_consumer_that_nova_does_not_have_is_an_orphan(api: ApiClient, nova: NovaStub) -> None:
    made = claims(api, "INSTANCE", None, None, None, "MIGRATION", "MIGRATION", "JOB")
    server, untyped, hidden, lost, moving, moved, _job = made
    # Three servers are two pages.
    nova.servers = [server, str(uuid4()), untyped]
    nova.hidden_servers = [hidden]
    nova.migrations = {moving: "finished", moved: "confirmed"}
    found = roost(*AUDIT)
    assert (found.status, orphans(found)) == (3, {lost, moved}), found.err
    planned = roost(*AUDIT, *DELETION, "--dry-run")
    assert orphans(planned) == {lost, moved}
    assert holders(api, made) == made
    done = roost(*AUDIT, *DELETION)
    assert orphans(done) == {lost, moved}, done.err
    assert holders(api, made) == [uuid for uuid in made if uuid not in (lost, moved)]


def test_an_operator_chooses_other_types_than_those_of_nova(api: ApiClient, nova: NovaStub) -> None:
    made = claims(api, "INSTANCE", "JOB")
    nova.servers = [str(uuid4())]
    assert orphans(roost(*AUDIT, "--type", "JOB")) == {made[1]}


def test_an_empty_list_of_nova_deletes_nothing(api: ApiClient, nova: NovaStub) -> None:
    made = claims(api, "INSTANCE")
    refused = roost(*AUDIT, "--delete", "--at-most-percent", "100")
    assert refused.status == 1
    assert "openstack has no uuid" in refused.err
    assert holders(api, made) == made


def test_the_nova_of_another_cloud_is_noticed(
    api: ApiClient, nova: NovaStub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("roost.cli.cloud.audit._ORPHANS_ASKED_MAX", 1)
    claims(api, "INSTANCE", "INSTANCE")
    nova.servers = [str(uuid4())]
    refused = roost(*AUDIT)
    assert refused.status == 1
    assert "Nova does not list 2 consumers of 2. Is this the Nova of the same cloud?" in refused.err


def test_a_nova_that_refuses_is_told(nova: NovaStub, monkeypatch: pytest.MonkeyPatch) -> None:
    nova.forbids = True
    refused = roost(*AUDIT, "--url", "http://127.0.0.1:1")
    assert (refused.status, refused.out) == (1, "")
    assert "Nova of the cloud 'stub' did not tell the servers of all projects" in refused.err
    assert "administrator" in refused.err
    monkeypatch.delenv("OS_CLOUD")
    unnamed = roost(*AUDIT, "--url", "http://127.0.0.1:1")
    assert unnamed.status == 1
    assert "No cloud of OpenStack is named" in unnamed.err
