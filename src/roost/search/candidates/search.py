"""The search for candidates: from a query and a forest to batches, with each candidate once.

A search may leave out the trees for which an earlier search has a candidate (`ServedTrees`).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from math import inf

from roost.model.candidate_query.query import CandidateQuery
from roost.search.candidates.effort import Effort, no_pause
from roost.search.candidates.kept_work import KeptWork, SearchWork
from roost.search.candidates.plan import Slot, make_plan
from roost.search.candidates.ranking import CandidateOrder
from roost.search.candidates.rules import Rules
from roost.search.candidates.scan import AlikeTrees, problem_in
from roost.search.candidates.sharing import SharingProvider, SharingProviders
from roost.search.candidates.solving.problem import Solution, solution_key
from roost.search.candidates.solving.solver import solve
from roost.search.candidates.walks import (
    Batch,
    Batches,
    breadth_first,
    depth_first,
    in_any_order,
    ranked,
)
from roost.search.forest.forest import Forest, ProviderRef, TreeRef

# A search holds no more candidates than these in memory. With a larger limit, or without one, it
# works each candidate out when the caller takes it.
CANDIDATES_MAX = 100_000
# What it costs to find a candidate once more.
_REPETITION_UNITS = 20
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
    # Which resources each group with alternatives takes, by suffix; 0 are its first ones.
    alternatives: Mapping[str, int] = field(default_factory=dict)


class ServedTrees:
    """The trees for which earlier searches of one request have a candidate."""

    def __init__(self) -> None:
        # By block number, the tree numbers.
        self._earlier: dict[int, set[int]] = {}
        self._now: dict[int, set[int]] = {}

    def begin_search(self) -> None:
        """The trees of the search before count as served from now on."""
        for block_number, tree_numbers in self._now.items():
            self._earlier.setdefault(block_number, set()).update(tree_numbers)
        self._now = {}

    def without_served(self, scanned: Iterator[AlikeTrees]) -> Iterator[AlikeTrees]:
        """The trees that no earlier search serves."""
        for alike in scanned:
            served = self._earlier.get(alike.block_number)
            if served is None:
                yield alike
                continue
            left = [number for number in alike.tree_numbers if number not in served]
            if left:
                yield alike._replace(tree_numbers=left)

    def noting(self, batches: Iterator[Batch]) -> Iterator[Batch]:
        """The same batches; their trees are noted."""
        for batch in batches:
            self._now.setdefault(batch.block_number, set()).update(batch.tree_numbers)
            yield batch


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


def has_candidate(
    forest: Forest, sharing: Forest, tree: TreeRef, query: CandidateQuery, effort: Effort
) -> bool:
    """Whether a tree has a candidate for a query, as far as the effort suffices to know.

    `sharing` is the forest with its sharing providers alone, which many questions may share.
    """
    plan = make_plan(forest, query)
    if plan is None:
        return False
    rules = Rules(plan, SharingProviders(sharing, plan, effort.pause), effort)
    problem = problem_in(forest, tree, rules)
    return problem is not None and any(step is not None for step in solve(rules, problem))


def _is_unbounded(limit: int | None) -> bool:
    return limit is None or limit > CANDIDATES_MAX


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
    maximum = CANDIDATES_MAX if order.maximum is None else order.maximum
    by_slots = max(1, max(maximum, CANDIDATES_MAX) * _SLOTS_USUAL // slot_count)
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


def distinct(forest: Forest, rules: Rules, batches: Iterator[Batch]) -> Iterator[Batch]:
    """The batches, with each candidate only once.

    A candidate of nothing but sharing providers is found for every anchor that they reach.
    """
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
