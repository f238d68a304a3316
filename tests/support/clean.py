"""Emptying a database between tests."""

from __future__ import annotations

import os_resource_classes
import os_traits
from sqlalchemy import Connection, delete, exists, func, select, update

from roost.store import tables
from roost.store.vocabulary import FIRST_CUSTOM_CLASS_ID, sync_standard_names

_IS_CUSTOM_TRAIT = tables.traits.c.name.startswith("CUSTOM")
_IS_CUSTOM_CLASS = tables.resource_classes.c.id >= FIRST_CUSTOM_CLASS_ID

# Which rows go, in an order that foreign keys allow.
_GOING = (
    (tables.allocations, None),
    (tables.consumers, None),
    (tables.consumer_types, None),
    (tables.projects, None),
    (tables.users, None),
    (tables.inventories, None),
    (tables.resource_provider_traits, None),
    (tables.resource_provider_aggregates, None),
    (tables.placement_aggregates, None),
    (tables.resource_providers, None),
    (tables.roost_changes, None),
    (tables.traits, _IS_CUSTOM_TRAIT),
    (tables.resource_classes, _IS_CUSTOM_CLASS),
)
_DELETIONS = [
    delete(table) if condition is None else delete(table).where(condition)
    for table, condition in _GOING
]
# One question instead of a deletion for each table: most tests leave most of them empty.
_ARE_THERE = select(
    *(
        exists().select_from(table) if condition is None else exists().where(condition)
        for table, condition in _GOING
    )
)
_SEPARATE_PROVIDERS = update(tables.resource_providers).values(
    root_provider_id=None, parent_provider_id=None
)
_STANDARD_NAMES = select(
    select(func.count()).select_from(tables.traits).where(~_IS_CUSTOM_TRAIT).scalar_subquery(),
    select(func.count())
    .select_from(tables.resource_classes)
    .where(~_IS_CUSTOM_CLASS)
    .scalar_subquery(),
)
_STANDARD_NAME_COUNTS = (len(os_traits.get_traits()), len(os_resource_classes.STANDARDS))


def clean_tables(connection: Connection) -> None:
    """Remove everything but the schema and the standard names."""
    there = connection.execute(_ARE_THERE).one()
    for (table, _), deletion, is_there in zip(_GOING, _DELETIONS, there, strict=True):
        if is_there:
            if table is tables.resource_providers:
                connection.execute(_SEPARATE_PROVIDERS)
            connection.execute(deletion)


def start_anew(connection: Connection) -> None:
    """Leave the schema and the standard names, whatever a test did to them, and nothing else."""
    clean_tables(connection)
    if tuple(connection.execute(_STANDARD_NAMES).one()) != _STANDARD_NAME_COUNTS:
        sync_standard_names(connection)
