"""Consumers as a list: their owners, their age, and what they hold."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import (
    BigInteger,
    Column,
    ColumnElement,
    Connection,
    Float,
    FromClause,
    ScalarSelect,
    Select,
    and_,
    bindparam,
    case,
    cast,
    func,
    literal,
    literal_column,
    or_,
    select,
)

from roost.model.consumers import (
    UNKNOWN_CONSUMER_TYPE,
    Consumer,
    ConsumerFilter,
    ConsumerHolding,
    SizeMark,
)
from roost.model.identifiers import uuid_spellings
from roost.store.statements import Query, chunks
from roost.store.tables import (
    allocations,
    consumer_types,
    consumers,
    projects,
    resource_classes,
    resource_providers,
    stored_time,
    users,
)

# The size of a consumer is counted in millionths: whole numbers compare exactly.
SHARE_UNITS = 1_000_000
# How many consumers an audit reads at once.
_AUDITED_AT_ONCE = 4096

_roots = resource_providers.alias("roots")
_HOLDINGS = Query(
    lambda uuids: (
        select(
            allocations.c.consumer_id,
            resource_providers.c.uuid,
            resource_providers.c.name,
            _roots.c.uuid.label("root_uuid"),
            _roots.c.name.label("root_name"),
            resource_classes.c.name.label("resource_class"),
            allocations.c.used,
        )
        .select_from(
            allocations.join(
                resource_providers, resource_providers.c.id == allocations.c.resource_provider_id
            )
            .join(_roots, _roots.c.id == resource_providers.c.root_provider_id)
            .join(resource_classes, resource_classes.c.id == allocations.c.resource_class_id)
        )
        .where(allocations.c.consumer_id.in_(uuids))
        .order_by(resource_providers.c.id, allocations.c.resource_class_id)
    ),
    lists=["uuids"],
)
_AUDITED = Query(
    select(
        consumers.c.id,
        consumers.c.uuid,
        consumers.c.consumer_type_id,
        consumers.c.generation,
        func.coalesce(consumers.c.updated_at, consumers.c.created_at),
    )
    .where(consumers.c.id > bindparam("after"))
    .order_by(consumers.c.id)
    .limit(literal_column(str(_AUDITED_AT_ONCE)))
    # SQLite's form of a limit has an offset, which would be a parameter.
    .offset(literal_column("0"))
)
# With a join, MariaDB would look at all allocations for each page.
_HOLDERS = Query(
    lambda uuids: (
        select(allocations.c.consumer_id).distinct().where(allocations.c.consumer_id.in_(uuids))
    ),
    lists=["uuids"],
)


class AuditedConsumer(NamedTuple):
    """What an audit asks about a consumer."""

    id: int
    uuid: str
    consumer_type: str
    generation: int
    changed_at: datetime | None
    holds: bool


def list_oldest(
    connection: Connection, wanted: ConsumerFilter, after_id: int, length: int
) -> list[tuple[int, Consumer]]:
    """The first consumers with higher ids, oldest first, each with its id.

    Consumers get ever higher ids, so the order of the ids is that of their age.
    """
    # Names are joined to the page. With joins inside, MariaDB would sort all consumers.
    page = (
        select(consumers)
        .where(consumers.c.id > after_id, *_conditions(wanted))
        .order_by(consumers.c.id)
        .limit(length)
        .subquery()
    )
    rows = connection.execute(_with_names(page).order_by(page.c.id))
    return [(row.id, _consumer(row)) for row in rows]


def list_largest(
    connection: Connection,
    wanted: ConsumerFilter,
    capacities: Mapping[int, int],
    after: SizeMark | None,
    length: int,
) -> list[tuple[SizeMark, Consumer]]:
    """The first consumers after a mark that hold something, largest first, each with its mark.

    The size of a consumer is the sum of its shares: of each class, what it holds of the capacity of
    the whole cloud. `capacities` has this capacity by the id of the class.
    """
    sizes = _sizes(wanted, capacities).subquery()
    query = select(sizes.c.consumer_id, sizes.c.size).order_by(
        sizes.c.size.desc(), sizes.c.consumer_id
    )
    if after is not None:
        further = and_(sizes.c.size == after.size, sizes.c.consumer_id > after.consumer)
        query = query.where(or_(sizes.c.size < after.size, further))
    marks = [
        SizeMark(int(size), uuid) for uuid, size in connection.execute(query.limit(length)).all()
    ]
    found = _consumers_with(connection, [mark.consumer for mark in marks])
    return [(mark, found[mark.consumer]) for mark in marks if mark.consumer in found]


def find_consumer(connection: Connection, uuid: str) -> Consumer | None:
    """The consumer with this uuid; `None` if there is none."""
    return next(iter(_consumers_with(connection, uuid_spellings(uuid)).values()), None)


def holdings_of(
    connection: Connection, uuids: Iterable[str]
) -> dict[str, tuple[ConsumerHolding, ...]]:
    """What each of these consumers holds from each provider."""
    found: dict[str, dict[str, ConsumerHolding]] = defaultdict(dict)
    for consumer, uuid, name, root_uuid, root_name, resource_class, used in _HOLDINGS.fetch_members(
        connection, uuids
    ):
        new = ConsumerHolding(uuid, name, root_uuid, root_name, {})
        found[consumer].setdefault(uuid, new).resources[resource_class] = used
    return {consumer: tuple(by_provider.values()) for consumer, by_provider in found.items()}


def consumers_of_provider(connection: Connection, provider_id: int) -> list[str]:
    """The uuids of the consumers that hold something from the provider."""
    query = select(allocations.c.consumer_id).distinct()
    held = query.where(allocations.c.resource_provider_id == provider_id)
    return sorted(connection.execute(held).scalars())


def audited_pages(connection: Connection) -> Iterator[Sequence[AuditedConsumer]]:
    """All consumers, page by page."""
    types = dict(map(tuple, connection.execute(select(consumer_types.c.id, consumer_types.c.name))))
    after = 0
    while rows := _AUDITED.fetch(connection, {"after": after}):
        after = rows[-1][0]
        holders = _holders(connection, [row[1] for row in rows])
        yield [
            AuditedConsumer(
                id_,
                uuid,
                types.get(type_id, UNKNOWN_CONSUMER_TYPE),
                generation,
                stored_time(changed),
                uuid in holders,
            )
            for id_, uuid, type_id, generation, changed in rows
        ]


def _holders(connection: Connection, uuids: Collection[str]) -> set[str]:
    """Those of the consumers that hold something, however their allocations spell them."""
    found = {uuid for (uuid,) in _HOLDERS.fetch_members(connection, uuids)}
    left = [uuid for uuid in uuids if uuid not in found]
    spelt = {spelling: uuid for uuid in left for spelling in uuid_spellings(uuid)}
    # Some databases compare without regard to case.
    lower = {spelling.lower(): uuid for spelling, uuid in spelt.items()}
    return found | {lower[uuid.lower()] for (uuid,) in _HOLDERS.fetch_members(connection, spelt)}


def _with_names(page: FromClause) -> Select[Any]:
    """The rows of some consumers, with the names of their owners and types."""
    return select(
        page.c.id,
        page.c.uuid,
        page.c.generation,
        page.c.created_at,
        page.c.updated_at,
        projects.c.external_id.label("project"),
        users.c.external_id.label("user"),
        consumer_types.c.name.label("consumer_type"),
    ).select_from(
        page.join(projects, projects.c.id == page.c.project_id)
        .join(users, users.c.id == page.c.user_id)
        .outerjoin(consumer_types, consumer_types.c.id == page.c.consumer_type_id)
    )


def _consumers_with(connection: Connection, uuids: Collection[str]) -> dict[str, Consumer]:
    """Those of the consumers that exist, by the uuid of their row."""
    found: dict[str, Consumer] = {}
    for chunk in chunks(uuids):
        query = _with_names(consumers).where(consumers.c.uuid.in_(chunk))
        found |= {row.uuid: _consumer(row) for row in connection.execute(query)}
    return found


def _conditions(wanted: ConsumerFilter) -> Iterator[ColumnElement[bool]]:
    if wanted.consumer_type == UNKNOWN_CONSUMER_TYPE:
        yield consumers.c.consumer_type_id.is_(None)
    elif wanted.consumer_type is not None:
        yield consumers.c.consumer_type_id == _id_of(consumer_types.c.name, wanted.consumer_type)
    if wanted.project is not None:
        yield consumers.c.project_id == _id_of(projects.c.external_id, wanted.project)
    if wanted.user is not None:
        yield consumers.c.user_id == _id_of(users.c.external_id, wanted.user)
    if wanted.provider_ids is not None:
        held = allocations.c.resource_provider_id.in_(wanted.provider_ids)
        yield consumers.c.uuid.in_(select(allocations.c.consumer_id).where(held))
    if wanted.root_id is not None:
        # A tree may have more providers than a statement may have parameters.
        tree = select(resource_providers.c.id).where(
            resource_providers.c.root_provider_id == wanted.root_id
        )
        held = allocations.c.resource_provider_id.in_(tree)
        yield consumers.c.uuid.in_(select(allocations.c.consumer_id).where(held))
    if wanted.created_before is not None:
        created = consumers.c.created_at
        yield or_(created.is_(None), created < wanted.created_before)


def _id_of(column: Column[str], name: str) -> ScalarSelect[int]:
    return select(column.table.c.id).where(column == name).scalar_subquery()


def _sizes(wanted: ConsumerFilter, capacities: Mapping[int, int]) -> Select[Any]:
    """Each consumer with its size, in millionths."""
    class_id = allocations.c.resource_class_id
    weights = {id_: SHARE_UNITS / capacity for id_, capacity in capacities.items() if capacity > 0}
    weight = (
        case(
            {id_: literal(each, Float) for id_, each in weights.items()}, value=class_id, else_=0.0
        )
        if weights
        else literal(0.0, Float)
    )
    # One sum for each consumer, in the order of an index. With a second level for classes, MariaDB
    # would sort all allocations, and take twenty times as long.
    size = cast(func.round(func.sum(allocations.c.used * weight)), BigInteger)
    sizes = select(allocations.c.consumer_id, size.label("size")).group_by(
        allocations.c.consumer_id
    )
    conditions = list(_conditions(wanted))
    if conditions:
        chosen = select(consumers.c.uuid).where(*conditions)
        sizes = sizes.where(allocations.c.consumer_id.in_(chosen))
    return sizes


def _consumer(row: Any) -> Consumer:
    return Consumer(
        uuid=row.uuid,
        consumer_type=row.consumer_type,
        project=row.project,
        user=row.user,
        generation=row.generation,
        created_at=row.created_at,
        updated_at=row.updated_at,
    )
