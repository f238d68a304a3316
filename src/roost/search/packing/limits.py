"""What limits a capacity: the resource class that is used up first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from roost.search.columns import IndexColumn, IntColumn
from roost.search.forest import Forest
from roost.search.packing.part_counter import PartCounter, PartTally
from roost.search.packing.units import UNITS_MAX


@dataclass(frozen=True, slots=True)
class LimitingClass:
    """The resource class that is used up first, and where."""

    resource_class: str
    # The trees in which it is used up first, and all trees that hold a consumer.
    trees: int
    all_trees: int
    # Whether it is used up on sharing providers.
    shared: bool


class Tightness:
    """Counts for each resource class the trees in which it has the fewest units."""

    def __init__(self, counters: Sequence[PartCounter]) -> None:
        self._counters = counters
        self._trees: Counter[int] = Counter()
        self._all_trees = 0

    def add(self, tallies: Sequence[PartTally], tree_numbers: IndexColumn, fits: IntColumn) -> None:
        """Count trees of one block, of which each holds so many consumers."""
        numbers = tree_numbers[fits > 0]
        if not len(numbers):
            return
        self._all_trees += len(numbers)
        least: IntColumn = np.full(len(numbers), UNITS_MAX + 1, np.int64)
        tightest: IntColumn = np.full(len(numbers), -1, np.int64)
        for counter, tally in zip(self._counters, tallies, strict=True):
            for (requirement_index, class_id), units in tally.by_class.items():
                if requirement_index in counter.commodities:
                    continue
                smaller = units[numbers] < least
                least = np.where(smaller, units[numbers], least)
                tightest = np.where(smaller, class_id, tightest)
        self._trees.update(tightest[tightest >= 0].tolist())

    def limiting(self, forest: Forest, scarce: tuple[int, int] | None) -> LimitingClass | None:
        """The class that is used up first in most trees, or in the pools if they are scarce."""
        if scarce is not None:
            number, requirement_index = scarce
            amounts = self._counters[number].part.plan.requirements[requirement_index].amounts
            if amounts:
                name = forest.vocabulary.class_names[amounts[0].class_id]
                return LimitingClass(name, self._all_trees, self._all_trees, shared=True)
        if not self._trees:
            return None
        class_id, trees = self._trees.most_common(1)[0]
        name = forest.vocabulary.class_names[class_id]
        return LimitingClass(name, trees, self._all_trees, shared=False)
