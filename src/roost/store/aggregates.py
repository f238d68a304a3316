"""Which provider is associated with which aggregates."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import Connection, bindparam, delete, insert, select

from roost.model.identifiers import canonical_uuid, uuid_spellings
from roost.model.providers import Provider
from roost.store.clock import utc_now
from roost.store.journal import ChangeKind, record_changes
from roost.store.providers import increment_generations
from roost.store.rows import select_in_chunks
from roost.store.statements import InsertRows
from roost.store.tables import placement_aggregates, resource_provider_aggregates

_AGGREGATES = (
    select(placement_aggregates.c.uuid)
    .select_from(
        resource_provider_aggregates.join(
            placement_aggregates,
            placement_aggregates.c.id == resource_provider_aggregates.c.aggregate_id,
        )
    )
    .where(resource_provider_aggregates.c.resource_provider_id == bindparam("provider_id"))
    .order_by(placement_aggregates.c.uuid)
)
_IDS = select(placement_aggregates.c.id, placement_aggregates.c.uuid).where(
    placement_aggregates.c.uuid.in_(bindparam("uuids", expanding=True))
)
_INSERT = InsertRows(placement_aggregates)


def list_provider_aggregates(connection: Connection, provider_id: int) -> list[str]:
    """The uuids of the aggregates of which the provider itself is a member."""
    return list(connection.execute(_AGGREGATES, {"provider_id": provider_id}).scalars())


def aggregate_ids(connection: Connection, uuids: Iterable[str]) -> dict[str, list[int]]:
    """Canonical uuid -> internal ids of those of the aggregates that exist.

    One aggregate has several ids if another service stored it in several spellings.
    """
    spellings = [spelling for uuid in uuids for spelling in uuid_spellings(uuid)]
    found: dict[str, list[int]] = {}
    for row in select_in_chunks(connection, _IDS, "uuids", spellings):
        found.setdefault(canonical_uuid(row.uuid), []).append(row.id)
    return found


def ensure_aggregates(connection: Connection, uuids: Iterable[str]) -> dict[str, list[int]]:
    """The same; the unknown ones come into being (`IntegrityError` in a race)."""
    wanted = {canonical_uuid(uuid) for uuid in uuids}
    known = aggregate_ids(connection, wanted)
    missing = sorted(wanted - known.keys())
    if missing:
        now = utc_now()
        _INSERT.run(connection, [{"created_at": now, "uuid": uuid} for uuid in missing])
        known = aggregate_ids(connection, wanted)
    return known


def replace_provider_aggregates(
    connection: Connection, provider: Provider, ids: Iterable[int], *, moves_generation: bool
) -> None:
    """Make the locked provider a member of exactly these aggregates."""
    association = resource_provider_aggregates
    query = select(association.c.aggregate_id).where(
        association.c.resource_provider_id == provider.id
    )
    present = set(connection.execute(query).scalars())
    wanted = set(ids)
    if present - wanted:
        connection.execute(
            delete(association).where(
                association.c.resource_provider_id == provider.id,
                association.c.aggregate_id.in_(sorted(present - wanted)),
            )
        )
    now = utc_now()
    new = [
        {"created_at": now, "resource_provider_id": provider.id, "aggregate_id": id_}
        for id_ in sorted(wanted - present)
    ]
    if new:
        connection.execute(insert(association), new)
    if moves_generation:
        increment_generations(connection, [provider.id])
    if moves_generation or present != wanted:
        record_changes(connection, ChangeKind.AGGREGATES, [(provider.id, provider.uuid)])
