"""Claims: a claim becomes the whole of what its consumer holds, or changes nothing.

Every claim takes its locks in one order: names, consumers, providers (by id). It reads inventories
and usages after it has locked the providers. So two claims that both fit both succeed, one after
another. No interleaving of claims exceeds a capacity.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection

from roost.model.consumers import AnyGeneration, Claim
from roost.model.identifiers import canonical_uuid, is_uuid
from roost.service.capacity import check_capacity
from roost.service.errors import Conflict, ErrorCode, Invalid, NotFound, UnknownResourceClass
from roost.store import allocations, consumers, providers
from roost.store.allocations import AllocationRow
from roost.store.consumers import ConsumerOwner, ConsumerRow, Names
from roost.store.journal.writing import ChangeKind, record_changes


@dataclass(frozen=True, slots=True)
class PreparedClaims:
    """Claims whose consumers are locked, checked and written; no provider is locked yet."""

    claims: Sequence[Claim]
    names: Names
    held: Sequence[AllocationRow]
    # Consumer -> its uuid as the row has it, for consumers that existed before.
    spellings: Mapping[str, str]

    @property
    def provider_uuids(self) -> set[str]:
        """The providers whose generation the claims increment.

        These are the providers that a claim names, and all providers of an emptied consumer.
        """
        emptied = {claim.consumer for claim in self.claims if not claim.allocations}
        freed = {
            row.provider_uuid
            for row in self.held
            if row.provider_uuid is not None and _canonical(row.consumer_uuid) in emptied
        }
        return freed | {uuid for claim in self.claims for uuid in claim.allocations}


def claim_for_one(connection: Connection, claim: Claim) -> None:
    """Make the claim the whole of what its consumer holds."""
    try:
        _claim(connection, [claim])
    except UnknownResourceClass as unknown:
        raise Invalid(
            f"Unable to allocate inventory for consumer {claim.consumer}: {unknown.message}"
        ) from None


def claim_for_several(connection: Connection, claims: Sequence[Claim]) -> None:
    """Make each claim the whole of what its consumer holds, as one change."""
    try:
        _claim(connection, claims)
    except UnknownResourceClass as unknown:
        raise Invalid(f"Unable to allocate inventory {unknown.message}") from None


def delete_allocations(connection: Connection, consumer: str) -> None:
    """Remove all allocations of the consumer; the providers keep their generations."""
    rows = consumers.lock_consumers(connection, [consumer])
    held = allocations.allocations_of(connection, [row.uuid for row in rows])
    if not held:
        raise NotFound(f"No allocations for consumer '{consumer}'")
    allocations.delete_allocations(connection, [row.uuid for row in rows])
    consumers.delete_consumers(connection, [row.id for row in rows])
    record_changes(connection, ChangeKind.USAGE, sorted(_providers_of(held).items()))


def _claim(connection: Connection, claims: Sequence[Claim]) -> None:
    prepared = prepare_claims(connection, claims)
    locked = providers.lock_providers(connection, sorted(prepared.provider_uuids))
    provider_ids = {uuid: id_ for uuid, (id_, _) in locked.items()}
    check_providers_exist(claims, provider_ids)
    settle_claims(connection, prepared, provider_ids)


def prepare_claims(connection: Connection, claims: Sequence[Claim]) -> PreparedClaims:
    """Lock the consumers, compare their generations, and write their rows."""
    names = _look_up_names(connection, claims)
    rows = consumers.lock_consumers(connection, [claim.consumer for claim in claims])
    known: dict[str, ConsumerRow] = {}
    for row in rows:
        known.setdefault(_canonical(row.uuid), row)
    for claim in claims:
        _check_generation(claim, known.get(claim.consumer))
    held = allocations.allocations_of(connection, [row.uuid for row in rows])
    _write_consumers(connection, claims, known, names)
    # Another service may have written one consumer twice, in two spellings.
    kept = {row.id for row in known.values()}
    consumers.delete_consumers(connection, [row.id for row in rows if row.id not in kept])
    spellings = {consumer: row.uuid for consumer, row in known.items()}
    return PreparedClaims(claims, names, held, spellings)


def check_providers_exist(claims: Sequence[Claim], provider_ids: Mapping[str, int]) -> None:
    """Refuse claims on providers that do not exist; `provider_ids` has the locked providers."""
    for claim in claims:
        for uuid in claim.allocations:
            if uuid not in provider_ids:
                raise Invalid(f"Allocation for resource provider '{uuid}' that does not exist.")


def settle_claims(
    connection: Connection, prepared: PreparedClaims, provider_ids: Mapping[str, int]
) -> None:
    """Check the claims against their locked providers and write the allocations."""
    claims, names, held = prepared.claims, prepared.names, prepared.held
    for claim in claims:
        for resources in claim.allocations.values():
            for name in resources:
                if name not in names.classes:
                    raise UnknownResourceClass(name)
    check_capacity(connection, claims, names.classes, provider_ids, held)
    if held:
        allocations.delete_allocations(connection, {row.consumer_uuid for row in held})
    allocations.insert_allocations(
        connection,
        (
            {
                "resource_provider_id": provider_ids[uuid],
                "consumer_id": prepared.spellings.get(claim.consumer, claim.consumer),
                "resource_class_id": names.classes[name],
                "used": amount,
            }
            for claim in claims
            for uuid, resources in claim.allocations.items()
            for name, amount in resources.items()
        ),
    )
    moved = {provider_ids[uuid]: uuid for uuid in prepared.provider_uuids if uuid in provider_ids}
    providers.increment_generations(connection, sorted(moved))
    touched = _providers_of(held) | moved
    record_changes(connection, ChangeKind.USAGE, sorted(touched.items()))


def _look_up_names(connection: Connection, claims: Sequence[Claim]) -> Names:
    """The ids of all names in the claims; new projects, users and types are inserted."""
    holders = [claim for claim in claims if claim.allocations]
    return consumers.ensure_names(
        connection,
        classes={
            name
            for claim in holders
            for resources in claim.allocations.values()
            for name in resources
        },
        project_names={claim.project for claim in holders},
        user_names={claim.user for claim in holders},
        type_names={claim.consumer_type for claim in holders if claim.consumer_type is not None},
    )


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
        )


def _write_consumers(
    connection: Connection,
    claims: Sequence[Claim],
    known: Mapping[str, ConsumerRow],
    names: Names,
) -> None:
    """Insert new consumers, increment known consumers, delete emptied consumers."""
    new: list[tuple[str, ConsumerOwner]] = []
    moved: list[int] = []
    reassigned: list[tuple[int, ConsumerOwner]] = []
    emptied: list[int] = []
    for claim in claims:
        row = known.get(claim.consumer)
        if not claim.allocations:
            emptied += [] if row is None else [row.id]
            continue
        owner = _owner(claim, row, names)
        if row is None:
            new.append((claim.consumer, owner))
            continue
        moved.append(row.id)
        if row.owner != owner:
            reassigned.append((row.id, owner))
    # In the order of uuids, so that two requests for the same new consumers cannot deadlock.
    consumers.insert_consumers(connection, sorted(new, key=lambda pair: pair[0]))
    consumers.reassign_consumers(connection, reassigned)
    consumers.increment_consumers(connection, moved)
    consumers.delete_consumers(connection, emptied)


def _owner(claim: Claim, row: ConsumerRow | None, names: Names) -> ConsumerOwner:
    """The owner of the consumer after the claim; a claim without a type keeps the old type."""
    if claim.consumer_type is not None:
        type_id: int | None = names.types[claim.consumer_type]
    else:
        type_id = None if row is None else row.owner.consumer_type_id
    return ConsumerOwner(names.projects[claim.project], names.users[claim.user], type_id)


def _canonical(consumer: str) -> str:
    return canonical_uuid(consumer) if is_uuid(consumer) else consumer


def _providers_of(held: Sequence[AllocationRow]) -> dict[int, str]:
    return {row.provider_id: row.provider_uuid or "" for row in held}
