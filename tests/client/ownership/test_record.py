"""The record of an owner that has lost it, or that adopts what is there."""

from __future__ import annotations

from pathlib import Path

import pytest

from roost.client.ownership.record import OwnershipRecord, adopted_record, recovered_record
from roost.client.ownership.store import FileOwnershipStore
from roost.client.provider_tree import SHARING_TRAIT, ProviderTree
from roost.model.trees.declaration import DeclaredProvider
from roost.model.trees.owner_names import older_traits_of_owner, trait_of_owner
from support.client.declarations import (
    EMPTY,
    OWNER_TRAIT,
    created,
    declaration,
    declared,
    owned,
    record_of,
)
from support.client.provider_trees import put, uuid_of

RACK = "11111111-1111-4111-8111-111111111111"
ROW = "22222222-2222-4222-8222-222222222222"

MARKS = {OWNER_TRAIT, *older_traits_of_owner("me")}
CONTENT = {"VCPU": {"total": 8, "reserved": 2}, "DISK_GB": {"total": 100}}
FIELDS = ("total", "reserved", "min_unit", "max_unit", "step_size", "allocation_ratio")


def tree_without_record() -> ProviderTree:
    """A host of another writer, with a child that has the owner's trait."""
    tree = put(ProviderTree(), "host", inventories=CONTENT, traits=["CUSTOM_A"], aggregates=[RACK])
    return put(
        tree,
        "numa",
        "host",
        inventories=CONTENT,
        traits=[OWNER_TRAIT, "CUSTOM_A", "CUSTOM_B"],
        aggregates=[RACK, ROW],
    )


def recover(tree: ProviderTree, *providers: DeclaredProvider) -> OwnershipRecord:
    return recovered_record(tree, uuid_of("host"), declaration(*providers), OWNER_TRAIT)


def adopt(
    tree: ProviderTree, *providers: DeclaredProvider, record: OwnershipRecord = EMPTY
) -> OwnershipRecord:
    return adopted_record(tree, uuid_of("host"), declaration(*providers), MARKS, record)


# -- without a stored record


def test_the_recovered_record_has_what_is_declared_on_providers_with_the_owners_trait() -> None:
    wanted = declared(
        "numa",
        "host",
        inventories={"VCPU": {"total": 16}, "MEMORY_MB": {"total": 64}},
        traits=("CUSTOM_A", "CUSTOM_NEW"),
        aggregates=(ROW,),
    )
    found = recover(tree_without_record(), declared("host", traits=("CUSTOM_A",)), wanted)
    assert found == record_of(
        created("numa", inventories={"VCPU": ("total",)}, traits=("CUSTOM_A",), aggregates=(ROW,))
    )


def test_the_recovered_record_has_an_undeclared_provider_without_its_resources() -> None:
    assert recover(tree_without_record(), declared("host")) == record_of(created("numa"))


def test_the_recovered_record_has_no_provider_without_the_owners_trait() -> None:
    tree = put(ProviderTree(), "host", inventories=CONTENT, traits=["CUSTOM_A"])
    wanted = declared("host", inventories=CONTENT, traits=("CUSTOM_A",))
    assert recover(tree, wanted) == EMPTY


def test_the_recovered_record_has_no_sharing_provider_of_another_tree() -> None:
    tree = tree_without_record()
    put(tree, "pool", inventories=CONTENT, traits=[OWNER_TRAIT, SHARING_TRAIT], aggregates=[RACK])
    found = recover(tree, declared("host"))
    assert {provider.name for provider in found.providers.values()} == {"numa"}


# -- adopting


def test_adoption_records_all_that_is_on_declared_providers() -> None:
    tree = put(tree_without_record(), "other", "host", inventories=CONTENT, traits=["CUSTOM_A"])
    found = adopt(tree, declared("host"), declared("numa", "host"))
    everything = {"VCPU": FIELDS, "DISK_GB": FIELDS}
    assert found == record_of(
        # The host has no trait of this owner, so the owner never deletes it.
        owned("host", inventories=everything, traits=("CUSTOM_A",), aggregates=(RACK,)),
        created(
            "numa",
            inventories=everything,
            traits=("CUSTOM_A", "CUSTOM_B"),
            aggregates=(RACK, ROW),
        ),
    )


def test_adoption_records_undeclared_providers_with_the_owners_trait() -> None:
    found = adopt(tree_without_record(), declared("host"))
    assert found.provider(uuid_of("numa"), "numa").inventories.keys() == {"VCPU", "DISK_GB"}


def test_adoption_ignores_declared_providers_that_do_not_exist() -> None:
    assert adopt(put(ProviderTree(), "host"), declared("other")) == EMPTY


def test_adoption_keeps_what_was_recorded() -> None:
    """Also a provider without the owner's trait, and resources on undeclared providers."""
    tree = put(put(ProviderTree(), "host"), "numa", "host")
    stored = record_of(created("host"), owned("numa", traits=("CUSTOM_A",)))
    assert adopt(tree, declared("host"), record=stored) == record_of(
        owned("host", created=True), owned("numa", traits=("CUSTOM_A",))
    )


# -- names and traits of owners


def test_the_trait_of_an_owner_names_roost() -> None:
    """An operator, or Nova, may use `CUSTOM_OWNER_X` and `OWNER_NOVA` for its own providers."""
    assert trait_of_owner("nova") == "CUSTOM_ROOST_OWNER_NOVA"
    assert trait_of_owner("rack-agent") == "CUSTOM_ROOST_OWNER_RACK_AGENT"


def test_an_older_mark_counts_only_if_the_owner_adopts() -> None:
    tree = put(put(ProviderTree(), "host"), "card", "host", traits=["CUSTOM_OWNER_ME"])
    assert recover(tree, declared("host"), declared("card", "host")) == EMPTY
    adopted = adopt(tree, declared("host"), declared("card", "host"))
    assert adopted.provider(uuid_of("card"), "card").created


@pytest.mark.parametrize("spelling", ["rack_agent", "rack.agent", "Rack-Agent"])
def test_owners_with_the_same_trait_have_the_same_records(tmp_path: Path, spelling: str) -> None:
    """Otherwise one spelling would recover, and delete, the providers of another spelling."""
    assert trait_of_owner(spelling) == trait_of_owner("rack-agent")
    FileOwnershipStore(spelling, tmp_path).save(RACK, record_of(created("host")))
    assert FileOwnershipStore("rack-agent", tmp_path).load(RACK) == record_of(created("host"))


def test_different_owners_have_different_traits() -> None:
    owners = ["rackagent", "rack-agent", "rack--agent", "rack-agent-", "rack-agent-1"]
    assert len({trait_of_owner(owner) for owner in owners}) == len(owners)
