"""What rows must be although no constraint of the tables says so. Pure.

The routes hold these rules. `roost db check` finds rows that break one, and an import refuses them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import os_resource_classes
import sqlalchemy as sa
from sqlalchemy import Column, Table

from roost.model.inventory import INTEGER_MAX, RATIO_MAX
from roost.store.connections.errors import REPAIR_COMMAND
from roost.store.rows.vocabulary import FIRST_CUSTOM_CLASS_ID
from roost.store.tables import (
    allocations,
    consumer_types,
    consumers,
    inventories,
    placement_aggregates,
    projects,
    resource_classes,
    resource_provider_aggregates,
    resource_provider_traits,
    resource_providers,
    roost_ownership,
    traits,
    users,
)

# The form of the names of resource classes, traits and consumer types.
NAME_PATTERN = "^[A-Z0-9_]+$"

# Columns of positive amounts. All other whole numbers may be 0.
POSITIVE = frozenset(
    {
        inventories.c.total,
        inventories.c.min_unit,
        inventories.c.max_unit,
        inventories.c.step_size,
        allocations.c.used,
    }
)
NAMES = (resource_classes.c.name, traits.c.name, consumer_types.c.name)
EXTERNAL_IDS = (projects.c.external_id, users.c.external_id)
UUIDS = (
    resource_providers.c.uuid,
    consumers.c.uuid,
    placement_aggregates.c.uuid,
    roost_ownership.c.provider_uuid,
)
# Columns that the schema lets be null, and that no route leaves null.
NEVER_NULL = frozenset(
    {
        resource_providers.c.name,
        resource_providers.c.generation,
        placement_aggregates.c.uuid,
    }
)

_DELETE = "Delete these rows; no answer shows them."
KeyColumns = tuple[Column[Any], ...]


@dataclass(frozen=True, slots=True)
class Reference:
    """Columns whose values must be those of a row of another table."""

    columns: KeyColumns
    targets: KeyColumns
    # The name of the check, what it finds, and the remedy.
    name: str
    problem: str
    remedy: str
    # The column that names a wrong row for people; by default the first one that refers.
    example: Column[Any] | None = None

    @property
    def table(self) -> Table:
        """The table that refers."""
        return self.columns[0].table

    @property
    def target(self) -> Table:
        """The table that is referred to."""
        return self.targets[0].table


def _owned(table: Table) -> Reference:
    return Reference(
        (table.c.resource_provider_id,),
        (resource_providers.c.id,),
        f"{table.name} of providers",
        f"ids of resource providers that {table.name} has but that do not exist",
        _DELETE,
    )


def _classified(table: Table) -> Reference:
    return Reference(
        (table.c.resource_class_id,),
        (resource_classes.c.id,),
        f"resource classes of {table.name}",
        f"resource class ids that {table.name} uses but that have no row",
        "Insert the missing rows into resource_classes. (The service inserts the standard ones, "
        "below 10000, when it starts.)",
    )


def _owner(column: Column[Any], table: Table) -> Reference:
    return Reference(
        (column,),
        (table.c.id,),
        f"{table.name} of consumers",
        f"consumers whose {column.name} has no row in {table.name}",
        f"Set {column.name} of these consumers to an existing row.",
        consumers.c.uuid,
    )


# The order of the checks.
REFERENCES = (
    *map(
        _owned, (inventories, resource_provider_traits, resource_provider_aggregates, allocations)
    ),
    Reference(
        (resource_provider_traits.c.trait_id,),
        (traits.c.id,),
        "traits of providers",
        "ids of traits that providers have but that do not exist",
        _DELETE,
    ),
    Reference(
        (resource_provider_aggregates.c.aggregate_id,),
        (placement_aggregates.c.id,),
        "aggregates of providers",
        "ids of aggregates that providers have but that do not exist",
        _DELETE,
    ),
    *map(_classified, (inventories, allocations)),
    _owner(consumers.c.project_id, projects),
    _owner(consumers.c.user_id, users),
    Reference(
        (consumers.c.consumer_type_id,),
        (consumer_types.c.id,),
        "consumer types",
        "ids of consumer types that consumers have but that do not exist",
        "Set consumer_type_id of these consumers to null.",
    ),
    Reference(
        (allocations.c.consumer_id,),
        (consumers.c.uuid,),
        "allocation consumers",
        "consumers with allocations, which count as used, but without a row in consumers",
        f"Run: {REPAIR_COMMAND}",
    ),
    Reference(
        (allocations.c.resource_provider_id, allocations.c.resource_class_id),
        (inventories.c.resource_provider_id, inventories.c.resource_class_id),
        "allocation inventories",
        "consumers with allocations of which there is no inventory",
        "Delete the allocations of these consumers, or give the providers the inventories back.",
        allocations.c.consumer_id,
    ),
)

# An allocation has no constraint of its own for this key.
ALLOCATION_KEY: KeyColumns = (
    allocations.c.resource_provider_id,
    allocations.c.resource_class_id,
    allocations.c.consumer_id,
)


def unique_keys(table: Table) -> Iterable[KeyColumns]:
    """The columns that no two rows of a table have in common; the primary key is the first."""
    yield tuple(table.primary_key.columns)
    for constraint in sorted(table.constraints, key=lambda one: str(one.name)):
        if isinstance(constraint, sa.UniqueConstraint):
            yield tuple(constraint.columns)
    if table is allocations:
        yield ALLOCATION_KEY


def bounds(column: Column[Any]) -> tuple[float, float]:
    """The smallest and the largest number of a column."""
    if isinstance(column.type, sa.Float):
        return -RATIO_MAX, RATIO_MAX
    return (1 if column in POSITIVE else 0), INTEGER_MAX


def is_number(column: Column[Any]) -> bool:
    """Whether a column has numbers."""
    return isinstance(column.type, (sa.Integer, sa.Float))


def class_id_fault(id_: int, name: str) -> str | None:
    """What is wrong with the id of a resource class; `None` if nothing is.

    The id of a standard class is its position in the library. A newer library may know further
    classes.

    >>> class_id_fault(0, "VCPU"), class_id_fault(7, "VCPU")
    (None, 'VCPU has the id 7 instead of 0')
    """
    standard = os_resource_classes.STANDARDS
    if name in standard:
        wanted = standard.index(name)
        return None if id_ == wanted else f"{name} has the id {id_} instead of {wanted}"
    if id_ < len(standard):
        return f"{name} has the id {id_}, which is that of {standard[id_]}"
    if id_ < FIRST_CUSTOM_CLASS_ID and name.startswith("CUSTOM_"):
        return f"{name} has the id {id_}, which is below {FIRST_CUSTOM_CLASS_ID}"
    return None
