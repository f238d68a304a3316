"""The traits of providers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from sqlalchemy import Connection, bindparam, func, select

from roost.model.identifiers import Name
from roost.model.providers import Provider
from roost.store.journal.writing import ChangeKind, record_changes
from roost.store.rows.providers import VISIBLE_PROVIDERS
from roost.store.statements import DeletePairs, InsertRows, Query
from roost.store.tables import (
    resource_provider_traits,
    resource_providers,
    stored_time,
    traits,
)
from roost.store.transaction import Transaction

# A provider without traits has one row, whose trait is null.
_TRAITS = Query(
    select(
        resource_providers.c.generation,
        traits.c.id,
        traits.c.name,
        func.coalesce(traits.c.updated_at, traits.c.created_at),
    )
    .select_from(
        VISIBLE_PROVIDERS.outerjoin(
            resource_provider_traits,
            resource_provider_traits.c.resource_provider_id == resource_providers.c.id,
        ).outerjoin(traits, traits.c.id == resource_provider_traits.c.trait_id)
    )
    .where(resource_providers.c.uuid == bindparam("uuid"))
    .order_by(traits.c.name)
)
_ADD = InsertRows(resource_provider_traits)
_REMOVE = DeletePairs(
    resource_provider_traits.c.resource_provider_id, resource_provider_traits.c.trait_id
)

# Provider's id and trait's id.
TraitKey: TypeAlias = tuple[int, int]


def provider_traits(connection: Connection, uuid: str) -> tuple[int, list[Name]] | None:
    """The provider's generation, and its traits by name.

    One statement reads both, so that both are of one moment. `None` if there is no such provider.
    """
    rows = _TRAITS.fetch(connection, {"uuid": uuid})
    if not rows:
        return None
    found = [
        Name(id_, name, stored_time(modified_at))
        for _, id_, name, modified_at in rows
        if id_ is not None
    ]
    return rows[0][0], found


def change_provider_traits(
    transaction: Transaction, provider: Provider, add: Iterable[int], remove: Iterable[int]
) -> None:
    """Add traits to a locked provider and remove traits from it, by their ids."""
    change_traits(
        transaction,
        [(provider.id, provider.uuid)],
        add=[(provider.id, id_) for id_ in add],
        remove=[(provider.id, id_) for id_ in remove],
    )


def change_traits(
    transaction: Transaction,
    providers: Iterable[tuple[int, str]],
    *,
    add: Iterable[TraitKey],
    remove: Iterable[TraitKey],
) -> None:
    """Add traits to locked providers, which are given as (id, uuid), and remove traits."""
    transaction.write(_REMOVE.bound(transaction, remove))
    new = [
        {"created_at": transaction.now, "trait_id": trait_id, "resource_provider_id": provider_id}
        for provider_id, trait_id in add
    ]
    transaction.write(_ADD.bound(transaction, new))
    record_changes(transaction, ChangeKind.TRAITS, providers)
