"""Which provider has which traits."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from sqlalchemy import Connection, bindparam, delete, func, insert, select

from roost.model.names import Name
from roost.model.providers import Provider
from roost.store.clock import utc_now
from roost.store.journal import ChangeKind, record_changes
from roost.store.tables import resource_provider_traits, traits

_TRAITS = (
    select(traits.c.id, traits.c.name, func.coalesce(traits.c.updated_at, traits.c.created_at))
    .select_from(
        resource_provider_traits.join(traits, traits.c.id == resource_provider_traits.c.trait_id)
    )
    .where(resource_provider_traits.c.resource_provider_id == bindparam("provider_id"))
    .order_by(traits.c.name)
)


def list_provider_traits(connection: Connection, provider_id: int) -> list[Name]:
    """The provider's traits, by name."""
    return [Name(*row) for row in connection.execute(_TRAITS, {"provider_id": provider_id})]


def change_provider_traits(
    connection: Connection, provider: Provider, add: Iterable[int], remove: Collection[int]
) -> None:
    """Give a locked provider traits and take others away, by their ids."""
    now = utc_now()
    if remove:
        connection.execute(
            delete(resource_provider_traits).where(
                resource_provider_traits.c.resource_provider_id == provider.id,
                resource_provider_traits.c.trait_id.in_(list(remove)),
            )
        )
    new = [{"created_at": now, "trait_id": id_, "resource_provider_id": provider.id} for id_ in add]
    if new:
        connection.execute(insert(resource_provider_traits), new)
    record_changes(connection, ChangeKind.TRAITS, [(provider.id, provider.uuid)])
