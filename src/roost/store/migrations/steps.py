"""The steps of revisions: each looks first, so that each can be repeated.

MySQL commits every change of a table at once. A process that is killed in a revision leaves a part
of it behind, and the next process begins the same revision again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from roost.store.connections.errors import DatabaseUnusable

if TYPE_CHECKING:
    from alembic.operations import Operations


def stamps() -> tuple[sa.Column[object], sa.Column[object]]:
    """The two columns that every table of the reference begins with."""
    return sa.Column("created_at", sa.DateTime), sa.Column("updated_at", sa.DateTime)


def key() -> sa.Column[int]:
    """The column `id` of most tables."""
    return sa.Column("id", sa.Integer, primary_key=True, nullable=False)


@dataclass(frozen=True, slots=True)
class Revision:
    """What brings the tables from the revision before it to its own.

    `upgrade` may run again after it failed halfway. Its docstring tells an operator what it does.
    """

    id: str
    upgrade: Callable[[Steps], None]


class Steps:
    """What a revision may do to the tables of a database."""

    def __init__(self, operations: Operations) -> None:
        self.operations = operations
        self.connection = operations.get_bind()

    def create_table(self, name: str, *parts: sa.schema.SchemaItem, **options: Any) -> None:
        """Create a table unless it exists. `DatabaseUnusable` if it lacks one of the columns."""
        self.operations.create_table(name, *parts, if_not_exists=True, **options)
        wanted = {part.name for part in parts if isinstance(part, sa.Column)}
        missing = wanted - self.column_names(name)
        if missing:
            raise DatabaseUnusable(
                f"The database has a table {name!r} that belongs to something else: it has no "
                f"column {', '.join(sorted(missing))}. Use an empty database, or one that "
                "Placement made."
            )

    def create_index(self, name: str, table: str, *columns: str) -> None:
        """Create an index unless it exists. MySQL has no IF NOT EXISTS for indexes."""
        if not self.has_index(table, name):
            self.operations.create_index(name, table, list(columns))

    def drop_index(self, name: str, table: str) -> None:
        """Drop an index if it exists."""
        if self.has_index(table, name):
            self.operations.drop_index(name, table_name=table)

    def column_names(self, table: str) -> set[str]:
        """The columns that a table has now."""
        return {column["name"] for column in sa.inspect(self.connection).get_columns(table)}

    def has_index(self, table: str, name: str) -> bool:
        """Whether a table has an index of this name now."""
        indexes = sa.inspect(self.connection).get_indexes(table)
        return any(index["name"] == name for index in indexes)

    def has_foreign_key(self, table: str, name: str) -> bool:
        """Whether a table has a foreign key of this name now."""
        keys = sa.inspect(self.connection).get_foreign_keys(table)
        return any(key["name"] == name for key in keys)
