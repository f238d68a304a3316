"""Consumers, what they hold, and the changes of it that clients ask for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

UNKNOWN_CONSUMER_TYPE = "unknown"
ALL_CONSUMER_TYPES = "all"


class AnyGeneration:
    """Says that the request does not know consumer generations (below 1.28)."""


ANY_GENERATION: Final = AnyGeneration()


@dataclass(frozen=True, slots=True)
class ProviderAllocation:
    """What one consumer holds on one provider."""

    provider_uuid: str
    provider_generation: int
    resources: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class ConsumerAllocations:
    """All that one consumer holds, and who it is."""

    allocations: tuple[ProviderAllocation, ...]
    project: str
    user: str
    generation: int
    consumer_type: str | None
    modified_at: datetime


@dataclass(frozen=True, slots=True)
class ProviderConsumer:
    """What one provider gives to one consumer."""

    consumer_uuid: str
    consumer_generation: int
    resources: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Claim:
    """The whole new state of one consumer: `allocations` by provider and class, maybe empty.

    `generation` is the consumer generation that the client has seen: null for a consumer that
    must not exist yet, `ANY_GENERATION` if the request does not take part in the game. A
    `consumer_type` of null leaves the recorded type alone.
    """

    consumer: str
    allocations: Mapping[str, Mapping[str, int]]
    project: str
    user: str
    generation: int | AnyGeneration | None = ANY_GENERATION
    consumer_type: str | None = None

    @property
    def count(self) -> int:
        """How many allocations it writes; taking everything from a consumer is one."""
        return sum(map(len, self.allocations.values())) or 1


@dataclass(frozen=True, slots=True)
class TypeUsage:
    """What the consumers of one type use together."""

    consumer_type: str
    consumer_count: int
    resources: Mapping[str, int]
