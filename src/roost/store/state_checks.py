"""What an operator wants to know before moving: size, load time, triggers, unfinished imports."""

from __future__ import annotations

import time
from collections.abc import Iterator

import sqlalchemy as sa
from sqlalchemy import Connection

from roost.store.findings import Finding, Level
from roost.store.forest.reading import read_forest
from roost.store.tables import consumers
from roost.store.transfer.layout import LAYOUT
from roost.store.transfer.progress_mark import read_mark
from roost.store.triggers.installation import (
    BROKEN,
    INSTALL_COMMAND,
    REMOVE_COMMAND,
    trigger_status,
)


def state_checks(connection: Connection, *, with_types: bool, can_load: bool) -> Iterator[Finding]:
    """The findings about a database whose tables are right; `can_load` if its rows are, too."""
    yield _check_untyped(connection, with_types=with_types)
    yield _check_import(connection)
    yield check_triggers(connection)
    yield _measure(connection, can_load=can_load)


def _check_untyped(connection: Connection, *, with_types: bool) -> Finding:
    query = sa.select(sa.func.count()).select_from(consumers)
    if with_types:
        query = query.where(consumers.c.consumer_type_id.is_(None))
    count = connection.scalar(query) or 0
    # Consumers from before 1.38 have none, and nothing is to be repaired.
    message = f"{count} consumers without a type, shown as `unknown`" if count else "all have one"
    return Finding("untyped consumers", Level.OK, message)


def _check_import(connection: Connection) -> Finding:
    mark = read_mark(connection)
    if mark is None:
        return Finding("imports", Level.OK, "none is unfinished")
    return Finding(
        "imports",
        Level.FAILURE,
        f"an import stopped after line {mark.lines} of its export",
        "Finish it with the same `roost db import` command, or use an empty database.",
    )


def check_triggers(connection: Connection) -> Finding:
    """Whether the triggers are absent, or complete and with the table that they write to."""
    status = trigger_status(connection)
    name = "triggers"
    if status.is_absent:
        return Finding(name, Level.OK, "not installed: nothing but Roost may write while it runs")
    if status.is_complete:
        return Finding(name, Level.OK, "installed: other programs may write while Roost runs")
    if status.is_broken:
        return Finding(name, Level.FAILURE, BROKEN, f"Run: {REMOVE_COMMAND}")
    wrong = ", ".join(status.missing or status.outdated) or "readers do not know of them"
    return Finding(
        name,
        Level.FAILURE,
        f"incomplete, so Roost does not see all writes of other programs: {wrong}",
        f"Run: {INSTALL_COMMAND}",
    )


def _measure(connection: Connection, *, can_load: bool) -> Finding:
    """Read what a worker reads at its start, and tell how long it takes."""
    counts = {
        part.name: connection.scalar(sa.select(sa.func.count()).select_from(part.table)) or 0
        for part in LAYOUT
        if part.name in ("resource_providers", "inventories", "consumers", "allocations")
    }
    shown = ", ".join(f"{count} {name}" for name, count in counts.items())
    if not can_load:
        return Finding("size", Level.OK, f"{shown}; a worker may fail to read the wrong rows")
    began = time.monotonic()
    read_forest(connection)
    seconds = time.monotonic() - began
    return Finding(
        "size", Level.OK, f"{shown}; a worker reads them at its start in about {seconds:.1f} s"
    )
