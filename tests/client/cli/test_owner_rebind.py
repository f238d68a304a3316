"""Records of one server are refused for another one, until `roost owner rebind` says otherwise."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from roost.client.ownership.store import FileOwnershipStore
from support.client.live_providers import LiveProviders
from support.roost_command import Outcome, roost
from support.servers.faulty_proxy import FaultyProxy
from support.servers.live_server import LiveServer


@pytest.fixture
def other_url(server: LiveServer) -> Iterator[str]:
    """Another address of the same server."""
    with FaultyProxy(server.port) as proxy:
        yield proxy.url


def apply(providers: LiveProviders, classes: list[str], *arguments: str) -> Outcome:
    tree = {"name": providers.name("host"), "inventories": dict.fromkeys(classes, 1)}
    text = json.dumps({"owner": "rack", "providers": [tree]})
    return roost("tree", "apply", "-f", "-", *arguments, stdin=text)


def in_one_spelling(url: str) -> str:
    return url.replace("127.0.0.1", "localhost")


def test_the_command_of_the_refusal_binds_the_records_to_the_new_address(
    live_providers: LiveProviders, server: LiveServer, other_url: str, state: Path
) -> None:
    assert apply(live_providers, ["VCPU", "VGPU"]).status == 0
    refused = apply(live_providers, ["VCPU"], "--url", other_url)
    assert refused.status == 1
    old, new = in_one_spelling(server.url), in_one_spelling(other_url)
    (command,) = (
        line.partition("roost ")[2]
        for line in refused.err.splitlines()
        if "roost owner rebind" in line
    )
    assert command == f"owner rebind rack --from {old} --url {new} --records {state}"
    (host,) = live_providers.send(
        "GET", f"/resource_providers?name={live_providers.name('host')}"
    ).json["resource_providers"]
    path = f"/resource_providers/{host['uuid']}/inventories"
    assert set(live_providers.send("GET", path).json["inventories"]) == {"VCPU", "VGPU"}

    would = roost(*shlex.split(command), "--dry-run")
    assert would.out == f"would be bound to {new}: 1 record of rack\n"
    assert apply(live_providers, ["VCPU"], "--url", other_url).status == 1
    bound = roost(*shlex.split(command))
    assert (bound.status, bound.err) == (0, "")
    assert bound.out == f"bound to {new}: 1 record of rack\n"
    assert apply(live_providers, ["VCPU"], "--url", other_url).status == 0
    assert set(live_providers.send("GET", path).json["inventories"]) == {"VCPU"}
    assert roost("owner", "list", "--json").json[0]["servers"] == [new]
    (tree,) = roost("owner", "show", "rack", "--json").json["trees"]
    assert tree["server"]["url"] == new
    assert f"server     {new}" in roost("owner", "show", "rack").out


def test_check_does_not_compare_records_of_another_server(
    live_providers: LiveProviders, other_url: str
) -> None:
    assert apply(live_providers, ["VCPU"]).status == 0
    (host,) = live_providers.send(
        "GET", f"/resource_providers?name={live_providers.name('host')}"
    ).json["resource_providers"]
    live_providers.send("DELETE", f"/resource_providers/{host['uuid']}")
    assert roost("owner", "list", "--check", "--json").json[0]["gone"] == 1
    assert roost("owner", "list", "--check", "--json", "--url", other_url).json[0]["gone"] == 0


def test_the_agent_refuses_records_of_another_server(
    live_providers: LiveProviders, other_url: str
) -> None:
    tree = {"providers": [{"name": live_providers.name("host"), "inventories": {"VCPU": 1}}]}
    Path("tree.yaml").write_text(json.dumps(tree))
    agent = ["agent", "--driver", "file", "--option", "path=tree.yaml", "--once"]
    agent += ["--name", live_providers.name("host")]
    assert roost(*agent).status == 0
    assert roost(*agent).status == 0
    refused = roost(*agent, "--url", other_url)
    assert refused.status == 78
    assert "roost owner rebind agent --from" in refused.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["rack", "--from", "http://nowhere"], "No record belongs to http://nowhere; all belong"),
        (["rakc", "--from", "http://nowhere"], "Near it: rack"),
        (["rack"], "Missing option '--from'"),
    ],
)
def test_a_rebinding_that_cannot_be_meant_is_an_error(
    live_providers: LiveProviders, arguments: list[str], words: str
) -> None:
    apply(live_providers, ["VCPU"])
    outcome = roost("owner", "rebind", *arguments)
    assert outcome.status in (1, 2)
    assert words in outcome.err


def test_records_that_a_process_holds_are_not_rebound(
    live_providers: LiveProviders, server: LiveServer, state: Path
) -> None:
    apply(live_providers, ["VCPU"])
    with FileOwnershipStore("rack", state).held():
        outcome = roost("owner", "rebind", "rack", "--from", server.url)
    assert outcome.status == 1
    assert "in use by process" in outcome.err


def test_a_rebinding_to_a_server_without_the_trees_warns(
    live_providers: LiveProviders, server: LiveServer
) -> None:
    apply(live_providers, ["VCPU"])
    (host,) = live_providers.send(
        "GET", f"/resource_providers?name={live_providers.name('host')}"
    ).json["resource_providers"]
    live_providers.send("DELETE", f"/resource_providers/{host['uuid']}")
    outcome = roost("owner", "rebind", "rack", "--from", server.url)
    assert outcome.status == 0
    assert f"does not have the root of 1 tree of them: {host['uuid']}" in outcome.err
