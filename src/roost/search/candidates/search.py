"""The search for candidates: from a query and a forest to batches."""

from __future__ import annotations

import random
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import product
from math import inf
from typing import NamedTuple

from roost.model.candidates import CandidateQuery, RequestGroup
from roost.search.candidates.batches import Batch, Batches, Solution, solution_key
from roost.search.candidates.kept_work import KeptWork, SearchWork
from roost.search.candidates.plan import Slot
from roost.search.candidates.problem import Effort, no_pause
from roost.search.candidates.ranking import CandidateOrder
from roost.search.candidates.rules import Rules
from roost.search.candidates.sharing import SharingProvider, SharingProviders
from roost.search.candidates.walks import (
    ServedTrees,
    breadth_first,
    depth_first,
    in_any_order,
    ranked,
)
from roost.search.forest.forest import Forest, ProviderRef, TreeRef

# A search with a larger limit holds no candidates, as a search without a limit.
_LIMIT_MAX = 100_000
# With more slots than these, a search returns fewer candidates: an answer grows with both.
_SLOTS_USUAL = 10


@dataclass(frozen=True, slots=True)
class FoundCandidates:
    """What a search found, in terms of its forest."""

    forest: Forest
    slots: tuple[Slot, ...]
    sharing_providers: tuple[SharingProvider, ...]
    batches: Iterable[Batch]
    # The count of candidates; `None` if the search works them out while the batches are taken.
    count: int | None
    # Whether the client may miss candidates: there are more than the maximum, or the effort did
    # not suffice to find all.
    truncated: bool = False
    # What the search leaves for the next one; `None` if it goes on while the batches are taken.
    kept_work: KeptWork | None = None
    # Which resources each group with alternatives takes, by suffix; 0 is its first choice.
    choices: Mapping[str, int] = field(default_factory=dict)


def find_candidates(
    forest: Forest,
    query: CandidateQuery,
    order: CandidateOrder,
    *,
    pause: Callable[[], None] = no_pause,
    kept_work: KeptWork | None = None,
    served: ServedTrees | None = None,
) -> FoundCandidates:
    """The candidates for a query all of whose names exist in the forest's vocabulary.

    If neither the query nor the order bounds their count, the search works them out while the
    caller takes the batches. It calls `pause` after some milliseconds of work at most.
    `kept_work` is what an earlier search for the query left. It makes no difference to the result.
    Trees that are `served` are left out, in a search with a bound.
    """
    work = SearchWork(forest, query, kept_work)
    plan = work.plan
    if plan is None:
        return FoundCandidates(forest, (), (), (), 0, kept_work=work.kept())
    unbounded = order.is_unbounded and _is_unbounded(query.limit)
    # The headers of an unbounded answer are sent before the search ends, so they cannot tell that
    # the effort did not suffice.
    effort = Effort(bounded=not unbounded, pause=pause)
    sharing_providers = SharingProviders(forest, plan, pause)
    rules = Rules(plan, sharing_providers, effort)
    scanned = work.scans(rules, _block_numbers(forest, order))
    if unbounded:
        # This order holds no candidates in memory.
        everything = distinct(forest, rules, in_any_order(rules, scanned))
        batches = _until(everything, query.limit)
        return FoundCandidates(forest, plan.slots, sharing_providers.providers, batches, None)
    if served is not None:
        scanned = served.without_served(scanned)
    if order.ranking is not None:
        batches = ranked(forest, rules, scanned, order.ranking)
    else:
        batches = (depth_first if order.depth_first else breadth_first)(rules, scanned)
    if served is not None:
        batches = served.noting(batches)
    batches = distinct(forest, rules, batches)
    wanted = None if order.shuffled else query.limit
    bound = _bound(order, wanted, len(plan.slots))
    # After the client's own limit it does not matter whether there are more.
    selected, more = _first(batches, bound, pause, look_further=bound != wanted)
    if order.shuffled:
        selected = _shuffled(selected, query.limit)
    wants_more = query.limit is None or selected.count < query.limit
    truncated = wants_more and (more or effort.gave_up)
    return FoundCandidates(
        forest,
        plan.slots,
        sharing_providers.providers,
        selected,
        selected.count,
        truncated,
        work.kept(),
    )


def _is_unbounded(limit: int | None) -> bool:
    return limit is None or limit > _LIMIT_MAX


def _until(batches: Iterator[Batch], bound: int | None) -> Iterator[Batch]:
    """The first batches, up to this number of candidates in all."""
    if bound is None:
        yield from batches
        return
    left = bound
    for batch in batches:
        yield batch._replace(tree_numbers=batch.tree_numbers[:left])
        left -= len(batch.tree_numbers)
        if left <= 0:
            return


