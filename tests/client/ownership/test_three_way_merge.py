"""The merge of a declaration changes what its owner owns, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from roost.client.errors import DeclarationRefused
from roost.client.ownership.record import OwnershipRecord
from roost.client.ownership.three_way_merge import MergeResult, TreeMerge, written_record
from roost.client.provider_tree import ProviderTree
from roost.model.trees.declaration import DeclaredProvider
from support.client.declarations import (
    EMPTY,
    OWNER_TRAIT,
    created,
    declaration,
    declared,
    owned,
    record_of,
)
from support.client.provider_trees import DEFAULTS, names, put, stored, uuid_of

RACK = "11111111-1111-4111-8111-111111111111"
ROW = "22222222-2222-4222-8222-222222222222"


def host(**content: Any) -> ProviderTree:
    """A tree of one provider, which another writer created."""
    return put(ProviderTree(), "host", **content)


def declare(
    tree: ProviderTree,
    *providers: DeclaredProvider,
    record: OwnershipRecord = EMPTY,
    in_use: Mapping[str, set[str]] | None = None,
) -> MergeResult:
    by_uuid = {uuid_of(name): frozenset(classes) for name, classes in (in_use or {}).items()}
    return TreeMerge(tree, record, OWNER_TRAIT, by_uuid).run(declaration(*providers))


# -- what is declared


def test_a_declaration_is_added_to_the_tree_and_owned() -> None:
    tree = host()
    wanted = declared(
        "host", inventories={"VCPU": {"total": 8}}, traits=("HW_CPU_X86_AVX",), aggregates=(RACK,)
    )
    merged = declare(tree, wanted)
    found = tree.data("host")
    assert found.inventory == {"VCPU": {"total": 8}}
    assert (found.traits, found.aggregates) == ({"HW_CPU_X86_AVX"}, {RACK})
    added = owned(
        "host", inventories={"VCPU": ("total",)}, traits=("HW_CPU_X86_AVX",), aggregates=(RACK,)
    )
    assert merged == MergeResult(record_of(added), record_of(added))


def test_a_missing_provider_is_created_with_the_trait_of_its_owner() -> None:
    tree = host()
    merged = declare(tree, declared("host"), declared("numa", "host", uuid=uuid_of("numa")))
    found = tree.data("numa")
    assert (found.uuid, found.parent_uuid) == (uuid_of("numa"), uuid_of("host"))
    assert (tree.data("host").traits, found.traits) == (set(), {OWNER_TRAIT})
    assert merged.pending == merged.settled == record_of(created("numa"))


def test_a_missing_root_is_created() -> None:
    tree = ProviderTree()
    merged = declare(tree, declared("host"))
    (uuid,) = tree.get_provider_uuids()
    assert merged.settled == OwnershipRecord({uuid: created("host")})


def test_a_provider_whose_creation_may_be_on_its_way_keeps_its_uuid() -> None:
    tree = host()
    declare(tree, declared("host"), declared("numa", "host"), record=record_of(created("numa")))
    assert tree.data("numa").uuid == uuid_of("numa")


def test_an_empty_declaration_creates_no_root() -> None:
    tree = host(generation=None)
    assert declare(tree) == MergeResult(EMPTY, EMPTY)
    assert names(tree) == set()


def test_an_owner_trait_that_another_writer_removed_is_added_again() -> None:
    tree = put(host(), "numa", "host")
    declare(tree, declared("host"), declared("numa", "host"), record=record_of(created("numa")))
    assert tree.data("numa").traits == {OWNER_TRAIT}


# -- what is no longer declared


def test_owned_and_undeclared_resources_are_removed() -> None:
    tree = host(inventories={"VCPU": {"total": 8}}, traits=["CUSTOM_A"], aggregates=[RACK])
    record = record_of(
        owned("host", inventories={"VCPU": ("total",)}, traits=("CUSTOM_A",), aggregates=(RACK,))
    )
    merged = declare(tree, declared("host"), record=record)
    found = tree.data("host")
    assert (found.inventory, found.traits, found.aggregates) == ({}, set(), set())
    # The owner owns them until they are removed from the server, so a restarted owner finds them.
    assert merged == MergeResult(record, EMPTY)


def test_an_undeclared_provider_of_another_writer_loses_only_what_is_owned() -> None:
    tree = put(host(), "numa", "host", traits=["CUSTOM_A", "CUSTOM_B"])
    declare(tree, declared("host"), record=record_of(owned("numa", traits=("CUSTOM_A",))))
    assert tree.data("numa").traits == {"CUSTOM_B"}


def test_owned_resources_that_are_gone_leave_the_record() -> None:
    record = record_of(owned("host", traits=("CUSTOM_A",)), created("numa"))
    assert declare(host(), declared("host"), record=record) == MergeResult(EMPTY, EMPTY)


def test_an_undeclared_created_provider_is_deleted_with_owned_descendants() -> None:
    tree = put(host(), "numa", "host", inventories={"VCPU": {"total": 4}}, traits=[OWNER_TRAIT])
    put(tree, "device", "numa", traits=[OWNER_TRAIT, "CUSTOM_THEIRS"])
    record = record_of(created("numa", inventories={"VCPU": ("total",)}), created("device"))
    merged = declare(tree, declared("host"), record=record)
    assert names(tree) == {"host"}
    assert merged == MergeResult(record, EMPTY)


# -- what another writer put there


def test_resources_of_other_writers_stay() -> None:
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
        record=record_of(owned("host", traits=("CUSTOM_B",))),
    )
    found = tree.data("host")
    assert found.inventory == stored(theirs["inventories"]) | {"VCPU": {"total": 8}}
    assert found.traits == {"CUSTOM_THEIRS", "CUSTOM_A"}
    assert found.aggregates == {ROW, RACK}
    assert {name: tree.data(name) for name in before} == before


def test_resources_that_are_present_as_declared_do_not_become_owned() -> None:
    tree = host(inventories={"VCPU": {"total": 8}}, traits=["CUSTOM_A"], aggregates=[RACK])
    before = tree.data("host")
    merged = declare(
        tree,
        declared(
            "host", inventories={"VCPU": {"total": 8}}, traits=("CUSTOM_A",), aggregates=(RACK,)
        ),
    )
    assert merged == MergeResult(EMPTY, EMPTY)
    declare(tree, declared("host"), record=merged.settled)
    assert tree.data("host") == before


def test_an_inventory_that_the_declaration_changes_becomes_owned() -> None:
    tree = host(inventories={"VCPU": {"total": 4}})
    merged = declare(tree, declared("host", inventories={"VCPU": {"total": 8}}))
    assert tree.data("host").inventory == stored({"VCPU": {"total": 8}})
    assert merged.settled == record_of(owned("host", inventories={"VCPU": ("total",)}))
    declare(tree, declared("host"), record=merged.settled)
    assert tree.data("host").inventory == {}


# -- fields of an inventory


def test_an_undeclared_field_keeps_the_value_of_another_writer() -> None:
    tree = host(inventories={"VCPU": {"total": 8, "reserved": 2, "allocation_ratio": 4.0}})
    declare(
        tree,
        declared("host", inventories={"VCPU": {"total": 16, "allocation_ratio": 8.0}}),
        record=record_of(owned("host", inventories={"VCPU": ("total", "allocation_ratio")})),
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
def test_a_field_that_is_no_longer_declared_gets_its_default(field: str) -> None:
    tree = host(inventories={"VCPU": {"total": 8, **SET}})
    merged = declare(
        tree,
        declared("host", inventories={"VCPU": {"total": 8}}),
        record=record_of(owned("host", inventories={"VCPU": ("total", field)})),
    )
    expected = {"VCPU": {"total": 8, **SET, field: DEFAULTS[field]}}
    assert tree.data("host").inventory == expected
    assert merged.settled == record_of(owned("host", inventories={"VCPU": ("total",)}))


def test_a_field_is_owned_until_it_has_its_default() -> None:
    tree = host(inventories={"VCPU": {"total": 8, "reserved": 2}})
    wanted = declared("host", inventories={"VCPU": {"total": 8}})
    record = record_of(owned("host", inventories={"VCPU": ("total", "reserved")}))
    assert declare(tree, wanted, record=record).pending == record


# -- providers that cannot be deleted


def test_a_provider_with_inventory_of_another_writer_is_not_deleted() -> None:
    content = {"MEMORY_MB": {"total": 64}, "DISK_GB": {"total": 9}, "VCPU": {"total": 4}}
    tree = put(host(), "numa", "host", inventories=content, traits=[OWNER_TRAIT, "CUSTOM_A"])
    record = record_of(created("numa", inventories={"VCPU": ("total",)}, traits=("CUSTOM_A",)))
    merged = declare(tree, declared("host"), record=record)
    found = tree.data("numa")
    assert found.inventory == stored({"MEMORY_MB": {"total": 64}, "DISK_GB": {"total": 9}})
    assert found.traits == {OWNER_TRAIT}
    assert merged.kept == (
        "numa: not deleted, other writers have inventory on it (DISK_GB, MEMORY_MB)",
    )
    # The provider stays owned, so it is deleted once that inventory is removed.
    assert merged.settled == record_of(created("numa"))
    tree.update_inventory("numa", {})
    assert declare(tree, declared("host"), record=merged.settled).kept == ()
    assert names(tree) == {"host"}


def test_a_provider_with_children_of_another_writer_is_not_deleted() -> None:
    tree = put(put(host(), "numa", "host", traits=[OWNER_TRAIT]), "device", "numa")
    merged = declare(tree, declared("host"), record=record_of(created("numa")))
    assert names(tree) == {"host", "numa", "device"}
    assert merged.kept == ("numa: not deleted, there are providers below it",)
    assert merged.settled == record_of(created("numa"))


def test_a_provider_with_only_traits_and_aggregates_of_another_writer_is_deleted() -> None:
    tree = put(host(), "numa", "host", traits=[OWNER_TRAIT, "CUSTOM_THEIRS"], aggregates=[ROW])
    assert declare(tree, declared("host"), record=record_of(created("numa"))).kept == ()
    assert names(tree) == {"host"}


def test_a_provider_in_use_keeps_only_the_inventory_in_use() -> None:
    content = {"VCPU": {"total": 4, "reserved": 1}, "DISK_GB": {"total": 9}}
    tree = put(host(), "numa", "host", inventories=content, traits=[OWNER_TRAIT, "CUSTOM_A"])
    fields = {"VCPU": ("total",), "DISK_GB": ("total",)}
    numa = created("numa", inventories=fields, traits=("CUSTOM_A",))
    merged = declare(tree, declared("host"), record=record_of(numa), in_use={"numa": {"VCPU"}})
    assert tree.data("numa").inventory == stored({"VCPU": {"total": 4, "reserved": 1}})
    assert tree.data("numa").traits == {OWNER_TRAIT}
    assert merged.kept == (
        "numa: not deleted, it is in use",
        "numa: inventory VCPU not removed, in use",
    )
    assert merged.settled == record_of(created("numa", inventories={"VCPU": ("total",)}))


def test_a_declared_provider_keeps_the_undeclared_inventory_in_use() -> None:
    content = {"VCPU": {"total": 4}, "DISK_GB": {"total": 9}}
    tree = host(inventories=content, traits=["CUSTOM_A"])
    fields = {"VCPU": ("total",), "DISK_GB": ("total",)}
    record = record_of(owned("host", inventories=fields, traits=("CUSTOM_A",)))
    wanted = declared("host", inventories={"DISK_GB": {"total": 5}})
    merged = declare(tree, wanted, record=record, in_use={"host": {"VCPU"}})
    assert tree.data("host").inventory == stored({"VCPU": {"total": 4}, "DISK_GB": {"total": 5}})
    assert tree.data("host").traits == set()
    assert merged.kept == ("host: inventory VCPU not removed, in use",)
    assert merged.settled == record_of(owned("host", inventories=fields))


def test_the_result_names_the_removed_inventories() -> None:
    content = {"VCPU": {"total": 4}, "DISK_GB": {"total": 9}}
    tree = put(host(inventories=content), "numa", "host", inventories=content, traits=[OWNER_TRAIT])
    put(tree, "bridge", "host", inventories=content, traits=[OWNER_TRAIT])
    fields = {"VCPU": ("total",), "DISK_GB": ("total",)}
    merged = declare(
        tree,
        declared("host", inventories={"VCPU": {"total": 8}}),
        declared("bridge", "host", inventories=content),
        record=record_of(
            owned("host", inventories=fields),
            created("numa", inventories=fields),
            created("bridge", inventories=fields),
        ),
    )
    assert merged.removed_inventories == {
        uuid_of("host"): {"DISK_GB"},
        uuid_of("numa"): {"VCPU", "DISK_GB"},
    }


# -- declarations that contradict the tree


def test_a_provider_is_not_moved() -> None:
    tree = put(put(host(), "numa", "host"), "device", "numa")
    merged = declare(tree, declared("host"), declared("device", "host", traits=("CUSTOM_A",)))
    assert tree.data("device").parent_uuid == uuid_of("numa")
    assert tree.data("device").traits == {"CUSTOM_A"}
    (line,) = merged.kept
    assert line.startswith("device: stays below numa, though declared below host")


def test_a_provider_does_not_change_its_uuid() -> None:
    refusal = f"host is declared with uuid another, but has {uuid_of('host')}"
    with pytest.raises(DeclarationRefused, match=refusal):
        declare(host(), declared("host", uuid="another"))


def test_a_provider_is_not_renamed() -> None:
    with pytest.raises(DeclarationRefused, match="is declared as new, but is named host"):
        declare(host(), declared("new", uuid=uuid_of("host")))


def test_a_provider_declared_without_parent_may_be_anywhere_in_the_tree() -> None:
    tree = put(host(), "numa", "host")
    declare(tree, declared("numa", traits=("CUSTOM_A",)))
    assert names(tree) == {"host", "numa"}
    assert tree.data("numa").traits == {"CUSTOM_A"}


# -- a flush that ended half way


def flushed_in_part(
    before: ProviderTree,
    written: ProviderTree,
    *providers: DeclaredProvider,
    record: OwnershipRecord,
) -> OwnershipRecord:
    """The record after a merge of which only the tree `written` reached the server."""
    return written_record(declare(before, *providers, record=record), record, before, written)


def test_unwritten_resources_are_not_owned() -> None:
    wanted = declared(
        "host", inventories={"VCPU": {"total": 8}}, traits=("CUSTOM_A",), aggregates=(RACK,)
    )
    numa = declared("numa", "host")
    assert flushed_in_part(host(), host(), wanted, numa, record=EMPTY) == EMPTY


def test_written_resources_are_owned() -> None:
    content = {"VCPU": {"total": 8}}
    written = put(
        host(inventories=content, traits=["CUSTOM_A"], aggregates=[RACK]),
        "numa",
        "host",
    )
    wanted = declared("host", inventories=content, traits=("CUSTOM_A",), aggregates=(RACK,))
    numa = declared("numa", "host", uuid=uuid_of("numa"), inventories=content)
    found = flushed_in_part(host(), written, wanted, numa, record=EMPTY)
    assert found == record_of(
        owned("host", inventories={"VCPU": ("total",)}, traits=("CUSTOM_A",), aggregates=(RACK,)),
        owned("numa", created=True),
    )


def test_an_inventory_is_not_owned_before_it_is_written_as_declared() -> None:
    theirs = {"VCPU": {"total": 4}}
    wanted = declared("host", inventories={"VCPU": {"total": 8}})
    before, written = host(inventories=theirs), host(inventories=theirs)
    assert flushed_in_part(before, written, wanted, record=EMPTY) == EMPTY


def test_resources_stay_owned_until_they_are_removed() -> None:
    content: dict[str, Any] = {
        "inventories": {"VCPU": {"total": 8, "reserved": 2}, "DISK_GB": {"total": 9}},
        "traits": ["CUSTOM_A"],
        "aggregates": [RACK],
    }
    record = record_of(
        owned(
            "host",
            inventories={"VCPU": ("total", "reserved"), "DISK_GB": ("total",)},
            traits=("CUSTOM_A",),
            aggregates=(RACK,),
        ),
        created("numa"),
    )
    before = put(host(**content), "numa", "host", traits=[OWNER_TRAIT])
    written = put(host(**content), "numa", "host", traits=[OWNER_TRAIT])
    wanted = declared("host", inventories={"VCPU": {"total": 8}})
    assert flushed_in_part(before, written, wanted, record=record) == record


def test_declared_resources_stay_owned_if_another_writer_removed_them() -> None:
    record = record_of(owned("host", traits=("CUSTOM_A",), aggregates=(RACK,)))
    wanted = declared("host", traits=("CUSTOM_A",), aggregates=(RACK,))
    assert flushed_in_part(host(), host(), wanted, record=record) == record
