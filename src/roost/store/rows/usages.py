"""The usage of projects and users: sums over their consumers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    Select,
    distinct,
    func,
    literal_column,
    null,
    select,
    union_all,
)

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
_USED = func.sum(allocations.c.used)
_CONSUMERS = func.count(distinct(consumers.c.id))


def _owned_by(project: str, user: str | None) -> list[ColumnElement[bool]]:
    conditions = [projects.c.external_id == project]
    if user is not None:
        conditions.append(users.c.external_id == user)
    return conditions


def project_usages(connection: Connection, project: str, user: str | None) -> dict[str, int]:
    """The usage of each class by the project, or by this user in the project."""
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
    """The usage of each consumer type; or of one type, of `unknown`, or of `all` together."""
    conditions = _owned_by(project, user)
    if consumer_type == UNKNOWN_CONSUMER_TYPE:
        conditions.append(consumers.c.consumer_type_id.is_(None))
    elif consumer_type not in (None, ALL_CONSUMER_TYPES):
        conditions.append(consumer_types.c.name == consumer_type)
    # One statement for usage and counts, so that both are of one moment. Counts have no class.
    query = union_all(
        _grouped(conditions, resource_classes.c.id, resource_classes.c.name, _USED),
        _grouped(conditions, literal_column("-1"), null(), _CONSUMERS),
    ).order_by("class_id")
    counts: dict[str, int] = defaultdict(int)
    used: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    together = consumer_type == ALL_CONSUMER_TYPES
    for type_name, _, class_name, amount in connection.execute(query):
        group = ALL_CONSUMER_TYPES if together else type_name or UNKNOWN_CONSUMER_TYPE
        if class_name is None:
            counts[group] += int(amount)
        else:
            used[group][class_name] += int(amount)
    return [TypeUsage(group, counts[group], dict(used[group])) for group in used]


def _grouped(
    conditions: Sequence[ColumnElement[bool]],
    class_id: ColumnElement[Any],
    class_name: ColumnElement[Any],
    amount: ColumnElement[Any],
) -> Select[Any]:
    """An amount for each consumer type and class, or for each type if the class is constant."""
    keys = [key for key in (class_id, class_name) if isinstance(key, Column)]
    return (
        select(
            consumer_types.c.name.label("consumer_type"),
            class_id.label("class_id"),
            class_name.label("class_name"),
            amount.label("amount"),
        )
        .select_from(
            _JOINED.join(resource_classes, resource_classes.c.id == allocations.c.resource_class_id)
        )
        .where(*conditions)
        .group_by(consumer_types.c.name, *keys)
    )
