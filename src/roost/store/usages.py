"""What projects and users consume."""

from __future__ import annotations

from collections import defaultdict

from sqlalchemy import ColumnElement, Connection, func, select

from roost.model.consumers import ALL_CONSUMER_TYPES, UNKNOWN_CONSUMER_TYPE, TypeUsage
from roost.store.tables import (
    allocations,
    consumer_types,
    consumers,
    projects,
    resource_classes,
    users,
)

_JOINED = (
    allocations.join(consumers, consumers.c.uuid == allocations.c.consumer_id)
    .join(projects, projects.c.id == consumers.c.project_id)
    .join(users, users.c.id == consumers.c.user_id)
    .outerjoin(consumer_types, consumer_types.c.id == consumers.c.consumer_type_id)
)


def _owned_by(project: str, user: str | None) -> list[ColumnElement[bool]]:
    conditions = [projects.c.external_id == project]
    if user is not None:
        conditions.append(users.c.external_id == user)
    return conditions


def project_usages(connection: Connection, project: str, user: str | None) -> dict[str, int]:
    """How much of each class the project (or only this user in it) holds."""
    query = (
        select(resource_classes.c.name, func.sum(allocations.c.used))
        .select_from(
            _JOINED.join(resource_classes, resource_classes.c.id == allocations.c.resource_class_id)
        )
        .where(*_owned_by(project, user))
        .group_by(resource_classes.c.id, resource_classes.c.name)
        .order_by(resource_classes.c.id)
    )
    return {name: int(used) for name, used in connection.execute(query)}


def project_usages_by_type(
    connection: Connection, project: str, user: str | None, consumer_type: str | None
) -> list[TypeUsage]:
    """The same, apart for each consumer type; or for one type, `unknown`, or `all` together."""
    conditions = _owned_by(project, user)
    if consumer_type == UNKNOWN_CONSUMER_TYPE:
        conditions.append(consumers.c.consumer_type_id.is_(None))
    elif consumer_type not in (None, ALL_CONSUMER_TYPES):
        conditions.append(consumer_types.c.name == consumer_type)
    query = (
        select(
            consumer_types.c.name.label("consumer_type"),
            resource_classes.c.name,
            allocations.c.consumer_id,
            func.sum(allocations.c.used).label("used"),
        )
        .select_from(
            _JOINED.join(resource_classes, resource_classes.c.id == allocations.c.resource_class_id)
        )
        .where(*conditions)
        .group_by(
            consumer_types.c.name,
            resource_classes.c.id,
            resource_classes.c.name,
            allocations.c.consumer_id,
        )
        .order_by(resource_classes.c.id)
    )
    members: dict[str, set[str]] = defaultdict(set)
    used: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    together = consumer_type == ALL_CONSUMER_TYPES
    for row in connection.execute(query):
        group = ALL_CONSUMER_TYPES if together else row.consumer_type or UNKNOWN_CONSUMER_TYPE
        members[group].add(row.consumer_id)
        used[group][row.name] += int(row.used)
    return [TypeUsage(group, len(members[group]), dict(used[group])) for group in used]
