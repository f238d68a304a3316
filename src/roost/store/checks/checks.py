"""Checks of a database: its revisions, tables and rows, and whether Roost can take it over."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection, Inspector, Select, Table

from roost.store.checks.findings import Finding, Level, RowCheck
from roost.store.checks.row_rules import REFERENCES, Reference, class_id_fault
from roost.store.checks.value_checks import value_checks
from roost.store.connections.errors import REPAIR_COMMAND, SYNC_COMMAND
from roost.store.dialect import dialect_of
from roost.store.forest.reading import read_forest
from roost.store.journal.triggers import BROKEN, INSTALL_COMMAND, REMOVE_COMMAND, trigger_status
from roost.store.meta import read_mark
from roost.store.migrations.histories import PLACEMENT
from roost.store.migrations.placement import TYPES
from roost.store.migrations.schema import SchemaState, SchemaStatus, read_status
from roost.store.tables import (
    consumer_types,
    consumers,
    metadata,
    resource_classes,
    resource_providers,
    roost_ownership,
)
from roost.store.transfer import LAYOUT

_OWN_PREFIX = "roost_"
_RESTORE = "Restore the tables from a backup, or export the rows that are there."


def check_database(connection: Connection) -> tuple[Finding, ...]:
    """Check the whole database, without a change. It works before and after an adoption."""
    dialect, status = dialect_of(connection), read_status(connection)
    revision = status.placement_revision
    findings = [_check_revisions(status)]
    # Without the reference's tables, or with unknown revisions, no further check is possible.
    if revision is None or status.state is SchemaState.UNKNOWN:
        return tuple(findings)
    findings.append(_check_tables(connection, revision))
    if findings[-1].level is Level.FAILURE:
        # The queries of most further checks would fail.
        return (*findings, _check_triggers(connection))
    findings += [_check_indexes(connection, revision), dialect.check_storage(connection)]
    with_types = _has_types(revision)
    checks = (
        *_provider_checks(),
        *_reference_checks(with_types=with_types),
        *value_checks(
            dialect,
            with_types=with_types,
            with_ownership=sa.inspect(connection).has_table(roost_ownership.name),
        ),
    )
    findings += [check.run(connection) for check in checks]
    findings.append(_check_standard_classes(connection))
    findings += dialect.further_checks(connection)
    can_load = not any(finding.level is Level.FAILURE for finding in findings)
    return (*findings, *_state_checks(connection, with_types=with_types, can_load=can_load))


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether the database can be adopted, and a sentence that says what to do."""

    adoptable: bool
    sentence: str


def judge(status: SchemaStatus, findings: Iterable[Finding]) -> Verdict:
    """The verdict about a database with these findings."""
    failures = [finding.name for finding in findings if finding.level is Level.FAILURE]
    if failures:
        found = ", ".join(failures)
        if status.state is SchemaState.CURRENT:
            return Verdict(False, f"Roost has adopted this database, but rows are wrong: {found}.")
        return Verdict(
            False, f"Roost cannot adopt this database yet. Mend first what these say: {found}."
        )
    if status.state is SchemaState.EMPTY:
        return Verdict(True, f"The database is empty. Initialise it with: {SYNC_COMMAND}")
    if status.state is SchemaState.OLDER:
        return Verdict(
            True,
            f"Roost can adopt this database in place. Stop the services that write to it, and "
            f"run: {SYNC_COMMAND}",
        )
    return Verdict(True, "Roost has adopted this database. Nothing is to be done.")


def _check_revisions(status: SchemaStatus) -> Finding:
    name = "schema revisions"
    found = (
        f"placement {status.placement_revision or 'none'}, roost {status.roost_revision or 'none'}"
    )
    wanted = f"placement {status.placement_head}, roost {status.roost_head}"
    if status.state is SchemaState.CURRENT:
        return Finding(name, Level.OK, found)
    if status.state is SchemaState.UNKNOWN:
        return Finding(
            name,
            Level.FAILURE,
            f"{found}: this version does not know them, its newest are {wanted}",
            "Use the newer version of Roost that has migrated the database.",
        )
    if status.state is SchemaState.NEWER:
        return Finding(
            name,
            Level.WARNING,
            f"{found}: a newer version has migrated the database, and lets this version serve",
            "Upgrade this server to the newer version of Roost.",
        )
    return Finding(name, Level.WARNING, f"{found}; wanted are {wanted}", f"Run: {SYNC_COMMAND}")


def _check_tables(connection: Connection, revision: str) -> Finding:
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


def _check_indexes(connection: Connection, revision: str) -> Finding:
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
        if table is consumer_types and not _has_types(revision):
            continue
        yield table


