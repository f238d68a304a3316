"""Merging, whatever the tree, the memory and the declaration are: promises that always hold."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

from hypothesis import given, settings
from hypothesis import strategies as st

from roost.client.declaration import Declaration, DeclaredProvider
from roost.client.owning.merging import Held, Merged, merge
from roost.client.owning.ownership import Owned, OwnedProvider
from roost.client.provider_tree import ProviderData, ProviderTree
from support.choices import Choices
from support.forest import DEFAULTS, put, stored, uuid_of
from support.owning import MARK

# So few that what is there, owned and declared meet all the time. Parents before children.
PARENTS = {"host": None, "numa": "host", "device": "numa", "bridge": "host"}
CLASSES = ("VCPU", "CUSTOM_X")
TRAITS = ("CUSTOM_A", "CUSTOM_B")
AGGREGATES = ("rack", "row")
OPTIONAL: dict[str, tuple[Any, Any]] = {"reserved": (0, 2), "allocation_ratio": (1.0, 4.0)}

Sketch: TypeAlias = dict[str, tuple[str | None, dict[str, Any], set[str], set[str]]]
"""A tree by names, without generations and uuids."""


def some_providers(choices: Choices) -> list[str]:
    """Names, each only with its parent."""
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
            traits=choices.some((*TRAITS, MARK)),
            aggregates=choices.some(AGGREGATES),
        )
    return tree


def a_memory(choices: Choices) -> Owned:
    """What somebody may remember, of providers that are there or were once."""
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
                frozenset([*choices.some(TRAITS), *([MARK] if created else [])]),
                frozenset(choices.some(AGGREGATES)),
            )
        )
    return Owned({uuid_of(provider.name): provider for provider in found if provider})


def a_declaration(choices: Choices) -> Declaration:
    return Declaration(
        tuple(
            DeclaredProvider(
                name,
                PARENTS[name],
                # Which uuid a new provider gets is not what this is about.
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
    owned: Owned
    declaration: Declaration
    held: Held

    def merged(self, tree: ProviderTree, owned: Owned) -> Merged:
        """Merge into a tree, which is edited."""
        return merge(tree, self.declaration, owned, MARK, self.held)

    def after(self) -> tuple[ProviderTree, Merged]:
        tree = copy.deepcopy(self.before)
        return tree, self.merged(tree, self.owned)


def a_case(choices: Choices) -> Case:
    # Mostly nothing is held.
    held = choices.some(PARENTS) if choices.yes() and choices.yes() else []
    return Case(
        a_tree(choices),
        a_memory(choices),
        a_declaration(choices),
        {uuid_of(name): frozenset(choices.some(CLASSES)) for name in held},
    )


some_choices = st.binary(min_size=40, max_size=40).map(Choices)
cases = some_choices.map(a_case)
PROPERTY = settings(max_examples=100, deadline=None, derandomize=True, database=None)


@PROPERTY
@given(cases)
def test_all_that_is_declared_is_in_the_tree(case: Case) -> None:
    tree, _ = case.after()
    for provider in case.declaration.providers:
        found = tree.data(provider.name)
        for name, wanted in provider.inventories.items():
            assert found.inventory[name].items() >= dict(wanted).items()
        assert found.traits >= provider.traits
        assert found.aggregates >= provider.aggregates


@PROPERTY
@given(cases)
def test_what_is_neither_declared_nor_owned_stays_as_it_was(case: Case) -> None:
    tree, _ = case.after()
    for before in snapshots(case.before):
        mine = case.owned.of(before.uuid, before.name)
        wanted = wanted_of(case, before.name)
        foreign = before.inventory.keys() - mine.inventories.keys()
        if not tree.exists(before.uuid):
            # Only what one created oneself is ever deleted, and only if nobody has put inventory
            # on it or providers below it.
            assert mine.created
            assert wanted is None
            assert not foreign
            continue
        after = tree.data(before.uuid)
        declared = wanted or DeclaredProvider(before.name)
        for name in before.inventory.keys() & (foreign | declared.inventories.keys()):
            touched = {*declared.inventories.get(name, ()), *mine.inventories.get(name, ())}
            assert without(after.inventory[name], touched) == without(
                before.inventory[name], touched
            )
        ours = declared.traits | mine.traits | {MARK}
        assert after.traits - ours == before.traits - ours
        ours = declared.aggregates | mine.aggregates
        assert after.aggregates - ours == before.aggregates - ours


@PROPERTY
@given(cases)
def test_what_is_owned_and_not_declared_is_gone_or_said_to_be_kept(case: Case) -> None:
    tree, merged = case.after()
    for uuid, mine in case.owned.providers.items():
        if not tree.exists(uuid):
            continue
        found = tree.data(uuid)
        wanted = wanted_of(case, mine.name)
        kept = [line for line in merged.kept if line.startswith(f"{mine.name}: ")]
        if wanted is None and mine.created:
            assert any("not deleted" in line for line in kept)
        declared = wanted or DeclaredProvider(mine.name)
        for name in found.inventory.keys() & (
            mine.inventories.keys() - declared.inventories.keys()
        ):
            assert f"{mine.name}: inventory {name} not removed, in use" in kept
        for name, wanted_fields in declared.inventories.items():
            for key in mine.inventories.get(name, frozenset()) - wanted_fields.keys():
                assert found.inventory[name][key] == DEFAULTS[key]
        marked = {MARK} if mine.created else set()
        assert not found.traits & (mine.traits - declared.traits - marked)
        assert not found.aggregates & (mine.aggregates - declared.aggregates)


@PROPERTY
@given(cases)
def test_what_was_put_there_is_owned_and_what_is_owned_is_there(case: Case) -> None:
    tree, merged = case.after()
    for found in snapshots(tree):
        settled = merged.settled.of(found.uuid, found.name)
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
    assert_within(merged.settled, merged.owned)


@PROPERTY
@given(cases)
def test_merging_again_changes_nothing(case: Case) -> None:
    tree, merged = case.after()
    for remembered in (merged.settled, merged.owned):
        again = written(tree)
        assert case.merged(again, remembered).settled == merged.settled
        assert sketch(again) == sketch(tree)


@PROPERTY
@given(cases, some_choices)
def test_it_ends_the_same_whatever_of_it_was_written_before_a_mishap(
    case: Case, choices: Choices
) -> None:
    """What is remembered before the first write is enough to finish, or to begin again."""
    tree, merged = case.after()
    half = half_written(case.before, tree, choices)
    assert case.merged(half, merged.owned).settled == merged.settled
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
    """The tree as the server gives it once it has it."""
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
    """What the server may have if somebody dies on the way from one tree to the other."""
    old = {found.name: found for found in snapshots(before)}
    new = {found.name: found for found in snapshots(after)}
    result = ProviderTree()
    for name, parent in PARENTS.items():
        possible = [found for found in (old.get(name), new.get(name)) if found]
        # Parents are created before their children, and deleted after them.
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


def assert_within(settled: Owned, owned: Owned) -> None:
    for uuid, part in settled.providers.items():
        whole = owned.providers[uuid]
        assert whole.created or not part.created
        assert part.traits <= whole.traits
        assert part.aggregates <= whole.aggregates
        for name, keys in part.inventories.items():
            assert keys <= whole.inventories[name]
