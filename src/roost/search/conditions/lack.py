"""What a tree lacks for a query: each lack is one check that the tree fails."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from roost.model.candidate_query.change import QueryChange
from roost.model.candidate_query.query import CandidateQuery
from roost.search.conditions.stages import SearchStage


class LackRule(StrEnum):
    """What a failed check asks for."""

    INVENTORY = "inventory"
    UNITS = "units"
    ROOM = "room"
    REQUIRED = "required"
    # The providers of the unsuffixed group do not have all required traits between them.
    REQUIRED_TOGETHER = "required_together"
    FORBIDDEN = "forbidden"
    MEMBER_OF = "member_of"
    NOT_MEMBER_OF = "not_member_of"
    # A sharing provider would do, and none of its aggregates has a provider of the tree.
    REACH = "reach"
    IN_TREE = "in_tree"
    IN_SUBTREE = "in_subtree"
    # Several groups together need more than the providers that meet them have.
    CAPACITY = "capacity"
    ISOLATE = "isolate"
    SAME_SUBTREE = "same_subtree"
    ONE_PROVIDER = "one_provider"
    # Several of these rules, none of which is to blame alone.
    AT_ONCE = "at_once"


@dataclass(frozen=True, slots=True)
class UnitRange:
    """The amounts that one allocation from an inventory may have."""

    min_unit: int
    max_unit: int
    step_size: int


class Explained(Protocol):
    """What explains a lack: in a sentence, and by the queries that ask for less."""

    def lack_text(self, lack: Lack, tree: str, provider: str | None) -> str:
        """The lack as a sentence without a full stop. Tree and provider are names."""

    def changes(self, query: CandidateQuery, lack: Lack) -> Iterator[QueryChange]:
        """The changes of a query that may mend the lack."""


@dataclass(frozen=True, slots=True)
class Lack:
    """One check that a tree fails."""

    stage: SearchStage
    rule: LackRule
    # The suffix of the request group; `None` if the check is about the root or several groups.
    group: str | None = None
    # The uuid of the provider that comes nearest; `None` if none comes near.
    provider: str | None = None
    resource_class: str | None = None
    # Amounts of the class. For isolation they count providers.
    wanted: int | None = None
    free: int | None = None
    # One of these traits is missing, or this trait is forbidden.
    traits: tuple[str, ...] = ()
    aggregates: tuple[str, ...] = ()
    units: UnitRange | None = None
    # The suffixes of the groups that the check is about, if there are several.
    groups: tuple[str, ...] = ()
    # The condition that the tree fails.
    condition: Explained = field(compare=False, repr=False, kw_only=True)
    # Which of the traits the root has.
    root_traits: frozenset[str] = frozenset()
    # The lacks of the conditions, if several of them are not fulfilled at once.
    parts: tuple[Lack, ...] = ()
