"""Linked trees: the requirements of a part compete there, so that their solutions are packed.

Linked trees that also take from pools are coupled, and one flow does not cover them. The number of
consumers that they reach by taking in turn is the lower bound of their capacity. What each consumer
takes at least gives the upper bound.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from random import Random
from typing import NamedTuple, TypeAlias

import numpy as np

from roost.search.candidates.effort import Effort
from roost.search.candidates.rules import Rules
from roost.search.candidates.scan import EligibleTrees, alike_trees
from roost.search.candidates.solving.problem import LocalProvider, Problem, Solution
from roost.search.candidates.solving.solver import solve
from roost.search.capacity.parts import UNITS_MAX, free_at
from roost.search.capacity.program import Packed, Pattern, pack, pack_columns
from roost.search.forest.block import Block
from roost.search.forest.forest import Forest
from roost.search.forest.rows import IndexColumn, IntColumn

# A stock is known by its provider and its resource class.
StockKey: TypeAlias = tuple[LocalProvider, int]
# The stock of one tree, in the order of the keys of its patterns.
Stock: TypeAlias = tuple[int, ...]
# What is left of each pool: by part, sharing number and resource class.
PoolStocks: TypeAlias = dict[tuple[int, int, int], int]

# More solutions of one problem, or more patterns, are not listed.
_SOLUTIONS_MAX = 4000
_PATTERNS_MAX = 200
# The bound of a program whose patterns are not all known.
_UNBOUNDED = UNITS_MAX
# The units of effort of one solution for each slot, and of one comparison of patterns.
_SLOT_UNITS = 4
_COMPARISON_UNITS = 4
# Of a problem with more solutions: how often the solver begins anew with the providers in another
# order, and how many solutions it gives each time.
_SAMPLES, _SAMPLE_SOLUTIONS = 60, 3


class Patterns(NamedTuple):
    """The patterns of a problem."""

    keys: tuple[StockKey, ...]
    patterns: tuple[Pattern, ...]
    # Whether the problem has no other patterns but those that take more.
    complete: bool


def patterns_of(rules: Rules, problem: Problem) -> Patterns:
    """The patterns of a problem, without those that take more than another one."""
    found: dict[frozenset[tuple[StockKey, int]], None] = {}
    complete = True
    for count, solution in enumerate(_solutions(rules, problem)):
        found[_takes(rules, solution)] = None
        if count >= _SOLUTIONS_MAX or len(found) > _PATTERNS_MAX:
            complete = False
            break
    complete = complete and not rules.effort.exhausted
    if not complete and not rules.effort.exhausted:
        for solution in _samples(rules, problem):
            found[_takes(rules, solution)] = None
    least = _least([dict(takes) for takes in found], rules.effort)
    keys = tuple(sorted({key for takes in least for key in takes}))
    return Patterns(
        keys, tuple(tuple(takes.get(key, 0) for key in keys) for takes in least), complete
    )


def _solutions(rules: Rules, problem: Problem) -> Iterator[Solution]:
    for step in solve(rules, problem):
        # The solver takes back what a solution costs. Here many solutions serve one count.
        rules.effort.spend(_SLOT_UNITS * len(rules.plan.slots))
        if rules.effort.exhausted:
            return
        if step is not None:
            yield step


def _takes(rules: Rules, solution: Solution) -> frozenset[tuple[StockKey, int]]:
    taken: dict[StockKey, int] = {}
    for slot, provider in zip(rules.plan.slots, solution, strict=True):
        for class_id, amount in rules.plan.requirements[slot.requirement_index].amounts:
            key = provider, class_id
            taken[key] = taken.get(key, 0) + amount
    return frozenset(taken.items())


def _least(found: list[dict[StockKey, int]], effort: Effort) -> list[dict[StockKey, int]]:
    """The patterns, without those that take at least as much of every stock as another one."""
    found = sorted(found, key=lambda takes: sum(takes.values()))
    least: list[dict[StockKey, int]] = []
    for takes in found:
        effort.spend(1 + len(least) * _COMPARISON_UNITS)
        if not any(
            all(takes.get(key, 0) >= amount for key, amount in smaller.items()) for smaller in least
        ):
            least.append(takes)
    return least


def _samples(rules: Rules, problem: Problem) -> Iterator[Solution]:
    """Some solutions that differ much: the solver alone changes the last slots first."""
    random = Random(0)
    for _ in range(_SAMPLES):
        # The solver looks at all providers above each provider, if same_subtree asks for it.
        rules.effort.spend(problem.size * (1 + len(problem.parents) // 8))
        if rules.effort.exhausted:
            return
        orders = [random.sample(range(len(each)), len(each)) for each in problem.providers]
        shuffled = rules.picked(problem, orders)
        yield from islice(_solutions(rules, shuffled), _SAMPLE_SOLUTIONS)


@dataclass(frozen=True, slots=True)
class LinkedTrees:
    """Trees of one block with the same patterns."""

    tree_numbers: list[int]
    patterns: Patterns
    # The same number for the same patterns.
    number: int
    # For each tree a row: what is free of each stock.
    stocks: IntColumn


@dataclass(slots=True)
class Packer:
    """Packs the trees of one part; equal problems and equal stocks are worked on once."""

    forest: Forest
    rules: Rules
    _patterns: dict[Problem, Patterns] = field(default_factory=dict)
    _packed: dict[tuple[int, Stock], Packed] = field(default_factory=dict)
    # The number of each set of patterns.
    _numbers: dict[Patterns, int] = field(default_factory=dict)

    @property
    def is_used(self) -> bool:
        """Whether a tree had to be packed."""
        return bool(self._numbers)

    def trees(
        self, block_number: int, eligible: list[IndexColumn], tree_numbers: IndexColumn
    ) -> Iterator[LinkedTrees]:
        """These trees of a block, those together that have the same patterns."""
        block = self.forest.blocks[block_number]
        found = EligibleTrees(eligible, tree_numbers)
        for alike in alike_trees(block, block_number, self.rules, found):
            patterns = self._patterns.get(alike.problem)
            if patterns is None:
                patterns = patterns_of(self.rules, alike.problem)
                if self.rules.effort.hold(alike.problem.memory_words):
                    self._patterns[alike.problem] = patterns
            stocks = self._stocks(block, alike.tree_numbers, patterns)
            number = self._numbers.setdefault(patterns, len(self._numbers))
            yield LinkedTrees(alike.tree_numbers, patterns, number, stocks)

    def pack(self, trees: LinkedTrees, stock: Stock) -> Packed:
        """Pack the patterns of these trees into a stock."""
        patterns = trees.patterns
        key = trees.number, stock
        packed = self._packed.get(key)
        if packed is None:
            packed = pack(patterns.patterns, stock, self.rules.effort)
            if not patterns.complete:
                packed = packed._replace(at_most=_UNBOUNDED)
            if self.rules.effort.hold(2 * len(stock) + len(packed.counts) + 20):
                self._packed[key] = packed
        return packed

    def bounds(self, trees: LinkedTrees) -> tuple[IntColumn, IntColumn]:
        """For each tree how many consumers it holds: at least, and at most."""
        patterns = trees.patterns
        least, most = pack_columns(patterns.patterns, trees.stocks, self.rules.effort)
        if not patterns.complete:
            most = np.full(len(most), _UNBOUNDED, np.int64)
        return least, most

    def _stocks(self, block: Block, tree_numbers: list[int], patterns: Patterns) -> IntColumn:
        starts = block.starts[tree_numbers]
        stocks: IntColumn = np.empty((len(tree_numbers), len(patterns.keys)), np.int64)
        for column, (provider, class_id) in enumerate(patterns.keys):
            if provider < 0:
                stocks[:, column] = sharing_stock(self.forest, self.rules, ~provider, class_id)
            else:
                inventory = block.inventories[class_id]
                rows = np.searchsorted(inventory.indexes, starts + np.int32(provider))
                stocks[:, column] = free_at(inventory, rows)
        return stocks


def sharing_stock(forest: Forest, rules: Rules, sharing_number: int, class_id: int) -> int:
    """What is free of a class on a sharing provider that has inventory of it."""
    ref = rules.sharing_providers.providers[sharing_number].ref
    inventory = forest.blocks[ref.block_number].inventories[class_id]
    row = int(np.searchsorted(inventory.indexes, ref.provider_index))
    return max(0, int(inventory.capacity[row]) - int(inventory.used[row]))


class PartOfTree(NamedTuple):
    """One part in one tree: its patterns, and the stock that the tree has."""

    part_number: int
    trees: LinkedTrees
    stock: tuple[int, ...]
    # For each key of the patterns the pool that it stands for; `None` for the tree's own stock.
    pools: tuple[tuple[int, int] | None, ...]


@dataclass(frozen=True, slots=True)
class CoupledTree:
    """A tree that takes from pools."""

    # How many consumers it holds as far as parts without pools go.
    fits: int
    parts: Sequence[PartOfTree]


def taken_in_turn(
    trees: Iterable[CoupledTree], packers: Mapping[int, Packer], stocks: PoolStocks
) -> int:
    """How many consumers the trees reach if one takes after another what it can."""
    total = 0
    for tree in trees:
        effort = next(iter(packers.values())).rules.effort
        effort.pause()
        if effort.exhausted:
            break
        packed = [_packed(packers[part.part_number], part, stocks) for part in tree.parts]
        fits = min([tree.fits, *(each.fits for each in packed)])
        if fits > 0:
            total += fits
            for part, each in zip(tree.parts, packed, strict=True):
                _take(part, each, fits, stocks)
    return total


def _packed(packer: Packer, part: PartOfTree, stocks: PoolStocks) -> Packed:
    stock = tuple(
        left if pool is None else stocks[part.part_number, *pool]
        for left, pool in zip(part.stock, part.pools, strict=True)
    )
    return packer.pack(part.trees, stock)


def _take(part: PartOfTree, packed: Packed, fits: int, stocks: PoolStocks) -> None:
    """Take the patterns of so many consumers, those that take least from pools first."""
    patterns = part.trees.patterns.patterns

    def from_pools(each: int) -> int:
        return sum(
            amount
            for amount, pool in zip(patterns[each], part.pools, strict=True)
            if pool is not None
        )

    for each in sorted(range(len(patterns)), key=from_pools):
        count = min(fits, packed.counts[each])
        fits -= count
        for amount, pool in zip(patterns[each], part.pools, strict=True):
            if pool is not None:
                stocks[part.part_number, *pool] -= count * amount