def _has_types(revision: str) -> bool:
    """Whether consumers have types at this revision."""
    return PLACEMENT.ids.index(revision) >= PLACEMENT.ids.index(TYPES.id)


def _is_of_types(name: Any) -> bool:
    return str(name) == "consumers_consumer_type_id_idx"


def _index_names(inspector: Inspector, table: Table) -> set[str | None]:
    return {index["name"] for index in inspector.get_indexes(table.name)}


def _table_problems(inspector: Inspector, table: Table, revision: str) -> Iterator[str]:
    found = {column["name"]: column for column in inspector.get_columns(table.name)}
    wanted = {column.name for column in table.columns}
    if table is consumers and not _has_types(revision):
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


def _provider_checks() -> Iterator[RowCheck]:
    providers, parents = resource_providers, resource_providers.alias("parents")
    yield RowCheck(
        "provider roots",
        Level.FAILURE,
        sa.select(providers.c.uuid).where(providers.c.root_provider_id.is_(None)),
        "resource providers without root_provider_id, which no answer shows",
        f"Run: {REPAIR_COMMAND}",
    )
    is_root = providers.c.root_provider_id == providers.c.id
    has_parent = providers.c.parent_provider_id.is_not(None)
    yield RowCheck(
        "provider trees",
        Level.FAILURE,
        sa.select(providers.c.uuid)
        .join_from(providers, parents, parents.c.id == providers.c.parent_provider_id, isouter=True)
        .where(
            sa.or_(
                sa.and_(~has_parent, ~is_root),
                sa.and_(has_parent, is_root),
                sa.and_(has_parent, parents.c.id.is_(None)),
                providers.c.root_provider_id != parents.c.root_provider_id,
            )
        ),
        "resource providers with another root_provider_id than their parent, or whose parent does "
        "not exist",
        "Stop all services and set root_provider_id to that of the parent, or to the provider's "
        "own id where parent_provider_id is null.",
    )
    reached = (
        sa.select(providers.c.id)
        .where(providers.c.parent_provider_id.is_(None))
        .cte("reached", recursive=True)
    )
    children = resource_providers.alias("children")
    reached = reached.union_all(
        sa.select(children.c.id).join_from(
            children, reached, children.c.parent_provider_id == reached.c.id
        )
    )
    yield RowCheck(
        "provider cycles",
        Level.FAILURE,
        sa.select(providers.c.uuid)
        .join_from(providers, reached, reached.c.id == providers.c.id, isouter=True)
        .where(reached.c.id.is_(None)),
        "resource providers whose ancestors have no root",
        "Stop all services and correct parent_provider_id; null makes a provider a root.",
    )


def _reference_checks(*, with_types: bool) -> Iterator[RowCheck]:
    """A check for each reference; without the types of consumers where the schema has none."""
    for reference in REFERENCES:
        if with_types or reference.target is not consumer_types:
            yield RowCheck(
                reference.name,
                Level.FAILURE,
                _dangling(reference),
                reference.problem,
                reference.remedy,
            )


def _dangling(reference: Reference) -> Select[Any]:
    """Examples of the rows that refer to a row that does not exist."""
    table, target = reference.table, reference.target
    example = reference.columns[0] if reference.example is None else reference.example
    pairs = zip(reference.columns, reference.targets, strict=True)
    return (
        sa.select(example)
        .distinct()
        .outerjoin_from(table, target, sa.and_(*(there == here for here, there in pairs)))
        .where(reference.targets[0].is_(None), *(one.is_not(None) for one in reference.columns))
    )


def _check_standard_classes(connection: Connection) -> Finding:
    """Check that the id of each standard class is its position in the library.

    Rows may be missing, because the service inserts them at its start. A newer library may have
    inserted further rows.
    """
    rows = connection.execute(sa.select(resource_classes.c.id, resource_classes.c.name)).all()
    wrong = [fault for id_, name in rows if (fault := class_id_fault(id_, str(name))) is not None]
    if not wrong:
        return Finding("standard resource classes", Level.OK, "all ids are right")
    return Finding(
        "standard resource classes",
        Level.FAILURE,
        "; ".join(sorted(wrong)),
        "Stop all services and correct the ids in resource_classes, or restore the database "
        "again. MySQL needs NO_AUTO_VALUE_ON_ZERO in sql_mode for that, because VCPU has the id 0.",
    )


def _state_checks(connection: Connection, *, with_types: bool, can_load: bool) -> Iterator[Finding]:
    """The findings about a database whose tables are right; `can_load` if its rows are, too."""
    yield _check_untyped(connection, with_types=with_types)
    yield _check_import(connection)
    yield _check_triggers(connection)
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


def _check_triggers(connection: Connection) -> Finding:
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
