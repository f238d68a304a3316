"""The deletion of all rows that tests leave in a database."""

from __future__ import annotations

from sqlalchemy import Connection, delete, exists, select, true, update

from roost.store import tables
from roost.store.rows.vocabulary import FIRST_CUSTOM_CLASS_ID

# The rows that tests make, in an order of deletion that foreign keys allow.
PASSING_ROWS = (
    (tables.allocations, true()),
    (tables.consumers, true()),
    (tables.consumer_types, true()),
    (tables.projects, true()),
    (tables.users, true()),
    (tables.inventories, true()),
    (tables.resource_provider_traits, true()),
    (tables.resource_provider_aggregates, true()),
    (tables.placement_aggregates, true()),
    (tables.resource_providers, true()),
    (tables.roost_changes, true()),
    (tables.roost_ownership, true()),
    (tables.traits, tables.traits.c.name.startswith("CUSTOM")),
    (tables.resource_classes, tables.resource_classes.c.id >= FIRST_CUSTOM_CLASS_ID),
)
# One query instead of a deletion for each table: most tests leave most tables empty.
_ARE_THERE = select(*(exists().select_from(table).where(which) for table, which in PASSING_ROWS))
_DELETIONS = [delete(table).where(which) for table, which in PASSING_ROWS]
_SEPARATE_PROVIDERS = update(tables.resource_providers).values(
    root_provider_id=None, parent_provider_id=None
)


def clean_tables(connection: Connection) -> None:
    """Delete all rows but the standard names and the metadata."""
    there = connection.execute(_ARE_THERE).one()
    for deletion, is_there in zip(_DELETIONS, there, strict=True):
        if is_there:
            if deletion.table is tables.resource_providers:
                connection.execute(_SEPARATE_PROVIDERS)
            connection.execute(deletion)
