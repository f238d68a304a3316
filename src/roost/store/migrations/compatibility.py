"""Which older versions may serve on the tables: a row of `roost_meta` tells them.

During a rolling upgrade the new version migrates while the old version serves. The old version does
not know the new revision. This row says whether the old version may serve on, and start again.
"""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import Connection

from roost.store.meta import read_meta, set_meta
from roost.store.migrations.histories import ROOST, ROOST_COMPATIBLE_SINCE
from roost.store.tables import roost_meta

NAME = "compatible_since"


def record_compatibility(connection: Connection) -> None:
    """Record the oldest revision whose version may serve on the tables as they are now."""
    # Only together with the revision it was written for: the row says nothing about any other.
    value = f"{ROOST.head} {ROOST_COMPATIBLE_SINCE}"
    if read_meta(connection, NAME) != value:
        set_meta(connection, NAME, value)


def lets_this_version_serve(
    connection: Connection, revision: str | None, tables: Collection[str]
) -> bool:
    """Whether the newer version that wrote this revision lets this version serve on it."""
    found = read_meta(connection, NAME) if roost_meta.name in tables else None
    written_for, _, since = (found or "").partition(" ")
    return written_for == revision and since in ROOST.ids
