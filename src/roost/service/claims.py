"""Claims: a claim becomes the whole of what its consumer holds, or changes nothing.

Every claim takes its locks in one order: consumers, then providers by id. It reads inventories and
usages under the locks of the providers, decides, and then writes everything together with COMMIT.
So two claims that both fit both succeed, one after another. No interleaving of claims exceeds a
capacity.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection

from roost.model.consumers import AnyGeneration, Claim
from roost.model.identifiers import canonical_uuid, is_uuid
from roost.service.capacity import Amounts, amounts_of, check_capacity, usages_after
from roost.service.errors import (
    Conflict,
    ConflictCause,
    ErrorCode,
    Invalid,
    NotFound,
    UnknownResourceClass,
)
from roost.store import allocations, consumers, providers
from roost.store.allocations import AllocationRow, InventoryUsages
from roost.store.batches import LastBatch
from roost.store.claim_rows import ClaimScope, LockedRows, lock_and_read
from roost.store.consumers import ConsumerOwner, ConsumerRow, Names, WantedNames
from roost.store.journal.writing import recording_usages
from roost.store.statements import BoundStatement

_NO_NAMES = WantedNames((), (), (), ())


def claim_for_one(connection: Connection, claim: Claim) -> LastBatch:
    """Make the claim the whole of what its consumer holds."""
    try:
        return _claim(connection, [claim])
    except UnknownResourceClass as unknown:
        raise Invalid(
            f"Unable to allocate inventory for consumer {claim.consumer}: {unknown.message}"
        ) from None


def claim_for_several(connection: Connection, claims: Sequence[Claim]) -> LastBatch:
    """Make each claim the whole of what its consumer holds, as one change."""
    try:
        return _claim(connection, claims)
    except UnknownResourceClass as unknown:
        raise Invalid(f"Unable to allocate inventory {unknown.message}") from None


def delete_allocations(connection: Connection, consumer: str) -> LastBatch:
    """Remove all allocations of the consumer; the providers keep their generations."""
    scope = ClaimScope([consumer], (), _NO_NAMES, replaces=True)
    rows, inventories = lock_and_read(connection, scope)
    if not rows.held:
        raise NotFound(f"No allocations for consumer '{consumer}'")
    usages = usages_after({}, amounts_of(rows.held), inventories)
    touched = _providers_of(rows.held)
    return LastBatch(
        [
            *allocations.deleting_allocations(connection, _uuids(rows.held)),
            *consumers.deleting_consumers(connection, [row.id for row in rows.consumers]),
            *_recording(connection, touched, rows.held, usages),
        ]
    )


def _claim(connection: Connection, claims: Sequence[Claim]) -> LastBatch:
    scope = scope_of(claims)
    rows, inventories = lock_and_read(connection, scope)
    prepared = prepare_claims(claims, scope, rows)
    check_providers_exist(claims, rows)
    return LastBatch(settle_claims(connection, prepared, inventories))


@dataclass(frozen=True, slots=True)
class PreparedClaims:
    """Claims whose rows are locked, and whose consumer generations agree."""

    claims: Sequence[Claim]
    scope: ClaimScope
    rows: LockedRows
    # Consumer -> its row, for consumers that existed before.
    known: Mapping[str, ConsumerRow]

    @property
    def provider_uuids(self) -> set[str]:
        """The providers whose generation the claims increment.

        These are the providers that a claim names, and all providers of an emptied consumer.
        """
        emptied = {claim.consumer for claim in self.claims if not claim.allocations}
        freed = {
            row.provider_uuid
            for row in self.rows.held
            if row.provider_uuid is not None and _canonical(row.consumer_uuid) in emptied
        }
        return freed.union(self.scope.provider_uuids)


def scope_of(claims: Sequence[Claim]) -> ClaimScope:
    """What the claims name."""
    holders = [claim for claim in claims if claim.allocations]
    return ClaimScope(
        consumers=[claim.consumer for claim in claims],
        provider_uuids={uuid for claim in holders for uuid in claim.allocations},
        names=WantedNames(
            classes={
                name
                for claim in holders
                for resources in claim.allocations.values()
                for name in resources
            },
            projects={claim.project for claim in holders},
            users={claim.user for claim in holders},
            types={claim.consumer_type for claim in holders if claim.consumer_type is not None},
        ),
        replaces=any(
            isinstance(claim.generation, int) or not claim.allocations for claim in claims
        ),
    )


def prepare_claims(claims: Sequence[Claim], scope: ClaimScope, rows: LockedRows) -> PreparedClaims:
    """Compare the consumer generations of the claims with those of the locked rows."""
    known: dict[str, ConsumerRow] = {}
    for row in rows.consumers:
        known.setdefault(_canonical(row.uuid), row)
    for claim in claims:
        _check_generation(claim, known.get(claim.consumer))
    return PreparedClaims(claims, scope, rows, known)


def check_providers_exist(claims: Sequence[Claim], rows: LockedRows) -> None:
    """Refuse claims on providers that do not exist."""
    for claim in claims:
        for uuid in claim.allocations:
            if uuid not in rows.providers:
                raise Invalid(f"Allocation for resource provider '{uuid}' that does not exist.")


def settle_claims(
    connection: Connection, prepared: PreparedClaims, inventories: InventoryUsages
) -> list[BoundStatement]:
    """The statements that write the claims, if these fit into the inventories."""
    claims, rows, held = prepared.claims, prepared.rows, prepared.rows.held
    classes = rows.names.classes
    for name in _requested_classes(claims):
        if name not in classes:
            raise UnknownResourceClass(name)
    provider_ids = {uuid: id_ for uuid, (id_, _) in rows.providers.items()}
    held_before = amounts_of(held)
    asked = check_capacity(claims, classes, provider_ids, held_before, inventories)
    usages = usages_after(asked, held_before, inventories)
    consumers.insert_missing_names(connection, prepared.scope.names, rows.names)
    moved = {provider_ids[uuid]: uuid for uuid in prepared.provider_uuids if uuid in provider_ids}
    return [
        *_writing_consumers(connection, prepared),
        *allocations.deleting_allocations(connection, _uuids(held)),
        *_inserting_allocations(connection, prepared, provider_ids),
        *providers.incrementing_generations(connection, sorted(moved)),
        *_recording(connection, _providers_of(held) | moved, held, usages),
    ]


def _requested_classes(claims: Sequence[Claim]) -> Iterator[str]:
    for claim in claims:
        for resources in claim.allocations.values():
            yield from resources


def _check_generation(claim: Claim, row: ConsumerRow | None) -> None:
    if isinstance(claim.generation, AnyGeneration):
        return
    if row is None:
        expected: str | int = "null"
        agrees = claim.generation is None
    else:
        expected = row.generation
        # A consumer of generation 0 is left over from a claim that failed: clients take it for new.
        agrees = claim.generation == row.generation or (
            row.generation == 0 and claim.generation is None
        )
    if not agrees:
        raise Conflict(
            f"consumer generation conflict - expected {expected} but got {claim.generation}",
            ErrorCode.CONCURRENT_UPDATE,
            ConflictCause.CONSUMER_GENERATION,
        )


def _writing_consumers(connection: Connection, prepared: PreparedClaims) -> list[BoundStatement]:
    """Insert new consumers, increment known consumers, delete emptied consumers."""
    names, known = prepared.rows.names, prepared.known
    new: list[tuple[str, ConsumerOwner]] = []
    moved: list[int] = []
    reassigned: list[tuple[int, ConsumerOwner]] = []
    # Another service may have written one consumer twice, in two spellings.
    kept = {row.id for row in known.values()}
    deleted = [row.id for row in prepared.rows.consumers if row.id not in kept]
    for claim in prepared.claims:
        row = known.get(claim.consumer)
        if not claim.allocations:
            deleted += [] if row is None else [row.id]
            continue
        owner = _owner(claim, row, names)
        if row is None:
            new.append((claim.consumer, owner))
            continue
        moved.append(row.id)
        if row.owner != owner:
            reassigned.append((row.id, owner))
    return [
        # In the order of uuids, so that two requests for the same new consumers cannot deadlock.
        *consumers.inserting_consumers(connection, sorted(new, key=lambda pair: pair[0])),
        *consumers.reassigning_consumers(connection, reassigned),
        *consumers.incrementing_consumers(connection, moved),
        *consumers.deleting_consumers(connection, deleted),
    ]


def _owner(claim: Claim, row: ConsumerRow | None, names: Names) -> ConsumerOwner:
    """The owner of the consumer after the claim; a claim without a type keeps the old type."""
    if claim.consumer_type is not None:
        type_id: int | None = names.types[claim.consumer_type]
    else:
        type_id = None if row is None else row.owner.consumer_type_id
    return ConsumerOwner(names.projects[claim.project], names.users[claim.user], type_id)


def _inserting_allocations(
    connection: Connection, prepared: PreparedClaims, provider_ids: Mapping[str, int]
) -> list[BoundStatement]:
    known, classes = prepared.known, prepared.rows.names.classes
    return allocations.inserting_allocations(
        connection,
        (
            {
                "resource_provider_id": provider_ids[uuid],
                # A consumer that existed before keeps the spelling of its row.
                "consumer_id": known[claim.consumer].uuid
                if claim.consumer in known
                else claim.consumer,
                "resource_class_id": classes[name],
                "used": amount,
            }
            for claim in prepared.claims
            for uuid, resources in claim.allocations.items()
            for name, amount in resources.items()
        ),
    )


def _recording(
    connection: Connection,
    touched: Mapping[int, str],
    held: Sequence[AllocationRow],
    usages: Amounts,
) -> list[BoundStatement]:
    """Record the new usages of the providers; readers read again what the claim does not know."""
    by_provider: dict[int, dict[int, int] | None] = {id_: {} for id_ in sorted(touched)}
    for (provider_id, class_id), used in usages.items():
        known = by_provider[provider_id]
        assert known is not None, "nothing is unknown yet"
        known[class_id] = used
    for row in held:
        if (row.provider_id, row.class_id) not in usages:
            by_provider[row.provider_id] = None
    return recording_usages(
        connection, ((id_, touched[id_], found) for id_, found in by_provider.items())
    )


def _canonical(consumer: str) -> str:
    return canonical_uuid(consumer) if is_uuid(consumer) else consumer


def _uuids(held: Sequence[AllocationRow]) -> set[str]:
    return {row.consumer_uuid for row in held}


def _providers_of(held: Sequence[AllocationRow]) -> dict[int, str]:
    return {row.provider_id: row.provider_uuid or "" for row in held}
