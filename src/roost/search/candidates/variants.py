"""Variants: the queries for which a query with alternatives stands.

A group with alternatives takes other resources in trees where its first ones do not fit. The
variants come in order of preference, and each finds candidates only in trees in which no earlier
one does. `ChosenCandidate` shows one candidate by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import NamedTuple

from roost.model.candidate_query.query import CandidateQuery, RequestGroup
from roost.search.candidates.effort import no_pause
from roost.search.candidates.kept_work import KeptWork
from roost.search.candidates.ranking import CandidateOrder
from roost.search.candidates.search import (
    CANDIDATES_MAX,
    FoundCandidates,
    ServedTrees,
    find_candidates,
)
from roost.search.candidates.solving.problem import Solution
from roost.search.forest.forest import Forest, ProviderRef, TreeRef


class Variant(NamedTuple):
    """A query without alternatives."""

    query: CandidateQuery
    # Which resources each group with alternatives takes, by suffix; 0 are its first ones.
    alternatives: dict[str, int]


def variants_of(query: CandidateQuery) -> list[Variant]:
    """The variants of a query: those with the fewest steps away from first resources come first.

    Of variants with equally many steps, those come first in which earlier groups keep theirs.
    """
    if not any([group.alternatives for group in query.groups]):
        return [Variant(query, {})]
    counts = [1 + len(group.alternatives) for group in query.groups]
    chosen = sorted(product(*map(range, counts)), key=lambda numbers: (sum(numbers), numbers))
    return [_variant(query, numbers) for numbers in chosen]


def _variant(query: CandidateQuery, numbers: tuple[int, ...]) -> Variant:
    groups = tuple(
        replace(group, resources=(group.resources, *group.alternatives)[number], alternatives=())
        for group, number in zip(query.groups, numbers, strict=True)
    )
    named = {
        group.suffix: number
        for group, number in zip(query.groups, numbers, strict=True)
        if group.alternatives
    }
    return Variant(replace(query, groups=groups), named)


def with_alternatives(
    variant: CandidateQuery, query: CandidateQuery, taken: Mapping[str, int]
) -> CandidateQuery:
    """A changed variant of a query, with the alternatives of the query that it does not take.

    `taken` has the alternatives that the variant takes.
    """
    groups = {group.suffix: group for group in query.groups}

    def restored(group: RequestGroup) -> RequestGroup:
        resources = [groups[group.suffix].resources, *groups[group.suffix].alternatives]
        resources[taken.get(group.suffix, 0)] = group.resources
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
    for variant, alternatives in variants:
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
        found.append(replace(part, alternatives=alternatives))
        count += part.count or 0
    return found


@dataclass(frozen=True, slots=True)
class ChosenCandidate:
    """A candidate, with uuids and names as the API shows them."""

    root_uuid: str
    # By provider and resource class.
    allocations: Mapping[str, Mapping[str, int]]
    # The providers of each request group, by its suffix.
    mappings: Mapping[str, list[str]]

    @classmethod
    def of(cls, found: FoundCandidates, tree: TreeRef, solution: Solution) -> ChosenCandidate:
        """The candidate of a tree for a solution of the search."""
        allocations: dict[str, dict[str, int]] = {}
        mappings: dict[str, list[str]] = {}
        for slot, local in zip(found.slots, solution, strict=True):
            uuid = _uuid(found.forest, _provider(found, tree, local))
            together = mappings.setdefault(slot.suffix, [])
            if uuid not in together:
                together.append(uuid)
            for name, amount in slot.resources.items():
                amounts = allocations.setdefault(uuid, {})
                amounts[name] = amounts.get(name, 0) + amount
        root_uuid = found.forest.blocks[tree.block_number].root_uuid(tree.tree_number)
        return cls(root_uuid, allocations, mappings)


def choose_candidate(
    forest: Forest, query: CandidateQuery, order: CandidateOrder, pause: Callable[[], None]
) -> ChosenCandidate | None:
    """The best candidate by this order; `None` without candidates."""
    for variant in variants_of(query):
        found = find_candidates(forest, replace(variant.query, limit=1), order, pause=pause)
        for batch in found.batches:
            tree = TreeRef(batch.block_number, batch.tree_numbers[0])
            return ChosenCandidate.of(found, tree, batch.solution)
    return None


def _provider(found: FoundCandidates, tree: TreeRef, local: int) -> ProviderRef:
    if local < 0:
        return found.sharing_providers[~local].ref
    start = int(found.forest.blocks[tree.block_number].starts[tree.tree_number])
    return ProviderRef(tree.block_number, start + local)


def _uuid(forest: Forest, ref: ProviderRef) -> str:
    return forest.blocks[ref.block_number].uuids[ref.provider_index].decode()
