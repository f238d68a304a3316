"""Finding providers by what they are, have and belong to."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    bindparam,
    exists,
    false,
    func,
    select,
)

from roost.model.inventory import INTEGER_MAX
from roost.model.providers import Provider
from roost.store.providers import PROVIDERS, provider_from_row
from roost.store.tables import (
    allocations,
    inventories,
    resource_provider_aggregates,
    resource_provider_traits,
    resource_providers,
)

Condition = ColumnElement[bool]


class Extent(NamedTuple):
    """The first and the last id of a list, and when a member of it was last written."""

    first_id: int
    last_id: int
    modified_at: datetime | None


def _among(column: Column[int], ids: Collection[int]) -> Condition:
    """The column is one of the ids, of which a query may name more than parameters are allowed."""
    return column.in_(
        bindparam("ids", list(ids), unique=True, expanding=True, literal_execute=True)
    )


def has_name(name: str) -> Condition:
    """The provider is called exactly so."""
    return resource_providers.c.name == name


def has_uuid(uuid: str) -> Condition:
    """The provider has exactly this uuid."""
    return resource_providers.c.uuid == uuid


def in_tree(root_id: int) -> Condition:
    """The provider belongs to the tree of this root."""
    return resource_providers.c.root_provider_id == root_id


def has_any_trait(trait_ids: Collection[int]) -> Condition:
    """The provider itself has at least one of the traits."""
    association = resource_provider_traits
    return exists().where(
        association.c.resource_provider_id == resource_providers.c.id,
        _among(association.c.trait_id, trait_ids),
    )


def has_all_traits(trait_ids: Collection[int]) -> Condition:
    """The provider itself has every one of the traits."""
    association = resource_provider_traits
    # One condition however many there are: databases limit how deep conditions may nest.
    found = (
        select(func.count())
        .where(
            association.c.resource_provider_id == resource_providers.c.id,
            _among(association.c.trait_id, trait_ids),
        )
        .scalar_subquery()
    )
    return found == len(set(trait_ids))


def in_any_aggregate(aggregate_ids: Collection[int]) -> Condition:
    """The provider itself is a member of at least one of the aggregates."""
    association = resource_provider_aggregates
    return exists().where(
        association.c.resource_provider_id == resource_providers.c.id,
        _among(association.c.aggregate_id, aggregate_ids),
    )


def has_room(class_id: int, amount: int) -> Condition:
    """The provider itself can give this amount of the class, in one piece."""
    if amount > INTEGER_MAX:
        # No inventory can, and PostgreSQL would not take the number.
        return false()
    used: Any = (
        select(func.coalesce(func.sum(allocations.c.used), 0))
        .where(
            allocations.c.resource_provider_id == inventories.c.resource_provider_id,
            allocations.c.resource_class_id == inventories.c.resource_class_id,
        )
        .correlate(inventories)
        .scalar_subquery()
    )
    capacity = (inventories.c.total - inventories.c.reserved) * inventories.c.allocation_ratio
    return exists().where(
        inventories.c.resource_provider_id == resource_providers.c.id,
        inventories.c.resource_class_id == class_id,
        inventories.c.min_unit <= amount,
        inventories.c.max_unit >= amount,
        amount % inventories.c.step_size == 0,
        used + amount <= capacity,
    )


def find_providers(
    connection: Connection, conditions: Iterable[Condition], at_most: int
) -> list[Provider]:
    """The first providers for which every condition holds, by internal id."""
    query = PROVIDERS.where(*conditions).order_by(resource_providers.c.id).limit(at_most)
    return [provider_from_row(row) for row in connection.execute(query)]


def find_in_range(
    connection: Connection, conditions: Iterable[Condition], after_id: int, up_to_id: int
) -> list[Provider]:
    """All providers of a range of ids for which every condition holds, by internal id."""
    id_ = resource_providers.c.id
    query = PROVIDERS.where(id_ > after_id, id_ <= up_to_id, *conditions).order_by(id_)
    return [provider_from_row(row) for row in connection.execute(query)]


def find_extent(connection: Connection, conditions: Iterable[Condition]) -> Extent:
    """Where the providers lie for which every condition holds."""
    columns = resource_providers.c
    moments = func.coalesce(columns.updated_at, columns.created_at)
    query = select(
        func.coalesce(func.min(columns.id), 0),
        func.coalesce(func.max(columns.id), 0),
        func.max(moments),
    ).where(*conditions, columns.root_provider_id.is_not(None))
    return Extent(*connection.execute(query).one())


def any_provider(connection: Connection, conditions: Iterable[Condition]) -> bool:
    """Whether there is a provider for which every condition holds."""
    query = PROVIDERS.where(*conditions).limit(1)
    return connection.execute(query).first() is not None
