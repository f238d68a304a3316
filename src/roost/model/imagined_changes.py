"""Changes that a client imagines. `POST /roost/whatif` makes them in a private copy of the forest.

A provider is named as the client names it: by uuid or by name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from roost.model.candidate_query.query import CandidateQuery


@dataclass(frozen=True, slots=True)
class Drain:
    """In the subtree of the provider, reserved becomes total. Allocations stay."""

    provider: str


@dataclass(frozen=True, slots=True)
class Remove:
    """The subtree of the provider goes, with its allocations."""

    provider: str


@dataclass(frozen=True, slots=True)
class ChangeInventory:
    """An inventory of the provider gets these fields. Fields that are not named stay."""

    provider: str
    resource_class: str
    fields: Mapping[str, int | float]


@dataclass(frozen=True, slots=True)
class ChangeTraits:
    """The provider gets some traits and loses some."""

    provider: str
    added: tuple[str, ...]
    removed: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AddTrees:
    """New trees that are built as the tree of the provider; if `empty`, without its usage."""

    like: str
    count: int
    empty: bool


@dataclass(frozen=True, slots=True)
class ClaimCandidate:
    """A new consumer claims the best candidate, by this order."""

    query: CandidateQuery
    order: str
    # For a random order: equal seeds choose alike.
    seed: int


@dataclass(frozen=True, slots=True)
class Release:
    """The consumer gives back all that it holds."""

    consumer: str


ImaginedChange: TypeAlias = (
    Drain | Remove | ChangeInventory | ChangeTraits | AddTrees | ClaimCandidate | Release
)


def named_provider(change: ImaginedChange) -> str | None:
    """The provider that a change is about; `None` if the change names none."""
    match change:
        case Drain() | Remove() | ChangeInventory() | ChangeTraits():
            return change.provider
        case AddTrees():
            return change.like
        case _:
            return None
