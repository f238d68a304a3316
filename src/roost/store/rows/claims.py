"""The rows of claims: locked and read in few round trips, then written together with COMMIT.

All transactions lock consumers before providers, and providers in the order of ids.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from itertools import zip_longest
from typing import Any, NamedTuple, TypeAlias

from sqlalchemy import (
    Column,
    CompoundSelect,
    bindparam,
    delete,
    func,
    literal_column,
    select,
    union_all,
    update,
)

from roost.model.identifiers import uuid_spellings
from roost.model.inventory import Inventory
from roost.store.connections.errors import Retry
from roost.store.rows.inventories import AMOUNT_COLUMNS, USED
from roost.store.rows.providers import lock_providers, locked_providers, provider_locks
from roost.store.statements import (
    CHUNK_LENGTH,
    BoundStatement,
    InsertRows,
    Statement,
    UpdateRows,
    chunks,
)
from roost.store.tables import (
    allocations,
    consumer_types,
    consumers,
    inventories,
    projects,
    resource_classes,
    resource_providers,
    stored_time,
    users,
)
from roost.store.transaction import Rows, Transaction

# In the order of the fields of `Names`.
_NAME_COLUMNS: tuple[Column[str], ...] = (
    resource_classes.c.name,
    projects.c.external_id,
    users.c.external_id,
    consumer_types.c.name,
)


def _names_of(**wanted: list[Any]) -> CompoundSelect[Any]:
    return union_all(
        *(
            select(literal_column(f"{kind}").label("kind"), column.table.c.id, column).where(
                column.in_(names)
            )
            for kind, (column, names) in enumerate(zip(_NAME_COLUMNS, wanted.values(), strict=True))
            if names
        )
    )


# One statement for all names of a claim.
_NAME_IDS = Statement(_names_of, lists=["classes", "projects", "users", "types"])
# A claim inserts a project, a user or a consumer type when it first uses it.
_INSERT_NAMES = [InsertRows(column.table, unless_taken=column) for column in _NAME_COLUMNS]

_LOCK_CONSUMERS = (
    select(
        consumers.c.id,
        consumers.c.uuid,
        consumers.c.generation,
        func.coalesce(consumers.c.updated_at, consumers.c.created_at),
        consumers.c.project_id,
        consumers.c.user_id,
        consumers.c.consumer_type_id,
    )
    .order_by(consumers.c.id)
    .with_for_update()
)
_LOCK_CONSUMERS_BY_UUIDS = Statement.among(consumers.c.uuid, _LOCK_CONSUMERS)
_LOCK_CONSUMERS_BY_IDS = Statement.among(consumers.c.id, _LOCK_CONSUMERS)
_CONSUMER_IDS = Statement.among(consumers.c.uuid, select(consumers.c.id))
_INSERT_CONSUMERS = InsertRows(consumers)
_INCREMENT_CONSUMERS = Statement.among(
    consumers.c.id,
    update(consumers).values(
        generation=consumers.c.generation + bindparam("one"), updated_at=bindparam("now")
    ),
)
_REASSIGN_CONSUMERS = UpdateRows(consumers, ["project_id", "user_id", "consumer_type_id"])
_DELETE_CONSUMERS = Statement.among(consumers.c.id, delete(consumers))

_ALLOCATIONS = Statement.among(
    allocations.c.consumer_id,
    select(
        allocations.c.resource_provider_id,
        resource_providers.c.uuid,
        allocations.c.consumer_id,
        allocations.c.resource_class_id,
        resource_classes.c.name,
        allocations.c.used,
    ).select_from(
        allocations.outerjoin(
            resource_providers, resource_providers.c.id == allocations.c.resource_provider_id
        ).outerjoin(resource_classes, resource_classes.c.id == allocations.c.resource_class_id)
    ),
)
_INSERT_ALLOCATIONS = InsertRows(allocations)
_DELETE_ALLOCATIONS = Statement.among(allocations.c.consumer_id, delete(allocations))

# By uuid and name, so that a claim need not look up ids before.
_INVENTORIES = Statement(
    lambda uuids, classes: (
        select(
            inventories.c.resource_provider_id,
            inventories.c.resource_class_id,
            resource_classes.c.name,
            *AMOUNT_COLUMNS,
            USED,
        )
        .select_from(
            inventories.join(
                resource_providers, resource_providers.c.id == inventories.c.resource_provider_id
            ).join(resource_classes, resource_classes.c.id == inventories.c.resource_class_id)
        )
        .where(resource_providers.c.uuid.in_(uuids), resource_classes.c.name.in_(classes))
    ),
    lists=["uuids", "classes"],
)


class ConsumerOwner(NamedTuple):
    """The project, the user and the type of a consumer."""

    project_id: int
    user_id: int
    consumer_type_id: int | None


class ConsumerRow(NamedTuple):
    """A row of a consumer; `uuid` has the spelling of the row."""

    id: int
    uuid: str
    generation: int
    changed_at: datetime | None
    owner: ConsumerOwner


class AllocationRow(NamedTuple):
    """A row of an allocation, with the uuid of its provider and the name of its class.

    Either is `None` if another service has deleted it.
    """

    provider_id: int
    provider_uuid: str | None
    consumer_uuid: str
    class_id: int
    resource_class: str | None
    used: int


class InventoryUsage(NamedTuple):
    """An inventory, and the sum of the allocations of all consumers from it."""

    inventory: Inventory
    used: int


# (provider id, class id) -> an inventory that exists, and its usage
InventoryUsages: TypeAlias = dict[tuple[int, int], InventoryUsage]


class Names(NamedTuple):
    """The internal ids of the names that a claim uses; unknown names are missing."""

    classes: dict[str, int]
    projects: dict[str, int]
    users: dict[str, int]
    types: dict[str, int]


class WantedNames(NamedTuple):
    """The names that claims use, of each kind."""

    classes: Collection[str]
    projects: Collection[str]
    users: Collection[str]
    types: Collection[str]


class ClaimScope(NamedTuple):
    """What claims name."""

    consumers: Sequence[str]
    provider_uuids: Collection[str]
    names: WantedNames
    # Whether consumers are expected to hold allocations, from providers that the claims may not
    # name. If none is expected, one round trip suffices.
    replaces: bool


class LockedRows(NamedTuple):
    """The rows of consumers and providers, which no other transaction can change.

    `providers` has (id, generation) by uuid: the providers that the claims name, and all of which
    a consumer holds allocations.
    """

    names: Names
    consumers: list[ConsumerRow]
    held: list[AllocationRow]
    providers: dict[str, tuple[int, int]]


def lock_rows(
    transaction: Transaction, scope: ClaimScope, more_providers: Collection[str] = ()
) -> LockedRows:
    """Lock consumers, then their providers and those of the scope, in two round trips."""
    consumer_rows, name_rows, held_rows = transaction.lock(*_consumer_queries(transaction, scope))
    found = _consumers(consumer_rows)
    held = _held(held_rows, found)
    wanted = {*scope.provider_uuids, *more_providers, *_providers_of(held)}
    locked = lock_providers(transaction, sorted(wanted))
    return LockedRows(_names(name_rows), found, held, locked)


def lock_and_read(
    transaction: Transaction, scope: ClaimScope
) -> tuple[LockedRows, InventoryUsages]:
    """Lock all rows of the claims, then read inventories and usages under the locks."""
    uuids = [] if scope.replaces else sorted(scope.provider_uuids)
    consumer_rows, name_rows, held_rows, provider_rows, inventory_rows = transaction.lock(
        *_consumer_queries(transaction, scope),
        provider_locks(transaction, uuids),
        _inventory_queries(transaction, uuids, scope.names.classes),
    )
    found = _consumers(consumer_rows)
    held = _held(held_rows, found)
    locked = locked_providers(provider_rows)
    late = _providers_of(held) - locked.keys()
    if scope.replaces:
        late |= set(scope.provider_uuids)
    if late:
        # Unless the scope has said that allocations are replaced, these locks are out of order. If
        # two transactions then wait for each other, the database ends one, which runs again. That
        # is rare: clients that replace allocations usually say so.
        more_rows, more_inventories = transaction.lock(
            provider_locks(transaction, sorted(late)),
            _inventory_queries(transaction, sorted(late), _classes(scope, held)),
        )
        locked |= locked_providers(more_rows)
        inventory_rows += more_inventories
    names = _names(name_rows)
    return LockedRows(names, found, held, locked), _inventories(inventory_rows, names)


def read_inventories(
    transaction: Transaction, scope: ClaimScope, rows: LockedRows
) -> InventoryUsages:
    """Read the inventories and usages of locked providers."""
    classes = _classes(scope, rows.held)
    (found,) = transaction.read(_inventory_queries(transaction, rows.providers, classes))
    return _inventories(found, rows.names)


def insert_missing_names(transaction: Transaction, wanted: WantedNames, names: Names) -> None:
    """Insert the projects, users and consumer types that were not found, and add them to `names`.

    Most claims use names that exist: then no statement is sent.
    """
    # Sorted, so that two requests with the same new names do not deadlock.
    missing = [sorted(set(new) - known.keys()) for new, known in zip(wanted, names, strict=True)]
    # A claim does not make resource classes.
    missing[0] = []
    if not any(missing):
        return
    for column, insert, new in zip(_NAME_COLUMNS, _INSERT_NAMES, missing, strict=True):
        rows = [{"created_at": transaction.now, column.name: name} for name in new]
        transaction.write(insert.bound(transaction, rows))
    (found,) = transaction.read(_name_queries(transaction, missing))
    for kind, id_, name in found:
        names[kind][name] = id_
    for kind, new in enumerate(missing):
        for name in new:
            if name not in names[kind]:
                # The default collations of MySQL find the row of `abc` for `ABC`.
                alone = [[name] if number == kind else [] for number in range(len(missing))]
                (((_, names[kind][name], _),),) = transaction.read(
                    _name_queries(transaction, alone)
                )


def insert_consumers(transaction: Transaction, new: Sequence[tuple[str, ConsumerOwner]]) -> None:
    """Insert consumers; `IntegrityError` if another transaction has inserted one of them."""
    now = transaction.now
    rows = [
        {
            "created_at": now,
            "updated_at": now,
            "generation": 1,
            "uuid": uuid,
            "project_id": owner.project_id,
            "user_id": owner.user_id,
            "consumer_type_id": owner.consumer_type_id,
        }
        for uuid, owner in new
    ]
    transaction.write(_INSERT_CONSUMERS.bound(transaction, rows))


def reassign_consumers(
    transaction: Transaction, changed: Sequence[tuple[int, ConsumerOwner]]
) -> None:
    """Update the projects, users and types of locked consumers."""
    rows = [{"id": id_, **owner._asdict()} for id_, owner in changed]
    transaction.write(_REASSIGN_CONSUMERS.bound(transaction, rows))


def increment_consumers(transaction: Transaction, ids: Sequence[int]) -> None:
    """Increment the generations of locked consumers."""
    values = {"one": 1, "now": transaction.now}
    transaction.write(_INCREMENT_CONSUMERS.bound_chunks(transaction, ids, values))


def delete_consumers(transaction: Transaction, ids: Sequence[int]) -> None:
    """Delete locked consumers that have no allocations."""
    transaction.write(_DELETE_CONSUMERS.bound_chunks(transaction, ids))


def insert_allocations(transaction: Transaction, new: Iterable[tuple[int, str, int, int]]) -> None:
    """Insert allocations, given as provider id, consumer uuid, class id and amount."""
    now = transaction.now
    rows = [
        {
            "created_at": now,
            "resource_provider_id": provider_id,
            "consumer_id": consumer,
            "resource_class_id": class_id,
            "used": used,
        }
        for provider_id, consumer, class_id, used in new
    ]
    transaction.write(_INSERT_ALLOCATIONS.bound(transaction, rows))


def delete_allocations(transaction: Transaction, held: Iterable[AllocationRow]) -> None:
    """Delete all allocations of the consumers that hold these."""
    uuids = {row.consumer_uuid for row in held}
    transaction.write(_DELETE_ALLOCATIONS.bound_chunks(transaction, uuids))


def _consumer_queries(
    transaction: Transaction, scope: ClaimScope
) -> tuple[list[BoundStatement], list[BoundStatement], list[BoundStatement]]:
    """The queries that lock the consumers, that find all names, and that find all allocations."""
    spellings = [spelling for uuid in scope.consumers for spelling in uuid_spellings(uuid)]
    return (
        _consumer_locks(transaction, spellings),
        _name_queries(transaction, scope.names),
        _ALLOCATIONS.bound_chunks(transaction, spellings),
    )


def _consumer_locks(transaction: Transaction, spellings: list[str]) -> list[BoundStatement]:
    if len(spellings) <= CHUNK_LENGTH:
        return _LOCK_CONSUMERS_BY_UUIDS.bound_chunks(transaction, spellings)
    # In the order of the ids. On MySQL two spellings may find the same row.
    ids = {id_ for (id_,) in _CONSUMER_IDS.rows(transaction.connection, spellings)}
    return _LOCK_CONSUMERS_BY_IDS.bound_chunks(transaction, sorted(ids))


def _name_queries(
    transaction: Transaction, wanted: Iterable[Collection[str]]
) -> list[BoundStatement]:
    """One query for all names, unless a POST is very large."""
    pieces = zip_longest(*map(chunks, wanted), fillvalue=())
    return [
        _NAME_IDS.bound(transaction, dict(zip(Names._fields, piece, strict=True)))
        for piece in pieces
    ]


def _inventory_queries(
    transaction: Transaction, provider_uuids: Iterable[str], classes: Iterable[str]
) -> list[BoundStatement]:
    """The queries of inventories with their usage. The locks of the providers guard both."""
    uuids = list(provider_uuids)
    return [
        statement
        for chunk in chunks(classes)
        for statement in _INVENTORIES.bound_chunks(transaction, uuids, {"classes": chunk})
    ]


def _names(rows: Rows) -> Names:
    names = Names({}, {}, {}, {})
    for kind, id_, name in rows:
        names[kind][name] = id_
    return names


def _consumers(rows: Rows) -> list[ConsumerRow]:
    return [
        ConsumerRow(id_, uuid, generation, stored_time(changed), ConsumerOwner(*owner))
        for id_, uuid, generation, changed, *owner in rows
    ]


def _held(rows: Rows, found: Sequence[ConsumerRow]) -> list[AllocationRow]:
    """The allocations of consumers that exist, as MySQL compares their uuids."""
    uuids = {row.uuid.lower() for row in found}
    held = [AllocationRow(*row) for row in rows]
    return [row for row in held if row.consumer_uuid.lower() in uuids]


def _inventories(rows: Rows, names: Names) -> InventoryUsages:
    """The inventories; `Retry` if a class was deleted and made again since its name was read."""
    found = {
        (provider_id, class_id): InventoryUsage(Inventory(name, *amounts), int(used))
        for provider_id, class_id, name, *amounts, used in rows
    }
    for (_, class_id), (inventory, _) in found.items():
        if names.classes.get(inventory.resource_class, class_id) != class_id:
            raise Retry
    return found


def _providers_of(held: Sequence[AllocationRow]) -> set[str]:
    return {row.provider_uuid for row in held if row.provider_uuid is not None}


def _classes(scope: ClaimScope, held: Sequence[AllocationRow]) -> set[str]:
    return {row.resource_class for row in held if row.resource_class is not None}.union(
        scope.names.classes
    )
