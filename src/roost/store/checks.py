"""Checks of the rows of a database, for what no constraint of the tables guarantees."""

from __future__ import annotations

from collections.abc import Iterator

import sqlalchemy as sa
from sqlalchemy import Connection

from roost.store.dialect import dialect_of
from roost.store.errors import REPAIR_COMMAND, SYNC_COMMAND
from roost.store.findings import Finding, Level
from roost.store.reference_checks import reference_checks
from roost.store.row_checks import RowCheck
from roost.store.row_rules import class_id_fault
from roost.store.schema import SchemaState, SchemaStatus, read_status
from roost.store.state_checks import check_triggers, state_checks
from roost.store.table_checks import check_indexes, check_tables, has_types
from roost.store.tables import resource_classes, resource_providers
from roost.store.value_checks import value_checks


def check_database(connection: Connection) -> tuple[Finding, ...]:
    """Check the whole database, without a change. It works before and after an adoption."""
    dialect, status = dialect_of(connection), read_status(connection)
    revision = status.placement_revision
    findings = [_check_revisions(status)]
    # Without the reference's tables, or with unknown revisions, no further check is possible.
    if revision is None or status.state is SchemaState.UNKNOWN:
        return tuple(findings)
    findings.append(check_tables(connection, revision))
    if findings[-1].level is Level.FAILURE:
        # The queries of most further checks would fail.
        return (*findings, check_triggers(connection))
    findings += [check_indexes(connection, revision), dialect.check_storage(connection)]
    with_types = has_types(revision)
    checks = (
        *_provider_checks(),
        *reference_checks(with_types=with_types),
        *value_checks(dialect, with_types=with_types),
    )
    findings += [check.run(connection) for check in checks]
    findings.append(_check_standard_classes(connection))
    findings += dialect.further_checks(connection)
    can_load = not any(finding.level is Level.FAILURE for finding in findings)
    return (*findings, *state_checks(connection, with_types=with_types, can_load=can_load))


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
