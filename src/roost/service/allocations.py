"""Who holds what: reading allocations."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection

from roost.model.consumers import ConsumerAllocations, ProviderConsumer
from roost.service.errors import NotFound
from roost.store import allocations, providers


@dataclass(frozen=True, slots=True)
class ProviderAllocations:
    """Who holds what of one provider."""

    generation: int
    consumers: tuple[ProviderConsumer, ...]
    modified_at: datetime | None


def get_consumer_allocations(connection: Connection, uuid: str) -> ConsumerAllocations | None:
    """All that the consumer holds; nothing if it holds nothing, exists or not."""
    return allocations.consumer_allocations(connection, uuid)


def list_provider_allocations(connection: Connection, uuid: str) -> ProviderAllocations:
    """All consumers of the provider."""
    provider = providers.find_provider(connection, uuid)
    if provider is None:
        raise NotFound(
            f"Resource provider '{uuid}' not found: No resource provider with uuid {uuid} found"
        )
    consumers, modified_at = allocations.provider_allocations(connection, provider.id)
    return ProviderAllocations(provider.generation, consumers, modified_at)
