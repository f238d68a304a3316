"""The worlds that documents draw are in the database as they are drawn."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from sqlalchemy import Connection

from roost.demo.drawings import drawings
from roost.demo.load import load_worlds
from roost.demo.world import World
from roost.model.providers import AggregateFilter, ProviderFilter, TraitFilter
from roost.service.tables.aggregates import list_aggregates
from roost.service.tables.inventories import list_inventories
from roost.service.tables.traits import list_provider_traits
from roost.store.database import Database
from support.store.stored_providers import all_providers

Show = Callable[[str], object]


def _load(database: Database, world: World) -> Show:
    """Load one world.

    The returned function shows parent, totals, traits and aggregates of a drawn provider.
    """
    uuids = database.write(load_worlds, [world])
    drawn = {world.uuid(name): name for name in ("agg", "aggA", "aggB")}
    drawn |= {uuid: name for name, uuid in uuids.items() if not name.startswith(f"{world.name}/")}

    def read(connection: Connection, name: str) -> object:
        uuid = uuids[name]
        (provider,) = all_providers(connection, ProviderFilter(uuid=uuid))
        return (
            provider.parent_uuid and drawn[provider.parent_uuid],
            {
                resource_class: inventory.total
                for resource_class, inventory in list_inventories(
                    connection, uuid
                ).inventories.items()
            },
            {trait.name for trait in list_provider_traits(connection, uuid)[1]},
            {drawn[aggregate] for aggregate in list_aggregates(connection, uuid)[1]},
        )

    return lambda name: database.read(read, name)


@pytest.mark.parametrize("world", drawings().values(), ids=lambda world: world.name)
def test_each_drawing_loads_into_a_database_of_its_own(empty: Database, world: World) -> None:
    uuids = empty.write(load_worlds, [world])
    assert uuids.keys() == {
        name
        for provider in world.providers
        for name in (provider.name, f"{world.name}/{provider.name}")
    }
    found = {
        provider.uuid: provider.name for provider in empty.read(all_providers, ProviderFilter())
    }
    assert found == {uuids[p.name]: f"{world.name}/{p.name}" for p in world.providers}


def test_sharing_storage_is_as_drawn(empty: Database) -> None:
    show = _load(empty, drawings()["sharing"])
    shares = {"MISC_SHARES_VIA_AGGREGATE"}
    host = {"VCPU": 8, "MEMORY_MB": 1024, "DISK_GB": 1000}
    assert show("SS1") == (None, {"DISK_GB": 1000}, shares, {"aggA"})
    assert show("SS2") == (None, {"DISK_GB": 1000}, shares, set())
    assert show("CN1") == (None, host, set(), {"aggA"})
    assert show("CN2") == (None, host, set(), set())


def test_sharing_storage_with_numa_nodes_is_as_drawn(empty: Database) -> None:
    show = _load(empty, drawings()["sharing-numa"])
    host = {"MEMORY_MB": 1024, "DISK_GB": 1000}
    assert show("SS1") == (None, {"DISK_GB": 1000}, {"MISC_SHARES_VIA_AGGREGATE"}, {"aggA"})
    assert show("CN1") == (None, host, set(), {"aggA", "aggB"})
    assert show("NUMA1_1") == ("CN1", {"VCPU": 8}, set(), set())
    assert show("NUMA1_2") == ("CN1", {"VCPU": 8}, set(), set())
    assert show("CN2") == (None, host, set(), {"aggA"})
    assert show("NUMA2_1") == ("CN2", {"VCPU": 8}, set(), {"aggB"})
    assert show("NUMA2_2") == ("CN2", {"VCPU": 8}, set(), set())


def test_network_cards_are_as_drawn(empty: Database) -> None:
    show = _load(empty, drawings()["nic-traits"])
    assert show("NIC1_1") == ("CN1", {"SRIOV_NET_VF": 8}, {"HW_NIC_ACCEL_SSL"}, set())
    assert show("NIC1_2") == ("CN1", {"SRIOV_NET_VF": 8}, set(), set())


def test_trees_and_pools_of_one_aggregate_are_as_drawn(empty: Database) -> None:
    show = _load(empty, drawings()["in-tree"])
    shares = {"MISC_SHARES_VIA_AGGREGATE"}
    for pool in ("SS1", "SS2"):
        assert show(pool) == (None, {"DISK_GB": 1000}, shares, {"agg"})
    for host, nodes in (("CN1", ("NUMA1_1", "NUMA1_2")), ("CN2", ("NUMA2_1", "NUMA2_2"))):
        assert show(host) == (None, {"DISK_GB": 1000}, set(), {"agg"})
        for node in nodes:
            assert show(node) == (host, {"VCPU": 4}, set(), set())


def test_root_traits_are_as_drawn(empty: Database) -> None:
    show = _load(empty, drawings()["root-traits"])
    host = {"STORAGE_DISK_SSD", "COMPUTE_VOLUME_MULTI_ATTACH"}
    assert show("NON_NUMA_CN") == (
        None,
        {"VCPU": 8, "MEMORY_MB": 1024, "DISK_GB": 1000},
        {*host, "HW_CPU_X86_AVX2", "CUSTOM_WINDOWS_LICENSE_POOL"},
        set(),
    )
    node = {"VCPU": 4, "MEMORY_MB": 1024}
    assert show("NUMA_CN") == (None, {"DISK_GB": 1000}, host, set())
    assert show("NUMA1") == ("NUMA_CN", node, set(), set())
    assert show("NUMA2") == ("NUMA_CN", node, {"HW_CPU_X86_AVX2"}, set())


def test_fpgas_are_as_drawn_but_of_the_standard_class(empty: Database) -> None:
    show = _load(empty, drawings()["same-subtree"])
    node = {"VCPU": 4, "MEMORY_MB": 2048}
    assert show("CN") == (None, {}, set(), set())
    assert show("NUMA0") == ("CN", node, {"HW_NUMA_ROOT"}, set())
    assert show("NUMA1") == ("CN", node, {"HW_NUMA_ROOT"}, set())
    assert show("FPGA0_0") == ("NUMA0", {"FPGA": 1}, {"CUSTOM_TYPE1"}, set())
    assert show("FPGA1_0") == ("NUMA1", {"FPGA": 1}, {"CUSTOM_TYPE1"}, set())
    assert show("FPGA1_1") == ("NUMA1", {"FPGA": 1}, {"CUSTOM_TYPE2"}, set())


@pytest.mark.parametrize(
    ("world", "root"),
    [(drawings()["entire-trees-case1"], {}), (drawings()["entire-trees-case2"], {"VCPU": 8})],
)
def test_entire_trees_have_the_drawn_totals_and_the_printed_capacities(
    empty: Database, world: World, root: dict[str, int]
) -> None:
    show = _load(empty, world)
    assert show("CN_NAME") == (None, root, set(), set())
    assert show("NUMA_NODE_0") == ("CN_NAME", {"PCPU": 8, "MEMORY_MB": 4096}, set(), set())
    assert show("NUMA_NODE_1") == ("CN_NAME", {"PCPU": 8, "MEMORY_MB": 4096}, set(), set())
    assert show("PHYS_FUNC_PCI_ID") == ("NUMA_NODE_0", {"SRIOV_NET_VF": 8}, set(), set())
    capacities = {
        (name, resource_class): inventory.capacity
        for name in ("NUMA_NODE_1", "PHYS_FUNC_PCI_ID")
        for resource_class, inventory in empty.read(
            list_inventories, world.uuid(name)
        ).inventories.items()
    }
    assert capacities == {
        ("NUMA_NODE_1", "PCPU"): 8,
        ("NUMA_NODE_1", "MEMORY_MB"): 6144,
        ("PHYS_FUNC_PCI_ID", "SRIOV_NET_VF"): 16,
    }


def test_three_trees_with_sharing_providers_are_as_drawn(empty: Database) -> None:
    world = drawings()["update-provider-tree"]
    empty.write(load_worlds, [world])

    def members(aggregate: str) -> set[str]:
        wanted = ProviderFilter(aggregates=AggregateFilter(((world.uuid(aggregate),),)))
        found = empty.read(all_providers, wanted)
        return {provider.name.removeprefix("update-provider-tree/") for provider in found}

    assert members("agg1") == {"CN1/NUMA2", "SSP", "CN2/NUMA1"}
    assert members("agg2") == {"CN1/PF4", "BW1"}
    assert members("agg3") == {"BW2", "CN2/PF1"}

    def tree(root: str) -> dict[str, str]:
        wanted = ProviderFilter(in_tree=world.uuid(root))
        found = {provider.uuid: provider for provider in empty.read(all_providers, wanted)}
        return {
            provider.name.rpartition("/")[2]: found[provider.parent_uuid].name.rpartition("/")[2]
            for provider in found.values()
            if provider.parent_uuid is not None
        }

    functions = {"PF1": "NUMA1", "PF2": "NUMA1", "PF3": "NUMA2", "PF4": "NUMA2"}
    assert tree("CN1") == {"NUMA1": "CN1", "NUMA2": "CN1", **functions}
    assert tree("CN2") == {"NUMA1": "CN2", "NUMA2": "CN2", **functions}
    assert tree("SHR_ROOT") == {"SSP": "SHR_ROOT", "BW1": "SHR_ROOT", "BW2": "SHR_ROOT"}

    sharing = ProviderFilter(traits=TraitFilter(required=("MISC_SHARES_VIA_AGGREGATE",)))
    found = empty.read(all_providers, sharing)
    assert [provider.uuid for provider in found] == [
        world.uuid(name) for name in ("SSP", "BW1", "BW2")
    ]


def test_a_name_in_two_worlds_is_found_only_with_the_name_of_its_world(empty: Database) -> None:
    uuids = empty.write(load_worlds, [drawings()["sharing"], drawings()["nic-traits"]])
    assert uuids["sharing/CN1"] == drawings()["sharing"].uuid("CN1")
    assert uuids["sharing/CN1"] == "f8111404-40bd-5e9a-b3b0-82147670b90a"
    assert uuids["nic-traits/CN1"] == drawings()["nic-traits"].uuid("CN1")
    assert "CN1" not in uuids
    assert uuids["CN2"] == drawings()["sharing"].uuid("CN2")
