"""The traits of providers."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import Connection, bindparam, delete, func, select

from roost.model.identifiers import Name
from roost.model.providers import Provider
from roost.store.journal.writing import ChangeKind, record_changes
from roost.store.statements import InsertRows, Statement
from roost.store.tables import resource_provider_traits, traits, utc_now

_TRAITS = (
    select(traits.c.id, traits.c.name, func.coalesce(traits.c.updated_at, traits.c.created_at))
    .select_from(
        resource_provider_traits.join(traits, traits.c.id == resource_provider_traits.c.trait_id)
    )
    .where(resource_provider_traits.c.resource_provider_id == bindparam("provider_id"))
    .order_by(traits.c.name)
)
_ADD = InsertRows(resource_provider_traits)
_REMOVE = Statement(
    lambda ids: delete(resource_provider_traits).where(
        resource_provider_traits.c.resource_provider_id == bindparam("provider_id"),
        resource_provider_traits.c.trait_id.in_(ids),
    ),
    lists=["ids"],
)


def list_provider_traits(connection: Connection, provider_id: int) -> list[Name]:
    """The provider's traits, by name."""
    return [Name(*row) for row in connection.execute(_TRAITS, {"provider_id": provider_id})]


def change_provider_traits(
    connection: Connection, provider: Provider, add: Iterable[int], remove: Iterable[int]
) -> None:
    """Add traits to a locked provider and remove traits from it, by their ids."""
    now = utc_now()
    _REMOVE.apply(connection, remove, {"provider_id": provider.id})
    new = [{"created_at": now, "trait_id": id_, "resource_provider_id": provider.id} for id_ in add]
    _ADD.run(connection, new)
    record_changes(connection, ChangeKind.TRAITS, [(provider.id, provider.uuid)])
