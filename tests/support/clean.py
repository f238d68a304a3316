"""Emptying a database between tests."""

from __future__ import annotations

from sqlalchemy import Connection, delete, update

from roost.store import tables
from roost.store.vocabulary import FIRST_CUSTOM_CLASS_ID


def clean_tables(connection: Connection) -> None:
    """Remove everything but the schema and the standard names."""
    connection.execute(
        update(tables.resource_providers).values(root_provider_id=None, parent_provider_id=None)
    )
    for table in (
        tables.allocations,
        tables.consumers,
        tables.consumer_types,
        tables.projects,
        tables.users,
        tables.inventories,
        tables.resource_provider_traits,
        tables.resource_provider_aggregates,
        tables.placement_aggregates,
        tables.resource_providers,
        tables.roost_changes,
    ):
        connection.execute(delete(table))
    connection.execute(delete(tables.traits).where(tables.traits.c.name.startswith("CUSTOM")))
    connection.execute(
        delete(tables.resource_classes).where(tables.resource_classes.c.id >= FIRST_CUSTOM_CLASS_ID)
    )
