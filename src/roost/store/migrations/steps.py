"""What revisions are made of: steps that look first, so that each can be repeated.

MySQL commits every change of a table at once. A process that is killed in a revision leaves part
of it behind, and the next one begins the same revision anew.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from roost.store.errors import DatabaseUnusable


def stamps() -> tuple[sa.Column[object], sa.Column[object]]:
    """The two columns that every table of the reference begins with."""
    return sa.Column("created_at", sa.DateTime), sa.Column("updated_at", sa.DateTime)


def key() -> sa.Column[int]:
    """The column `id` of most tables."""
    return sa.Column("id", sa.Integer, primary_key=True, nullable=False)


def create_table(
    name: str, *parts: sa.schema.SchemaItem, sqlite_autoincrement: bool = False
) -> None:
    """Create a table unless it is there; one that lacks our columns is somebody else's."""
    op.create_table(name, *parts, if_not_exists=True, sqlite_autoincrement=sqlite_autoincrement)
    wanted = {part.name for part in parts if isinstance(part, sa.Column)}
    missing = wanted - column_names(name)
    if missing:
        raise DatabaseUnusable(
            f"The database has a table {name!r} that belongs to something else: it has no column "
            f"{', '.join(sorted(missing))}. Use an empty database, or one that Placement made."
        )


def create_index(name: str, table: str, *columns: str) -> None:
    """Create an index unless it is there. (MySQL knows no IF NOT EXISTS for indexes.)"""
    if not has_index(table, name):
        op.create_index(name, table, list(columns))


def drop_index(name: str, table: str) -> None:
    """Drop an index if it is there."""
    if has_index(table, name):
        op.drop_index(name, table_name=table)


def column_names(table: str) -> set[str]:
    """The columns that a table has now."""
    return {column["name"] for column in sa.inspect(op.get_bind()).get_columns(table)}


def has_index(table: str, name: str) -> bool:
    """Whether a table has an index of this name now."""
    indexes = sa.inspect(op.get_bind()).get_indexes(table)
    return any(index["name"] == name for index in indexes)


def has_foreign_key(table: str, name: str) -> bool:
    """Whether a table has a foreign key of this name now."""
    keys = sa.inspect(op.get_bind()).get_foreign_keys(table)
    return any(key["name"] == name for key in keys)
