"""Consumers as a list: their owners, their age, and what they hold."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    Float,
    Select,
    and_,
    bindparam,
    case,
    cast,
    func,
    literal,
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
from roost.store.statements import Query
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

# The share of a class that a consumer holds, in millionths: whole numbers compare exactly.
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
_AUDITED = (
    select(
        consumers.c.id,
        consumers.c.uuid,
        consumer_types.c.name,
        consumers.c.generation,
        func.coalesce(consumers.c.updated_at, consumers.c.created_at),
        consumers.c.uuid.in_(select(allocations.c.consumer_id)),
    )
    .select_from(
        consumers.outerjoin(consumer_types, consumer_types.c.id == consumers.c.consumer_type_id)
    )
    .where(consumers.c.id > bindparam("after"))
    .order_by(consumers.c.id)
    .limit(_AUDITED_AT_ONCE)
)


class AuditedConsumer(NamedTuple):
    """What an audit asks about a consumer."""

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
    query = _selected(wanted).where(consumers.c.id > after_id).order_by(consumers.c.id)
    return [(row.id, _consumer(row)) for row in connection.execute(query.limit(length))]


def list_largest(
    connection: Connection,
    wanted: ConsumerFilter,
    capacities: Mapping[int, int],
    after: SizeMark | None,
    length: int,
) -> list[tuple[SizeMark, Consumer]]:
    """The first consumers after a mark, largest first, each with its mark.

    The size of a consumer is its largest share: of one class, what it holds of the capacity of the
    whole cloud. `capacities` has this capacity by the id of the class.
    """
    sizes = _sizes(capacities).subquery()
    size = func.coalesce(sizes.c.size, 0)
    query = (
        _selected(wanted)
        .add_columns(size.label("size"))
        .outerjoin(sizes, sizes.c.consumer_id == consumers.c.uuid)
        .order_by(size.desc(), consumers.c.id)
    )
    if after is not None:
        further = and_(size == after.size, consumers.c.id > after.consumer_id)
        query = query.where(or_(size < after.size, further))
    return [
        (SizeMark(int(row.size), row.id), _consumer(row))
        for row in connection.execute(query.limit(length))
    ]


def find_consumer(connection: Connection, uuid: str) -> Consumer | None:
    """The consumer with this uuid; `None` if there is none."""
    query = _selected(ConsumerFilter()).where(consumers.c.uuid.in_(uuid_spellings(uuid)))
    row = connection.execute(query).first()
    return None if row is None else _consumer(row)


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
    after = 0
    while rows := connection.execute(_AUDITED, {"after": after}).all():
        after = rows[-1][0]
        yield [
            AuditedConsumer(
                uuid, name or UNKNOWN_CONSUMER_TYPE, generation, stored_time(changed), bool(holds)
            )
            for _, uuid, name, generation, changed, holds in rows
        ]


def _selected(wanted: ConsumerFilter) -> Select[Any]:
    query = select(
        consumers.c.id,
        consumers.c.uuid,
        consumers.c.generation,
        consumers.c.created_at,
        consumers.c.updated_at,
        projects.c.external_id.label("project"),
        users.c.external_id.label("user"),
        consumer_types.c.name.label("consumer_type"),
    ).select_from(
        consumers.join(projects, projects.c.id == consumers.c.project_id)
        .join(users, users.c.id == consumers.c.user_id)
        .outerjoin(consumer_types, consumer_types.c.id == consumers.c.consumer_type_id)
    )
    return query.where(*_conditions(wanted))


def _conditions(wanted: ConsumerFilter) -> Iterator[ColumnElement[bool]]:
    if wanted.consumer_type == UNKNOWN_CONSUMER_TYPE:
        yield consumers.c.consumer_type_id.is_(None)
    elif wanted.consumer_type is not None:
        yield consumer_types.c.name == wanted.consumer_type
    if wanted.project is not None:
        yield projects.c.external_id == wanted.project
    if wanted.user is not None:
        yield users.c.external_id == wanted.user
    if wanted.provider_ids is not None:
        held = allocations.c.resource_provider_id.in_(wanted.provider_ids)
        yield consumers.c.uuid.in_(select(allocations.c.consumer_id).where(held))
    if wanted.created_before is not None:
        created = consumers.c.created_at
        yield or_(created.is_(None), created < wanted.created_before)


def _sizes(capacities: Mapping[int, int]) -> Select[Any]:
    """Each consumer with its largest share, in millionths."""
    class_id = allocations.c.resource_class_id
    weights = {id_: SHARE_UNITS / capacity for id_, capacity in capacities.items() if capacity > 0}
    weight = (
        case(
            {id_: literal(each, Float) for id_, each in weights.items()}, value=class_id, else_=0.0
        )
        if weights
        else literal(0.0, Float)
    )
    shares = (
        select(
            allocations.c.consumer_id,
            (func.sum(allocations.c.used) * func.max(weight)).label("share"),
        )
        .group_by(allocations.c.consumer_id, class_id)
        .subquery()
    )
    size = cast(func.round(func.max(shares.c.share)), BigInteger)
    return select(shares.c.consumer_id, size.label("size")).group_by(shares.c.consumer_id)


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
