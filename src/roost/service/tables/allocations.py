"""Reading allocations: what consumers hold, and how much projects and users hold in all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection

from roost.model.consumers import ConsumerAllocations, ProviderConsumer, TypeUsage
from roost.service.errors import NotFound
from roost.store.rows import allocations, providers, usages


@dataclass(frozen=True, slots=True)
class ProviderAllocations:
    """The consumers of one provider.

    `consumers` is `None` if the provider has too many allocations for one statement.
    """

    provider_id: int
    generation: int
    consumers: tuple[ProviderConsumer, ...] | None
    modified_at: datetime | None


def get_consumer_allocations(connection: Connection, uuid: str) -> ConsumerAllocations | None:
    """All allocations of the consumer; `None` without allocations, also for an unknown consumer."""
    return allocations.consumer_allocations(connection, uuid)


def list_provider_allocations(
    connection: Connection, uuid: str, at_most: int
) -> ProviderAllocations:
    """All consumers of the provider, unless it has more allocations than `at_most`."""
    provider = providers.find_provider(connection, uuid)
    if provider is None:
        raise NotFound(
            f"Resource provider '{uuid}' not found: No resource provider with uuid {uuid} found"
        )
    found = allocations.provider_allocations(connection, provider.id, at_most)
    if found is None:
        modified_at = allocations.allocations_modified_at(connection, provider.id)
        return ProviderAllocations(provider.id, provider.generation, None, modified_at)
    return ProviderAllocations(provider.id, provider.generation, *found)


def measure_consumers(connection: Connection) -> tuple[int, int]:
    """The first and the last id of all consumers."""
    return allocations.consumer_extent(connection)


def list_consumers(
    connection: Connection, provider_id: int, after_id: int, up_to_id: int
) -> Sequence[ProviderConsumer]:
    """The consumers of a provider whose ids lie in a range."""
    return allocations.consumers_in_range(connection, provider_id, after_id, up_to_id)


def list_project_usages(
    connection: Connection, project: str, user: str | None
) -> Mapping[str, int]:
    """How much of each class the project, or one user in it, holds."""
    return usages.project_usages(connection, project, user)


def list_project_usages_by_type(
    connection: Connection, project: str, user: str | None, consumer_type: str | None
) -> list[TypeUsage]:
    """How much of each class they hold by consumer type.

    The consumer type may be the name of one, `unknown`, or `all` for the sum over all types.
    Without a consumer type the list has each type.
    """
    return usages.project_usages_by_type(connection, project, user, consumer_type)
