"""Changes as clients see them: rows of the journal with the names that a forest has."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from roost.search.forest.forest import Forest, ProviderRef
from roost.store.journal.changes import ChangeRow, WrittenTogether
from roost.store.journal.writing import ChangeKind, ProviderEvent


class Kind(StrEnum):
    """What changed."""

    USAGE = "usage"
    INVENTORY = "inventory"
    TRAITS = "traits"
    AGGREGATES = "aggregates"
    CREATED = "provider_created"
    RENAMED = "provider_renamed"
    MOVED = "provider_moved"
    DELETED = "provider_deleted"
    ADOPTED = "provider_adopted"
    PROVIDER = "provider"
    """Something of the provider itself: its writer did not tell what."""
    CLASS_NAMES = "resource_classes"
    TRAIT_NAMES = "trait_names"


_KINDS: Mapping[str, Kind] = {
    ChangeKind.USAGE: Kind.USAGE,
    ChangeKind.INVENTORIES: Kind.INVENTORY,
    ChangeKind.TRAITS: Kind.TRAITS,
    ChangeKind.AGGREGATES: Kind.AGGREGATES,
    ChangeKind.PROVIDER: Kind.PROVIDER,
    ChangeKind.RESOURCE_CLASSES: Kind.CLASS_NAMES,
    ChangeKind.TRAIT_NAMES: Kind.TRAIT_NAMES,
}
_EVENT_KINDS = {
    ProviderEvent.CREATED: Kind.CREATED,
    ProviderEvent.RENAMED: Kind.RENAMED,
    ProviderEvent.MOVED: Kind.MOVED,
    ProviderEvent.DELETED: Kind.DELETED,
    ProviderEvent.ADOPTED: Kind.ADOPTED,
}


@dataclass(frozen=True, slots=True)
class Named:
    """A provider. The name of one that no longer exists is `None`, unless its writer told it."""

    uuid: str
    name: str | None


@dataclass(frozen=True, slots=True)
class Change:
    """A change of one provider, or of the names of classes or traits."""

    # The row of the journal, by which a position knows whether it has seen the change.
    row_id: int
    transaction_id: int | None
    at: datetime
    kind: Kind
    provider: Named | None
    root: Named | None
    # The root of the tree in which the provider was at that time, if its writer told it.
    past_root: str | None
    # Empty if the writer did not tell: then any class may have changed.
    resource_classes: tuple[str, ...]
    request_id: str | None
    user_id: str | None
    project_id: str | None


@dataclass(frozen=True, slots=True)
class ChangeFilter:
    """Which changes a client wants; a default value wants all."""

    provider: str | None = None
    # The uuid of the root of a tree.
    root: str | None = None
    kinds: frozenset[Kind] = frozenset()

    def takes(self, change: Change) -> bool:
        """Whether the client wants the change."""
        if self.kinds and change.kind not in self.kinds:
            return False
        if self.provider is not None and (
            change.provider is None or change.provider.uuid != self.provider
        ):
            return False
        return self.root is None or self.root in (
            change.past_root,
            None if change.root is None else change.root.uuid,
        )


ALL_CHANGES = ChangeFilter()


def needs_new_names(transactions: Iterable[WrittenTogether]) -> bool:
    """Whether names may have changed, of providers, classes or traits."""
    same = {ChangeKind.USAGE, ChangeKind.INVENTORIES, ChangeKind.TRAITS, ChangeKind.AGGREGATES}
    return any(row.kind not in same for rows in transactions for row in rows)


def changes_of(transactions: Iterable[WrittenTogether], forest: Forest) -> tuple[Change, ...]:
    """The changes of whole transactions, in their order, with the names of the forest."""
    rows = [row for transaction in transactions for row in transaction]
    ids = {row.provider_id for row in rows if row.provider_id is not None}
    refs = forest.refs_of(ids) if ids else {}
    return tuple(_change(row, forest, refs) for row in rows)


def _change(row: ChangeRow, forest: Forest, refs: Mapping[int, ProviderRef]) -> Change:
    provider, root = _provider(row, forest, refs)
    names = forest.vocabulary.class_names
    return Change(
        row_id=row.id,
        transaction_id=row.transaction_id,
        at=row.at,
        kind=_kind(row),
        provider=provider,
        root=root,
        past_root=row.detail.get("root"),
        # A class that was deleted since has no name.
        resource_classes=tuple(names[id_] for id_ in row.classes if id_ in names),
        request_id=row.writer.request_id,
        user_id=row.writer.user_id,
        project_id=row.writer.project_id,
    )


def _kind(row: ChangeRow) -> Kind:
    told = row.detail.get("event")
    if told is not None:
        return _EVENT_KINDS.get(told, Kind.PROVIDER)
    # A newer version may write kinds that this one does not know.
    return _KINDS.get(row.kind, Kind.PROVIDER)


def _provider(
    row: ChangeRow, forest: Forest, refs: Mapping[int, ProviderRef]
) -> tuple[Named | None, Named | None]:
    """The provider of a change, and its root."""
    if row.provider_id is None:
        return None, None
    ref = refs.get(row.provider_id)
    if ref is not None and row.provider_uuid in (None, _named(forest, ref).uuid):
        tree = forest.tree_of(ref)
        start = int(forest.blocks[tree.block_number].starts[tree.tree_number])
        root_ref = ProviderRef(tree.block_number, start)
        return _named(forest, ref), _named(forest, root_ref)
    if row.provider_uuid is None:
        # A trigger knows the id alone, and the provider is gone.
        return None, None
    # The provider is gone, and perhaps another has its id; or it has another uuid since.
    gone = Named(row.provider_uuid, row.detail.get("name"))
    root = row.detail.get("root")
    if root is None or root == gone.uuid:
        return gone, None if root is None else gone
    found = forest.find_provider(root)
    return gone, Named(root, None) if found is None else _named(forest, found)


def _named(forest: Forest, ref: ProviderRef) -> Named:
    block = forest.blocks[ref.block_number]
    (name,) = block.names.texts([ref.provider_index])
    return Named(block.uuids[ref.provider_index].decode(), name)
