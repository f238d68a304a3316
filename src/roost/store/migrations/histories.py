"""The two histories: their revisions, oldest first, and the table that records the revision.

This module imports no alembic, so looking at a database that is up to date stays cheap.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cache

import sqlalchemy as sa
from sqlalchemy import Connection

from roost.store.connections.errors import DatabaseUnusable
from roost.store.meta import read_meta, set_meta
from roost.store.migrations import placement, roost
from roost.store.migrations.steps import Revision
from roost.store.tables import roost_meta


@dataclass(frozen=True, slots=True)
class History:
    """One line of revisions without branches, oldest first."""

    name: str
    version_table: str
    revisions: tuple[Revision, ...]

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids of all revisions, oldest first."""
        return tuple(revision.id for revision in self.revisions)

    @property
    def head(self) -> str:
        """The newest revision."""
        return self.revisions[-1].id

    def knows(self, revision: str | None) -> bool:
        """Whether it is a revision of this history; `None` is the state before the first."""
        return revision is None or revision in self.ids

    def newest(self, recorded: Collection[str]) -> str | None:
        """The revision of a database that records these.

        A database records one revision. In a cluster two processes may migrate at the same time
        (see `runner.py`), and then it may record two: the newer one is true. A revision that this
        version does not know is newer than all others.
        """
        unknown = sorted(revision for revision in recorded if not self.knows(revision))
        if unknown:
            return unknown[0]
        return max(recorded, key=self.ids.index, default=None)

    def missing(self, revision: str | None) -> tuple[Revision, ...]:
        """What a database at this revision has still to run, oldest first."""
        if revision is None:
            return self.revisions
        if not self.knows(revision):
            raise DatabaseUnusable(
                f"The schema {self.name} is at revision {revision}, which this version of Roost "
                "does not know: a newer version has migrated the database. Use that version."
            )
        return self.revisions[self.ids.index(revision) + 1 :]

    def create_version_table(self, connection: Connection) -> None:
        """Create the version table unless it exists."""
        _version_table(self.version_table).create(connection, checkfirst=True)

    def recorded(self, connection: Connection) -> list[str]:
        """The revisions in the version table."""
        return list(connection.scalars(sa.select(_version_table(self.version_table).c.version_num)))

    def record(self, connection: Connection, revision: str) -> None:
        """Record that the database is at this revision, unless it already is at a newer one."""
        recorded = self.recorded(connection)
        newest = self.newest({*recorded, revision})
        table = _version_table(self.version_table)
        connection.execute(table.delete().where(table.c.version_num != newest))
        if newest not in recorded:
            connection.execute(table.insert().values(version_num=newest))


@cache
def _version_table(name: str) -> sa.Table:
    """The version table as alembic makes it, down to the name of its constraint."""
    return sa.Table(
        name,
        sa.MetaData(),
        sa.Column("version_num", sa.String(32), nullable=False),
        sa.PrimaryKeyConstraint("version_num", name=f"{name}_pkc"),
    )


PLACEMENT = History(
    name="placement",
    version_table="alembic_version",
    revisions=(
        placement.TABLES,
        placement.ROOTS,
        placement.CONSUMERS,
        placement.TYPES,
        placement.DUPLICATE_INDEXES,
    ),
)

ROOST = History(
    name="roost",
    version_table="roost_schema_version",
    revisions=(roost.JOURNAL, roost.USAGES, roost.ORIGIN, roost.OWNERSHIP),
)

# A version whose newest revision is this one, or a later one, may serve on the tables of ROOST's
# head. A revision that only adds leaves it as it is. A revision after which older versions would
# fail raises it, and its version cannot be rolled out server by server.
ROOST_COMPATIBLE_SINCE = "roost_0001"

HISTORIES = (PLACEMENT, ROOST)

# A row of `roost_meta` tells older versions whether they may serve on the tables. During a rolling
# upgrade the new version migrates while the old version serves. The old version does not know the
# new revision. This row says whether the old version may serve on, and start again.
COMPATIBLE_SINCE = "compatible_since"


def record_compatibility(connection: Connection) -> None:
    """Record the oldest revision whose version may serve on the tables as they are now."""
    # Only together with the revision it was written for: the row says nothing about any other.
    value = f"{ROOST.head} {ROOST_COMPATIBLE_SINCE}"
    if read_meta(connection, COMPATIBLE_SINCE) != value:
        set_meta(connection, COMPATIBLE_SINCE, value)


def lets_this_version_serve(
    connection: Connection, revision: str | None, tables: Collection[str]
) -> bool:
    """Whether the newer version that wrote this revision lets this version serve on it."""
    found = read_meta(connection, COMPATIBLE_SINCE) if roost_meta.name in tables else None
    written_for, _, since = (found or "").partition(" ")
    return written_for == revision and since in ROOST.ids
