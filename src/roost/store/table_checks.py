"""Checks of the tables themselves: columns, keys, indexes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection, Inspector, Table

from roost.store.findings import Finding, Level
from roost.store.migrations.histories import PLACEMENT
from roost.store.tables import consumer_types, consumers, metadata

_OWN_PREFIX = "roost_"
# The revision that makes the types of consumers.
_TYPES_REVISION = "422ece571366"
_RESTORE = "Restore the tables from a backup, or export the rows that are there."


def check_tables(connection: Connection, revision: str) -> Finding:
    """Check that every table has the columns and keys of its revision."""
    inspector = sa.inspect(connection)
    existing = set(inspector.get_table_names())
    problems: list[str] = []
    for table in _expected_tables(revision):
        if table.name not in existing:
            problems.append(f"there is no table {table.name}")
        else:
            problems += _table_problems(inspector, table, revision)
    if problems:
        return Finding("tables", Level.FAILURE, "; ".join(problems), _RESTORE)
    further = sorted(
        existing
        - set(metadata.tables)
        - {PLACEMENT.version_table}
        - {name for name in existing if name.startswith(_OWN_PREFIX)}
    )
    if further:
        return Finding(
            "tables",
            Level.OK,
            f"all are right; Roost leaves {len(further)} further tables alone "
            f"({', '.join(further[:3])}{', ...' if further[3:] else ''})",
        )
    return Finding("tables", Level.OK, "all are right")


def check_indexes(connection: Connection, revision: str) -> Finding:
    """Check the indexes, without which answers are right but late."""
    inspector = sa.inspect(connection)
    missing = sorted(
        f"{table.name}.{index.name}"
        for table in _expected_tables(revision)
        for index in table.indexes
        if inspector.has_table(table.name)
        and index.name not in _index_names(inspector, table)
        and not _is_of_types(index.name)
    )
    if not missing:
        return Finding("indexes", Level.OK, "all are there")
    return Finding(
        "indexes",
        Level.WARNING,
        f"indexes are missing: {', '.join(missing)}",
        "Create them as the reference does; without them, claims and lists are slow.",
    )


def _expected_tables(revision: str) -> Iterator[Table]:
    for table in metadata.sorted_tables:
        if table.name.startswith(_OWN_PREFIX):
            continue
        if table is consumer_types and not has_types(revision):
            continue
        yield table


def has_types(revision: str) -> bool:
    """Whether consumers have types at this revision."""
    revisions = PLACEMENT.revisions
    return revisions.index(revision) >= revisions.index(_TYPES_REVISION)


def _is_of_types(name: Any) -> bool:
    return str(name) == "consumers_consumer_type_id_idx"


def _index_names(inspector: Inspector, table: Table) -> set[str | None]:
    return {index["name"] for index in inspector.get_indexes(table.name)}


def _table_problems(inspector: Inspector, table: Table, revision: str) -> Iterator[str]:
    found = {column["name"]: column for column in inspector.get_columns(table.name)}
    wanted = {column.name for column in table.columns}
    if table is consumers and not has_types(revision):
        wanted.discard("consumer_type_id")
    for name in sorted(wanted - found.keys()):
        yield f"{table.name} has no column {name}"
    for name in sorted(found.keys() - wanted):
        column = found[name]
        if not column["nullable"] and column["default"] is None:
            yield f"{table.name} has a column {name} that an insert must fill"
    keys = _unique_columns(inspector, table.name)
    for constraint in table.constraints:
        if isinstance(constraint, sa.UniqueConstraint):
            columns = frozenset(column.name for column in constraint.columns)
            if columns not in keys:
                yield f"{table.name} has no unique key over {', '.join(sorted(columns))}"
    primary = frozenset(inspector.get_pk_constraint(table.name)["constrained_columns"])
    if primary != frozenset(column.name for column in table.primary_key):
        yield f"{table.name} has another primary key"


def _unique_columns(inspector: Inspector, table: str) -> set[frozenset[str]]:
    constraints = [
        frozenset(constraint["column_names"])
        for constraint in inspector.get_unique_constraints(table)
    ]
    indexes = [
        frozenset(str(name) for name in index["column_names"])
        for index in inspector.get_indexes(table)
        if index["unique"]
    ]
    return {*constraints, *indexes}
