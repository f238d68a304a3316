"""The tables of a transfer, in an order in which foreign keys allow their rows. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Table

from roost.store import tables


@dataclass(frozen=True, slots=True)
class TransferTable:
    """A table, and the columns that order its rows."""

    table: Table
    order: tuple[str, ...] = ("id",)

    @property
    def name(self) -> str:
        """The name of the table."""
        return str(self.table.name)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of all columns, in the order in which rows have their values."""
        return tuple(str(column.name) for column in self.table.columns)

    def positions(self, kind: type[sa.types.TypeEngine[Any]]) -> tuple[int, ...]:
        """The positions of the columns of this type."""
        return tuple(
            position
            for position, column in enumerate(self.table.columns)
            if isinstance(column.type, kind)
        )


LAYOUT = (
    TransferTable(tables.resource_classes),
    TransferTable(tables.traits),
    TransferTable(tables.placement_aggregates),
    TransferTable(tables.projects),
    TransferTable(tables.users),
    TransferTable(tables.consumer_types),
    TransferTable(tables.consumers),
    TransferTable(tables.resource_providers),
    TransferTable(tables.inventories),
    TransferTable(tables.resource_provider_traits, ("resource_provider_id", "trait_id")),
    TransferTable(tables.resource_provider_aggregates, ("resource_provider_id", "aggregate_id")),
    TransferTable(tables.allocations),
)
# A service inserts these names at its start, in an order of its own.
VOCABULARY = frozenset({tables.resource_classes.name, tables.traits.name})