def _bound(order: CandidateOrder, wanted: int | None, slot_count: int) -> float:
    """How many candidates the search holds at most."""
    if order.maximum is None and order.ranking is None and wanted is None:
        return inf
    maximum = _LIMIT_MAX if order.maximum is None else order.maximum
    by_slots = max(1, max(maximum, _LIMIT_MAX) * _SLOTS_USUAL // slot_count)
    return min(maximum, by_slots, maximum if wanted is None else wanted)


def _first(
    batches: Iterator[Batch], bound: float, pause: Callable[[], None], *, look_further: bool
) -> tuple[Batches, bool]:
    """The first batches, up to this number of candidates in all, and whether there are more."""
    selected = Batches()
    for batch in batches:
        pause()
        left = bound - selected.count
        if left <= 0:
            return selected, True
        surplus = len(batch.tree_numbers) - left
        if surplus > 0:
            selected.append(batch._replace(tree_numbers=batch.tree_numbers[: int(left)]))
            return selected, True
        selected.append(batch)
        if not surplus and not look_further:
            break
    return selected, False


def _shuffled(batches: Batches, limit: int | None) -> Batches:
    """The candidates in random order, up to the limit."""
    single = [
        Batch(block_number, [tree_number], solution)
        for block_number, tree_numbers, solution in batches
        for tree_number in tree_numbers
    ]
    shuffled = Batches()
    for batch in random.sample(single, len(single) if limit is None else min(limit, len(single))):
        shuffled.append(batch)
    return shuffled


def _block_numbers(forest: Forest, order: CandidateOrder) -> list[int]:
    """The blocks in the order in which a search looks at them."""
    block_numbers = list(range(len(forest.blocks)))
    if order.shuffled:
        random.shuffle(block_numbers)
    return block_numbers


# Alternatives: resources that a group takes instead, in trees where its first choice does not fit.
#
# A query with alternatives stands for several queries, its variants. The variants come in order of
# preference, and each finds candidates only in trees in which no earlier one does.

# More candidates would not fit into memory together.
_CANDIDATES_MAX = 100_000


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
    maximum = _CANDIDATES_MAX if order.maximum is None else order.maximum
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


# Distinct candidates.
#
# A candidate of nothing but sharing providers is found for every anchor that they reach, and is
# returned once.

# What it costs to find a candidate once more.
_REPETITION_UNITS = 20


def distinct(forest: Forest, rules: Rules, batches: Iterator[Batch]) -> Iterator[Batch]:
    """The batches, with each candidate only once."""
    if not rules.sharing_providers:
        return batches
    return _Distinct(forest, rules).of(batches)


class _Distinct:
    """Remembers the candidates that take from sharing providers only."""

    def __init__(self, forest: Forest, rules: Rules) -> None:
        self._forest = forest
        self._effort = rules.effort
        self._own_trees = rules.sharing_providers.own_trees
        self._sharing_numbers = rules.sharing_providers.sharing_numbers
        self._seen: set[Hashable] = set()

    def of(self, batches: Iterator[Batch]) -> Iterator[Batch]:
        """The batches without the candidates of earlier ones."""
        for batch in batches:
            tree_numbers = batch.tree_numbers
            if max(batch.solution) < 0:
                tree_numbers = tree_numbers[:1]
            new = [
                tree_number
                for tree_number in tree_numbers
                if self._is_new(batch.block_number, tree_number, batch.solution)
            ]
            if new:
                yield batch._replace(tree_numbers=new)
            else:
                self._effort.spend(_REPETITION_UNITS)
                if self._effort.exhausted:
                    return

    def _is_new(self, block_number: int, tree_number: int, solution: Solution) -> bool:
        if max(solution) >= 0:
            if (block_number, tree_number) not in self._own_trees:
                return True
            solution = self._by_sharing_number(block_number, tree_number, solution)
            if max(solution) >= 0:
                return True
        key = solution_key(solution)
        if key in self._seen:
            return False
        self._seen.add(key)
        return True

    def _by_sharing_number(
        self, block_number: int, tree_number: int, solution: Solution
    ) -> Solution:
        """The solution, in which all sharing providers stand by sharing number."""
        start = int(self._forest.blocks[block_number].starts[tree_number])
        return tuple(
            [
                provider
                if provider < 0
                else ~self._sharing_numbers.get(ProviderRef(block_number, start + provider), -1)
                for provider in solution
            ]
        )


# One candidate of a search by itself: which provider gives what.


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
        block = found.forest.blocks[tree.block_number]
        root = ProviderRef(tree.block_number, int(block.starts[tree.tree_number]))
        return cls(_uuid(found.forest, root), allocations, mappings)


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
