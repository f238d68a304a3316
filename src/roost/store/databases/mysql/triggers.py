"""The triggers of MySQL and MariaDB."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import starmap

from roost.store.triggers.watching import PREFIX, WATCHED_EVENTS, TableEvent, WatchedTable

# Roost sets it in each of its connections.
_IS_ROOST = "@roost_journals"

INSTALLED = (
    "SELECT event_object_table, trigger_name FROM information_schema.triggers"
    f" WHERE trigger_schema = database() AND trigger_name LIKE '{PREFIX}%'"
)
MARK_CONNECTION = f"SET {_IS_ROOST} = 1"


def creations() -> Iterator[str]:
    """The statements that create all triggers."""
    return starmap(_trigger, WATCHED_EVENTS)


def _trigger(watched: WatchedTable, event: TableEvent) -> str:
    return (
        f"CREATE TRIGGER {watched.trigger_name(event)} AFTER {event.upper()} ON"
        f" {watched.table.name} FOR EACH ROW BEGIN {_body(watched, event)} END"
    )


def _body(watched: WatchedTable, event: TableEvent) -> str:
    if event is not TableEvent.UPDATE:
        row = "OLD" if event is TableEvent.DELETE else "NEW"
        return f"IF {_IS_ROOST} IS NULL THEN {_insert(watched, row)} END IF;"
    same = " AND ".join(f"OLD.{name} <=> NEW.{name}" for name in watched.columns)
    moved = ""
    if watched.provider is not None:
        moved = (
            f" IF OLD.{watched.provider} <> NEW.{watched.provider} THEN"
            f" {_insert(watched, 'OLD')} END IF;"
        )
    return f"IF {_IS_ROOST} IS NULL AND NOT ({same}) THEN {_insert(watched, 'NEW')}{moved} END IF;"


def _insert(watched: WatchedTable, row: str) -> str:
    provider = "NULL" if watched.provider is None else f"{row}.{watched.provider}"
    return (
        "INSERT INTO roost_changes (created_at, kind, provider_id)"
        f" VALUES (UTC_TIMESTAMP(), '{watched.kind}', {provider});"
    )
