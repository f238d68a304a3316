"""Variants: the queries for which a query with alternatives stands.

A group with alternatives takes other resources in trees where its first choice does not fit. The
variants come in order of preference, and each finds candidates only in trees in which no earlier
one does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import product
from typing import NamedTuple

from roost.model.candidates import CandidateQuery, RequestGroup
from roost.search.candidates.effort import no_pause
from roost.search.candidates.kept_work import KeptWork
from roost.search.candidates.ranking import CandidateOrder
from roost.search.candidates.search import (
    CANDIDATES_MAX,
    FoundCandidates,
    ServedTrees,
    find_candidates,
)
from roost.search.forest.forest import Forest


class Variant(NamedTuple):
    """A query without alternatives."""

    query: CandidateQuery
    # Which resources each group with alternatives takes, by suffix; 0 is its first choice.
    choices: dict[str, int]


def variants_of(query: CandidateQuery) -> list[Variant]:
    """The variants of a query: those with the fewest steps away from first choices come first.

    Of variants with equally many steps, those come first that keep the choice of earlier groups.
    """
    if not any([group.alternatives for group in query.groups]):
        return [Variant(query, {})]
    counts = [1 + len(group.alternatives) for group in query.groups]
    chosen = sorted(product(*map(range, counts)), key=lambda choices: (sum(choices), choices))
    return [_variant(query, choices) for choices in chosen]


def _variant(query: CandidateQuery, choices: tuple[int, ...]) -> Variant:
    groups = tuple(
        replace(group, resources=(group.resources, *group.alternatives)[choice], alternatives=())
        for group, choice in zip(query.groups, choices, strict=True)
    )
    named = {
        group.suffix: choice
        for group, choice in zip(query.groups, choices, strict=True)
        if group.alternatives
    }
    return Variant(replace(query, groups=groups), named)


def with_alternatives(
    variant: CandidateQuery, query: CandidateQuery, choices: Mapping[str, int]
) -> CandidateQuery:
    """A changed variant of a query, with the alternatives of the query that it does not take."""
    groups = {group.suffix: group for group in query.groups}

    def restored(group: RequestGroup) -> RequestGroup:
        resources = [groups[group.suffix].resources, *groups[group.suffix].alternatives]
        resources[choices.get(group.suffix, 0)] = group.resources
        first, *rest = resources
        return replace(group, resources=first, alternatives=tuple(rest))

    return replace(variant, groups=tuple(map(restored, variant.groups)))


def find_variants(
    forest: Forest,
    query: CandidateQuery,
    order: CandidateOrder,
    *,
    pause: Callable[[], None] = no_pause,
    kept_work: KeptWork | None = None,
) -> list[FoundCandidates]:
    """What the variants of a query find, up to its limit; `kept_work` is that of the first one."""
    variants = variants_of(query)
    if len(variants) == 1:
        return [find_candidates(forest, query, order, pause=pause, kept_work=kept_work)]
    served = ServedTrees()
    found: list[FoundCandidates] = []
    count = 0
    maximum = CANDIDATES_MAX if order.maximum is None else order.maximum
    for variant, choices in variants:
        limit = None if query.limit is None else query.limit - count
        if limit == 0:
            break
        if count >= maximum:
            # The variants that are left may have candidates.
            found[-1] = replace(found[-1], truncated=True)
            break
        served.begin_search()
        part = find_candidates(
            forest,
            replace(variant, limit=limit),
            replace(order, maximum=maximum - count),
            pause=pause,
            served=served,
        )
        found.append(replace(part, choices=choices))
        count += part.count or 0
    return found
