"""Properties of the merge for any tree, record and declaration."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

from hypothesis import given, settings
from hypothesis import strategies as st

from roost.client.ownership.record import OwnedProvider, OwnershipRecord
from roost.client.ownership.three_way_merge import InventoriesInUse, MergeResult, TreeMerge
from roost.client.provider_tree import ProviderData, ProviderTree
from roost.model.trees.declaration import Declaration, DeclaredProvider
from support.client.declarations import OWNER_TRAIT
from support.client.provider_trees import DEFAULTS, put, stored, uuid_of
from support.client.random_choices import Choices
from support.properties import many

# So few names that tree, record and declaration often have the same. Parents before children.
PARENTS = {"host": None, "numa": "host", "device": "numa", "bridge": "host"}
CLASSES = ("VCPU", "CUSTOM_X")
TRAITS = ("CUSTOM_A", "CUSTOM_B")
AGGREGATES = ("rack", "row")
OPTIONAL: dict[str, tuple[Any, Any]] = {"reserved": (0, 2), "allocation_ratio": (1.0, 4.0)}

Sketch: TypeAlias = dict[str, tuple[str | None, dict[str, Any], set[str], set[str]]]
"""A tree by names, without generations."""


def some_providers(choices: Choices) -> list[str]:
    """Names of providers; a child only with its parent."""
    chosen: list[str] = []
    for name, parent in PARENTS.items():
        if (parent is None or parent in chosen) and choices.likely():
            chosen.append(name)
    return chosen


def a_tree(choices: Choices) -> ProviderTree:
    tree = ProviderTree()
    for name in some_providers(choices):
        put(
            tree,
            name,
            PARENTS[name],
            inventories={
                key: {
                    "total": choices.one((8, 16)),
                    **{field: choices.one(values) for field, values in OPTIONAL.items()},
                }
                for key in choices.most(CLASSES)
            },
            traits=choices.some((*TRAITS, OWNER_TRAIT)),
            aggregates=choices.some(AGGREGATES),
        )
    return tree


def a_record(choices: Choices) -> OwnershipRecord:
    """A record of providers that are in the tree or were in it before."""
    found = []
    for name in choices.most(PARENTS):
        created = choices.yes()
        found.append(
            OwnedProvider(
                name,
                created,
                {
                    key: frozenset(["total", *choices.some(OPTIONAL)])
                    for key in choices.most(CLASSES)
                },
                frozenset([*choices.some(TRAITS), *([OWNER_TRAIT] if created else [])]),
                frozenset(choices.some(AGGREGATES)),
            )
        )
    return OwnershipRecord({uuid_of(provider.name): provider for provider in found if provider})


def a_declaration(choices: Choices) -> Declaration:
    return Declaration(
        tuple(
            DeclaredProvider(
                name,
                PARENTS[name],
                # The uuids of new providers are tested elsewhere.
                uuid_of(name),
                {
                    key: {
                        "total": choices.one((8, 16)),
                        **{field: choices.one(OPTIONAL[field]) for field in choices.some(OPTIONAL)},
                    }
                    for key in choices.most(CLASSES)
                },
                frozenset(choices.some(TRAITS)),
                frozenset(choices.some(AGGREGATES)),
            )
            for name in some_providers(choices)
        )
    )


@dataclass(frozen=True)
class Case:
    before: ProviderTree
    record: OwnershipRecord
    declaration: Declaration
    in_use: InventoriesInUse

    def merged(self, tree: ProviderTree, record: OwnershipRecord) -> MergeResult:
        """Edit a tree by the merge."""
        return TreeMerge(tree, record, OWNER_TRAIT, self.in_use).run(self.declaration)

    def after(self) -> tuple[ProviderTree, MergeResult]:
        tree = copy.deepcopy(self.before)
        return tree, self.merged(tree, self.record)


def a_case(choices: Choices) -> Case:
    # In most cases nothing is in use.
    in_use = choices.some(PARENTS) if choices.yes() and choices.yes() else []
    return Case(
        a_tree(choices),
        a_record(choices),
        a_declaration(choices),
        {uuid_of(name): frozenset(choices.some(CLASSES)) for name in in_use},
    )


some_choices = st.binary(min_size=40, max_size=40).map(Choices)
cases = some_choices.map(a_case)
PROPERTY = settings(max_examples=many(100))


@PROPERTY
@given(cases)
def test_the_tree_has_all_that_is_declared(case: Case) -> None:
    tree, _ = case.after()
    for provider in case.declaration.providers:
        found = tree.data(provider.name)
        for name, wanted in provider.inventories.items():
            assert found.inventory[name].items() >= dict(wanted).items()
        assert found.traits >= provider.traits
        assert found.aggregates >= provider.aggregates


@PROPERTY
@given(cases)
def test_resources_that_are_neither_declared_nor_owned_stay(case: Case) -> None:
    tree, _ = case.after()
    for before in snapshots(case.before):
        owned = case.record.provider(before.uuid, before.name)
        wanted = wanted_of(case, before.name)
        foreign = before.inventory.keys() - owned.inventories.keys()
        if not tree.exists(before.uuid):
            # The merge deletes only providers that the owner created and that have no inventory
            # of another writer.
            assert owned.created
            assert wanted is None
            assert not foreign
            continue
        after = tree.data(before.uuid)
        declared = wanted or DeclaredProvider(before.name)
        for name in before.inventory.keys() & (foreign | declared.inventories.keys()):
            touched = {*declared.inventories.get(name, ()), *owned.inventories.get(name, ())}
            assert without(after.inventory[name], touched) == without(
                before.inventory[name], touched
            )
        touched_names = declared.traits | owned.traits | {OWNER_TRAIT}
        assert after.traits - touched_names == before.traits - touched_names
        touched_names = declared.aggregates | owned.aggregates
        assert after.aggregates - touched_names == before.aggregates - touched_names


@PROPERTY
@given(cases)
def test_owned_and_undeclared_resources_are_removed_or_reported_as_kept(case: Case) -> None:
    tree, merged = case.after()
    for uuid, owned in case.record.providers.items():
        if not tree.exists(uuid):
            continue
        found = tree.data(uuid)
        wanted = wanted_of(case, owned.name)
        kept = [line for line in merged.kept if line.startswith(f"{owned.name}: ")]
        if wanted is None and owned.created:
            assert any("not deleted" in line for line in kept)
        declared = wanted or DeclaredProvider(owned.name)
        for name in found.inventory.keys() & (
            owned.inventories.keys() - declared.inventories.keys()
        ):
            assert f"{owned.name}: inventory {name} not removed, in use" in kept
        for name, wanted_fields in declared.inventories.items():
            for key in owned.inventories.get(name, frozenset()) - wanted_fields.keys():
                assert found.inventory[name][key] == DEFAULTS[key]
        own_trait = {OWNER_TRAIT} if owned.created else set()
        assert not found.traits & (owned.traits - declared.traits - own_trait)
        assert not found.aggregates & (owned.aggregates - declared.aggregates)


@PROPERTY
@given(cases)
def test_added_resources_are_owned_and_owned_resources_are_present(case: Case) -> None:
    tree, merged = case.after()
    for found in snapshots(tree):
        settled = merged.settled.provider(found.uuid, found.name)
        assert settled.inventories.keys() <= found.inventory.keys()
        assert settled.traits <= found.traits
        assert settled.aggregates <= found.aggregates
        there = case.before.exists(found.uuid)
        before = case.before.data(found.uuid) if there else None
        assert settled.created or there
        assert found.inventory.keys() - (before.inventory if before else {}) <= (
            settled.inventories.keys()
        )
        assert found.traits - (before.traits if before else set()) <= settled.traits
        assert found.aggregates - (before.aggregates if before else set()) <= settled.aggregates
    assert_within(merged.settled, merged.pending)


@PROPERTY
@given(cases)
def test_merging_again_changes_nothing(case: Case) -> None:
    tree, merged = case.after()
    for record in (merged.settled, merged.pending):
        again = written(tree)
        assert case.merged(again, record).settled == merged.settled
        assert sketch(again) == sketch(tree)


@PROPERTY
@given(cases, some_choices)
def test_a_merge_into_a_half_written_tree_has_the_same_result(case: Case, choices: Choices) -> None:
    """The pending record is enough to finish what an interrupted flush began."""
    tree, merged = case.after()
    half = half_written(case.before, tree, choices)
    assert case.merged(half, merged.pending).settled == merged.settled
    assert sketch(half) == sketch(tree)


def snapshots(tree: ProviderTree) -> list[ProviderData]:
    return [tree.data(uuid) for uuid in tree.get_provider_uuids()]


def wanted_of(case: Case, name: str) -> DeclaredProvider | None:
    return next((found for found in case.declaration.providers if found.name == name), None)


def without(content: dict[str, Any], names: Iterable[str]) -> dict[str, Any]:
    return {name: value for name, value in content.items() if name not in set(names)}


def sketch(tree: ProviderTree) -> Sketch:
    return {
        found.name: (found.parent_uuid, stored(found.inventory), found.traits, found.aggregates)
        for found in snapshots(tree)
    }


def written(tree: ProviderTree) -> ProviderTree:
    """The tree as the server returns it after a flush."""
    result = ProviderTree()
    for found in snapshots(tree):
        put(
            result,
            found.name,
            found.parent_uuid,
            inventories=found.inventory,
            traits=found.traits,
            aggregates=found.aggregates,
        )
    return result


def half_written(before: ProviderTree, after: ProviderTree, choices: Choices) -> ProviderTree:
    """A tree that the server may have if a flush ends half way."""
    old = {found.name: found for found in snapshots(before)}
    new = {found.name: found for found in snapshots(after)}
    result = ProviderTree()
    for name, parent in PARENTS.items():
        possible = [found for found in (old.get(name), new.get(name)) if found]
        # A flush creates parents before their children, and deletes children first.
        if not possible or (parent is not None and not result.exists(parent)):
            continue
        if len(possible) == 1 and choices.yes():
            continue
        if name not in old and choices.yes():
            put(result, name, parent)
            continue
        ends = (possible[0], possible[-1])
        put(
            result,
            name,
            parent,
            inventories=choices.one(ends).inventory,
            traits=choices.one(ends).traits,
            aggregates=choices.one(ends).aggregates,
        )
    return result


def assert_within(settled: OwnershipRecord, pending: OwnershipRecord) -> None:
    for uuid, part in settled.providers.items():
        whole = pending.providers[uuid]
        assert whole.created or not part.created
        assert part.traits <= whole.traits
        assert part.aggregates <= whole.aggregates
        for name, keys in part.inventories.items():
            assert keys <= whole.inventories[name]
