"""`roost tree export`: trees as files, which say just what is there."""

from __future__ import annotations

from pathlib import Path

import yaml

from support.commands import roost
from support.remote_world import RemoteWorld
from support.small_server import SmallServer
from support.tampering import one_server


def add_host(world: RemoteWorld) -> None:
    world.add("host", aggregates=["rack"], traits=["HW_CPU_X86_AVX2"])
    world.add("gpu", "host", totals={"VGPU": 4}, traits=["CUSTOM_GOLD"])
    body = {
        "resource_provider_generation": world.generation("host"),
        "inventories": {
            "VCPU": {"total": 16, "reserved": 2, "allocation_ratio": 1.5, "max_unit": 8},
            "MEMORY_MB": {"total": 1024},
        },
    }
    world.send("PUT", world.path("host", "inventories"), body)
    # What others share with it is not part of it.
    world.add("pool", aggregates=["rack"], traits=["MISC_SHARES_VIA_AGGREGATE"])


def test_what_is_exported_can_be_applied_and_changes_nothing(world: RemoteWorld) -> None:
    world.send("PUT", "/traits/CUSTOM_GOLD")
    add_host(world)
    before = [world.generation(short) for short in ("host", "gpu", "pool")]

    as_yaml = roost("tree", "export", world.name("gpu"))
    as_json = roost("tree", "export", world.name("gpu"), "--json")
    assert (as_yaml.status, as_yaml.err) == (0, "")
    compared = roost("tree", "diff", "-f", "-", "--owner", "me", stdin=as_json.out)
    applied = roost("tree", "apply", "-f", "-", "--owner", "me", stdin=as_yaml.out)

    assert as_json.json == yaml.safe_load(as_yaml.out)
    assert (compared.status, compared.out) == (0, "")
    assert (applied.status, applied.out) == (0, "")
    assert [world.generation(short) for short in ("host", "gpu", "pool")] == before


@one_server
def test_the_file_says_what_is_there_and_not_what_goes_without_saying(world: RemoteWorld) -> None:
    world.send("PUT", "/traits/CUSTOM_GOLD")
    add_host(world)
    exported = roost("tree", "export", world.uuid("gpu"), world.name("host"), "--owner", "rack")
    assert yaml.safe_load(exported.out) == {
        "owner": "rack",
        "providers": [
            {
                "name": world.name("host"),
                "uuid": world.uuid("host"),
                "traits": ["HW_CPU_X86_AVX2"],
                "aggregates": [world.uuid("rack")],
                "inventories": {
                    "VCPU": {"total": 16, "reserved": 2, "allocation_ratio": 1.5, "max_unit": 8},
                    "MEMORY_MB": 1024,
                },
                "children": [
                    {
                        "name": world.name("gpu"),
                        "uuid": world.uuid("gpu"),
                        "traits": ["CUSTOM_GOLD"],
                        "inventories": {"VGPU": 4},
                    }
                ],
            }
        ],
    }


@one_server
def test_a_tree_that_was_deleted_comes_back_from_its_file(world: RemoteWorld) -> None:
    world.send("PUT", "/traits/CUSTOM_GOLD")
    add_host(world)
    exported = roost("tree", "export", world.name("host")).out
    for short in ("gpu", "host"):
        world.delete(short)
    Path("host.yaml").write_text(exported)
    assert roost("tree", "apply", "-f", "host.yaml").status == 0
    assert world.totals("host") == {"VCPU": 16, "MEMORY_MB": 1024}
    assert world.inventories("host")["VCPU"]["max_unit"] == 8
    assert world.traits("gpu") == {"CUSTOM_GOLD", "CUSTOM_OWNER_HOST"}
    assert world.aggregates("host") == ["rack"]


def test_without_names_everything_is_exported(small_server: SmallServer) -> None:
    exported = yaml.safe_load(roost("tree", "export").out)["providers"]
    assert sorted(root["name"] for root in exported) == ["a", "b", "c"]
    (b,) = (root for root in exported if root["name"] == "b")
    assert b["children"] == [{"name": "d", "uuid": small_server.uuid("d")}]


def test_a_tree_that_goes_away_meanwhile_is_told(small_server: SmallServer) -> None:
    small_server.deleted.add("c")
    outcome = roost("tree", "export")
    assert (outcome.status, outcome.out) == (1, "")
    assert f"{small_server.uuid('c')} was deleted by somebody else just now" in outcome.err


@one_server
def test_a_name_that_nobody_has_is_told(world: RemoteWorld) -> None:
    outcome = roost("tree", "export", world.name("nobody"))
    assert (outcome.status, outcome.out) == (1, "")
    assert world.name("nobody") in outcome.err
