"""What an owner may still write while its records cannot be saved. Pure.

Without a record, an owner does not know after a restart what it put on the server, and never
removes it. So the owner changes and removes what its record has, and adds nothing.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import replace

from roost.client.declaration import Declaration, DeclaredProvider
from roost.client.ownership.record import OwnedProvider, OwnershipRecord
from roost.client.ownership.tree_shape import found_providers
from roost.client.provider_tree import ProviderData, ProviderTree

_REASON = "the ownership records cannot be saved"


def without_additions(
    declaration: Declaration, tree: ProviderTree, record: OwnershipRecord, owner_trait: str
) -> tuple[Declaration, tuple[str, ...]]:
    """The declaration without all that would be new to the record; a line for what waits."""
    present = found_providers(tree, declaration, record, owner_trait)
    kept: dict[str, DeclaredProvider] = {}
    held: set[str] = set()
    waiting: list[str] = []
    for provider in declaration.providers:
        # A new tree has its root already, without a generation.
        is_new = provider.name in present and tree.data(present[provider.name]).generation is None
        if provider.name not in present or is_new:
            waiting.append(f"{provider.name}: not created yet, {_REASON}")
            continue
        found = tree.data(present[provider.name])
        owned = record.provider(found.uuid, found.name)
        if provider.parent is not None and provider.parent not in kept:
            # Its declared parent does not exist yet.
            held.add(owned.name)
        else:
            reduced = _without_additions(provider, found, owned)
            if reduced != provider:
                waiting.append(f"{provider.name}: some of it is not added yet, {_REASON}")
            kept[provider.name] = reduced
    unread = replace(declaration.unread, names=declaration.unread.names | held)
    return Declaration(tuple(kept.values()), unread), tuple(waiting)


def _without_additions(
    declared: DeclaredProvider, found: ProviderData, owned: OwnedProvider
) -> DeclaredProvider:
    return replace(
        declared,
        inventories={
            name: {key: value for key, value in fields.items() if key in owned.inventories[name]}
            for name, fields in declared.inventories.items()
            if name in owned.inventories
        },
        traits=_known(declared.traits, found.traits, owned.traits),
        aggregates=_known(declared.aggregates, found.aggregates, owned.aggregates),
    )


def _known(declared: frozenset[str], present: Set[str], owned: frozenset[str]) -> frozenset[str]:
    """The declared names that the owner owns, or that need not be added."""
    return declared & (owned | frozenset(present))
