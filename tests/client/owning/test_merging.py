"""What becomes of a tree when one of its writers declares: his own part, and no other, changes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from roost.client.declaration import DeclaredProvider
from roost.client.errors import DeclarationRefused
from roost.client.owning.merging import Merged, merge, written_part
from roost.client.owning.ownership import Owned
from roost.client.provider_tree import ProviderTree
from support.forest import DEFAULTS, names, put, stored, uuid_of
from support.owning import MARK, NOTHING, created, declaration, declared, mine, owning

RACK = "11111111-1111-4111-8111-111111111111"
ROW = "22222222-2222-4222-8222-222222222222"


def host(**content: Any) -> ProviderTree:
    """A tree of one provider, which somebody else created."""
    return put(ProviderTree(), "host", **content)


def declare(
    tree: ProviderTree,
    *providers: DeclaredProvider,
    owned: Owned = NOTHING,
    held: Mapping[str, set[str]] | None = None,
) -> Merged:
    in_use = {uuid_of(name): frozenset(classes) for name, classes in (held or {}).items()}
    return merge(tree, declaration(*providers), owned, MARK, in_use)


# -- what is declared


def test_what_is_declared_is_in_the_tree_and_then_owned() -> None:
    tree = host()
    wanted = declared(
        "host", inventories={"VCPU": {"total": 8}}, traits=("HW_CPU_X86_AVX",), aggregates=(RACK,)
    )
    merged = declare(tree, wanted)
    found = tree.data("host")
    assert found.inventory == {"VCPU": {"total": 8}}
    assert (found.traits, found.aggregates) == ({"HW_CPU_X86_AVX"}, {RACK})
    put_there = mine(
        "host", inventories={"VCPU": ("total",)}, traits=("HW_CPU_X86_AVX",), aggregates=(RACK,)
    )
    assert merged == Merged(owning(put_there), owning(put_there))


def test_a_provider_that_is_missing_is_created_with_the_mark_of_its_creator() -> None:
    tree = host()
    merged = declare(tree, declared("host"), declared("numa", "host", uuid=uuid_of("numa")))
    found = tree.data("numa")
    assert (found.uuid, found.parent_uuid) == (uuid_of("numa"), uuid_of("host"))
    assert (tree.data("host").traits, found.traits) == (set(), {MARK})
    assert merged.owned == merged.settled == owning(created("numa"))


def test_a_root_that_is_missing_is_created() -> None:
    tree = ProviderTree()
    merged = declare(tree, declared("host"))
    (uuid,) = tree.get_provider_uuids()
    assert merged.settled == Owned({uuid: created("host")})


def test_a_provider_whose_creation_may_still_be_on_its_way_keeps_the_uuid_it_is_to_have() -> None:
    tree = host()
    declare(tree, declared("host"), declared("numa", "host"), owned=owning(created("numa")))
    assert tree.data("numa").uuid == uuid_of("numa")


def test_a_root_that_was_begun_for_a_declaration_of_nothing_is_not_created() -> None:
    tree = host(generation=None)
    assert declare(tree) == Merged(NOTHING, NOTHING)
    assert names(tree) == set()


def test_a_mark_that_somebody_took_away_comes_back() -> None:
    tree = put(host(), "numa", "host")
    declare(tree, declared("host"), declared("numa", "host"), owned=owning(created("numa")))
    assert tree.data("numa").traits == {MARK}


# -- what is withdrawn


def test_what_is_owned_and_no_longer_declared_goes() -> None:
    tree = host(inventories={"VCPU": {"total": 8}}, traits=["CUSTOM_A"], aggregates=[RACK])
    owned = owning(
        mine("host", inventories={"VCPU": ("total",)}, traits=("CUSTOM_A",), aggregates=(RACK,))
    )
    merged = declare(tree, declared("host"), owned=owned)
    found = tree.data("host")
    assert (found.inventory, found.traits, found.aggregates) == ({}, set(), set())
    # Until it is gone from the server it is owned: who dies before that finds it again.
    assert merged == Merged(owned, NOTHING)


def test_what_is_owned_of_a_provider_that_is_no_longer_declared_goes_and_the_provider_stays() -> (
    None
):
    tree = put(host(), "numa", "host", traits=["CUSTOM_A", "CUSTOM_B"])
    declare(tree, declared("host"), owned=owning(mine("numa", traits=("CUSTOM_A",))))
    assert tree.data("numa").traits == {"CUSTOM_B"}


def test_what_is_owned_but_gone_is_forgotten() -> None:
    owned = owning(mine("host", traits=("CUSTOM_A",)), created("numa"))
    assert declare(host(), declared("host"), owned=owned) == Merged(NOTHING, NOTHING)


def test_a_created_provider_is_deleted_with_all_of_ours_below_it() -> None:
    tree = put(host(), "numa", "host", inventories={"VCPU": {"total": 4}}, traits=[MARK])
    put(tree, "device", "numa", traits=[MARK, "CUSTOM_SOMEBODYS"])
    owned = owning(created("numa", inventories={"VCPU": ("total",)}), created("device"))
    merged = declare(tree, declared("host"), owned=owned)
    assert names(tree) == {"host"}
    assert merged == Merged(owned, NOTHING)


# -- what is somebody else's


def test_what_was_never_declared_stays() -> None:
    theirs: dict[str, Any] = {
        "inventories": {"MEMORY_MB": {"total": 64}},
        "traits": ["CUSTOM_THEIRS"],
        "aggregates": [ROW],
    }
    tree = put(host(**theirs), "numa", "host", **theirs)
    put(tree, "pool", **theirs)
    before = {name: tree.data(name) for name in ("numa", "pool")}
    declare(
        tree,
        declared(
            "host", inventories={"VCPU": {"total": 8}}, traits=("CUSTOM_A",), aggregates=(RACK,)
        ),
        owned=owning(mine("host", traits=("CUSTOM_B",))),
    )
    found = tree.data("host")
    assert found.inventory == stored(theirs["inventories"]) | {"VCPU": {"total": 8}}
    assert found.traits == {"CUSTOM_THEIRS", "CUSTOM_A"}
    assert found.aggregates == {ROW, RACK}
    assert {name: tree.data(name) for name in before} == before


def test_what_is_there_like_this_stays_somebody_elses_even_if_it_is_declared() -> None:
    tree = host(inventories={"VCPU": {"total": 8}}, traits=["CUSTOM_A"], aggregates=[RACK])
    before = tree.data("host")
    merged = declare(
        tree,
        declared(
            "host", inventories={"VCPU": {"total": 8}}, traits=("CUSTOM_A",), aggregates=(RACK,)
        ),
    )
    assert merged == Merged(NOTHING, NOTHING)
    declare(tree, declared("host"), owned=merged.settled)
    assert tree.data("host") == before


def test_an_inventory_whose_content_is_changed_becomes_ours() -> None:
    tree = host(inventories={"VCPU": {"total": 4}})
    merged = declare(tree, declared("host", inventories={"VCPU": {"total": 8}}))
    assert tree.data("host").inventory == stored({"VCPU": {"total": 8}})
    assert merged.settled == owning(mine("host", inventories={"VCPU": ("total",)}))
    declare(tree, declared("host"), owned=merged.settled)
    assert tree.data("host").inventory == {}


# -- fields of an inventory


def test_a_field_that_was_never_declared_keeps_what_others_have_set() -> None:
    tree = host(inventories={"VCPU": {"total": 8, "reserved": 2, "allocation_ratio": 4.0}})
    declare(
        tree,
        declared("host", inventories={"VCPU": {"total": 16, "allocation_ratio": 8.0}}),
        owned=owning(mine("host", inventories={"VCPU": ("total", "allocation_ratio")})),
    )
    expected = {"VCPU": {"total": 16, "reserved": 2, "allocation_ratio": 8.0}}
    assert tree.data("host").inventory == stored(expected)


SET: dict[str, Any] = {
    "reserved": 2,
    "min_unit": 2,
    "max_unit": 4,
    "step_size": 2,
    "allocation_ratio": 4.0,
}


@pytest.mark.parametrize("field", SET)
def test_a_field_that_is_no_longer_declared_goes_back_to_its_default(field: str) -> None:
    tree = host(inventories={"VCPU": {"total": 8, **SET}})
    merged = declare(
        tree,
        declared("host", inventories={"VCPU": {"total": 8}}),
        owned=owning(mine("host", inventories={"VCPU": ("total", field)})),
    )
    expected = {"VCPU": {"total": 8, **SET, field: DEFAULTS[field]}}
    assert tree.data("host").inventory == expected
    assert merged.settled == owning(mine("host", inventories={"VCPU": ("total",)}))


def test_a_field_is_owned_until_it_is_back_at_its_default() -> None:
    tree = host(inventories={"VCPU": {"total": 8, "reserved": 2}})
    wanted = declared("host", inventories={"VCPU": {"total": 8}})
    owned = owning(mine("host", inventories={"VCPU": ("total", "reserved")}))
    assert declare(tree, wanted, owned=owned).owned == owned


# -- providers that cannot go


def test_a_provider_on_which_others_have_inventory_is_not_deleted() -> None:
    content = {"MEMORY_MB": {"total": 64}, "DISK_GB": {"total": 9}, "VCPU": {"total": 4}}
    tree = put(host(), "numa", "host", inventories=content, traits=[MARK, "CUSTOM_A"])
    owned = owning(created("numa", inventories={"VCPU": ("total",)}, traits=("CUSTOM_A",)))
    merged = declare(tree, declared("host"), owned=owned)
    found = tree.data("numa")
    assert found.inventory == stored({"MEMORY_MB": {"total": 64}, "DISK_GB": {"total": 9}})
    assert found.traits == {MARK}
    assert merged.kept == ("numa: not deleted, others have inventory on it (DISK_GB, MEMORY_MB)",)
    # It is still ours, so it goes as soon as theirs has gone.
    assert merged.settled == owning(created("numa"))
    tree.update_inventory("numa", {})
    assert declare(tree, declared("host"), owned=merged.settled).kept == ()
    assert names(tree) == {"host"}


def test_a_provider_below_which_others_have_providers_is_not_deleted() -> None:
    tree = put(put(host(), "numa", "host", traits=[MARK]), "device", "numa")
    merged = declare(tree, declared("host"), owned=owning(created("numa")))
    assert names(tree) == {"host", "numa", "device"}
    assert merged.kept == ("numa: not deleted, there are providers below it",)
    assert merged.settled == owning(created("numa"))


def test_a_provider_with_nothing_of_others_but_traits_and_aggregates_is_deleted() -> None:
    tree = put(host(), "numa", "host", traits=[MARK, "CUSTOM_THEIRS"], aggregates=[ROW])
    assert declare(tree, declared("host"), owned=owning(created("numa"))).kept == ()
    assert names(tree) == {"host"}


def test_a_provider_that_is_in_use_is_not_deleted_and_loses_only_what_is_free() -> None:
    content = {"VCPU": {"total": 4, "reserved": 1}, "DISK_GB": {"total": 9}}
    tree = put(host(), "numa", "host", inventories=content, traits=[MARK, "CUSTOM_A"])
    fields = {"VCPU": ("total",), "DISK_GB": ("total",)}
    numa = created("numa", inventories=fields, traits=("CUSTOM_A",))
    merged = declare(tree, declared("host"), owned=owning(numa), held={"numa": {"VCPU"}})
    assert tree.data("numa").inventory == stored({"VCPU": {"total": 4, "reserved": 1}})
    assert tree.data("numa").traits == {MARK}
    assert merged.kept == (
        "numa: not deleted, it is in use",
        "numa: inventory VCPU not removed, in use",
    )
    assert merged.settled == owning(created("numa", inventories={"VCPU": ("total",)}))


def test_a_declared_provider_keeps_the_inventory_that_is_in_use_and_follows_otherwise() -> None:
    content = {"VCPU": {"total": 4}, "DISK_GB": {"total": 9}}
    tree = host(inventories=content, traits=["CUSTOM_A"])
    fields = {"VCPU": ("total",), "DISK_GB": ("total",)}
    owned = owning(mine("host", inventories=fields, traits=("CUSTOM_A",)))
    wanted = declared("host", inventories={"DISK_GB": {"total": 5}})
    merged = declare(tree, wanted, owned=owned, held={"host": {"VCPU"}})
    assert tree.data("host").inventory == stored({"VCPU": {"total": 4}, "DISK_GB": {"total": 5}})
    assert tree.data("host").traits == set()
    assert merged.kept == ("host: inventory VCPU not removed, in use",)
    assert merged.settled == owning(mine("host", inventories=fields))


def test_what_loses_inventory_is_named_with_what_it_loses() -> None:
    content = {"VCPU": {"total": 4}, "DISK_GB": {"total": 9}}
    tree = put(host(inventories=content), "numa", "host", inventories=content, traits=[MARK])
    put(tree, "bridge", "host", inventories=content, traits=[MARK])
    fields = {"VCPU": ("total",), "DISK_GB": ("total",)}
    merged = declare(
        tree,
        declared("host", inventories={"VCPU": {"total": 8}}),
        declared("bridge", "host", inventories=content),
        owned=owning(
            mine("host", inventories=fields),
            created("numa", inventories=fields),
            created("bridge", inventories=fields),
        ),
    )
    assert merged.losing == {uuid_of("host"): {"DISK_GB"}, uuid_of("numa"): {"VCPU", "DISK_GB"}}


# -- declarations that contradict the tree


def test_providers_are_not_moved() -> None:
    tree = put(put(host(), "numa", "host"), "device", "numa")
    merged = declare(tree, declared("host"), declared("device", "host", traits=("CUSTOM_A",)))
    assert tree.data("device").parent_uuid == uuid_of("numa")
    assert tree.data("device").traits == {"CUSTOM_A"}
    assert merged.kept == (
        "device: stays below numa, though declared below host; delete it to have it created there",
    )


def test_providers_do_not_change_their_uuid() -> None:
    refusal = f"host is declared with uuid another, but has {uuid_of('host')}"
    with pytest.raises(DeclarationRefused, match=refusal):
        declare(host(), declared("host", uuid="another"))


def test_providers_are_not_renamed() -> None:
    with pytest.raises(DeclarationRefused, match="is declared as new, but is named host"):
        declare(host(), declared("new", uuid=uuid_of("host")))


def test_a_provider_declared_without_parent_may_be_anywhere_in_the_tree() -> None:
    tree = put(host(), "numa", "host")
    declare(tree, declared("numa", traits=("CUSTOM_A",)))
    assert names(tree) == {"host", "numa"}
    assert tree.data("numa").traits == {"CUSTOM_A"}


# -- a flush that ended half way


def flushed_in_part(
    before: ProviderTree, written: ProviderTree, *providers: DeclaredProvider, owned: Owned
) -> Owned:
    """What is owned if of a merge into one tree only another was written."""
    return written_part(declare(before, *providers, owned=owned), owned, before, written)


def test_what_was_not_written_is_not_owned() -> None:
    wanted = declared(
        "host", inventories={"VCPU": {"total": 8}}, traits=("CUSTOM_A",), aggregates=(RACK,)
    )
    numa = declared("numa", "host")
    assert flushed_in_part(host(), host(), wanted, numa, owned=NOTHING) == NOTHING


def test_what_was_written_is_owned() -> None:
    content = {"VCPU": {"total": 8}}
    written = put(
        host(inventories=content, traits=["CUSTOM_A"], aggregates=[RACK]),
        "numa",
        "host",
    )
    wanted = declared("host", inventories=content, traits=("CUSTOM_A",), aggregates=(RACK,))
    numa = declared("numa", "host", uuid=uuid_of("numa"), inventories=content)
    found = flushed_in_part(host(), written, wanted, numa, owned=NOTHING)
    assert found == owning(
        mine("host", inventories={"VCPU": ("total",)}, traits=("CUSTOM_A",), aggregates=(RACK,)),
        mine("numa", created=True),
    )


def test_an_inventory_is_not_owned_before_it_is_as_it_was_declared() -> None:
    theirs = {"VCPU": {"total": 4}}
    wanted = declared("host", inventories={"VCPU": {"total": 8}})
    before, written = host(inventories=theirs), host(inventories=theirs)
    assert flushed_in_part(before, written, wanted, owned=NOTHING) == NOTHING


def test_what_was_owned_before_is_owned_until_it_is_gone() -> None:
    content: dict[str, Any] = {
        "inventories": {"VCPU": {"total": 8, "reserved": 2}, "DISK_GB": {"total": 9}},
        "traits": ["CUSTOM_A"],
        "aggregates": [RACK],
    }
    owned = owning(
        mine(
            "host",
            inventories={"VCPU": ("total", "reserved"), "DISK_GB": ("total",)},
            traits=("CUSTOM_A",),
            aggregates=(RACK,),
        ),
        created("numa"),
    )
    before = put(host(**content), "numa", "host", traits=[MARK])
    written = put(host(**content), "numa", "host", traits=[MARK])
    wanted = declared("host", inventories={"VCPU": {"total": 8}})
    assert flushed_in_part(before, written, wanted, owned=owned) == owned


def test_what_was_owned_before_and_somebody_removed_stays_owned_while_it_is_declared() -> None:
    owned = owning(mine("host", traits=("CUSTOM_A",), aggregates=(RACK,)))
    wanted = declared("host", traits=("CUSTOM_A",), aggregates=(RACK,))
    assert flushed_in_part(host(), host(), wanted, owned=owned) == owned
