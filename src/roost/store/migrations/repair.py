"""Repairs rows of old releases that an upgrade of the schema refuses."""

from __future__ import annotations

from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy import Connection, Table

from roost.store.journal.writing import ChangeKind, record_changes
from roost.store.tables import (
    allocations,
    consumers,
    projects,
    resource_providers,
    roost_changes,
    users,
    utc_now,
)
from roost.store.transaction import Transaction


@dataclass(frozen=True, slots=True)
class Repaired:
    """How many rows were repaired."""

    roots: int
    consumers: int


def repair_online_data(connection: Connection, project: str, user: str) -> Repaired:
    """Give every provider its root, and every consumer with allocations a row.

    `project` and `user` are the external ids for consumers without a row. The statements use only
    columns that all revisions have, so they work before and after an upgrade.
    """
    return Repaired(
        roots=_set_missing_roots(connection),
        consumers=_make_missing_consumers(connection, project, user),
    )


def _set_missing_roots(connection: Connection) -> int:
    providers = resource_providers.c
    without_root = sa.select(providers.id, providers.uuid).where(
        providers.root_provider_id.is_(None)
    )
    found = [(row.id, row.uuid) for row in connection.execute(without_root)]
    if not found:
        return 0
    _make_root(connection, providers.parent_provider_id.is_(None))
    _set_root_of_parent(connection)
    # The rest has no root above it: a parent is missing, or is its own descendant.
    _make_root(connection, sa.true())
    if sa.inspect(connection).has_table(roost_changes.name):
        journal = Transaction(connection)
        record_changes(journal, ChangeKind.PROVIDER, found)
        journal.finish()
    return len(found)


def _make_root(connection: Connection, condition: sa.ColumnElement[bool]) -> None:
    connection.execute(
        sa.update(resource_providers)
        .where(resource_providers.c.root_provider_id.is_(None), condition)
        .values(root_provider_id=resource_providers.c.id, updated_at=utc_now())
    )


def _set_root_of_parent(connection: Connection) -> None:
    """Give providers the root of their parent, level by level."""
    providers, parents = resource_providers.c, resource_providers.alias().c
    next_level = sa.select(providers.id, parents.root_provider_id).where(
        providers.root_provider_id.is_(None),
        parents.id == providers.parent_provider_id,
        parents.root_provider_id.is_not(None),
    )
    set_root = (
        sa.update(resource_providers)
        .where(providers.id == sa.bindparam("provider"))
        .values(root_provider_id=sa.bindparam("root"), updated_at=utc_now())
    )
    # By one statement for each row: the databases have no common statement for all rows.
    while rows := connection.execute(next_level).all():
        connection.execute(set_root, [{"provider": row[0], "root": row[1]} for row in rows])


def _make_missing_consumers(connection: Connection, project: str, user: str) -> int:
    missing = (
        sa.select(allocations.c.consumer_id)
        .distinct()
        .join_from(
            allocations,
            consumers,
            consumers.c.uuid == allocations.c.consumer_id,
            isouter=True,
        )
        .where(consumers.c.id.is_(None))
    )
    found = connection.scalars(missing).all()
    if not found:
        return 0
    project_id = _external_row(connection, projects, project)
    user_id = _external_row(connection, users, user)
    now = utc_now()
    connection.execute(
        sa.insert(consumers),
        [
            {"uuid": uuid, "project_id": project_id, "user_id": user_id, "created_at": now}
            for uuid in found
        ],
    )
    return len(found)


def _external_row(connection: Connection, table: Table, external_id: str) -> int:
    """The id of a project or user, which is inserted if it is missing."""
    of_external_id = sa.select(table.c.id).where(table.c.external_id == external_id)
    found: int | None = connection.scalar(of_external_id)
    if found is None:
        connection.execute(
            sa.insert(table), [{"external_id": external_id, "created_at": utc_now()}]
        )
        found = connection.scalars(of_external_id).one()
    return found
