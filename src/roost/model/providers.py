"""Resource providers and the filters by which they are listed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple


class Provider(NamedTuple):
    """One resource provider, with its parent and its root.

    A tuple, because lists have thousands, and a frozen dataclass takes five times as long to make.
    """

    id: int
    uuid: str
    name: str
    generation: int
    parent_id: int | None
    parent_uuid: str | None
    root_id: int
    root_uuid: str
    # `None` if another service wrote a row without times.
    modified_at: datetime | None


@dataclass(frozen=True, slots=True)
class TraitFilter:
    """What `required` asks for.

    A provider has all traits of `required`, one of each set of `any_of`, none of `forbidden`.
    """

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
    """All that `GET /resource_providers` can ask for; a default value asks nothing.

    `name`, `uuid` and `in_tree` are the identity of a provider, which its row tells. The rest are
    conditions on what a provider has: its traits, its aggregates, room in its inventories.
    """

    name: str | None = None
    uuid: str | None = None
    in_tree: str | None = None
    traits: TraitFilter = TraitFilter()
    aggregates: AggregateFilter = AggregateFilter()
    resources: Mapping[str, int] = field(default_factory=dict)

    @property
    def identity(self) -> dict[str, str]:
        """The identity that the filter asks for, by key; an empty value asks nothing.

        >>> ProviderFilter(name="", uuid="c0ffee00-0000-0000-0000-000000000001").identity
        {'uuid': 'c0ffee00-0000-0000-0000-000000000001'}
        """
        asked = (("name", self.name), ("uuid", self.uuid), ("in_tree", self.in_tree))
        return {key: value for key, value in asked if value}

    @property
    def has_conditions(self) -> bool:
        """Whether the filter has conditions on what a provider has."""
        aggregates = self.aggregates
        return bool(
            self.traits.names or aggregates.any_of or aggregates.forbidden or self.resources
        )
