"""`roost provider adopt`, `rename` and `merge`: a host that was installed again."""

from __future__ import annotations

from uuid import uuid4

import pytest

from support.client.live_providers import LiveProviders
from support.roost_command import roost
from support.transports.tampering import one_server


@pytest.fixture
def host(live_providers: LiveProviders) -> LiveProviders:
    """A host with a child and a consumer, and the provider of the new installation."""
    live_providers.add("host", totals={"VCPU": 16}, traits=["HW_CPU_X86_AVX2"])
    live_providers.add("gpu", "host", totals={"VGPU": 4})
    live_providers.add("new", totals={"VCPU": 4})
    live_providers.claim("instance", host={"VCPU": 6})
    return live_providers


@one_server
def test_a_provider_gets_another_uuid_and_keeps_its_allocations(host: LiveProviders) -> None:
    name, uuid = host.name("host"), str(uuid4())
    words = ("provider", "adopt", name, "--uuid", uuid.upper())
    planned = roost(*words, "--dry-run")
    assert planned.out == f"{name}: uuid would change: {host.uuid('host')} -> {uuid}\n"
    assert host.exists("host")
    done = roost(*words)
    assert (done.status, done.out) == (0, f"{name}: uuid {host.uuid('host')} -> {uuid}\n")
    assert done.err == "1 change made\n"
    assert list(host.consumer("instance")["allocations"]) == [uuid]
    again = roost(*words, "--json")
    assert again.json == {"dry_run": False, "changes": []}


@one_server
def test_a_uuid_that_another_provider_has_leads_to_a_merge(host: LiveProviders) -> None:
    outcome = roost("provider", "adopt", host.name("host"), "--uuid", host.uuid("new"))
    assert (outcome.status, outcome.out) == (1, "")
    following = f"merge {host.name('host')} --into {host.uuid('new')} --dry-run"
    assert outcome.err.rstrip().endswith(f"Next: roost provider {following}")
    assert f"{host.name('host')}: not adopted" in outcome.err


@one_server
def test_a_word_that_is_no_uuid_is_refused(host: LiveProviders) -> None:
    outcome = roost("provider", "adopt", host.name("host"), "--uuid", "host-2")
    assert outcome.status == 2
    assert "--uuid host-2 is no uuid" in outcome.err


@one_server
def test_a_provider_is_renamed_with_those_below_it(host: LiveProviders) -> None:
    name = host.name("host")
    host.send(
        "PUT",
        host.path("gpu"),
        {"name": f"{name}_gpu", "parent_provider_uuid": host.uuid("host")},
    )
    words = ("provider", "rename", name, f"new-{name}", "--descendants")
    planned = roost(*words, "--dry-run")
    assert sorted(planned.lines) == [
        f"{name}: name would change: {name} -> new-{name}",
        f"{name}_gpu: name would change: {name}_gpu -> new-{name}_gpu",
    ]
    assert host.provider("host")["name"] == name
    changes = roost(*words, "--json").json["changes"]
    assert [change["after"] for change in changes] == [f"new-{name}", f"new-{name}_gpu"]
    assert host.provider("gpu")["name"] == f"new-{name}_gpu"


@one_server
def test_a_merge_moves_what_the_new_provider_lacks(host: LiveProviders) -> None:
    name, new = host.name("host"), host.name("new")
    words = ("provider", "merge", name, "--into", new)
    refused = roost(*words)
    assert refused.status == 1
    assert refused.err.rstrip().endswith(f"Next: roost provider show {new}")
    forced = (*words, "--force")
    planned = roost(*forced, "--dry-run")
    assert planned.lines == [
        f"{new}: consumers would be taken over: 1",
        f"{new}: traits would be taken over: HW_CPU_X86_AVX2",
        f"{new}: children would be taken over: {host.name('gpu')}",
        f"{name}: would be deleted",
    ]
    assert host.exists("host")
    done = roost(*forced)
    assert done.status == 0, done.err
    assert done.lines[-1] == f"{name}: deleted"
    assert not host.exists("host")
    assert host.taken("instance") == {"new": {"VCPU": 6}}


@pytest.mark.parametrize("server", ["reference"], indirect=True)
@pytest.mark.parametrize(
    "words", ["adopt {} --uuid 5e2b1c1e-8a2c-4a39-9d6d-0a7c3a6a9f11", "rename {} x"]
)
def test_a_server_without_adoptions_is_told(host: LiveProviders, words: str) -> None:
    outcome = roost("provider", *words.format(host.name("host")).split())
    assert outcome.status == 1
    assert "This server is no Roost server" in outcome.err
    assert host.exists("host")
