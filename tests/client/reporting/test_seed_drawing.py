r"""The tree in the documentation of `update_provider_tree`, on real servers.

               CN1                 SHR_ROOT               CN2
              /   \       agg1    /   /\     agg1        /   \
         NUMA1     NUMA2--------SSP--/--\-----------NUMA1     NUMA2
        /     \   /    \            /    \         /     \   /    \
      PF1    PF2 PF3   PF4--------BW1   BW2------PF1    PF2 PF3   PF4
                           agg2             agg3

The providers below CN2 are named CN2_NUMA1 and so on here.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from roost.client.provider_tree import ProviderTree
from roost.client.reporting.reporter import Reporter
from roost.client.transport.http import HttpTransport
from support.client.live_providers import LiveProviders, Totals
from support.servers.live_server import LiveServer
from support.transports.counting import CountingTransport

SHARES = "MISC_SHARES_VIA_AGGREGATE"


class Box(NamedTuple):
    """A provider of the drawing."""

    parent: str | None = None
    totals: Totals | None = None
    traits: tuple[str, ...] = ()
    aggregates: tuple[str, ...] = ()


def _host(root: str, prefix: str = "") -> dict[str, Box]:
    """The boxes of a host, without associations."""
    boxes = {root: Box()}
    for node, functions in (("NUMA1", ("PF1", "PF2")), ("NUMA2", ("PF3", "PF4"))):
        boxes[prefix + node] = Box(root)
        boxes |= {prefix + name: Box(prefix + node) for name in functions}
    return boxes


CN1 = _host("CN1") | {
    "CN1": Box(None, {"DISK_GB": 100}, ("COMPUTE_NODE", "HW_CPU_X86_AVX")),
    "NUMA1": Box("CN1", {"VCPU": 8, "MEMORY_MB": 1024}, ("HW_NUMA_ROOT",)),
    "NUMA2": Box("CN1", {"VCPU": 4, "MEMORY_MB": 512}, ("HW_NUMA_ROOT",), ("agg1",)),
    "PF3": Box("NUMA2", {"SRIOV_NET_VF": 8}),
    "PF4": Box("NUMA2", {"SRIOV_NET_VF": 4}, ("HW_NIC_SRIOV",), ("agg2",)),
}
CN2 = _host("CN2", "CN2_") | {
    "CN2_NUMA1": Box("CN2", aggregates=("agg1",)),
    "CN2_PF1": Box("CN2_NUMA1", aggregates=("agg3",)),
}
SHARED = {
    "SHR_ROOT": Box(),
    "SSP": Box("SHR_ROOT", {"DISK_GB": 2000}, (SHARES, "STORAGE_DISK_SSD"), ("agg1",)),
    "BW1": Box("SHR_ROOT", {"NET_BW_EGR_KILOBIT_PER_SEC": 1000}, (SHARES,), ("agg2",)),
    "BW2": Box("SHR_ROOT", {"NET_BW_EGR_KILOBIT_PER_SEC": 2000}, (SHARES,), ("agg3",)),
}
DRAWING = CN1 | SHARED | CN2


class Drawn(NamedTuple):
    """The drawing on a server, and CN1 as a reporter sees it."""

    live_providers: LiveProviders
    tree: ProviderTree


@pytest.fixture(scope="module")
def _drawings() -> dict[LiveServer, Drawn]:
    """The servers that have the drawing; no test changes it."""
    return {}


@pytest.fixture
def drawn(server: LiveServer, _drawings: dict[LiveServer, Drawn]) -> Drawn:
    if server not in _drawings:
        transport = HttpTransport(server.url, "admin")
        live_providers = LiveProviders(transport)
        for name, box in DRAWING.items():
            live_providers.add(
                name, box.parent, totals=box.totals, traits=box.traits, aggregates=box.aggregates
            )
        _drawings[server] = Drawn(
            live_providers, Reporter(transport).fetch(live_providers.uuid("CN1"))
        )
        transport.close()
    return _drawings[server]


def _names(live_providers: LiveProviders, tree: ProviderTree) -> set[str]:
    return {live_providers.short(uuid) for uuid in tree.get_provider_uuids()}


def _roots(live_providers: LiveProviders, tree: ProviderTree) -> set[str]:
    return {live_providers.short(root.uuid) for root in tree.roots}


def test_cn1_gets_its_own_tree_and_its_sharing_providers(drawn: Drawn) -> None:
    assert _names(drawn.live_providers, drawn.tree) == {*CN1, "SSP", "BW1"}


def test_sharing_providers_with_a_parent_are_lone_roots(drawn: Drawn) -> None:
    live_providers, tree = drawn
    assert _roots(live_providers, tree) == {"CN1", "SSP", "BW1"}
    for name in ("SSP", "BW1"):
        assert tree.data(live_providers.uuid(name)).parent_uuid is None
        assert tree.get_provider_uuids(live_providers.uuid(name)) == [live_providers.uuid(name)]


def test_the_tree_is_as_drawn(drawn: Drawn) -> None:
    live_providers, tree = drawn
    parents = {
        live_providers.short(provider.uuid): provider.parent_uuid
        and live_providers.short(provider.parent_uuid)
        for provider in map(tree.data, tree.get_provider_uuids(live_providers.uuid("CN1")))
    }
    assert parents == {name: box.parent for name, box in CN1.items()}


def test_the_providers_have_all_their_associations(drawn: Drawn) -> None:
    live_providers, tree = drawn
    for name in (*CN1, "SSP", "BW1"):
        box, provider = DRAWING[name], tree.data(live_providers.uuid(name))
        assert provider.name == live_providers.name(name)
        assert provider.inventory == {
            kind: _full(total) for kind, total in (box.totals or {}).items()
        }
        assert provider.traits == set(box.traits)
        assert provider.aggregates == {
            live_providers.uuid(aggregate) for aggregate in box.aggregates
        }
        # Each kind of association that was written has increased the generation.
        written = [bool(part) for part in (box.totals, box.traits, box.aggregates)]
        assert provider.generation == sum(written)


def _full(total: int) -> dict[str, Any]:
    """An inventory with this total and the server's defaults."""
    return {
        "total": total,
        "reserved": 0,
        "min_unit": 1,
        "max_unit": 2147483647,
        "step_size": 1,
        "allocation_ratio": 1.0,
    }


