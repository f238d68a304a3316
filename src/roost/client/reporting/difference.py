"""The difference between two states of a host's tree: what one flush has to do. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from typing import Any

from roost.client.provider_tree import ProviderData, ProviderTree
from roost.model.trees.difference import (
    AssociationKind,
    Difference,
    IgnoredChange,
    ProviderChange,
    ProviderCreation,
    ProviderDeletion,
    ProviderMove,
)


def difference(before: ProviderTree, after: ProviderTree) -> Difference:
    """The difference from one state of a tree to a later one."""
    old = _providers(before)
    new = _providers(after)
    return Difference(
        creations=tuple(_creations(old, new)),
        moves=tuple(_moves(old, new, after.moved)),
        deletions=tuple(
            ProviderDeletion(uuid, old[uuid].name) for uuid in reversed(old) if uuid not in new
        ),
        changes=tuple(_changes(before, old, new)),
        ignored=tuple(_ignored(old, new, after.moved)),
    )


def has_changed(tree: ProviderTree, uuid: str, kind: AssociationKind, after: Any) -> bool:
    """Whether a provider has other associations of a kind; a field left out is no change."""
    compare = {
        AssociationKind.INVENTORY: tree.has_inventory_changed,
        AssociationKind.AGGREGATES: tree.have_aggregates_changed,
        AssociationKind.TRAITS: tree.have_traits_changed,
    }
    return compare[kind](uuid, after)


def _providers(tree: ProviderTree) -> dict[str, ProviderData]:
    return {uuid: tree.data(uuid) for uuid in tree.get_provider_uuids()}


def _creations(
    old: Mapping[str, ProviderData], new: Mapping[str, ProviderData]
) -> Iterator[ProviderCreation]:
    for uuid, provider in new.items():
        if uuid not in old:
            parent = new.get(provider.parent_uuid or "")
            yield ProviderCreation(
                uuid, provider.name, provider.parent_uuid, parent.name if parent else None
            )


def _moves(
    old: Mapping[str, ProviderData], new: Mapping[str, ProviderData], moved: Set[str]
) -> Iterator[ProviderMove]:
    for uuid, provider in new.items():
        known, parent = old.get(uuid), new.get(provider.parent_uuid or "")
        if known and parent and uuid in moved and known.parent_uuid != parent.uuid:
            yield ProviderMove(uuid, known.name, known.parent_uuid, parent.uuid, parent.name)


def _changes(
    before: ProviderTree, old: Mapping[str, ProviderData], new: dict[str, ProviderData]
) -> Iterator[ProviderChange]:
    for uuid in reversed(new):
        provider = new[uuid]
        for kind in AssociationKind:
            after = kind.of(provider)
            if uuid not in old:
                if after:
                    yield ProviderChange(uuid, provider.name, kind, type(after)(), after)
            elif has_changed(before, uuid, kind, after):
                yield ProviderChange(uuid, provider.name, kind, kind.of(old[uuid]), after)


def _ignored(
    old: Mapping[str, ProviderData], new: Mapping[str, ProviderData], moved: Set[str]
) -> Iterator[IgnoredChange]:
    for uuid, provider in new.items():
        known = old.get(uuid)
        if known is None:
            continue
        for field in ("name",) if uuid in moved else ("name", "parent_uuid"):
            was, is_ = getattr(known, field), getattr(provider, field)
            if was != is_:
                yield IgnoredChange(uuid, known.name, field, was, is_)
