"""The search for candidates: from a query and a forest to batches."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from math import inf

from roost.model.candidates import CandidateQuery
from roost.search.batches import Batch, Batches
from roost.search.candidate_order import CandidateOrder
from roost.search.distinct import distinct
from roost.search.effort import Effort, no_pause
from roost.search.forest import Forest
from roost.search.kept_work import KeptWork, SearchWork
from roost.search.plan import Slot
from roost.search.ranked_walk import ranked
from roost.search.rules import Rules
from roost.search.served_trees import ServedTrees
from roost.search.sharing import SharingProvider, SharingProviders
from roost.search.walks import breadth_first, depth_first, in_any_order

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