def test_providers_are_found_by_name_and_sharing_providers_by_class(drawn: Drawn) -> None:
    live_providers, tree = drawn
    assert tree.data(live_providers.name("PF4")).uuid == live_providers.uuid("PF4")
    assert tree.has_sharing_provider("DISK_GB")
    assert tree.has_sharing_provider("NET_BW_EGR_KILOBIT_PER_SEC")
    assert not tree.has_sharing_provider("VCPU")


def test_cn2_gets_ssp_too_but_bw2_instead_of_bw1(drawn: Drawn, reporter: Reporter) -> None:
    tree = reporter.fetch(drawn.live_providers.uuid("CN2"))
    assert _names(drawn.live_providers, tree) == {*CN2, "SSP", "BW2"}
    assert _roots(drawn.live_providers, tree) == {"CN2", "SSP", "BW2"}


def test_the_tree_of_a_sharing_provider_has_none_of_its_users(
    drawn: Drawn, reporter: Reporter
) -> None:
    tree = reporter.fetch(drawn.live_providers.uuid("SHR_ROOT"))
    assert _names(drawn.live_providers, tree) == set(SHARED)
    assert _roots(drawn.live_providers, tree) == {"SHR_ROOT"}, (
        "a member of the tree that shares is no lone root"
    )


def test_the_tree_is_a_private_copy(
    drawn: Drawn, reporter: Reporter, transport: CountingTransport
) -> None:
    live_providers = drawn.live_providers
    root, disk = live_providers.uuid("SHR_ROOT"), live_providers.uuid("SSP")
    tree = reporter.fetch(root)
    before = {uuid: tree.data(uuid) for uuid in tree.get_provider_uuids()}
    tree.update_inventory(disk, {"DISK_GB": {"total": 1}})
    tree.add_traits(disk, "STORAGE_DISK_HDD")
    tree.add_aggregates(disk, live_providers.uuid("agg2"))
    tree.remove(live_providers.uuid("BW1"))
    tree.new_child("mine", root)
    transport.forget()
    again = reporter.fetch(root)
    assert {uuid: again.data(uuid) for uuid in again.get_provider_uuids()} == before
    assert not transport.requests, "the copy was not read again"
