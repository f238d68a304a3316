"""Checks of values that no route writes, and that no constraint keeps out of the tables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Column, ColumnElement, Select, Table

from roost.model.capacity import exact_capacity
from roost.store.checks.findings import Level, RowCheck
from roost.store.checks.row_rules import (
    ALLOCATION_KEY,
    EXTERNAL_IDS,
    NAME_PATTERN,
    NAMES,
    NEVER_NULL,
    UUIDS,
    bounds,
    is_number,
)
from roost.store.dialect import Dialect
from roost.store.tables import (
    allocations,
    consumer_types,
    consumers,
    inventories,
    placement_aggregates,
    resource_providers,
    roost_ownership,
)
from roost.store.transfer import LAYOUT

_UUID_DIGITS = "^[{]?[0-9a-fA-F]{32}[}]?$"


def value_checks(dialect: Dialect, *, with_types: bool, with_ownership: bool) -> Iterator[RowCheck]:
    """The checks; without the types of consumers, or the owners, where the schema has none."""
    for part in LAYOUT:
        if part.is_optional and not with_ownership:
            continue
        if with_types or part.table is not consumer_types:
            yield _value_check(part.table, dialect, with_types)
    for table, name in ((consumers, "consumer"), (placement_aggregates, "aggregate")):
        yield RowCheck(
            f"{name} uuids",
            Level.WARNING,
            sa.select(table.c.uuid).where(_is_not_canonical(table.c.uuid, dialect)),
            f"{name}s with a uuid that is not in lower case with dashes",
            "No action is necessary: the service finds a uuid in all spellings.",
        )
    yield RowCheck(
        "repeated allocations",
        Level.FAILURE,
        sa.select(allocations.c.consumer_id).group_by(*ALLOCATION_KEY).having(sa.func.count() > 1),
        "consumers with two allocations of one class of one provider, of which answers show one",
        "Replace the allocations of these consumers with PUT /allocations/{consumer}.",
    )
    if with_ownership:
        yield RowCheck(
            "ownership",
            Level.WARNING,
            _ownership_of_none(),
            "providers that exist no more and have owners, because another service deleted them",
            "No action is necessary: such a row counts for nothing.",
        )
    yield RowCheck(
        "capacity",
        Level.WARNING,
        _over_capacity(),
        "resource providers that are used beyond their capacity, because an inventory shrank or "
        "claims of the reference raced",
        "No action is necessary: they get no further claim until consumers leave.",
    )


def _ownership_of_none() -> sa.Select[Any]:
    owned, providers = roost_ownership, resource_providers
    return (
        sa.select(owned.c.provider_uuid)
        .outerjoin_from(owned, providers, providers.c.id == owned.c.provider_id)
        .where(providers.c.id.is_(None))
    )


def _value_check(table: Table, dialect: Dialect, with_types: bool) -> RowCheck:
    """The check of all values of a table by one query. Its examples name the column and the row."""
    columns = [
        column
        for column in table.columns
        if with_types or column is not consumers.c.consumer_type_id
    ]
    faults = [(_fault(column, dialect), str(column.name)) for column in columns]
    if table is inventories:
        faults.append((_negative_capacity(), "reserved"))
    key = next(iter(table.primary_key.columns))
    named = sa.case(*((fault, name) for fault, name in faults), else_="")
    shown = named + sa.literal(f" where {key.name} is ") + sa.cast(key, sa.String(20))
    return RowCheck(
        f"values of {table.name}",
        Level.FAILURE,
        sa.select(shown).where(sa.or_(*(fault for fault, _ in faults))),
        f"rows of {table.name} with a value that no route accepts",
        "Correct the value of the named column, or replace it by a request to the service.",
    )


def _fault(column: Column[Any], dialect: Dialect) -> ColumnElement[bool]:
    """Whether the value of a column is wrong."""
    faults: list[ColumnElement[bool]] = [sa.false()]
    if column in NEVER_NULL:
        faults.append(column.is_(None))
    if is_number(column):
        smallest, largest = bounds(column)
        faults.append(sa.not_(column.between(smallest, largest)))
    faults += dialect.faults(column)
    if isinstance(column.type, sa.String):
        faults += _text_faults(column, dialect)
    # A fault that is null is none.
    return sa.func.coalesce(sa.or_(*faults), sa.false())


def _text_faults(column: Column[Any], dialect: Dialect) -> Iterator[ColumnElement[bool]]:
    if column in NAMES:
        yield sa.not_(column.regexp_match(NAME_PATTERN))
        yield column.contains("\n")
        yield _differs(column, sa.func.upper(column), dialect)
    if column in EXTERNAL_IDS:
        yield column == ""
    if column in UUIDS:
        yield _is_no_uuid(column)


def _is_no_uuid(uuid: ColumnElement[str]) -> ColumnElement[bool]:
    digits = sa.func.replace(uuid, "-", "", type_=sa.String)
    return sa.or_(sa.not_(digits.regexp_match(_UUID_DIGITS)), uuid.contains("\n"))


def _is_not_canonical(uuid: ColumnElement[str], dialect: Dialect) -> ColumnElement[bool]:
    is_other = sa.or_(
        _differs(uuid, sa.func.lower(uuid), dialect),
        uuid.not_like("________-____-____-____-____________"),
    )
    return sa.and_(is_other, sa.not_(_is_no_uuid(uuid)))


def _differs(
    text: ColumnElement[str], other: ColumnElement[str], dialect: Dialect
) -> ColumnElement[bool]:
    """Whether two texts differ, also by case alone."""
    return dialect.exact(text) != dialect.exact(other)


def _negative_capacity() -> ColumnElement[bool]:
    columns = inventories.c
    # Only the integer part of a capacity counts.
    capacity: ColumnElement[float] = exact_capacity(
        columns.total, columns.reserved, columns.allocation_ratio
    )
    return capacity <= -1


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
        .where(
            used.c.used > exact_capacity(columns.total, columns.reserved, columns.allocation_ratio)
        )
    )
