"""Resource providers and the filters by which they are listed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Provider:
    """One resource provider, with its place in its tree."""

    id: int
    uuid: str
    name: str
    generation: int
    parent_id: int | None
    parent_uuid: str | None
    root_id: int
    root_uuid: str
    modified_at: datetime


@dataclass(frozen=True, slots=True)
class TraitFilter:
    """What `required` asks for: all of one set, one of each of several, none of another."""

    required: tuple[str, ...] = ()
    any_of: tuple[tuple[str, ...], ...] = ()
    forbidden: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """All traits that are named."""
        alternatives = tuple(name for group in self.any_of for name in group)
        return self.required + alternatives + self.forbidden


@dataclass(frozen=True, slots=True)
class AggregateFilter:
    """What `member_of` asks for: one aggregate of each `any_of` set, and none of `forbidden`."""

    any_of: tuple[tuple[str, ...], ...] = ()
    forbidden: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ProviderFilter:
    """All that `GET /resource_providers` can ask for; what is left out does not filter."""

    name: str | None = None
    uuid: str | None = None
    in_tree: str | None = None
    traits: TraitFilter = TraitFilter()
    aggregates: AggregateFilter = AggregateFilter()
    resources: Mapping[str, int] = field(default_factory=dict)
