"""Triggers that let the writes of other programs reach the journal of Roost.

They watch the tables of a forest, and the columns that a forest has. Each database has its own SQL.
A trigger writes rows without usages, so a reader reads the provider again. Connections of Roost
write their own rows to the journal. Triggers leave these connections out where the database can
tell connections apart.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from itertools import product

import sqlalchemy as sa
from sqlalchemy import Connection, Table
from sqlalchemy.exc import DBAPIError

from roost.store.connections.driver_errors import reason, shown_url
from roost.store.connections.errors import SYNC_COMMAND, DatabaseUnusable
from roost.store.database import Database
from roost.store.dialect import dialect_of
from roost.store.journal.writing import ChangeKind
from roost.store.meta import has_triggers, read_epoch, read_mark, renew_epoch
from roost.store.tables import (
    allocations,
    inventories,
    resource_classes,
    resource_provider_aggregates,
    resource_provider_traits,
    resource_providers,
    roost_changes,
    roost_meta,
    traits,
)
from roost.store.transaction import Commit

INSTALL_COMMAND = "roost db triggers install"
REMOVE_COMMAND = "roost db triggers remove"
BROKEN = f"The triggers have lost their table {roost_changes.name}, so every write fails"
PREFIX = "roost_journal_"
# The version is a part of every name. A change of the SQL needs another version.
_VERSION = "v2"

_STAMPS = ("created_at", "updated_at")

_PROVIDER_ID = "resource_provider_id"


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


def _watch(table: Table, kind: ChangeKind, provider: str | None) -> WatchedTable:
    columns = (column.name for column in table.columns if column.name not in _STAMPS)
    return WatchedTable(table, kind, provider, tuple(columns))


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


@dataclass(frozen=True, slots=True)
class TriggerStatus:
    """Which triggers a database has, as pairs of table and name."""

    found: frozenset[tuple[str, str]]
    wanted: frozenset[tuple[str, str]]
    # Whether readers know of the triggers.
    announced: bool
    # Whether the table exists that triggers write to.
    has_journal: bool = True

    @property
    def missing(self) -> list[str]:
        """The names of triggers that this version needs and the database lacks."""
        return sorted(name for _, name in self.wanted - self.found)

    @property
    def outdated(self) -> list[str]:
        """The names of triggers of another version of Roost."""
        return sorted(name for _, name in self.found - self.wanted)

    @property
    def is_absent(self) -> bool:
        """Whether there is no trace of triggers."""
        return not self.found and not self.announced

    @property
    def is_complete(self) -> bool:
        """Whether every write of another program reaches the journal."""
        return self.found == self.wanted and self.announced and self.has_journal

    @property
    def is_broken(self) -> bool:
        """Whether triggers write to a table that does not exist, so that every write fails."""
        return bool(self.found) and not self.has_journal


def trigger_status(connection: Connection) -> TriggerStatus:
    """Which triggers a database has. It may be a database without the tables of Roost."""
    rows = connection.execute(sa.text(dialect_of(connection).installed_triggers)).all()
    inspector = sa.inspect(connection)
    known = inspector.has_table(roost_meta.name)
    return TriggerStatus(
        found=frozenset((str(table), str(name)) for table, name in rows),
        wanted=frozenset(trigger_names()),
        announced=known and has_triggers(read_epoch(connection) or ""),
        has_journal=inspector.has_table(roost_changes.name),
    )


def installing(connection: Connection) -> list[str]:
    """The statements that install the triggers, in their order."""
    # Triggers of this version go first as well: SQL of the same name may be an earlier draft.
    return [*removing(connection), *dialect_of(connection).trigger_creations(connection)]


def removing(connection: Connection) -> list[str]:
    """The statements that remove all triggers, in their order."""
    found = sorted(trigger_status(connection).found)
    return list(dialect_of(connection).trigger_removals(connection, found))


def install_triggers(database: Database) -> None:
    """Install the triggers. All readers then read all tables again.

    Each trigger waits for transactions that change its table. The new epoch comes last, so a
    reader that sees it finds whatever no trigger has recorded.
    """
    database.read(_require_journal)
    with _changing(database) as connection:
        for statement in installing(connection):
            connection.exec_driver_sql(statement)
        renew_epoch(connection, with_triggers=True)


def remove_triggers(database: Database) -> None:
    """Remove the triggers. All readers then read all tables again."""
    with _changing(database) as connection:
        for statement in removing(connection):
            connection.exec_driver_sql(statement)
        if sa.inspect(connection).has_table(roost_meta.name):
            renew_epoch(connection, with_triggers=False)


def _require_journal(connection: Connection) -> None:
    status = trigger_status(connection)
    if status.is_broken:
        raise DatabaseUnusable(f"{BROKEN}. First run: {REMOVE_COMMAND}")
    if read_mark(connection) is not None:
        raise DatabaseUnusable(
            "An import into the database has not finished. Finish it with the same `roost db "
            f"import` command, then run: {INSTALL_COMMAND}"
        )
    if not status.has_journal:
        raise DatabaseUnusable(
            "The database has no journal that triggers could write to. Adopt it first with: "
            f"{SYNC_COMMAND}"
        )


@contextmanager
def _changing(database: Database) -> Iterator[Connection]:
    """A transaction; where it cannot undo changes of tables, each trigger has one of its own."""
    commit = Commit(database.dialect)
    try:
        with database.write_gate_passed(), database.engine.begin() as connection:
            database.dialect.limit_table_wait(connection)
            yield connection
            commit.is_sent = True
    except DBAPIError as error:
        what = (
            "may have been changed or not" if commit.leaves_open(error) else "could not be changed"
        )
        raise DatabaseUnusable(
            f"The triggers of {shown_url(database.url)} {what}: "
            f"{reason(error, database.url)}. The user needs the right to change triggers, and no "
            "transaction may hold the tables for long. Then run the same command again."
        ) from error
