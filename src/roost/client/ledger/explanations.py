"""Explanations and capacities: what a server of Roost says about a query. Frozen values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from roost.client.ledger.values import ProviderReference
from roost.client.questions import Json


@dataclass(frozen=True, slots=True)
class StageReason:
    """The first stage of the search that leaves no tree, and why."""

    stage: str
    text: str
    group: str | None = None
    """The suffix of the group; `None` for a stage of the whole query."""
    resource_class: str | None = None


@dataclass(frozen=True, slots=True)
class StageLeft:
    """What a stage of the search leaves."""

    stage: str
    trees: int
    text: str
    providers: int | None = None


@dataclass(frozen=True, slots=True)
class Shortfall:
    """One thing that a tree lacks."""

    text: str
    stage: str | None = None
    group: str | None = None
    provider: ProviderReference | None = None
    resource_class: str | None = None
    wanted: int | None = None
    free: int | None = None


@dataclass(frozen=True, slots=True)
class NearMiss:
    """A tree that fails few conditions of the query, and all that it lacks."""

    root: ProviderReference
    lacks: tuple[Shortfall, ...]


@dataclass(frozen=True, slots=True)
class FeasibleQuery:
    """A query near the one asked, which has candidates."""

    text: str
    query: str


@dataclass(frozen=True, slots=True)
class QueryExplanation:
    """Why a query has candidates, or why it has none."""

    feasible: bool
    reason: StageReason | None = None
    """The dominant reason; `None` if the query has candidates."""
    groups: Mapping[str, tuple[StageLeft, ...]] = field(default_factory=dict)
    """What each stage leaves of each group, by its suffix; of alternatives, the last one."""
    trees: tuple[StageLeft, ...] = ()
    """What each stage of the whole query leaves."""
    misses: tuple[NearMiss, ...] = ()
    """The trees that fail the fewest conditions, best first."""
    hints: tuple[FeasibleQuery, ...] = ()


@dataclass(frozen=True, slots=True)
class RootFits:
    """How many consumers fit on one root alone; at least so many, if `at_most` is more."""

    root: ProviderReference
    fits: int
    at_most: int


@dataclass(frozen=True, slots=True)
class QueryCapacity:
    """How many more consumers with exactly this query fit; at least so many, unless `exact`."""

    fits: int
    exact: bool
    at_most: int | None
    """An upper bound; `None` if none is known."""
    limited_by: str | None = None
    """The resource class of which more would let more in."""
    text: str | None = None
    roots: tuple[RootFits, ...] = ()
    """The roots that hold one at least, if they were asked for. Roots may share a pool."""


def explanation_value(answer: Json) -> QueryExplanation:
    """The answer of `GET /roost/explain`."""
    reason = answer.get("reason")
    return QueryExplanation(
        feasible=answer["feasible"],
        reason=None
        if reason is None
        else StageReason(
            reason.get("stage", ""),
            reason.get("text") or "",
            reason.get("group"),
            reason.get("resource_class"),
        ),
        groups={
            group["group"]: tuple(map(_stage_left, group["funnel"])) for group in answer["groups"]
        },
        trees=tuple(map(_stage_left, answer["trees"])),
        misses=tuple(
            NearMiss(_named(miss["root"]), tuple(map(_shortfall, miss["lacks"])))
            for miss in answer["misses"]
        ),
        hints=tuple(FeasibleQuery(hint["text"], hint["query"]) for hint in answer["hints"]),
    )


def _stage_left(row: Json) -> StageLeft:
    return StageLeft(row["stage"], row["trees"], row.get("text") or "", row.get("providers"))


def _shortfall(lack: Json) -> Shortfall:
    provider = lack.get("provider")
    return Shortfall(
        lack["text"],
        lack.get("stage"),
        lack.get("group"),
        _named(provider) if provider else None,
        lack.get("resource_class"),
        lack.get("wanted"),
        lack.get("free"),
    )


def _named(reference: Mapping[str, Any]) -> ProviderReference:
    return ProviderReference(reference["uuid"], reference["name"])


def capacity_value(answer: Json) -> QueryCapacity:
    """The answer of `GET /roost/capacity`."""
    limit = answer.get("limited_by") or {}
    fits = answer["fits"]
    return QueryCapacity(
        fits=fits,
        exact=answer["exact"],
        at_most=fits if answer["exact"] else answer.get("at_most"),
        limited_by=limit.get("resource_class"),
        text=limit.get("text"),
        roots=tuple(
            RootFits(_named(root["root"]), root["fits"], root.get("at_most", root["fits"]))
            for root in answer.get("roots", ())
        ),
    )
