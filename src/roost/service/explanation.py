"""The explanation of a search: what each stage left, and why nothing is left, in plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from roost.search.lack import Miss
from roost.service.hints import Hint


@dataclass(frozen=True, slots=True)
class Reason:
    """The dominant reason: the first stage that leaves no tree."""

    stage: str
    # The suffix of the group; `None` for a stage of the request.
    group: str | None
    # The class that alone is to blame, if one is.
    resource_class: str | None
    text: str
    # The alternatives that come furthest, by suffix, if the query has some.
    alternatives: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FunnelRow:
    """What one stage left of one request group."""

    stage: str
    providers: int
    trees: int
    text: str


@dataclass(frozen=True, slots=True)
class GroupFunnel:
    """All stages of one request group."""

    group: str
    funnel: tuple[FunnelRow, ...]
    # Which of its alternatives the group takes, if it has some.
    alternative: int | None = None


@dataclass(frozen=True, slots=True)
class TreeRow:
    """What one stage of the request left."""

    stage: str
    trees: int
    text: str


@dataclass(frozen=True, slots=True)
class Explanation:
    """Whether a query has candidates, and why or why not."""

    feasible: bool
    # `None` if the query has candidates.
    reason: Reason | None
    # In the order of the query, the alternatives of a group after each other.
    groups: tuple[GroupFunnel, ...]
    trees: tuple[TreeRow, ...]
    # The trees without a candidate that come nearest, best first.
    misses: tuple[Miss, ...]
    # Queries close to this one that have candidates; empty if this one has.
    hints: tuple[Hint, ...]
    # False if the effort of a search did not suffice to look at every combination.
    exact: bool
