"""Checks of references between rows and of amounts, which no constraint guarantees."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import sqlalchemy as sa
from sqlalchemy import ColumnElement, Select, Table

from roost.store.findings import Level
from roost.store.row_checks import RowCheck
from roost.store.tables import (
    allocations,
    consumer_types,
    consumers,
    inventories,
    placement_aggregates,
    resource_provider_aggregates,
    resource_provider_traits,
    resource_providers,
    traits,
)

_DELETE = "Delete these rows; no answer shows them."


def reference_checks(*, with_types: bool) -> Iterator[RowCheck]:
    """The checks; without the types of consumers where the schema has none."""
    of_provider = (inventories, resource_provider_traits, resource_provider_aggregates, allocations)
    for table in of_provider:
        owner = table.c.resource_provider_id
        yield RowCheck(
            f"{table.name} of providers",
            Level.FAILURE,
            _dangling(owner, resource_providers),
            f"ids of resource providers that {table.name} has but that do not exist",
            _DELETE,
        )
    yield RowCheck(
        "traits of providers",
        Level.FAILURE,
        _dangling(resource_provider_traits.c.trait_id, traits),
        "ids of traits that providers have but that do not exist",
        _DELETE,
    )
    yield RowCheck(
        "aggregates of providers",
        Level.FAILURE,
        _dangling(resource_provider_aggregates.c.aggregate_id, placement_aggregates),
        "ids of aggregates that providers have but that do not exist",
        _DELETE,
    )
    if with_types:
        yield RowCheck(
            "consumer types",
            Level.FAILURE,
            _dangling(consumers.c.consumer_type_id, consumer_types),
            "ids of consumer types that consumers have but that do not exist",
            "Set consumer_type_id of these consumers to null.",
        )
    yield from _value_checks()


def _value_checks() -> Iterator[RowCheck]:
    providers = resource_providers.c
    yield RowCheck(
        "provider values",
        Level.FAILURE,
        sa.select(providers.uuid).where(
            sa.or_(providers.generation.is_(None), providers.name.is_(None))
        ),
        "resource providers without generation or name",
        "Set generation to 0 and name to the uuid.",
    )
    key = (
        allocations.c.resource_provider_id,
        allocations.c.resource_class_id,
        allocations.c.consumer_id,
    )
    yield RowCheck(
        "repeated allocations",
        Level.FAILURE,
        sa.select(allocations.c.consumer_id).group_by(*key).having(sa.func.count() > 1),
        "consumers with two allocations of one class of one provider, of which answers show one",
        "Replace the allocations of these consumers with PUT /allocations/{consumer}.",
    )
    yield RowCheck(
        "capacity",
        Level.WARNING,
        _over_capacity(),
        "resource providers that are used beyond their capacity, because an inventory shrank or "
        "claims of the reference raced",
        "No action is necessary: they get no further claim until consumers leave.",
    )


def _dangling(reference: ColumnElement[int], table: Table) -> Select[Any]:
    return (
        sa.select(reference)
        .distinct()
        .outerjoin_from(reference.table, table, table.c.id == reference)
        .where(table.c.id.is_(None), reference.is_not(None))
    )


def _over_capacity() -> Select[Any]:
    used = (
        sa.select(
            allocations.c.resource_provider_id,
            allocations.c.resource_class_id,
            sa.func.sum(allocations.c.used).label("used"),
        )
        .group_by(allocations.c.resource_provider_id, allocations.c.resource_class_id)
        .subquery()
    )
    columns = inventories.c
    capacity = (columns.total - columns.reserved) * columns.allocation_ratio
    return (
        sa.select(resource_providers.c.uuid)
        .distinct()
        .join_from(
            used,
            inventories,
            sa.and_(
                columns.resource_provider_id == used.c.resource_provider_id,
                columns.resource_class_id == used.c.resource_class_id,
            ),
        )
        .join(resource_providers, resource_providers.c.id == columns.resource_provider_id)
        # The rule cuts fractions off, so less than one unit beyond is no excess.
        .where(used.c.used > capacity)
    )
