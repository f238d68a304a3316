"""`roost tree export`: trees as files, which say just what is there."""

from __future__ import annotations

from pathlib import Path

import yaml

from support.commands import roost
from support.remote_world import RemoteWorld
from support.small_server import SmallServer
from support.tampering import one_server

# What a server takes for the fields of an inventory that nobody has said.
UNSAID = {
    "reserved": 0,
    "min_unit": 1,
    "max_unit": 2147483647,
    "step_size": 1,
    "allocation_ratio": 1.0,
}


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
def test_the_file_says_all_that_is_there(world: RemoteWorld) -> None:
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
                    "VCPU": UNSAID
                    | {"total": 16, "reserved": 2, "allocation_ratio": 1.5, "max_unit": 8},
                    "MEMORY_MB": UNSAID | {"total": 1024},
                },
                "children": [
                    {
                        "name": world.name("gpu"),
                        "uuid": world.uuid("gpu"),
                        "traits": ["CUSTOM_GOLD"],
                        "inventories": {"VGPU": UNSAID | {"total": 4}},
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


@one_server
def test_a_change_by_hand_shows_against_an_exported_file(world: RemoteWorld) -> None:
    world.add("host", totals={"VCPU": 16})
    Path("host.yaml").write_text(roost("tree", "export", world.name("host")).out)
    body = {
        "resource_provider_generation": world.generation("host"),
        "inventories": {"VCPU": {"total": 16, "reserved": 5}},
    }
    world.send("PUT", world.path("host", "inventories"), body)
    told = f"{world.name('host')}: inventory VCPU reserved 5 -> 0"
    assert roost("tree", "diff", "-f", "host.yaml").lines == [told]
    assert roost("tree", "apply", "-f", "host.yaml").lines == [told]
    assert world.inventories("host")["VCPU"]["reserved"] == 0


@one_server
def test_the_marks_of_owners_are_not_part_of_a_file(world: RemoteWorld) -> None:
    world.send("PUT", "/traits/CUSTOM_OWNER_RACK")
    world.send("PUT", "/traits/CUSTOM_OWNED")
    marks = ["OWNER_NOVA", "CUSTOM_OWNER_RACK", "CUSTOM_OWNED"]
    world.add("host", traits=marks)
    for form in ([], ["--json"]):
        exported = yaml.safe_load(roost("tree", "export", world.name("host"), *form).out)
        assert exported["providers"][0]["traits"] == ["CUSTOM_OWNED"]
    applied = roost("tree", "apply", "-f", "-", "--owner", "me", stdin=yaml.safe_dump(exported))
    assert (applied.status, applied.out) == (0, "")
    assert world.traits("host") == set(marks)


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
