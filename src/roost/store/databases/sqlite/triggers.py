"""The triggers of SQLite.

Where Python can, Roost turns triggers off for its own connections. Python 3.11 cannot: there,
a write of Roost has two rows in the journal for each change.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import starmap
from typing import Any

from roost.store.triggers.watching import PREFIX, WATCHED_EVENTS, TableEvent, WatchedTable

# In the form in which Roost and SQLAlchemy write times.
_NOW = "strftime('%Y-%m-%d %H:%M:%f', 'now') || '000'"

INSTALLED = (
    f"SELECT tbl_name, name FROM sqlite_master WHERE type = 'trigger' AND name LIKE '{PREFIX}%'"
)


# `sqlite3.SQLITE_DBCONFIG_ENABLE_TRIGGER`, which Python has from 3.12 on.
_ENABLE_TRIGGER = 1003


def leave_triggers_out(driver_connection: Any) -> None:
    """Turn triggers off for a connection of Roost, which writes its own journal, if possible."""
    if hasattr(driver_connection, "setconfig"):
        driver_connection.setconfig(_ENABLE_TRIGGER, False)


def creations() -> Iterator[str]:
    """The statements that create all triggers."""
    return starmap(_trigger, WATCHED_EVENTS)


def _trigger(watched: WatchedTable, event: TableEvent) -> str:
    changed = " OR ".join(f"OLD.{name} IS NOT NEW.{name}" for name in watched.columns)
    condition = f" WHEN {changed}" if event is TableEvent.UPDATE else ""
    inserts = "; ".join(_inserts(watched, event))
    return (
        f"CREATE TRIGGER IF NOT EXISTS {watched.trigger_name(event)} AFTER {event.upper()} ON"
        f" {watched.table.name}{condition} BEGIN {inserts}; END"
    )


def _inserts(watched: WatchedTable, event: TableEvent) -> Iterator[str]:
    row = "OLD" if event is TableEvent.DELETE else "NEW"
    yield _insert(watched, row)
    if event is TableEvent.UPDATE and watched.provider is not None:
        yield _insert(watched, "OLD", f" WHERE OLD.{watched.provider} <> NEW.{watched.provider}")


def _insert(watched: WatchedTable, row: str, condition: str = "") -> str:
    provider = "NULL" if watched.provider is None else f"{row}.{watched.provider}"
    return (
        "INSERT INTO roost_changes (created_at, kind, provider_id)"
        f" SELECT {_NOW}, '{watched.kind}', {provider}{condition}"
    )
