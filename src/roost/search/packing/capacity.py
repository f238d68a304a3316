"""Capacity: how many more consumers with one query all claims together can reach."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import reduce

import numpy as np

from roost.model.candidates import CandidateQuery
from roost.search.block_choice import may_fit
from roost.search.columns import BoolColumn, IndexColumn, IntColumn
from roost.search.effort import Effort, no_pause
from roost.search.forest import Forest, ProviderRef
from roost.search.packing.coupling import CoupledTree, PartOfTree, PoolStocks, taken_in_turn
from roost.search.packing.limits import LimitingClass, Tightness
from roost.search.packing.part_counter import PartCounter, PartTally
from roost.search.packing.parts import parts_of
from roost.search.packing.pools import PooledTree, PoolSet, Shared, share
from roost.search.packing.units import UNITS_MAX
from roost.search.plan import make_plan
from roost.search.rules import Rules
from roost.search.scan import eligible_trees
from roost.search.sharing import SharingProviders


class Method(StrEnum):
    """How a capacity was found."""

    COUNTING = "counting"
    """Units of each requirement were counted in each tree."""
    PACKING = "packing"
    """In some trees requirements compete, and their solutions were packed."""
    FLOW = "flow"
    """Trees share pools, and the pools were divided among them by a flow."""
    BOUNDS = "bounds"
    """Only bounds are known: one that claims reach, and one that no claims exceed."""


@dataclass(frozen=True, slots=True)
class RootCapacity:
    """How many consumers one tree holds, if no other tree takes from its pools."""

    uuid: str
    fits: int
    at_most: int


@dataclass(frozen=True, slots=True)
class _BlockCapacity:
    """The capacities of single trees of one block."""

    block_number: int
    tree_numbers: IndexColumn
    least: IntColumn
    most: IntColumn


@dataclass(frozen=True, slots=True)
class Capacity:
    """How many more consumers a forest holds."""

    # A sequence of claims reaches so many, and no sequence of claims exceeds so many.
    fits: int
    at_most: int
    method: Method
    # The class that is used up first; `None` if nothing fits.
    limited_by: LimitingClass | None
    _forest: Forest
    _blocks: tuple[_BlockCapacity, ...]

    @property
    def exact(self) -> bool:
        """Whether no sequence of claims reaches more."""
        return self.fits == self.at_most

    def roots(self) -> list[RootCapacity]:
        """The roots whose trees hold a consumer, by uuid. Each has all its pools to itself."""
        found = [root for capacity in self._blocks for root in self._roots(capacity)]
        return sorted(found, key=lambda root: root.uuid)

    def _roots(self, capacity: _BlockCapacity) -> Iterator[RootCapacity]:
        block = self._forest.blocks[capacity.block_number]
        for tree_number, fits, at_most in zip(
            capacity.tree_numbers.tolist(),
            capacity.least.tolist(),
            capacity.most.tolist(),
            strict=True,
        ):
            if fits:
                uuid = block.uuids[int(block.starts[tree_number])].decode()
                yield RootCapacity(uuid, fits, at_most)


def find_capacity(
    forest: Forest, query: CandidateQuery, *, pause: Callable[[], None] = no_pause
) -> Capacity:
    """The capacity for a query all of whose names exist. The limit of the query does not count."""
    plan = make_plan(forest, query)
    if plan is None:
        return Capacity(0, 0, Method.COUNTING, None, forest, ())
    effort = Effort(pause=pause)
    rules = Rules(plan, SharingProviders(forest, plan, pause), effort)
    return _Finding(forest, rules).capacity()


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
        self._tightness = Tightness(self._counters)
        # The requirements that pools can meet: the number of the part, and the index there.
        self._commodities = [
            (number, requirement_index)
            for number, counter in enumerate(self._counters)
            for requirement_index in counter.commodities
        ]

    def capacity(self) -> Capacity:
        blocks = list(self._counted_blocks())
        singles = [self._alone(block) for block in blocks]
        fits, at_most, uses_packing = 0, 0, False
        for block, single in zip(blocks, singles, strict=True):
            apart = ~block.touched
            fits += _total(single.least[apart])
            at_most += _total(single.most[apart])
            self._tightness.add(block.tallies, block.tree_numbers, single.most)
        shared = self._shared(blocks)
        fits, at_most = fits + shared.fits, at_most + shared.at_most
        uses_packing = any(counter.packer.is_used for counter in self._counters)
        method = (
            Method.BOUNDS
            if fits < at_most
            else Method.FLOW
            if shared.at_most
            else Method.PACKING
            if uses_packing
            else Method.COUNTING
        )
        scarce = None if shared.scarce is None else self._commodities[shared.scarce]
        limited_by = self._tightness.limiting(self._forest, scarce) if fits else None
        return Capacity(fits, at_most, method, limited_by, self._forest, tuple(singles))

    def _counted_blocks(self) -> Iterator[_CountedBlock]:
        for block_number, block in enumerate(self._forest.blocks):
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
            yield _CountedBlock(
                block_number,
                found.eligible,
                found.tree_numbers,
                tallies,
                reduce(np.logical_or, [tally.touched[found.tree_numbers] for tally in tallies]),
                reduce(np.logical_or, [tally.coupled[found.tree_numbers] for tally in tallies]),
            )

    def _of_part(self, counter: PartCounter, eligible: list[IndexColumn]) -> list[IndexColumn]:
        return [eligible[index] for index in counter.part.requirement_indexes]

    def _alone(self, block: _CountedBlock) -> _BlockCapacity:
        numbers = block.tree_numbers
        return _BlockCapacity(
            block.block_number,
            numbers,
            reduce(np.minimum, [tally.least_alone[numbers] for tally in block.tallies]),
            reduce(np.minimum, [tally.most_alone[numbers] for tally in block.tallies]),
        )

    def _shared(self, blocks: list[_CountedBlock]) -> Shared:
        """The capacity of all trees that reach pools."""
        if not self._commodities or not any(block.touched.any() for block in blocks):
            return Shared(0, 0, None)
        units = [
            self._counters[number].pool_units[requirement_index]
            for number, requirement_index in self._commodities
        ]
        at_most = share(self._pooled(blocks, at_most=True), units, self._rules.effort)
        if any(block.coupled.any() for block in blocks):
            bound = min(at_most.at_most, self._bound_by_slots(blocks))
            fits = min(bound, self._in_turn(blocks))
            return Shared(fits, bound, at_most.scarce)
        least = self._pooled(blocks, at_most=False)
        fits = at_most.fits
        if least != self._pooled(blocks, at_most=True):
            fits = share(least, units, self._rules.effort).fits
        return Shared(fits, at_most.at_most, at_most.scarce)

    def _pooled(self, blocks: list[_CountedBlock], *, at_most: bool) -> Counter[PooledTree]:
        """The trees that reach pools, equal ones together."""
        pooled: Counter[PooledTree] = Counter()
        for block in blocks:
            numbers = block.tree_numbers[block.touched]
            if not len(numbers):
                continue
            fits = reduce(
                np.minimum,
                [(tally.most if at_most else tally.least)[numbers] for tally in block.tallies],
            )
            if at_most:
                alone = [tally.most_alone[numbers] for tally in block.tallies]
                fits = reduce(np.minimum, [fits, *alone])
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
        """Whether a flow does not cover the commodity, so that it bounds nothing there."""
        counter = self._counters[number]
        return counter.part.slot_counts[requirement_index] > 1

    def _bound_by_slots(self, blocks: list[_CountedBlock]) -> int:
        """What pools and trees hold together, if a consumer has several slots of a commodity."""
        bound = UNITS_MAX
        for number, requirement_index in self._commodities:
            counter = self._counters[number]
            slots = counter.part.slot_counts[requirement_index]
            own = sum(
                _total(
                    block.tallies[number].own_units[requirement_index][block.tree_numbers][
                        block.touched
                    ]
                )
                for block in blocks
            )
            pools = sum(counter.pool_units[requirement_index].values())
            bound = min(bound, (own + pools) // slots)
        return bound

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
            for trees in counter.linked_trees(block.block_number, eligible, numbers):
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


def _total(column: IntColumn) -> int:
    return sum(column.tolist())
