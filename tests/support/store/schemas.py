"""Descriptions of whole schemas, and databases as older releases leave them."""

from __future__ import annotations

import re
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from roost.store import tables
from roost.store.database import Database
from roost.store.migrations.histories import PLACEMENT
from roost.store.migrations.runner import upgrade_history


def describe(database: Database) -> dict[str, Any]:
    """All properties of the tables that either service depends on."""
    with database.engine.connect() as connection:
        inspector = sa.inspect(connection)
        return {
            table: {
                "columns": [
                    (column["name"], repr(column["type"]), column["nullable"], column["default"])
                    for column in inspector.get_columns(table)
                ],
                "primary key": inspector.get_pk_constraint(table),
                "unique": _by_name(inspector.get_unique_constraints(table)),
                "indexes": _by_name(inspector.get_indexes(table)),
                "foreign keys": _by_name(inspector.get_foreign_keys(table)),
            }
            for table in sorted(inspector.get_table_names())
        }


def _by_name(things: Any) -> list[str]:
    return sorted(str(sorted(thing.items())) for thing in things)


def drop_everything(database: Database) -> None:
    """Drop all tables."""
    with database.engine.begin() as connection:
        everything = sa.MetaData()
        everything.reflect(connection)
        everything.drop_all(connection)


def epochs(database: Database) -> list[str]:
    """All epochs of the journal. A sound database has one."""
    with database.engine.connect() as connection:
        statement = sa.select(tables.roost_meta.c.value).where(tables.roost_meta.c.name == "epoch")
        return list(connection.scalars(statement))


def recorded(database: Database, table: str) -> list[str]:
    """The revisions in a version table. A sound database has one."""
    with database.engine.connect() as connection:
        return list(connection.scalars(sa.text(f"SELECT version_num FROM {table}")))


def make_older(database: Database, revision: str) -> None:
    """Make the schema of an older release of the reference, with one provider."""
    with database.engine.connect() as connection:
        upgrade_history(connection, PLACEMENT, revision)
        connection.commit()
    database.write_at_once(add_provider, uuid="11111111-1111-1111-1111-111111111111", root=True)


def add_provider(
    connection: Connection, *, uuid: str, root: bool = False, parent: int | None = None
) -> int:
    """Insert a provider as the reference does, without root unless `root`. Returns its id."""
    providers = tables.resource_providers
    values = {"uuid": uuid, "name": uuid, "generation": 7, "parent_provider_id": parent}
    connection.execute(sa.insert(providers).values(values))
    own_id: int = connection.scalars(
        sa.select(providers.c.id).where(providers.c.uuid == uuid)
    ).one()
    if root:
        connection.execute(
            sa.update(providers).where(providers.c.uuid == uuid).values(root_provider_id=own_id)
        )
    return own_id


def add_allocation(connection: Connection, consumer: str) -> None:
    """Insert an allocation of a consumer that has no row in `consumers`."""
    values = {"resource_provider_id": 1, "resource_class_id": 0, "used": 1, "consumer_id": consumer}
    connection.execute(sa.insert(tables.allocations).values(values))


def not_additive(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """What a change of the schema takes from versions that know only the schema before it."""
    found = []
    for table, description in before.items():
        if table not in after:
            found.append(f"table {table} is gone")
            continue
        found += _column_changes(table, description["columns"], after[table]["columns"])
        # A further index does not matter to a statement, unless it is unique and refuses a row.
        indexes = set(after[table]["indexes"]) - set(description["indexes"])
        found += [f"{table} has a unique index more" for one in indexes if _is_unique(one)]
        for part in ("primary key", "unique", "foreign keys"):
            if description[part] != after[table][part]:
                found.append(f"{part} of {table} has changed")
    return found


def _is_unique(index: str) -> bool:
    return re.search(r"'unique', (True|1)\b", index) is not None


def _column_changes(table: str, before: list[Any], after: list[Any]) -> list[str]:
    columns = {name: rest for name, *rest in after}
    found = []
    for name, *rest in before:
        if name not in columns:
            found.append(f"{table}.{name} is gone")
        elif columns[name] != rest:
            found.append(f"{table}.{name} has changed")
    for name in columns.keys() - {name for name, *_ in before}:
        _, nullable, default = columns[name]
        if not nullable and default is None:
            found.append(f"{table}.{name} is required")
    return found
