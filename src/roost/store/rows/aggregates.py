"""The aggregates of providers."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from typing import TypeAlias

from sqlalchemy import (
    Connection,
    bindparam,
    func,
    literal_column,
    or_,
    select,
    union_all,
)

from roost.model.identifiers import canonical_uuid, is_uuid
from roost.model.providers import Provider
from roost.store.journal.writing import ChangeKind, record_changes
from roost.store.rows.providers import VISIBLE_PROVIDERS, increment_generations
from roost.store.statements import DeletePairs, InsertRows, Query, Statement, chunks
from roost.store.tables import (
    placement_aggregates,
    resource_provider_aggregates,
    resource_providers,
)
from roost.store.transaction import Transaction

# A provider without aggregates has one row, whose aggregate is null.
_AGGREGATES = Query(
    select(resource_providers.c.generation, placement_aggregates.c.uuid)
    .select_from(
        VISIBLE_PROVIDERS.outerjoin(
            resource_provider_aggregates,
            resource_provider_aggregates.c.resource_provider_id == resource_providers.c.id,
        ).outerjoin(
            placement_aggregates,
            placement_aggregates.c.id == resource_provider_aggregates.c.aggregate_id,
        )
    )
    .where(resource_providers.c.uuid == bindparam("uuid"))
    .order_by(placement_aggregates.c.uuid)
)
_ROWS = select(placement_aggregates.c.id, placement_aggregates.c.uuid)
# The reference stores a uuid as its client wrote it: perhaps in capitals, perhaps without dashes.
_NOT_CANONICAL = or_(
    placement_aggregates.c.uuid.not_like(literal_column("'________-____-____-____-____________'")),
    placement_aggregates.c.uuid != func.lower(placement_aggregates.c.uuid),
)
_BY_UUIDS = Statement.among(placement_aggregates.c.uuid, _ROWS)
# The rows with these uuids, and all rows whose uuid is not canonical, by one statement.
_BY_UUIDS_OR_NOT_CANONICAL = Statement(
    lambda uuids: union_all(
        _ROWS.where(placement_aggregates.c.uuid.in_(uuids)), _ROWS.where(_NOT_CANONICAL)
    ),
    lists=["uuids"],
)
_PRESENT = Statement(
    select(resource_provider_aggregates.c.aggregate_id).where(
        resource_provider_aggregates.c.resource_provider_id == bindparam("provider_id")
    )
)
_INSERT = InsertRows(placement_aggregates)
_JOIN = InsertRows(resource_provider_aggregates)
_LEAVE = DeletePairs(
    resource_provider_aggregates.c.resource_provider_id,
    resource_provider_aggregates.c.aggregate_id,
)

# Provider's id and aggregate's id.
Membership: TypeAlias = tuple[int, int]


def provider_aggregates(connection: Connection, uuid: str) -> tuple[int, list[str]] | None:
    """The provider's generation, and the uuids of the aggregates of the provider itself.

    One statement reads both, so that both are of one moment. `None` if there is no such provider.
    """
    rows = _AGGREGATES.fetch(connection, {"uuid": uuid})
    return (rows[0][0], [found for _, found in rows if found is not None]) if rows else None


def aggregate_ids(connection: Connection, uuids: Iterable[str]) -> dict[str, list[int]]:
    """Canonical uuid -> internal ids, for the aggregates that exist.

    An aggregate has several ids if the reference stored several spellings. The id of the canonical
    spelling comes first.
    """
    wanted = dict.fromkeys(uuids)
    if not wanted:
        return {}
    first, *further = chunks(wanted)
    stored = dict(map(tuple, _BY_UUIDS_OR_NOT_CANONICAL.run(connection, {"uuids": first})))
    stored |= dict(map(tuple, _BY_UUIDS.rows(connection, chain(*further))))
    found: dict[str, list[int]] = {}
    for id_, uuid in stored.items():
        canonical = canonical_uuid(uuid) if is_uuid(uuid) else uuid
        if canonical in wanted:
            ids = found.setdefault(canonical, [])
            ids.insert(0 if uuid == canonical else len(ids), id_)
    return found


def ensure_aggregates(transaction: Transaction, uuids: Iterable[str]) -> dict[str, list[int]]:
    """Like `aggregate_ids`; unknown aggregates are inserted (`IntegrityError` in a race)."""
    wanted = {canonical_uuid(uuid) for uuid in uuids}
    known = aggregate_ids(transaction.connection, wanted)
    missing = sorted(wanted - known.keys())
    if missing:
        rows = [{"created_at": transaction.now, "uuid": uuid} for uuid in missing]
        transaction.write(_INSERT.bound(transaction, rows))
        known = aggregate_ids(transaction.connection, wanted)
    return known


def replace_provider_aggregates(
    transaction: Transaction, provider: Provider, ids: Iterable[int], *, moves_generation: bool
) -> None:
    """Make the locked provider a member of exactly these aggregates."""
    provider_id = {"provider_id": provider.id}
    (rows,) = transaction.read([_PRESENT.bound(transaction, provider_id)])
    present, wanted = {id_ for (id_,) in rows}, set(ids)
    _write(
        transaction,
        joined=[(provider.id, id_) for id_ in sorted(wanted - present)],
        left=[(provider.id, id_) for id_ in sorted(present - wanted)],
    )
    if moves_generation:
        increment_generations(transaction, [provider.id])
    if moves_generation or present != wanted:
        record_changes(transaction, ChangeKind.AGGREGATES, [(provider.id, provider.uuid)])


def change_memberships(
    transaction: Transaction,
    providers: Iterable[tuple[int, str]],
    *,
    joined: Iterable[Membership],
    left: Iterable[Membership],
) -> None:
    """Let locked providers, which are given as (id, uuid), join aggregates and leave others."""
    _write(transaction, joined, left)
    record_changes(transaction, ChangeKind.AGGREGATES, providers)


def _write(
    transaction: Transaction, joined: Iterable[Membership], left: Iterable[Membership]
) -> None:
    transaction.write(_LEAVE.bound(transaction, left))
    new = [
        {
            "created_at": transaction.now,
            "resource_provider_id": provider_id,
            "aggregate_id": aggregate_id,
        }
        for provider_id, aggregate_id in joined
    ]
    transaction.write(_JOIN.bound(transaction, new))
