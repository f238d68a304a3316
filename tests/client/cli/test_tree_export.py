"""`roost tree export` prints trees as a file for `roost tree apply`."""

from __future__ import annotations

from pathlib import Path

import yaml

from support.client.live_providers import LiveProviders
from support.roost_command import roost
from support.stubs.four_provider_stub import FourProviderStub
from support.transports.tampering import one_server

# The values of the server for the fields that an inventory leaves out.
DEFAULTS = {
    "reserved": 0,
    "min_unit": 1,
    "max_unit": 2147483647,
    "step_size": 1,
    "allocation_ratio": 1.0,
}


def add_host(live_providers: LiveProviders) -> None:
    live_providers.add("host", aggregates=["rack"], traits=["HW_CPU_X86_AVX2"])
    live_providers.add("gpu", "host", totals={"VGPU": 4}, traits=["CUSTOM_GOLD"])
    body = {
        "resource_provider_generation": live_providers.generation("host"),
        "inventories": {
            "VCPU": {"total": 16, "reserved": 2, "allocation_ratio": 1.5, "max_unit": 8},
            "MEMORY_MB": {"total": 1024},
        },
    }
    live_providers.send("PUT", live_providers.path("host", "inventories"), body)
    # A sharing provider is not part of the tree.
    live_providers.add("pool", aggregates=["rack"], traits=["MISC_SHARES_VIA_AGGREGATE"])


def test_an_exported_file_can_be_applied_and_changes_nothing(live_providers: LiveProviders) -> None:
    live_providers.send("PUT", "/traits/CUSTOM_GOLD")
    add_host(live_providers)
    before = [live_providers.generation(short) for short in ("host", "gpu", "pool")]

    as_yaml = roost("tree", "export", live_providers.name("gpu"))
    as_json = roost("tree", "export", live_providers.name("gpu"), "--json")
    assert (as_yaml.status, as_yaml.err) == (0, "")
    compared = roost("tree", "diff", "-f", "-", "--owner", "me", stdin=as_json.out)
    applied = roost("tree", "apply", "-f", "-", "--owner", "me", stdin=as_yaml.out)

    assert as_json.json == yaml.safe_load(as_yaml.out)
    assert (compared.status, compared.out) == (0, "")
    assert (applied.status, applied.out) == (0, "")
    assert [live_providers.generation(short) for short in ("host", "gpu", "pool")] == before


@one_server
def test_the_file_declares_all_of_a_tree(live_providers: LiveProviders) -> None:
    live_providers.send("PUT", "/traits/CUSTOM_GOLD")
    add_host(live_providers)
    exported = roost(
        "tree", "export", live_providers.uuid("gpu"), live_providers.name("host"), "--owner", "rack"
    )
    assert yaml.safe_load(exported.out) == {
        "owner": "rack",
        "providers": [
            {
                "name": live_providers.name("host"),
                "uuid": live_providers.uuid("host"),
                "traits": ["HW_CPU_X86_AVX2"],
                "aggregates": [live_providers.uuid("rack")],
                "inventories": {
                    "VCPU": DEFAULTS
                    | {"total": 16, "reserved": 2, "allocation_ratio": 1.5, "max_unit": 8},
                    "MEMORY_MB": DEFAULTS | {"total": 1024},
                },
                "children": [
                    {
                        "name": live_providers.name("gpu"),
                        "uuid": live_providers.uuid("gpu"),
                        "traits": ["CUSTOM_GOLD"],
                        "inventories": {"VGPU": DEFAULTS | {"total": 4}},
                    }
                ],
            }
        ],
    }


@one_server
def test_apply_restores_a_deleted_tree_from_its_exported_file(
    live_providers: LiveProviders,
) -> None:
    live_providers.send("PUT", "/traits/CUSTOM_GOLD")
    add_host(live_providers)
    exported = roost("tree", "export", live_providers.name("host")).out
    for short in ("gpu", "host"):
        live_providers.delete(short)
    Path("host.yaml").write_text(exported)
    assert roost("tree", "apply", "-f", "host.yaml", "--owner", "host").status == 0
    assert live_providers.totals("host") == {"VCPU": 16, "MEMORY_MB": 1024}
    assert live_providers.inventories("host")["VCPU"]["max_unit"] == 8
    assert live_providers.traits("gpu") == {"CUSTOM_GOLD", "CUSTOM_ROOST_OWNER_HOST"}
    assert live_providers.aggregates("host") == ["rack"]


@one_server
def test_diff_finds_a_later_change_of_an_exported_tree(live_providers: LiveProviders) -> None:
    live_providers.add("host", totals={"VCPU": 16})
    Path("host.yaml").write_text(roost("tree", "export", live_providers.name("host")).out)
    body = {
        "resource_provider_generation": live_providers.generation("host"),
        "inventories": {"VCPU": {"total": 16, "reserved": 5}},
    }
    live_providers.send("PUT", live_providers.path("host", "inventories"), body)
    host, change = live_providers.name("host"), "reserved 5 -> 0"
    planned = roost("tree", "diff", "-f", "host.yaml").lines
    assert planned == [f"{host}: inventory VCPU would change: {change}"]
    assert roost("tree", "apply", "-f", "host.yaml", "--owner", "host").lines == [
        f"{host}: inventory VCPU {change}"
    ]
    assert live_providers.inventories("host")["VCPU"]["reserved"] == 0


@one_server
def test_an_exported_file_has_no_marks_of_owners(live_providers: LiveProviders) -> None:
    live_providers.send("PUT", "/traits/CUSTOM_ROOST_OWNER_RACK")
    live_providers.send("PUT", "/traits/CUSTOM_OWNED")
    traits = ["OWNER_NOVA", "CUSTOM_ROOST_OWNER_RACK", "CUSTOM_OWNED"]
    live_providers.add("host", traits=traits)
    for form in ([], ["--json"]):
        exported = yaml.safe_load(roost("tree", "export", live_providers.name("host"), *form).out)
        assert exported["providers"][0]["traits"] == ["CUSTOM_OWNED", "OWNER_NOVA"]
    applied = roost("tree", "apply", "-f", "-", "--owner", "me", stdin=yaml.safe_dump(exported))
    assert (applied.status, applied.out) == (0, "")
    assert live_providers.traits("host") == set(traits)


def test_all_trees_are_exported_without_arguments(small_server: FourProviderStub) -> None:
    exported = yaml.safe_load(roost("tree", "export").out)["providers"]
    assert sorted(root["name"] for root in exported) == ["a", "b", "c"]
    (b,) = (root for root in exported if root["name"] == "b")
    assert b["children"] == [{"name": "d", "uuid": small_server.uuid("d")}]


def test_an_error_names_a_tree_that_is_deleted_meanwhile(small_server: FourProviderStub) -> None:
    small_server.deleted.add("c")
    outcome = roost("tree", "export")
    assert (outcome.status, outcome.out) == (1, "")
    assert small_server.uuid("c") in outcome.err


@one_server
def test_an_error_names_a_provider_that_does_not_exist(live_providers: LiveProviders) -> None:
    outcome = roost("tree", "export", live_providers.name("missing"))
    assert (outcome.status, outcome.out) == (1, "")
    assert live_providers.name("missing") in outcome.err
