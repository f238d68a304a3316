"""Linked trees: the requirements of a part compete there, so that their solutions are packed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from roost.search.block import Block
from roost.search.columns import IndexColumn, IntColumn
from roost.search.forest import Forest
from roost.search.packing.patterns import Patterns, patterns_of
from roost.search.packing.program import Packed, pack
from roost.search.packing.program_columns import pack_columns
from roost.search.packing.units import UNITS_MAX, stock_at
from roost.search.problem import Problem
from roost.search.rules import Rules
from roost.search.scan import EligibleTrees, alike_trees

# The stock of one tree, in the order of the keys of its patterns.
Stock: TypeAlias = tuple[int, ...]

# The bound of a program whose patterns are not all known.
_UNBOUNDED = UNITS_MAX


@dataclass(frozen=True, slots=True)
class LinkedTrees:
    """Trees of one block with the same patterns."""

    tree_numbers: list[int]
    patterns: Patterns
    # The same number for the same patterns.
    number: int
    # For each tree a row: what remains of each stock.
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
                stocks[:, column] = self.sharing_stock(~provider, class_id)
            else:
                inventory = block.inventories[class_id]
                rows = np.searchsorted(inventory.indexes, starts + np.int32(provider))
                stocks[:, column] = stock_at(inventory, rows)
        return stocks

    def sharing_stock(self, sharing_number: int, class_id: int) -> int:
        """What remains of a class on a sharing provider."""
        return sharing_stock(self.forest, self.rules, sharing_number, class_id)


def sharing_stock(forest: Forest, rules: Rules, sharing_number: int, class_id: int) -> int:
    """What remains of a class on a sharing provider that has inventory of it."""
    ref = rules.sharing_providers.providers[sharing_number].ref
    inventory = forest.blocks[ref.block_number].inventories[class_id]
    row = int(np.searchsorted(inventory.indexes, ref.provider_index))
    return max(0, int(inventory.capacity[row]) - int(inventory.used[row]))
