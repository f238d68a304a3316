"""The server merges a declaration of one owner as the client does, which goes step by step."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from roost.client.ownership.record import OwnedProvider, OwnershipRecord
from roost.client.ownership.three_way_merge import TreeMerge
from roost.client.provider_tree import ProviderTree
from roost.client.reporting.difference import difference
from roost.model.inventory import DEFAULTS
from roost.model.trees.declaration import Declaration, DeclaredProvider
from roost.model.trees.difference import Difference
from roost.model.trees.owned import OwnedParts
from roost.model.trees.owner_names import trait_of_owner
from roost.service.ledger.tree_merge import ProviderState, merge_declaration

OWNER = "me"
MARK = trait_of_owner(OWNER)
NAMES = ("r", "a", "b", "c", "d")
UUIDS = {name: str(UUID(int=number)) for number, name in enumerate(NAMES, 1)}
CLASSES, TRAITS = ("VCPU", "DISK_GB"), ("CUSTOM_ONE", "HW_CPU_X86_VMX")
AGGREGATES = (str(UUID(int=71)), str(UUID(int=72)))
FIELDS = ("total", "reserved", "allocation_ratio")

_fields = st.fixed_dictionaries(
    {"total": st.integers(4, 5)},
    optional={"reserved": st.integers(0, 1), "allocation_ratio": st.sampled_from([1.0, 2.0])},
)
_inventories = st.dictionaries(st.sampled_from(CLASSES), _fields, max_size=2)
_traits = st.frozensets(st.sampled_from(TRAITS))
_aggregates = st.frozensets(st.sampled_from(AGGREGATES))
_owned_fields = st.dictionaries(
    st.sampled_from(CLASSES), st.frozensets(st.sampled_from(FIELDS)).map(lambda f: f | {"total"})
)


@st.composite
def states(draw: st.DrawFn) -> list[ProviderState]:
    """A tree, of which the owner owns some parts."""
    found: list[ProviderState] = []
    for name in NAMES[: draw(st.integers(1, 4))]:
        parent = draw(st.sampled_from(found)).uuid if found else None
        inventory: dict[str, dict[str, Any]] = {
            key: {**DEFAULTS, **each} for key, each in draw(_inventories).items()
        }
        created = draw(st.booleans())
        parts = OwnedParts(created, draw(_owned_fields), draw(_traits), draw(_aggregates))
        if created:
            parts = replace(parts, traits=parts.traits | {MARK})
        found.append(
            ProviderState(
                UUIDS[name],
                name,
                parent,
                inventory,
                draw(_traits) | ({MARK} if created else frozenset()),
                draw(_aggregates),
                draw(st.frozensets(st.sampled_from(list(inventory)))) if inventory else frozenset(),
                {OWNER: parts} if parts else {},
            )
        )
    return found


@st.composite
def declarations(draw: st.DrawFn, root: str = "r") -> Declaration:
    """The root and providers below it, or nothing."""
    if draw(st.integers(0, 4)) == 0:
        return Declaration(())
    names = [root]
    for name in draw(st.permutations(NAMES[1:]))[: draw(st.integers(0, 4))]:
        names.append(name)
    return Declaration(
        tuple(
            DeclaredProvider(
                name,
                draw(st.sampled_from(names[:place])) if place else None,
                None,
                draw(_inventories),
                draw(_traits),
                draw(_aggregates),
            )
            for place, name in enumerate(names)
        )
    )


def stepwise(tree: list[ProviderState], declaration: Declaration) -> tuple[Difference, list[str]]:
    """What the client would do."""
    known = ProviderTree()
    for each in tree:
        if each.parent_uuid is None:
            known.new_root(each.name, each.uuid, generation=1)
        else:
            known.new_child(each.name, each.parent_uuid, each.uuid, generation=1)
        known.update_inventory(
            each.uuid, {key: dict(value) for key, value in each.inventory.items()}
        )
        known.update_traits(each.uuid, each.traits)
        known.update_aggregates(each.uuid, each.aggregates)
    record = OwnershipRecord(
        {
            each.uuid: OwnedProvider(
                each.name, parts.created, parts.inventories, parts.traits, parts.aggregates
            )
            for each in tree
            for parts in each.owners.values()
        }
    )
    after = copy.deepcopy(known)
    in_use = {each.uuid: each.in_use for each in tree if each.in_use}
    merged = TreeMerge(after, record, MARK, in_use).run(declaration)
    return difference(known, after), list(merged.kept)


def told(found: Difference) -> dict[str, Any]:
    """The difference, in an order of its own."""
    return {
        kind: sorted(items, key=lambda item: (item["uuid"], item.get("kind", "")))
        for kind, items in found.as_json().items()
    }


@given(states(), declarations())
def test_one_owner_gets_the_same_difference_from_both(
    tree: list[ProviderState], declaration: Declaration
) -> None:
    wanted, kept = stepwise(tree, declaration)
    merged = merge_declaration(copy.deepcopy(tree), declaration, OWNER)
    assert told(merged.difference()) == told(wanted)
    assert sorted(merged.kept) == sorted(kept)
