"""Whole trees: all rows of the providers of one tree, read under the locks of a write."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import Connection, bindparam, select

from roost.model.providers import Provider
from roost.store.connections.errors import Retry
from roost.store.rows.inventories import AMOUNT_COLUMNS, InventoryKey, allocation_queries
from roost.store.rows.ownership import OwnershipRow, ownership_queries
from roost.store.rows.providers import MemberRow, id_locks
from roost.store.statements import Query, Statement
from roost.store.tables import (
    inventories,
    placement_aggregates,
    resource_classes,
    resource_provider_aggregates,
    resource_provider_traits,
    resource_providers,
    traits,
)
from roost.store.transaction import Transaction

_MEMBERS = Query(
    select(
        resource_providers.c.id,
        resource_providers.c.uuid,
        resource_providers.c.name,
        resource_providers.c.generation,
        resource_providers.c.parent_provider_id,
    )
    .where(resource_providers.c.root_provider_id == bindparam("root_id"))
    .order_by(resource_providers.c.id)
)
_INVENTORIES = Statement.among(
    inventories.c.resource_provider_id,
    select(
        inventories.c.resource_provider_id,
        inventories.c.resource_class_id,
        inventories.c.id,
        resource_classes.c.name,
        *AMOUNT_COLUMNS,
    ).join_from(
        inventories, resource_classes, resource_classes.c.id == inventories.c.resource_class_id
    ),
)
_TRAITS = Statement.among(
    resource_provider_traits.c.resource_provider_id,
    select(resource_provider_traits.c.resource_provider_id, traits.c.id, traits.c.name).join_from(
        resource_provider_traits, traits, traits.c.id == resource_provider_traits.c.trait_id
    ),
)
_AGGREGATES = Statement.among(
    resource_provider_aggregates.c.resource_provider_id,
    select(
        resource_provider_aggregates.c.resource_provider_id,
        placement_aggregates.c.id,
        placement_aggregates.c.uuid,
    ).join_from(
        resource_provider_aggregates,
        placement_aggregates,
        placement_aggregates.c.id == resource_provider_aggregates.c.aggregate_id,
    ),
)


class InventoryRow(NamedTuple):
    """An inventory, with the name of its class and all its amounts."""

    provider_id: int
    class_id: int
    id: int
    class_name: str
    total: int
    reserved: int
    min_unit: int
    max_unit: int
    step_size: int
    allocation_ratio: float


class AssociationRow(NamedTuple):
    """A trait or an aggregate of a provider: its id, and its name or uuid."""

    provider_id: int
    id: int
    name: str


class TreeRows(NamedTuple):
    """All rows of a tree, whose providers are locked."""

    members: Sequence[MemberRow]
    inventories: Sequence[InventoryRow]
    traits: Sequence[AssociationRow]
    aggregates: Sequence[AssociationRow]
    # The provider and the class of inventories that have allocations.
    allocated: frozenset[InventoryKey]
    # Those that no longer count are included.
    ownership: Sequence[OwnershipRow]


def tree_members(connection: Connection, root_id: int) -> list[MemberRow]:
    """The providers of a tree, by id."""
    return [MemberRow._make(row) for row in _MEMBERS.fetch(connection, {"root_id": root_id})]


def lock_tree(transaction: Transaction, provider: Provider) -> TreeRows:
    """Lock all providers of a provider's tree, and read all their rows.

    The lock of the root keeps the tree as it is. What came to the tree before that is locked then.
    `Retry` if the provider has left the tree meanwhile.
    """
    root_id = provider.root_id
    ids = [member.id for member in tree_members(transaction.connection, root_id)]
    rows = _lock_and_read(transaction, root_id, ids, ids)
    present = [member.id for member in rows.members]
    if provider.id not in present:
        raise Retry
    if present == ids:
        return rows
    came = sorted(set(present) - set(ids))
    return _lock_and_read(transaction, root_id, came, present)


def _lock_and_read(
    transaction: Transaction, root_id: int, locked: Sequence[int], ids: Sequence[int]
) -> TreeRows:
    """Lock some providers, then read the members of the tree, and all rows of these ids."""
    _, members, present, associated, joined, allocated, owned = transaction.lock(
        id_locks(transaction, locked),
        [_MEMBERS.bound(transaction, {"root_id": root_id})],
        _INVENTORIES.bound_chunks(transaction, ids),
        _TRAITS.bound_chunks(transaction, ids),
        _AGGREGATES.bound_chunks(transaction, ids),
        allocation_queries(transaction, ids),
        ownership_queries(transaction, ids),
    )
    return TreeRows(
        [MemberRow._make(row) for row in members],
        [InventoryRow._make(row) for row in present],
        [AssociationRow._make(row) for row in associated],
        [AssociationRow._make(row) for row in joined],
        frozenset((provider_id, class_id) for provider_id, class_id in allocated),
        [OwnershipRow._make(row) for row in owned],
    )
