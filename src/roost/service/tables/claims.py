"""Claims: a claim becomes the whole of what its consumer holds, or changes nothing.

Every claim takes its locks in one order: consumers, then providers by id. It reads inventories and
usages under the locks of the providers, decides, and then writes everything together with COMMIT.
So two claims that both fit both succeed, one after another. No interleaving of claims exceeds a
capacity.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from operator import itemgetter
from typing import NamedTuple

from roost.model.consumers import AnyGeneration, Claim
from roost.model.identifiers import canonical_uuid, is_uuid
from roost.service.errors import (
    Conflict,
    ConflictCause,
    ErrorCode,
    Invalid,
    NotFound,
    UnknownResourceClass,
)
from roost.service.tables.fitting_claims import Amounts, amounts_of, check_capacity, usages_after
from roost.store.journal.writing import record_usages
from roost.store.rows import claims as claim_rows
from roost.store.rows.claims import (
    AllocationRow,
    ClaimScope,
    ConsumerOwner,
    ConsumerRow,
    InventoryUsages,
    LockedRows,
    Names,
    WantedNames,
    lock_and_read,
)
from roost.store.rows.consumers import AuditedConsumer
from roost.store.rows.providers import increment_generations
from roost.store.transaction import Finished, Transaction

_NO_NAMES = WantedNames((), (), (), ())


def claim_for_one(transaction: Transaction, claim: Claim) -> Finished[None]:
    """Make the claim the whole of what its consumer holds."""
    prefix = f"Unable to allocate inventory for consumer {claim.consumer}: "
    return _claim(transaction, [claim], prefix)


def claim_for_several(transaction: Transaction, claims: Sequence[Claim]) -> Finished[None]:
    """Make each claim the whole of what its consumer holds, as one change."""
    return _claim(transaction, claims, "Unable to allocate inventory ")


def delete_allocations(transaction: Transaction, consumer: str) -> Finished[None]:
    """Remove all allocations of the consumer; the providers keep their generations."""
    scope = ClaimScope([consumer], (), _NO_NAMES, replaces=True)
    rows, inventories = lock_and_read(transaction, scope)
    if not rows.held:
        raise NotFound(f"No allocations for consumer '{consumer}'")
    _release(transaction, rows.consumers, rows.held, inventories)
    return transaction.finish()


class ConsumerMark(NamedTuple):
    """What tells whether a consumer has changed.

    A consumer that is deleted and made anew has its first generation again. SQLite may give it the
    same id, and MariaDB the same whole second. No database gives it both.
    """

    uuid: str
    id: int
    generation: int
    changed_at: datetime | None

    @classmethod
    def of(cls, row: ConsumerRow | AuditedConsumer) -> ConsumerMark:
        """The mark of a consumer as a row has it."""
        return cls(row.uuid, row.id, row.generation, row.changed_at)


def release_unchanged(
    transaction: Transaction, marks: Collection[ConsumerMark]
) -> Finished[set[str]]:
    """Remove all allocations of those consumers that still have these marks."""
    scope = ClaimScope([mark.uuid for mark in marks], (), _NO_NAMES, replaces=True)
    rows, inventories = lock_and_read(transaction, scope)
    consumers = [row for row in rows.consumers if ConsumerMark.of(row) in marks]
    # Allocations may spell their consumer in another way.
    released = {_canonical(row.uuid) for row in consumers}
    held = [row for row in rows.held if _canonical(row.consumer_uuid) in released]
    _release(transaction, consumers, held, inventories)
    return transaction.finish({row.uuid for row in consumers})


def _release(
    transaction: Transaction,
    consumers: Sequence[ConsumerRow],
    held: Sequence[AllocationRow],
    inventories: InventoryUsages,
) -> None:
    usages = usages_after({}, amounts_of(held), inventories)
    claim_rows.delete_allocations(transaction, held)
    claim_rows.delete_consumers(transaction, [row.id for row in consumers])
    _record(transaction, _providers_of(held), held, usages)


def _claim(transaction: Transaction, claims: Sequence[Claim], prefix: str) -> Finished[None]:
    scope = scope_of(claims)
    rows, inventories = lock_and_read(transaction, scope)
    prepared = prepare_claims(claims, scope, rows)
    check_providers_exist(claims, rows)
    try:
        settle_claims(transaction, prepared, inventories)
    except UnknownResourceClass as unknown:
        raise Invalid(prefix + unknown.message) from None
    return transaction.finish()


class PreparedClaims(NamedTuple):
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
    transaction: Transaction, prepared: PreparedClaims, inventories: InventoryUsages
) -> None:
    """Write the claims, if these fit into the inventories."""
    claims, rows, held = prepared.claims, prepared.rows, prepared.rows.held
    classes = rows.names.classes
    for name in _requested_classes(claims):
        if name not in classes:
            raise UnknownResourceClass(name)
    provider_ids = {uuid: id_ for uuid, (id_, _) in rows.providers.items()}
    held_before = amounts_of(held)
    asked = check_capacity(claims, classes, provider_ids, held_before, inventories)
    usages = usages_after(asked, held_before, inventories)
    incremented = {
        provider_ids[uuid]: uuid for uuid in prepared.provider_uuids if uuid in provider_ids
    }
    claim_rows.insert_missing_names(transaction, prepared.scope.names, rows.names)
    _write_consumers(transaction, prepared)
    if held:
        claim_rows.delete_allocations(transaction, held)
    _insert_allocations(transaction, prepared, provider_ids)
    increment_generations(transaction, sorted(incremented))
    _record(transaction, _providers_of(held) | incremented, held, usages)


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


def _write_consumers(transaction: Transaction, prepared: PreparedClaims) -> None:
    """Insert new consumers, increment known consumers, delete emptied consumers."""
    names, known = prepared.rows.names, prepared.known
    new: list[tuple[str, ConsumerOwner]] = []
    incremented: list[int] = []
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
        incremented.append(row.id)
        if row.owner != owner:
            reassigned.append((row.id, owner))
    if new:
        # In the order of uuids, so that two requests for the same new consumers cannot deadlock.
        claim_rows.insert_consumers(transaction, sorted(new, key=itemgetter(0)))
    if reassigned:
        claim_rows.reassign_consumers(transaction, reassigned)
    if incremented:
        claim_rows.increment_consumers(transaction, incremented)
    if deleted:
        claim_rows.delete_consumers(transaction, deleted)


def _owner(claim: Claim, row: ConsumerRow | None, names: Names) -> ConsumerOwner:
    """The owner of the consumer after the claim; a claim without a type keeps the old type."""
    if claim.consumer_type is not None:
        type_id: int | None = names.types[claim.consumer_type]
    else:
        type_id = None if row is None else row.owner.consumer_type_id
    return ConsumerOwner(names.projects[claim.project], names.users[claim.user], type_id)


def _insert_allocations(
    transaction: Transaction, prepared: PreparedClaims, provider_ids: Mapping[str, int]
) -> None:
    known, classes = prepared.known, prepared.rows.names.classes
    new = []
    for claim in prepared.claims:
        # A consumer that existed before keeps the spelling of its row.
        consumer = known[claim.consumer].uuid if claim.consumer in known else claim.consumer
        for uuid, resources in claim.allocations.items():
            provider_id = provider_ids[uuid]
            new += [
                (provider_id, consumer, classes[name], used) for name, used in resources.items()
            ]
    claim_rows.insert_allocations(transaction, new)


def _record(
    transaction: Transaction,
    touched: Mapping[int, str],
    held: Sequence[AllocationRow],
    usages: Amounts,
) -> None:
    """Record the new usages of the providers; readers read again what the claim does not know."""
    by_provider: dict[int, dict[int, int] | None] = {id_: {} for id_ in sorted(touched)}
    for (provider_id, class_id), used in usages.items():
        known = by_provider[provider_id]
        assert known is not None, "nothing is unknown yet"
        known[class_id] = used
    for row in held:
        if (row.provider_id, row.class_id) not in usages:
            by_provider[row.provider_id] = None
    record_usages(transaction, ((id_, touched[id_], found) for id_, found in by_provider.items()))


def _canonical(consumer: str) -> str:
    return canonical_uuid(consumer) if is_uuid(consumer) else consumer


def _providers_of(held: Sequence[AllocationRow]) -> dict[int, str]:
    return {row.provider_id: row.provider_uuid or "" for row in held}
