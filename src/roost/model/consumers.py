"""Consumers, their allocations, and claims on allocations."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final, NamedTuple

UNKNOWN_CONSUMER_TYPE = "unknown"
ALL_CONSUMER_TYPES = "all"


class AnyGeneration:
    """Marks a request without consumer generations (below 1.28)."""


ANY_GENERATION: Final = AnyGeneration()


@dataclass(frozen=True, slots=True)
class ProviderAllocation:
    """The allocations of one consumer from one provider."""

    provider_uuid: str
    provider_generation: int
    resources: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class ConsumerAllocations:
    """All allocations of one consumer, its owner and its type."""

    allocations: tuple[ProviderAllocation, ...]
    project: str
    user: str
    generation: int
    consumer_type: str | None
    # `None` if another service wrote rows without times.
    modified_at: datetime | None


@dataclass(frozen=True, slots=True)
class ProviderConsumer:
    """One consumer of a provider, and what it holds there."""

    consumer_uuid: str
    consumer_generation: int
    resources: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Claim:
    """The whole new state of one consumer: `allocations` by provider and class, maybe empty.

    `generation` is the consumer generation that the client has seen. It is `None` for a consumer
    that must not exist yet, and `ANY_GENERATION` if the request has no consumer generations. A
    `consumer_type` of `None` keeps the recorded type.
    """

    consumer: str
    allocations: Mapping[str, Mapping[str, int]]
    project: str
    user: str
    generation: int | AnyGeneration | None = ANY_GENERATION
    consumer_type: str | None = None


@dataclass(frozen=True, slots=True)
class Consumer:
    """A consumer without what it holds: its owner, its type and its age."""

    uuid: str
    consumer_type: str | None
    project: str
    user: str
    generation: int
    # `None` if another service wrote the row without times.
    created_at: datetime | None
    updated_at: datetime | None


@dataclass(frozen=True, slots=True)
class ConsumerHolding:
    """What a consumer holds from one provider."""

    provider_uuid: str
    provider_name: str
    root_uuid: str
    root_name: str
    resources: dict[str, int]


@dataclass(frozen=True, slots=True)
class ConsumerFilter:
    """Which consumers a list has: those that meet all conditions that are not `None`."""

    consumer_type: str | None = None
    project: str | None = None
    user: str | None = None
    # It holds something from one of these providers, or from a provider of this tree.
    provider_ids: Collection[int] | None = None
    root_id: int | None = None
    created_before: datetime | None = None


class SizeMark(NamedTuple):
    """The place of a consumer in a list by size: its size in millionths, and its uuid."""

    size: int
    consumer: str


@dataclass(frozen=True, slots=True)
class TypeUsage:
    """What all consumers of one type hold together."""

    consumer_type: str
    consumer_count: int
    resources: Mapping[str, int]
