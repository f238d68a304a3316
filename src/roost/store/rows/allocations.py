"""Allocations: amounts of resource classes that consumers have from providers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, bindparam, func, literal_column, select

from roost.model.consumers import ConsumerAllocations, ProviderAllocation, ProviderConsumer
from roost.model.identifiers import uuid_spellings
from roost.store.statements import Query, Statement
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

_BY_CONSUMER = Query.among(
    allocations.c.consumer_id,
    select(
        resource_providers.c.uuid.label("provider_uuid"),
        resource_providers.c.generation.label("provider_generation"),
        resource_classes.c.name.label("resource_class"),
        allocations.c.used,
        projects.c.external_id.label("project"),
        users.c.external_id.label("user"),
        consumers.c.generation,
        consumer_types.c.name.label("consumer_type"),
        func.coalesce(allocations.c.updated_at, allocations.c.created_at).label("modified_at"),
    )
    .select_from(
        allocations.join(consumers, consumers.c.uuid == allocations.c.consumer_id)
        .join(resource_providers, resource_providers.c.id == allocations.c.resource_provider_id)
        .join(resource_classes, resource_classes.c.id == allocations.c.resource_class_id)
        .join(projects, projects.c.id == consumers.c.project_id)
        .join(users, users.c.id == consumers.c.user_id)
        .outerjoin(consumer_types, consumer_types.c.id == consumers.c.consumer_type_id)
    )
    .order_by(resource_providers.c.id, allocations.c.resource_class_id),
)
_BY_PROVIDER = (
    select(
        allocations.c.consumer_id,
        consumers.c.generation,
        resource_classes.c.name.label("resource_class"),
        allocations.c.used,
        func.coalesce(allocations.c.updated_at, allocations.c.created_at).label("modified_at"),
    )
    .select_from(
        allocations.join(consumers, consumers.c.uuid == allocations.c.consumer_id).join(
            resource_classes, resource_classes.c.id == allocations.c.resource_class_id
        )
    )
    .where(allocations.c.resource_provider_id == bindparam("provider_id"))
)
_MODIFIED_AT = select(
    func.max(func.coalesce(allocations.c.updated_at, allocations.c.created_at))
).where(allocations.c.resource_provider_id == bindparam("provider_id"))
_CONSUMERS_IN_RANGE = (
    select(consumers.c.uuid, consumers.c.generation)
    .where(consumers.c.id > bindparam("after_id"), consumers.c.id <= bindparam("up_to_id"))
    .order_by(consumers.c.id)
)
# With a join, MariaDB would read all allocations of a class for each page. Without the sum, SQLite
# would read all allocations of the provider for each page.
_PROVIDER_PAGE = Statement.among(
    allocations.c.consumer_id,
    select(allocations.c.consumer_id, allocations.c.resource_class_id, allocations.c.used).where(
        allocations.c.resource_provider_id + literal_column("0") == bindparam("provider_id")
    ),
)
_CLASS_NAMES = Statement.among(
    resource_classes.c.id, select(resource_classes.c.id, resource_classes.c.name)
)


def consumer_allocations(connection: Connection, uuid: str) -> ConsumerAllocations | None:
    """The allocations of the consumer, read by one statement; `None` without allocations."""
    rows = _BY_CONSUMER.fetch_members(connection, uuid_spellings(uuid))
    if not rows:
        return None
    resources: dict[str, dict[str, int]] = defaultdict(dict)
    generations = {}
    for provider, generation, resource_class, used, *_ in rows:
        resources[provider][resource_class] = used
        generations[provider] = generation
    *_, project, user, generation, consumer_type, _ = rows[0]
    times = (stored_time(row[-1]) for row in rows)
    return ConsumerAllocations(
        allocations=tuple(
            ProviderAllocation(provider, generations[provider], amounts)
            for provider, amounts in resources.items()
        ),
        project=project,
        user=user,
        generation=generation,
        consumer_type=consumer_type,
        modified_at=max((time for time in times if time is not None), default=None),
    )


def provider_allocations(
    connection: Connection, provider_id: int, at_most: int
) -> tuple[tuple[ProviderConsumer, ...], Any] | None:
    """The consumers of the provider with their amounts, and the time of the last change.

    `None` if the provider has more allocations than `at_most`.
    """
    query = _BY_PROVIDER.order_by(allocations.c.id).limit(at_most + 1)
    rows = connection.execute(query, {"provider_id": provider_id}).all()
    if len(rows) > at_most:
        return None
    return _consumers(rows), max((row.modified_at for row in rows), default=None)


def allocations_modified_at(connection: Connection, provider_id: int) -> datetime | None:
    """When the last allocation of the provider was written."""
    found: datetime | None = connection.execute(_MODIFIED_AT, {"provider_id": provider_id}).scalar()
    return found


def consumer_extent(connection: Connection) -> tuple[int, int]:
    """The lowest and the highest id of all consumers."""
    query = select(func.min(consumers.c.id), func.max(consumers.c.id))
    first_id, last_id = connection.execute(query).one()
    return first_id or 0, last_id or 0


def consumers_in_range(
    connection: Connection, provider_id: int, after_id: int, up_to_id: int
) -> list[ProviderConsumer]:
    """The consumers of the provider with ids above `after_id`, up to `up_to_id`."""
    id_range = {"after_id": after_id, "up_to_id": up_to_id}
    generations = dict(map(tuple, connection.execute(_CONSUMERS_IN_RANGE, id_range)))
    rows = _PROVIDER_PAGE.rows(connection, generations, {"provider_id": provider_id})
    class_ids = {class_id for _, class_id, _ in rows}
    names = dict(map(tuple, _CLASS_NAMES.rows(connection, class_ids)))
    resources: dict[str, dict[str, int]] = defaultdict(dict)
    for consumer, class_id, used in rows:
        if class_id in names:
            resources[consumer][names[class_id]] = used
    return [
        ProviderConsumer(consumer, generation, resources[consumer])
        for consumer, generation in generations.items()
        if consumer in resources
    ]


def _consumers(rows: Iterable[Any]) -> tuple[ProviderConsumer, ...]:
    resources: dict[str, dict[str, int]] = defaultdict(dict)
    generations = {}
    for row in rows:
        resources[row.consumer_id][row.resource_class] = row.used
        generations[row.consumer_id] = row.generation
    return tuple(
        ProviderConsumer(consumer, generations[consumer], amounts)
        for consumer, amounts in resources.items()
    )
