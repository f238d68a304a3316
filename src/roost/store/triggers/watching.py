"""What triggers watch: the tables of a forest, and the columns that a forest has. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from itertools import product

from sqlalchemy import Table

from roost.store.journal.writing import ChangeKind
from roost.store.tables import (
    allocations,
    inventories,
    resource_classes,
    resource_provider_aggregates,
    resource_provider_traits,
    resource_providers,
    traits,
)

PREFIX = "roost_journal_"
# The version is a part of every name. A change of the SQL needs another version.
_VERSION = "v2"


class TableEvent(StrEnum):
    """What happens to a row."""

    INSERT = "insert"
    UPDATE = "update"
    DELETE = "delete"


@dataclass(frozen=True, slots=True)
class WatchedTable:
    """A table whose changes the journal must have."""

    table: Table
    kind: ChangeKind
    # The column with the id of the provider; `None` for the names of traits and classes.
    provider: str | None
    # An update matters if it changes one of these.
    columns: tuple[str, ...]

    def trigger_name(self, event: TableEvent) -> str:
        """The name of the trigger for an event."""
        return f"{PREFIX}{_VERSION}_{self.table.name}_{event}"

    @property
    def function_name(self) -> str:
        """The name of the function of the triggers, where triggers need one."""
        return f"{PREFIX}{_VERSION}_{self.table.name}"


_STAMPS = ("created_at", "updated_at")


def _watch(table: Table, kind: ChangeKind, provider: str | None) -> WatchedTable:
    columns = (column.name for column in table.columns if column.name not in _STAMPS)
    return WatchedTable(table, kind, provider, tuple(columns))


_PROVIDER_ID = "resource_provider_id"

WATCHED = (
    # A forest has neither names nor generations, and every claim changes a generation.
    WatchedTable(
        resource_providers,
        ChangeKind.PROVIDER,
        "id",
        ("id", "uuid", "root_provider_id", "parent_provider_id"),
    ),
    _watch(inventories, ChangeKind.INVENTORIES, _PROVIDER_ID),
    _watch(allocations, ChangeKind.USAGE, _PROVIDER_ID),
    _watch(resource_provider_traits, ChangeKind.TRAITS, _PROVIDER_ID),
    _watch(resource_provider_aggregates, ChangeKind.AGGREGATES, _PROVIDER_ID),
    _watch(traits, ChangeKind.TRAIT_NAMES, None),
    _watch(resource_classes, ChangeKind.RESOURCE_CLASSES, None),
)


# Each needs a trigger.
WATCHED_EVENTS = tuple(product(WATCHED, TableEvent))


def trigger_names() -> Iterator[tuple[str, str]]:
    """The table and the name of every trigger."""
    for watched, event in WATCHED_EVENTS:
        yield watched.table.name, watched.trigger_name(event)
