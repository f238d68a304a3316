"""What a writer takes for its own that has no memory, or is told to adopt what is there."""

from __future__ import annotations

from pathlib import Path

import os_traits
import pytest

from roost.client.declaration import DeclaredProvider
from roost.client.owning.ownership import Owned, adopted, owner_trait, recovered
from roost.client.owning.records import FileRecords
from roost.client.provider_tree import SHARING_TRAIT, ProviderTree
from support.forest import put, uuid_of
from support.owning import MARK, NOTHING, created, declaration, declared, mine, owning

RACK = "11111111-1111-4111-8111-111111111111"
ROW = "22222222-2222-4222-8222-222222222222"

CONTENT = {"VCPU": {"total": 8, "reserved": 2}, "DISK_GB": {"total": 100}}
FIELDS = ("total", "reserved", "min_unit", "max_unit", "step_size", "allocation_ratio")


def world() -> ProviderTree:
    """A host of somebody else, and below it a provider with our mark."""
    tree = put(ProviderTree(), "host", inventories=CONTENT, traits=["CUSTOM_A"], aggregates=[RACK])
    return put(
        tree,
        "numa",
        "host",
        inventories=CONTENT,
        traits=[MARK, "CUSTOM_A", "CUSTOM_B"],
        aggregates=[RACK, ROW],
    )


def recover(tree: ProviderTree, *providers: DeclaredProvider) -> Owned:
    return recovered(tree, uuid_of("host"), declaration(*providers), MARK)


def adopt(tree: ProviderTree, *providers: DeclaredProvider, owned: Owned = NOTHING) -> Owned:
    return adopted(tree, uuid_of("host"), declaration(*providers), MARK, owned)


# -- without memory


def test_without_memory_only_what_is_declared_on_marked_providers_is_ones_own() -> None:
    wanted = declared(
        "numa",
        "host",
        inventories={"VCPU": {"total": 16}, "MEMORY_MB": {"total": 64}},
        traits=("CUSTOM_A", "CUSTOM_NEW"),
        aggregates=(ROW,),
    )
    found = recover(world(), declared("host", traits=("CUSTOM_A",)), wanted)
    assert found == owning(
        created("numa", inventories={"VCPU": ("total",)}, traits=("CUSTOM_A",), aggregates=(ROW,))
    )


def test_without_memory_what_is_on_an_undeclared_marked_provider_may_be_anybodys() -> None:
    assert recover(world(), declared("host")) == owning(created("numa"))


def test_without_memory_nothing_without_mark_is_ones_own() -> None:
    tree = put(ProviderTree(), "host", inventories=CONTENT, traits=["CUSTOM_A"])
    wanted = declared("host", inventories=CONTENT, traits=("CUSTOM_A",))
    assert recover(tree, wanted) == NOTHING


def test_providers_of_other_trees_that_share_are_not_taken_for_ones_own() -> None:
    """They may well be one's own, but they are declared elsewhere."""
    tree = world()
    put(tree, "pool", inventories=CONTENT, traits=[MARK, SHARING_TRAIT], aggregates=[RACK])
    found = recover(tree, declared("host"))
    assert {provider.name for provider in found.providers.values()} == {"numa"}


# -- adopting


def test_who_adopts_takes_all_that_is_on_declared_providers_for_its_own() -> None:
    tree = put(world(), "other", "host", inventories=CONTENT, traits=["CUSTOM_A"])
    found = adopt(tree, declared("host"), declared("numa", "host"))
    everything = {"VCPU": FIELDS, "DISK_GB": FIELDS}
    assert found == owning(
        # Whoever created the host, it was not this owner: it will never be deleted.
        mine("host", inventories=everything, traits=("CUSTOM_A",), aggregates=(RACK,)),
        created(
            "numa",
            inventories=everything,
            traits=("CUSTOM_A", "CUSTOM_B"),
            aggregates=(RACK, ROW),
        ),
    )


def test_who_adopts_takes_marked_providers_that_it_no_longer_declares_as_well() -> None:
    found = adopt(world(), declared("host"))
    assert found.of(uuid_of("numa"), "numa").inventories.keys() == {"VCPU", "DISK_GB"}


def test_there_is_nothing_to_adopt_on_providers_that_are_not_there() -> None:
    assert adopt(put(ProviderTree(), "host"), declared("other")) == NOTHING


def test_who_adopts_forgets_nothing_of_what_it_owned() -> None:
    """A provider that lost its mark is still one's own, and so is what was put elsewhere."""
    tree = put(put(ProviderTree(), "host"), "numa", "host")
    remembered = owning(created("host"), mine("numa", traits=("CUSTOM_A",)))
    assert adopt(tree, declared("host"), owned=remembered) == owning(
        mine("host", created=True), mine("numa", traits=("CUSTOM_A",))
    )


# -- names and marks


def test_the_mark_is_a_trait_that_can_be_created_or_is_there() -> None:
    standard = os_traits.get_traits("OWNER_")
    assert owner_trait("nova", standard) == "OWNER_NOVA"
    assert owner_trait("rack-agent", standard) == "CUSTOM_OWNER_RACK_AGENT"


@pytest.mark.parametrize("spelling", ["rack_agent", "rack.agent", "Rack-Agent"])
def test_who_has_the_same_mark_has_the_same_memory(tmp_path: Path, spelling: str) -> None:
    """Or one of them would recover, and delete, what is the other's."""
    assert owner_trait(spelling, ()) == owner_trait("rack-agent", ())
    FileRecords(spelling, tmp_path).save(RACK, owning(created("host")))
    assert FileRecords("rack-agent", tmp_path).load(RACK) == owning(created("host"))


def test_different_owners_have_different_marks() -> None:
    owners = ["rackagent", "rack-agent", "rack--agent", "rack-agent-", "rack-agent-1"]
    assert len({owner_trait(owner, ()) for owner in owners}) == len(owners)
