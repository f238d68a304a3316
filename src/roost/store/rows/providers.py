"""Resource providers: reading, locking and writing their rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import (
    Connection,
    Select,
    bindparam,
    delete,
    func,
    literal_column,
    null,
    select,
    update,
)

from roost.model.providers import Provider
from roost.store.connections.errors import Retry
from roost.store.journal.writing import ChangeDetail, ChangeKind, ProviderEvent, record_details
from roost.store.statements import (
    CHUNK_LENGTH,
    BoundStatement,
    InsertRows,
    Query,
    Statement,
    UpdateRows,
    insert_row,
)
from roost.store.tables import (
    allocations,
    inventories,
    resource_provider_aggregates,
    resource_provider_traits,
    resource_providers,
    roost_ownership,
    stored_time,
)
from roost.store.transaction import Transaction

_columns = resource_providers.c

# How many providers an audit reads at once.
_NAMED_AT_ONCE = 4096

_root = resource_providers.alias("root")
_parent = resource_providers.alias("parent")

# A provider without root is invisible in every answer, as in the reference: hence the inner join.
VISIBLE_PROVIDERS = resource_providers.join(_root, _root.c.id == _columns.root_provider_id)
PROVIDERS: Select[Any] = select(
    _columns.id,
    _columns.uuid,
    _columns.name,
    _columns.generation,
    _columns.parent_provider_id,
    _parent.c.uuid.label("parent_uuid"),
    _columns.root_provider_id,
    _root.c.uuid.label("root_uuid"),
    func.coalesce(_columns.updated_at, _columns.created_at),
).select_from(VISIBLE_PROVIDERS.outerjoin(_parent, _parent.c.id == _columns.parent_provider_id))

_BY_UUID = Query(PROVIDERS.where(_columns.uuid == bindparam("uuid")))
_BY_ID = Query(PROVIDERS.where(_columns.id == bindparam("id")))
_BY_IDS = Query.among(_columns.id, PROVIDERS)
_BY_NAME = Query(PROVIDERS.where(_columns.name == bindparam("name")))
_TAKEN = [
    Query.among(column, select(_columns.uuid, _columns.name))
    for column in (_columns.uuid, _columns.name)
]
_NAMES = Query.among(_columns.uuid, select(_columns.uuid, _columns.name))
_GENERATIONS_OF_IDS = Query.among(_columns.id, select(_columns.id, _columns.generation))

_NAMED = Query(
    select(
        resource_providers.c.id,
        resource_providers.c.uuid,
        resource_providers.c.name,
        resource_providers.c.root_provider_id,
        resource_providers.c.parent_provider_id,
    )
    .where(
        resource_providers.c.id > bindparam("after"),
        resource_providers.c.root_provider_id.is_not(None),
    )
    .order_by(resource_providers.c.id)
    .limit(literal_column(str(_NAMED_AT_ONCE)))
    # SQLite's form of a limit has an offset, which would be a parameter.
    .offset(literal_column("0"))
)

# NO KEY UPDATE on PostgreSQL: rows that refer to the provider (children, traits) may still come.
_GENERATION = select(_columns.id, _columns.uuid, _columns.generation)
_LOCK = _GENERATION.order_by(_columns.id).with_for_update(key_share=True)
_LOCK_BY_UUIDS = Statement.among(_columns.uuid, _LOCK)
_LOCK_BY_IDS = Statement.among(_columns.id, _LOCK)
_GENERATIONS = Statement.among(
    _columns.uuid, _GENERATION.where(_columns.root_provider_id.is_not(None))
)
_IDS = Statement.among(_columns.uuid, select(_columns.id))
_UUIDS = Statement.among(_columns.id, select(_columns.id, _columns.uuid))
_CHILDREN = Statement.among(_columns.parent_provider_id, select(_columns.id).order_by(_columns.id))


def _update(**values: Any) -> Statement:
    """Sets columns of providers by their ids."""
    return Statement.among(_columns.id, update(resource_providers).values(**values))


_INCREMENT = _update(generation=_columns.generation + bindparam("by"), updated_at=bindparam("now"))
_MOVE = _update(root_provider_id=bindparam("root_id"), updated_at=bindparam("now"))
_RENAME = _update(name=bindparam("name"), updated_at=bindparam("now"))
_SET_UUID = _update(
    uuid=bindparam("uuid"),
    generation=resource_providers.c.generation + literal_column("1"),
    updated_at=bindparam("now"),
)
_SET_PARENT = _update(parent_provider_id=bindparam("parent_id"))
_SET_ROOT = _update(root_provider_id=bindparam("root_id"))
_SEPARATE = _update(root_provider_id=null(), parent_provider_id=null())
_INSERT = InsertRows(resource_providers)
_REPARENT = UpdateRows(resource_providers, ["parent_provider_id"], common=["updated_at"])
_DELETE_PARTS = [
    Statement.among(table.c.resource_provider_id, delete(table))
    for table in (inventories, resource_provider_traits, resource_provider_aggregates)
] + [Statement.among(roost_ownership.c.provider_id, delete(roost_ownership))]
_DELETE = Statement.among(_columns.id, delete(resource_providers))


class SeenProvider(NamedTuple):
    """A provider at the generation that a request was decided on."""

    id: int
    uuid: str
    generation: int


class MemberRow(NamedTuple):
    """A provider of a tree."""

    id: int
    uuid: str
    name: str
    generation: int
    parent_id: int | None


def provider_of(row: Sequence[Any]) -> Provider:
    """The provider in a row of the driver with the columns of `PROVIDERS`."""
    return Provider._make((*row[:-1], stored_time(row[-1])))


def find_provider(connection: Connection, uuid: str) -> Provider | None:
    """The provider with exactly this uuid."""
    row = _BY_UUID.fetch_one(connection, {"uuid": uuid})
    return None if row is None else provider_of(row)


def find_generations(connection: Connection, uuids: Iterable[str]) -> dict[str, SeenProvider]:
    """Those of the providers that exist, by the uuid of their row."""
    return {row.uuid: SeenProvider(*row) for row in _GENERATIONS.rows(connection, uuids)}


def find_generations_of_ids(connection: Connection, ids: Iterable[int]) -> dict[int, int]:
    """The generations of those of the providers that exist, by id."""
    return dict(_GENERATIONS_OF_IDS.fetch_members(connection, ids))


def find_provider_by_name(connection: Connection, name: str) -> Provider | None:
    """The provider with this name, as the database compares names."""
    row = _BY_NAME.fetch_one(connection, {"name": name})
    return None if row is None else provider_of(row)


def find_by_ids(connection: Connection, ids: Iterable[int]) -> list[Provider]:
    """Those of the providers that exist, in the order of their ids."""
    return [provider_of(row) for row in sorted(_BY_IDS.fetch_members(connection, ids))]


def find_taken(
    connection: Connection, uuids: Iterable[str], names: Iterable[str]
) -> tuple[str, str] | None:
    """The uuid and name of a row that has one of these, as the database compares names.

    Invisible rows, which have no root, count.
    """
    for query, members in zip(_TAKEN, (uuids, names), strict=True):
        for uuid, name in query.fetch_members(connection, members):
            return uuid, name
    return None


def find_names(connection: Connection, uuids: Iterable[str]) -> dict[str, str]:
    """The names of those of the providers that exist, by uuid."""
    return dict(_NAMES.fetch_members(connection, uuids))


class NamedProvider(NamedTuple):
    """A provider with its name and its place in the tree."""

    id: int
    uuid: str
    name: str
    root_id: int
    parent_id: int | None


def named_pages(connection: Connection) -> Iterator[list[NamedProvider]]:
    """All providers, page by page, in the order of their ids."""
    after = 0
    while rows := _NAMED.fetch(connection, {"after": after}):
        found = [NamedProvider._make(row) for row in rows]
        after = found[-1].id
        yield found


def any_exists(connection: Connection) -> bool:
    """Whether there is any provider."""
    return connection.execute(PROVIDERS.limit(1)).first() is not None


def is_taken(
    connection: Connection,
    *,
    name: str | None = None,
    uuid: str | None = None,
    other_than: Provider | None = None,
) -> bool:
    """Whether a row has this name or uuid. Invisible rows, which have no root, count."""
    query = select(_columns.id)
    if name is not None:
        query = query.where(_columns.name == name)
    if uuid is not None:
        query = query.where(_columns.uuid == uuid)
    if other_than is not None:
        query = query.where(_columns.id != other_than.id)
    return connection.execute(query.limit(1)).first() is not None


def lock_providers(transaction: Transaction, uuids: Iterable[str]) -> dict[str, tuple[int, int]]:
    """Lock these providers until the transaction ends: uuid -> (id, generation) of those found."""
    (rows,) = transaction.lock(provider_locks(transaction, uuids))
    return locked_providers(rows)


def provider_locks(transaction: Transaction, uuids: Iterable[str]) -> list[BoundStatement]:
    """The queries that lock these providers until the transaction ends.

    Every writer locks in the order of ids, so no two writers wait for each other. If a database
    locks in another order, it ends one of two such transactions, which then runs again.
    """
    wanted = list(uuids)
    if len(wanted) <= CHUNK_LENGTH:
        return _LOCK_BY_UUIDS.bound_chunks(transaction, wanted)
    ids = {id_ for (id_,) in _IDS.rows(transaction.connection, wanted)}
    return id_locks(transaction, ids)


def id_locks(transaction: Transaction, ids: Iterable[int]) -> list[BoundStatement]:
    """The queries that lock the providers with these ids until the transaction ends."""
    return _LOCK_BY_IDS.bound_chunks(transaction, sorted(ids))


def locked_providers(rows: Iterable[Any]) -> dict[str, tuple[int, int]]:
    """The providers in the rows of these queries: uuid -> (id, generation)."""
    return {uuid: (id_, generation) for id_, uuid, generation in rows}


def lock_provider(transaction: Transaction, uuid: str) -> Provider | None:
    """The provider with this uuid, locked: its row cannot change before the transaction ends."""
    locked, found = transaction.lock(
        provider_locks(transaction, [uuid]), [_BY_UUID.bound(transaction, {"uuid": uuid})]
    )
    return provider_of(found[0]) if locked and found else None


def lock_trees(
    transaction: Transaction, providers: Sequence[Provider], also: Iterable[int] = ()
) -> None:
    """Lock these providers, the ids in `also`, and the shape of the providers' trees.

    The lock of a tree is the lock of its root's row. If a provider has been moved to another
    tree between reading and locking, the whole transaction starts again.
    """
    ids = {id_ for provider in providers for id_ in (provider.id, provider.root_id)} | set(also)
    _, *found = transaction.lock(
        id_locks(transaction, ids),
        *([_BY_UUID.bound(transaction, {"uuid": provider.uuid})] for provider in providers),
    )
    for provider, rows in zip(providers, found, strict=True):
        now = provider_of(rows[0]) if rows else None
        if now is None or now.root_id != provider.root_id or now.parent_id != provider.parent_id:
            raise Retry


def increment_generations(transaction: Transaction, ids: Iterable[int], by: int = 1) -> None:
    """Move the generation of locked providers on; their `updated_at` moves with it."""
    values = {"by": by, "now": transaction.now}
    transaction.write(_INCREMENT.bound_chunks(transaction, ids, values))


def insert_provider(
    transaction: Transaction, uuid: str, name: str, parent: Provider | None
) -> Provider:
    """Make a provider below the parent, or a root. The database checks its name and uuid."""
    now = transaction.now
    id_ = insert_row(
        transaction.connection,
        resource_providers,
        {
            "created_at": now,
            # The reference writes a root in two steps, so a root has a time of change.
            "updated_at": now if parent is None else None,
            "uuid": uuid,
            "name": name,
            "generation": 0,
            "parent_provider_id": None if parent is None else parent.id,
            "root_provider_id": None if parent is None else parent.root_id,
        },
    )
    if parent is None:
        transaction.write(_SET_ROOT.bound_chunks(transaction, [id_], {"root_id": id_}))
    root = uuid if parent is None else parent.root_uuid
    _record_event(
        transaction, id_, uuid, {"event": ProviderEvent.CREATED, "name": name, "root": root}
    )
    ((row,),) = transaction.read([_BY_ID.bound(transaction, {"id": id_})])
    return provider_of(row)


class NewChild(NamedTuple):
    """A provider that comes below a parent."""

    uuid: str
    name: str
    parent_id: int


def insert_children(
    transaction: Transaction, new: Sequence[NewChild], root_id: int, root_uuid: str
) -> dict[str, int]:
    """Make providers in a tree whose root is locked; their ids by uuid.

    The database checks names and uuids.
    """
    rows = [
        {
            "created_at": transaction.now,
            "uuid": child.uuid,
            "name": child.name,
            "generation": 0,
            "parent_provider_id": child.parent_id,
            "root_provider_id": root_id,
        }
        for child in new
    ]
    transaction.write(_INSERT.bound(transaction, rows))
    queries = _GENERATIONS.bound_chunks(transaction, [child.uuid for child in new])
    (found,) = transaction.read(queries)
    ids = {uuid: id_ for id_, uuid, _ in found}
    record_details(
        transaction,
        ChangeKind.PROVIDER,
        (
            (
                ids[each.uuid],
                each.uuid,
                {"event": ProviderEvent.CREATED, "name": each.name, "root": root_uuid},
            )
            for each in new
        ),
    )
    return ids


def move_within_tree(
    transaction: Transaction, parents: Mapping[tuple[int, str], int], root_uuid: str
) -> None:
    """Give providers, which are given as (id, uuid), other parents in the same locked tree."""
    rows = [{"id": id_, "parent_provider_id": parent} for (id_, _), parent in parents.items()]
    transaction.write(_REPARENT.bound(transaction, rows, {"updated_at": transaction.now}))
    detail: ChangeDetail = {"event": ProviderEvent.MOVED, "root": root_uuid}
    record_details(transaction, ChangeKind.PROVIDER, ((id_, uuid, detail) for id_, uuid in parents))


def rename_provider(transaction: Transaction, provider: Provider, name: str) -> None:
    """Give the provider another name. The database refuses a name that is taken."""
    values = {"name": name, "now": transaction.now}
    transaction.write(_RENAME.bound_chunks(transaction, [provider.id], values))
    _record_event(
        transaction, provider.id, provider.uuid, {"event": ProviderEvent.RENAMED, "name": name}
    )


def set_uuid(transaction: Transaction, provider: Provider, uuid: str) -> None:
    """Give the locked provider another uuid. The database refuses one that is taken."""
    values = {"uuid": uuid, "now": transaction.now}
    transaction.write(_SET_UUID.bound_chunks(transaction, [provider.id], values))
    _record_event(transaction, provider.id, uuid, {"event": ProviderEvent.ADOPTED})


def subtree_ids(connection: Connection, provider: Provider) -> list[int]:
    """The ids of the provider and of everything below it, top down. One query a level."""
    found = {provider.id: None}
    level = [provider.id]
    while level:
        below = [id_ for (id_,) in _CHILDREN.rows(connection, level)]
        # A damaged database may have a circle of parents: follow it once.
        level = [id_ for id_ in below if id_ not in found]
        found |= dict.fromkeys(level)
    return list(found)


def move_provider(
    transaction: Transaction, provider: Provider, subtree: Sequence[int], parent: Provider | None
) -> None:
    """Move the provider and its subtree below another parent; `None` makes it a root."""
    root_id = provider.id if parent is None else parent.root_id
    parent_id, now = None if parent is None else parent.id, transaction.now
    transaction.write(
        [
            *_SET_PARENT.bound_chunks(transaction, [provider.id], {"parent_id": parent_id}),
            *_MOVE.bound_chunks(transaction, subtree, {"root_id": root_id, "now": now}),
        ]
    )
    (moved,) = transaction.read(_UUIDS.bound_chunks(transaction, subtree))
    detail: ChangeDetail = {"event": ProviderEvent.MOVED, "root": provider.root_uuid}
    record_details(transaction, ChangeKind.PROVIDER, ((id_, uuid, detail) for id_, uuid in moved))


def children_of(connection: Connection, provider: Provider) -> list[Provider]:
    """The providers directly below the provider."""
    return find_by_ids(connection, [id_ for (id_,) in _CHILDREN.rows(connection, [provider.id])])


def has_children(connection: Connection, provider: Provider) -> bool:
    """Whether anything hangs below the provider."""
    query = select(_columns.id).where(_columns.parent_provider_id == provider.id)
    return connection.execute(query.limit(1)).first() is not None


def has_allocations(connection: Connection, provider: Provider) -> bool:
    """Whether any consumer holds anything of the provider."""
    query = select(allocations.c.id).where(allocations.c.resource_provider_id == provider.id)
    return connection.execute(query.limit(1)).first() is not None


def delete_provider(transaction: Transaction, provider: Provider) -> None:
    """Remove a locked provider that has neither children nor allocations, with all its parts."""
    delete_providers(transaction, [provider], provider.root_uuid)


def delete_providers(
    transaction: Transaction, gone: Sequence[Provider | MemberRow], root_uuid: str
) -> None:
    """Remove locked providers of one tree that have no allocations, with all their parts.

    All children of one of them are among them.
    """
    ids = [provider.id for provider in gone]
    for part in _DELETE_PARTS:
        transaction.write(part.bound_chunks(transaction, ids))
    # MySQL refuses to delete a row that refers to itself, or that another row refers to.
    transaction.write(_SEPARATE.bound_chunks(transaction, ids))
    transaction.write(_DELETE.bound_chunks(transaction, ids))
    record_details(
        transaction,
        ChangeKind.PROVIDER,
        (
            (
                each.id,
                each.uuid,
                {"event": ProviderEvent.DELETED, "name": each.name, "root": root_uuid},
            )
            for each in gone
        ),
    )


def _record_event(transaction: Transaction, id_: int, uuid: str, detail: ChangeDetail) -> None:
    record_details(transaction, ChangeKind.PROVIDER, [(id_, uuid, detail)])
