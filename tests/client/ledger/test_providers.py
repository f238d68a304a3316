"""Providers, trees and aggregates of the typed library, on live servers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import FrozenInstanceError
from typing import Any
from uuid import uuid4

import pytest

from roost.client import Inventory, Roost
from roost.client.errors import (
    InventoryInUse,
    NoSuchProvider,
    ProviderExists,
    ResourceProviderCreationFailed,
    ResourceProviderInUse,
    ResourceProviderUpdateConflict,
    WriteLost,
)
from roost.client.ledger.values import ProviderReference
from roost.client.outcome import Outcome, outcome_of
from roost.client.transport import PlacementRequest, PlacementResponse
from support.client.live_providers import LiveProviders
from support.transports.counting import CountingTransport
from support.transports.tampering import TamperingTransport, one_server

SHARES = "MISC_SHARES_VIA_AGGREGATE"


def test_a_provider_is_created_with_all_that_it_has(roost: Roost, own: LiveProviders) -> None:
    trait, resource_class = own.custom("GOLD"), own.custom("FPGA")
    rack = str(uuid4())
    made = roost.create_provider(
        own.name("host"),
        inventories={"VCPU": 16, resource_class: {"total": 4, "reserved": 1}},
        traits=[trait],
        aggregates=[rack.upper()],
    )
    assert made == roost.provider(own.name("host")) == roost.provider(made.uuid)
    assert made.inventories["VCPU"] == Inventory("VCPU", 16)
    assert (made.free("VCPU"), made.free(resource_class), made.free("DISK_GB")) == (16, 3, 0)
    assert made.traits == {trait}
    assert made.aggregates == {rack}
    assert (made.parent, made.root) == (None, made.uuid)
    assert trait in roost.traits()
    assert resource_class in roost.resource_classes()
    with pytest.raises(FrozenInstanceError):
        made.name = "another"  # type: ignore[misc]


def test_a_name_and_a_uuid_are_taken_once(roost: Roost, own: LiveProviders) -> None:
    made = roost.create_provider(own.name("host"), uuid=own.uuid("host"))
    with pytest.raises(ResourceProviderCreationFailed) as refused:
        roost.create_provider(made.name)
    assert refused.value.status == 409
    with pytest.raises(ProviderExists):
        roost.create_provider(own.name("other"), uuid=made.uuid)


def test_a_provider_that_is_not_there_is_an_error_with_names_near_it(
    roost: Roost, own: LiveProviders
) -> None:
    roost.create_provider(own.name("host"))
    with pytest.raises(NoSuchProvider, match=own.name("host")):
        roost.provider(own.name("hots"))


def test_providers_are_found_by_their_conditions(roost: Roost, own: LiveProviders) -> None:
    trait, rack = own.custom("GOLD"), own.uuid("rack")
    gold = roost.create_provider(
        own.name("gold"), inventories={"VCPU": 8}, traits=[trait], aggregates=[rack]
    )
    plain = roost.create_provider(own.name("plain"), aggregates=[rack])
    child = roost.create_provider(own.name("child"), parent=gold)

    def found(**conditions: Any) -> set[str]:
        return {provider.uuid for provider in roost.providers(**conditions)}

    assert found(name=plain.name) == {plain.uuid}
    assert found(member_of=[rack]) == {gold.uuid, plain.uuid}
    assert found(member_of=[rack], required=[trait]) == {gold.uuid}
    assert found(member_of=[rack], resources={"VCPU": 8}) == {gold.uuid}
    assert found(member_of=[rack], resources={"VCPU": 9}) == set()
    assert found(in_tree=child.name) == {gold.uuid, child.uuid}


def test_a_tree_is_walked_from_its_root_with_what_is_lent_to_it(
    roost: Roost, own: LiveProviders
) -> None:
    rack = own.uuid("rack")
    host = roost.create_provider(own.name("host"), aggregates=[rack])
    numa = roost.create_provider(own.name("numa"), parent=host, inventories={"VCPU": 4})
    roost.create_provider(own.name("nic"), parent=numa)
    storage = roost.create_provider(own.name("storage"))
    pool = roost.create_provider(
        own.name("pool"),
        parent=storage,
        inventories={"DISK_GB": 100},
        traits=[SHARES],
        aggregates=[rack],
    )
    roost.claim_on({own.name("numa"): {"VCPU": 3}})
    tree = roost.tree(own.name("nic"))
    assert tree.root.uuid == host.uuid
    assert [one.name for one in tree.providers] == [own.name(n) for n in ("host", "numa", "nic")]
    assert [one.name for one in tree.children(tree.root)] == [numa.name]
    assert (tree.named(numa.name).used, tree.named(numa.name).free("VCPU")) == ({"VCPU": 3}, 1)
    assert tree.sharing == (pool,)
    assert tree.sharing[0].root == storage.uuid
    assert {one.root.uuid for one in roost.trees()} >= {host.uuid, storage.uuid}
    with pytest.raises(KeyError):
        tree.named(pool.name)


def test_what_a_provider_has_is_replaced(roost: Roost, own: LiveProviders) -> None:
    host = roost.create_provider(own.name("host"), inventories={"VCPU": 8})
    after = roost.set_inventories(host.name, {"DISK_GB": Inventory("DISK_GB", 5)})
    assert set(after.inventories) == {"DISK_GB"}
    assert roost.set_traits(host.name, [own.custom("A")]).traits == {own.custom("A")}
    assert roost.set_traits(host.name, []).traits == frozenset()
    assert roost.set_aggregates(host.name, [own.uuid("a")]).aggregates == {own.uuid("a")}
    with pytest.raises(ValueError, match="write a list of names"):
        roost.set_traits(host.name, own.custom("A"))


def test_a_value_that_another_writer_has_changed_since_is_not_replaced(
    roost: Roost, own: LiveProviders
) -> None:
    seen = roost.create_provider(own.name("host"), inventories={"VCPU": 8})
    roost.set_traits(seen.name, [own.custom("A")])
    with pytest.raises(ResourceProviderUpdateConflict):
        roost.set_inventories(seen, {"VCPU": 4})
    assert roost.provider(seen).free("VCPU") == 8
    assert roost.set_inventories(seen.name, {"VCPU": 4}).free("VCPU") == 4


def test_inventory_and_providers_in_use_stay(roost: Roost, own: LiveProviders) -> None:
    host = roost.create_provider(own.name("host"), inventories={"VCPU": 8})
    claimed = roost.claim_on({host.name: {"VCPU": 1}})
    with pytest.raises(InventoryInUse):
        roost.set_inventories(host.name, {"DISK_GB": 5})
    with pytest.raises(ResourceProviderInUse):
        roost.delete_provider(host)
    roost.release(claimed.consumer.uuid)
    roost.delete_provider(host)
    with pytest.raises(NoSuchProvider):
        roost.provider(host.uuid)


def test_providers_join_and_leave_aggregates(roost: Roost, own: LiveProviders) -> None:
    rack, row = own.uuid("rack"), own.uuid("row")
    first = roost.create_provider(own.name("a"), aggregates=[row])
    second = roost.create_provider(own.name("b"))
    roost.join_aggregate(rack, first, second.name)
    members = roost.aggregates()
    assert set(members[rack]) == {ProviderReference(one.uuid, one.name) for one in (first, second)}
    assert roost.provider(first.name).aggregates == {rack, row}
    roost.leave_aggregate(rack, first.name)
    assert roost.provider(first.name).aggregates == {row}
    assert roost.provider(second.name).aggregates == {rack}


@one_server
@pytest.mark.parametrize("disturb", ["lose", "conflict"])
def test_a_write_that_is_lost_or_meets_another_writer_is_made(
    roost: Roost, own: LiveProviders, faults: TamperingTransport, disturb: str
) -> None:
    host = roost.create_provider(own.name("host"))
    rule: Callable[[str], None] = faults.lose_answer if disturb == "lose" else faults.conflict
    rule("PUT */aggregates")
    roost.join_aggregate(own.uuid("rack"), host.name)
    assert own.uuid("rack") in roost.provider(host.name).aggregates


@one_server
def test_a_write_whose_outcome_stays_unknown_is_told_as_unknown(
    roost: Roost, own: LiveProviders, faults: TamperingTransport
) -> None:
    host = roost.create_provider(own.name("host"))
    faults.lose_answer("PUT */aggregates")
    faults.lose_answer("GET */aggregates", after=1)
    with pytest.raises(WriteLost) as lost:
        roost.join_aggregate(own.uuid("rack"), host.name)
    assert outcome_of(lost.value) is Outcome.UNKNOWN


class _SentTwice(CountingTransport):
    """Sends each creation twice, as a transport that loses an answer does."""

    def send(self, request: PlacementRequest) -> PlacementResponse:
        if str(request) == "POST /resource_providers":
            super().send(request)
        return super().send(request)


@one_server
def test_a_creation_whose_answer_is_lost_finds_its_provider(
    transport: CountingTransport, own: LiveProviders
) -> None:
    roost = Roost(_SentTwice(transport))
    made = roost.create_provider(own.name("host"), inventories={"VCPU": 2})
    assert roost.provider(own.name("host")) == made
    assert made.free("VCPU") == 2
