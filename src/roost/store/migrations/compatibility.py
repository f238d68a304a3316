"""Which older versions may serve on the tables: a row of `roost_meta` tells them.

During a rolling upgrade the new version migrates while the old version serves. The old version does
not know the new revision. This row says whether the old version may serve on, and start again.
"""

from __future__ import annotations

from collections.abc import Collection

import sqlalchemy as sa
from sqlalchemy import Connection

from roost.store.migrations.histories import ROOST, ROOST_COMPATIBLE_SINCE

NAME = "compatible_since"
_META = sa.table("roost_meta", sa.column("name"), sa.column("value"))
_IS_IT = _META.c.name == NAME


def record_compatibility(connection: Connection) -> None:
    """Record the oldest revision whose version may serve on the tables as they are now."""
    # Only together with the revision it was written for: the row says nothing about any other.
    value = f"{ROOST.head} {ROOST_COMPATIBLE_SINCE}"
    found = _recorded(connection)
    if found is None:
        connection.execute(_META.insert().values(name=NAME, value=value))
    elif found != value:
        connection.execute(_META.update().where(_IS_IT).values(value=value))


def lets_this_version_serve(
    connection: Connection, revision: str | None, tables: Collection[str]
) -> bool:
    """Whether the newer version that wrote this revision lets this version serve on it."""
    found = _recorded(connection) if _META.name in tables else None
    written_for, _, since = (found or "").partition(" ")
    return written_for == revision and since in ROOST.ids


def _recorded(connection: Connection) -> str | None:
    found: str | None = connection.scalar(sa.select(_META.c.value).where(_IS_IT))
    return found
