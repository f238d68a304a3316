"""The search for a capacity: parts are counted in each block, then pools join the trees."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import reduce

import numpy as np

from roost.model.candidate_query.query import CandidateQuery
from roost.search.candidates.effort import Effort, no_pause
from roost.search.candidates.plan import Plan, make_plan
from roost.search.candidates.rules import Rules
from roost.search.candidates.scan import eligible_trees, may_fit
from roost.search.candidates.sharing import SharingProviders
from roost.search.candidates.variants import variants_of
from roost.search.capacity.capacity import (
    BlockCapacity,
    Capacity,
    Method,
    joined_blocks,
    joined_capacity,
)
from roost.search.capacity.limiting_classes import (
    HoldingTrees,
    Limit,
    LimitSearch,
    PooledTrees,
    Recounts,
)
from roost.search.capacity.linked import CoupledTree, PartOfTree, PoolStocks, taken_in_turn
from roost.search.capacity.part_counter import PartCounter, PartTally
from roost.search.capacity.parts import UNITS_MAX, parts_of
from roost.search.capacity.pools import PooledTree, PoolSet, Shared, share
from roost.search.forest.forest import Forest, ProviderRef
from roost.search.forest.rows import BoolColumn, IndexColumn, IntColumn

# JSON has no larger integers. No database holds so many consumers.
_FITS_MAX = 2**63 - 1


def find_capacity(
    forest: Forest, query: CandidateQuery, *, pause: Callable[[], None] = no_pause
) -> Capacity:
    """The capacity for a query all of whose names exist. The limit of the query does not count."""
    found = [_capacity(forest, variant.query, pause) for variant in variants_of(query)]
    return found[0] if len(found) == 1 else joined_capacity(forest, found)


def find_root_capacities(
    forest: Forest, query: CandidateQuery, *, pause: Callable[[], None] = no_pause
) -> tuple[BlockCapacity, ...]:
    """How many consumers each tree holds, if no other tree takes from its pools."""
    plans = [make_plan(forest, variant.query) for variant in variants_of(query)]
    found = [
        () if plan is None else _Finding.of(forest, plan, Effort(pause=pause)).alone()
        for plan in plans
    ]
    return found[0] if len(found) == 1 else joined_blocks(forest, found)


def _capacity(forest: Forest, query: CandidateQuery, pause: Callable[[], None]) -> Capacity:
    plan = make_plan(forest, query)
    if plan is None:
        return Capacity(0, 0, Method.COUNTING, None, forest, ())
    return _Finding.of(forest, plan, Effort(pause=pause)).capacity()


@dataclass(frozen=True, slots=True)
class _CountedBlock:
    """The numbers of all parts for the trees of a block."""

    block_number: int
    eligible: list[IndexColumn]
    tree_numbers: IndexColumn
    tallies: list[PartTally]
    # For each tree of `tree_numbers`.
    touched: BoolColumn
    coupled: BoolColumn


class _Finding:
    """One search for a capacity."""

    def __init__(self, forest: Forest, rules: Rules) -> None:
        self._forest = forest
        self._rules = rules
        self._counters = [PartCounter(forest, part, rules.effort) for part in parts_of(rules)]
        # The requirements that pools can meet: the number of the part, and the index there.
        self._commodities = [
            (number, requirement_index)
            for number, counter in enumerate(self._counters)
            for requirement_index in counter.commodities
        ]

    @classmethod
    def of(cls, forest: Forest, plan: Plan, effort: Effort) -> _Finding:
        """A search in this forest, which may have other amounts than the forest of the plan."""
        return cls(forest, Rules(plan, SharingProviders(forest, plan, effort.pause), effort))

    def capacity(self) -> Capacity:
        """The capacity, and what limits it."""
        blocks = list(self._counted_blocks(range(len(self._forest.blocks))))
        singles = [self._alone(block) for block in blocks]
        shared = self._shared(blocks)
        total = _total(shared, blocks, singles)
        uses_packing = any(counter.packer.is_used for counter in self._counters)
        method = (
            Method.BOUNDS
            if total.fits < total.at_most
            else Method.FLOW
            if any(block.touched.any() for block in blocks)
            else Method.PACKING
            if uses_packing
            else Method.COUNTING
        )
        limited_by = self._limit(blocks, singles, shared, total) if total.fits else None
        return Capacity(total.fits, total.at_most, method, limited_by, self._forest, tuple(singles))

    def alone(self) -> tuple[BlockCapacity, ...]:
        """The capacities of single trees."""
        return tuple(map(self._alone, self._counted_blocks(range(len(self._forest.blocks)))))

    def _limit(
        self,
        blocks: list[_CountedBlock],
        singles: list[BlockCapacity],
        shared: Shared,
        total: Shared,
    ) -> Limit | None:
        plan, effort = self._rules.plan, self._rules.effort

        def more_in_trees(forest: Forest, trees: HoldingTrees) -> bool:
            finding = _Finding.of(forest, plan, effort)
            before = next(one for one in singles if one.block_number == trees.block_number)
            most = dict(zip(before.tree_numbers.tolist(), before.most.tolist(), strict=True))
            return any(
                fits > most[number]
                for block in finding._counted_blocks([trees.block_number])
                for number, fits in _apart(block, finding._alone(block)).items()
                if number in most
            )

        def more_in_all(forest: Forest) -> bool:
            finding = _Finding.of(forest, plan, effort)
            again = list(finding._counted_blocks(range(len(forest.blocks))))
            alone = [finding._alone(block) for block in again]
            return _total(finding._shared(again), again, alone).fits > total.at_most

        both = list(zip(blocks, singles, strict=True))
        pooled = PooledTrees(
            tuple(
                (single.block_number, single.tree_numbers[block.touched & (single.most > 0)])
                for block, single in both
            ),
            tuple(self._used_up(blocks, shared)),
        )
        holding = [self._holding(block, single) for block, single in both]
        recounts = Recounts(more_in_trees, more_in_all)
        return LimitSearch(self._forest, plan, holding, pooled, recounts).find()

    def _used_up(self, blocks: list[_CountedBlock], shared: Shared) -> Iterator[frozenset[int]]:
        """The classes of each commodity of which trees and pools have no more to give."""
        for (number, requirement_index), bound in zip(
            self._commodities, self._bounds_by_slots(blocks), strict=True
        ):
            if bound <= shared.at_most:
                amounts = self._counters[number].part.plan.requirements[requirement_index].amounts
                yield frozenset(class_id for class_id, _ in amounts)

    def _holding(self, block: _CountedBlock, single: BlockCapacity) -> HoldingTrees:
        holds = ~block.touched & (single.most > 0)
        numbers = single.tree_numbers[holds]
        tight: dict[int, BoolColumn] = {}
        for counter, tally in zip(self._counters, block.tallies, strict=True):
            binds = tally.most_alone[numbers] <= single.most[holds]
            for requirement in counter.part.plan.requirements:
                for class_id, _ in requirement.amounts:
                    tight[class_id] = tight[class_id] | binds if class_id in tight else binds
        return HoldingTrees(block.block_number, numbers, tight)

    def _counted_blocks(self, block_numbers: Iterable[int]) -> Iterator[_CountedBlock]:
        for block_number in block_numbers:
            block = self._forest.blocks[block_number]
            self._rules.effort.pause()
            if not may_fit(self._rules, block, block_number):
                continue
            found = eligible_trees(self._forest, block_number, self._rules)
            if found is None:
                continue
            tallies = [
                counter.count(
                    block_number, self._of_part(counter, found.eligible), found.tree_numbers
                )
                for counter in self._counters
            ]
            numbers = found.tree_numbers
            touched = reduce(np.logical_or, [tally.touched[numbers] for tally in tallies])
            coupled = reduce(np.logical_or, [tally.coupled[numbers] for tally in tallies])
            yield _CountedBlock(
                block_number, found.eligible, numbers, tallies, touched, touched & coupled
            )

    def _of_part(self, counter: PartCounter, eligible: list[IndexColumn]) -> list[IndexColumn]:
        return [eligible[index] for index in counter.part.requirement_indexes]

    def _alone(self, block: _CountedBlock) -> BlockCapacity:
        numbers = block.tree_numbers
        return BlockCapacity(
            block.block_number,
            numbers,
            reduce(np.minimum, [tally.least_alone[numbers] for tally in block.tallies]),
            reduce(np.minimum, [tally.most_alone[numbers] for tally in block.tallies]),
        )

    def _shared(self, blocks: list[_CountedBlock]) -> Shared:
        """The capacity of all trees that reach pools."""
        if not self._commodities or not any(block.touched.any() for block in blocks):
            return Shared(0, 0)
        units = [
            self._counters[number].pool_units[requirement_index]
            for number, requirement_index in self._commodities
        ]
        shared = share(self._pooled(blocks), units, self._rules.effort)
        if not any(block.coupled.any() for block in blocks):
            return shared
        bound = min([shared.at_most, *self._bounds_by_slots(blocks)])
        return Shared(min(bound, self._in_turn(blocks)), bound)

    def _pooled(self, blocks: list[_CountedBlock]) -> Counter[PooledTree]:
        """The trees that reach pools, equal ones together."""
        pooled: Counter[PooledTree] = Counter()
        for block in blocks:
            numbers = block.tree_numbers[block.touched]
            if not len(numbers):
                continue
            most = [(tally.most, tally.most_alone) for tally in block.tallies]
            fits = reduce(np.minimum, [its[numbers] for both in most for its in both])
            columns: list[IntColumn | IndexColumn] = [fits]
            pool_sets: list[list[PoolSet]] = []
            for number, requirement_index in self._commodities:
                count = block.tallies[number].commodities[requirement_index]
                loose = self._is_loose(number, requirement_index)
                columns.append(fits if loose else np.minimum(count.own[numbers], fits))
                columns.append(count.pool_set_numbers[numbers])
                pool_sets.append([()] * len(count.pool_sets) if loose else count.pool_sets)
            rows, counts = np.unique(np.stack(columns, axis=1), axis=0, return_counts=True)
            for row, count_of_row in zip(rows.tolist(), counts.tolist(), strict=True):
                pooled[
                    PooledTree(
                        row[0],
                        tuple(sets[row[2 + 2 * place]] for place, sets in enumerate(pool_sets)),
                        tuple(row[1::2]),
                    )
                ] += count_of_row
        return pooled

    def _is_loose(self, number: int, requirement_index: int) -> bool:
        """Whether several slots take the commodity: the flow then leaves it out."""
        counter = self._counters[number]
        return counter.part.slot_counts[requirement_index] > 1

    def _bounds_by_slots(self, blocks: list[_CountedBlock]) -> Iterator[int]:
        """For each commodity, how many consumers pools and trees serve together at most."""
        for number, requirement_index in self._commodities:
            counter = self._counters[number]
            slots = counter.part.slot_counts[requirement_index]
            own = sum(
                _sum(
                    block.tallies[number].own_units[requirement_index][block.tree_numbers][
                        block.touched
                    ]
                )
                for block in blocks
            )
            pools = sum(counter.pool_units[requirement_index].values())
            yield min(UNITS_MAX, (own + pools) // slots)

    def _in_turn(self, blocks: list[_CountedBlock]) -> int:
        stocks: PoolStocks = {}
        trees: list[CoupledTree] = []
        pooled_parts = sorted({number for number, _ in self._commodities})
        for block in blocks:
            trees += self._coupled_trees(block, pooled_parts, stocks)
        packers = {number: self._counters[number].packer for number in pooled_parts}
        return taken_in_turn(trees, packers, stocks)

    def _coupled_trees(
        self, block: _CountedBlock, pooled_parts: list[int], stocks: PoolStocks
    ) -> Iterator[CoupledTree]:
        numbers = block.tree_numbers[block.touched]
        if not len(numbers):
            return
        parts: dict[int, list[PartOfTree]] = {}
        for number in pooled_parts:
            counter = self._counters[number]
            eligible = self._of_part(counter, block.eligible)
            for trees in counter.packer.trees(block.block_number, eligible, numbers):
                for tree_number, stock in zip(
                    trees.tree_numbers, map(tuple, trees.stocks.tolist()), strict=True
                ):
                    pools = self._pool_keys(
                        block.block_number, number, tree_number, trees.patterns.keys
                    )
                    for pool, left in zip(pools, stock, strict=True):
                        if pool is not None:
                            stocks[number, *pool] = left
                    parts.setdefault(tree_number, []).append(
                        PartOfTree(number, trees, stock, pools)
                    )
        besides = [
            tally.least for number, tally in enumerate(block.tallies) if number not in pooled_parts
        ]
        for tree_number in numbers.tolist():
            its = parts.get(tree_number, [])
            if len(its) == len(pooled_parts):
                fits = min([UNITS_MAX, *(int(least[tree_number]) for least in besides)])
                yield CoupledTree(fits, its)

    def _pool_keys(
        self, block_number: int, number: int, tree_number: int, keys: tuple[tuple[int, int], ...]
    ) -> tuple[tuple[int, int] | None, ...]:
        """The pool that each stock of a tree belongs to; a tree of a pool has it as its own."""
        sharing = self._counters[number].rules.sharing_providers
        start = int(self._forest.blocks[block_number].starts[tree_number])
        found: list[tuple[int, int] | None] = []
        for provider, class_id in keys:
            sharing_number = (
                ~provider
                if provider < 0
                else sharing.sharing_numbers.get(ProviderRef(block_number, start + provider))
            )
            found.append(None if sharing_number is None else (sharing_number, class_id))
        return tuple(found)


def _total(shared: Shared, blocks: list[_CountedBlock], singles: list[BlockCapacity]) -> Shared:
    """What all trees hold together, with and without pools."""
    fits, at_most = shared
    for block, single in zip(blocks, singles, strict=True):
        apart = ~block.touched
        fits += _sum(single.least[apart])
        at_most += _sum(single.most[apart])
    return Shared(min(fits, _FITS_MAX), min(at_most, _FITS_MAX))


def _sum(column: IntColumn) -> int:
    return sum(column.tolist())


def _apart(block: _CountedBlock, single: BlockCapacity) -> dict[int, int]:
    """How many consumers each tree that reaches no pool holds at least."""
    apart = ~block.touched
    return dict(zip(single.tree_numbers[apart].tolist(), single.least[apart].tolist(), strict=True))
