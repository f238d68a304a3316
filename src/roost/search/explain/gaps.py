"""Gaps: how far providers are from meeting a requirement, found by whole columns.

A gap is one number, so that a column has it and the smallest one of a tree is found at once. Its
integer part counts failed checks. Its fraction is the shortage, in units of `SHORTAGE_UNIT`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from roost.search.candidates.plan import Plan
from roost.search.candidates.scan import trees_with
from roost.search.conditions.condition import WHOLE_GAP, BlockView
from roost.search.conditions.requirement import Requirement, eligible_indexes
from roost.search.conditions.traits import trait_choices
from roost.search.forest.block import Block
from roost.search.forest.forest import Forest, ProviderRef
from roost.search.forest.rows import BoolColumn, FloatColumn


def provider_gaps(requirement: Requirement, view: BlockView) -> FloatColumn:
    """For each provider of a block, how far it is from meeting a requirement."""
    gaps = requirement.wanted.gaps(view)
    for condition in requirement.further:
        gaps += condition.gaps(view)
    return gaps


class SharingGap(NamedTuple):
    """How far a sharing provider is from meeting each requirement in other trees than its own."""

    ref: ProviderRef
    trait_set_number: int
    aggregates: frozenset[str]
    gaps: tuple[float, ...]


class SharingGaps:
    """The gaps of all sharing providers, seen from other trees."""

    def __init__(self, forest: Forest, plan: Plan, pause: Callable[[], None]) -> None:
        self._forest = forest
        self._plan = plan
        self.members = tuple(self._find(pause))

    def reaching(self, requirement_index: int, choice: BoolColumn | None = None) -> FloatColumn:
        """By a tree's aggregate set: the smallest gap of those that reach the tree.

        `choice` leaves only those whose trait set will do.
        """
        sets = self._forest.aggregate_sets
        smallest: FloatColumn = np.full(len(sets), np.inf)
        by_aggregates: dict[frozenset[str], float] = {}
        for member in self._with_choice(choice):
            gap = member.gaps[requirement_index]
            known = by_aggregates.get(member.aggregates, np.inf)
            by_aggregates[member.aggregates] = min(gap, known)
        for aggregates, gap in by_aggregates.items():
            reached = sets.with_any(aggregates)
            smallest[reached] = np.minimum(smallest[reached], gap)
        return smallest

    def anywhere(self, requirement_index: int, choice: BoolColumn | None = None) -> float:
        """The gap that a sharing provider leaves in a tree that it does not reach."""
        suffices = any(member.gaps[requirement_index] == 0 for member in self._with_choice(choice))
        return WHOLE_GAP if suffices else np.inf

    def _with_choice(self, choice: BoolColumn | None) -> Iterator[SharingGap]:
        for member in self.members:
            if choice is None or choice[member.trait_set_number]:
                yield member

    def _find(self, pause: Callable[[], None]) -> list[SharingGap]:
        found = []
        for block_number, indexes in self._forest.sharing_indexes_by_block().items():
            pause()
            block = self._forest.blocks[block_number]
            view = BlockView(block, block_number, as_sharing=True)
            columns = [
                provider_gaps(requirement, view)[indexes].tolist()
                for requirement in self._plan.requirements
            ]
            for index, *gaps in zip(indexes, *columns, strict=True):
                ref = ProviderRef(block_number, index)
                aggregates = self._forest.aggregates_of(ref)
                set_number = int(block.trait_set_numbers[index])
                found.append(SharingGap(ref, set_number, aggregates, tuple(gaps)))
        return found


class TreeGaps(NamedTuple):
    """How far the trees of a block are from having a candidate."""

    total: FloatColumn
    # The share of the root, of each requirement and of each trait choice, in this order.
    parts: tuple[FloatColumn, ...]


def tree_minima(block: Block, gaps: FloatColumn) -> FloatColumn:
    """For each tree, the smallest of the gaps of its providers."""
    smallest: FloatColumn = np.minimum.reduceat(gaps, block.roots)
    return smallest


class ForestGaps:
    """The gaps of all trees of a forest for one plan."""

    def __init__(self, forest: Forest, plan: Plan, pause: Callable[[], None]) -> None:
        self._forest = forest
        self._plan = plan
        self.sharing = SharingGaps(forest, plan, pause)
        self.trait_choices = tuple(trait_choices(forest, plan.query))
        # Which requirements the unsuffixed group has.
        self.unsuffixed = plan.requirement_indexes_of("")
        # By requirement and trait choice; -1 stands for no choice.
        self._reach: dict[tuple[int, int], tuple[FloatColumn, float]] = {}

    def of_block(self, block_number: int) -> TreeGaps:
        """The gaps of the trees of one block."""
        block = self._forest.blocks[block_number]
        view = BlockView(block, block_number)
        parts = [self._root_gaps(view)]
        columns: dict[int, FloatColumn] = {}
        smallest: list[FloatColumn] = []
        for requirement_index, its in enumerate(self._plan.requirements):
            if self._is_easy(view, requirement_index):
                smallest.append(np.zeros(block.tree_count))
                continue
            column = columns[requirement_index] = provider_gaps(its, view)
            minima = tree_minima(block, column)
            smallest.append(self._with_sharing(block, minima, requirement_index))
        of_slots = [slot.requirement_index for slot in self._plan.slots]
        for requirement_index, column in enumerate(smallest):
            parts.append(column * of_slots.count(requirement_index))
        for choice in range(len(self.trait_choices)):
            unmet = self._unmet(block, columns, smallest, choice)
            parts.append(np.where(unmet, WHOLE_GAP, 0.0))
        total = parts[0].copy()
        for part in parts[1:]:
            total += part
        return TreeGaps(total, tuple(parts))

    def _is_easy(self, view: BlockView, requirement_index: int) -> bool:
        """Whether each tree has an eligible provider, so that no gap of a provider matters."""
        if self.trait_choices and requirement_index in self.unsuffixed:
            # A trait choice needs to know which of the providers come nearest.
            return False
        indexes = eligible_indexes(self._plan.requirements[requirement_index], view)
        return bool(trees_with(view.block, indexes, None).all())

    def _root_gaps(self, view: BlockView) -> FloatColumn:
        gaps: FloatColumn = np.zeros(view.block.tree_count)
        for condition in self._plan.root_conditions:
            gaps += condition.gaps(view)
        return gaps

    def _with_sharing(
        self, block: Block, smallest: FloatColumn, requirement_index: int, choice: int = -1
    ) -> FloatColumn:
        """The smallest gaps, now with the sharing providers of other trees."""
        if not self.sharing.members:
            return smallest
        known = self._reach.get((requirement_index, choice))
        if known is None:
            met = None if choice < 0 else self.trait_choices[choice].met
            known = self._reach[requirement_index, choice] = (
                self.sharing.reaching(requirement_index, met),
                self.sharing.anywhere(requirement_index, met),
            )
        by_set, anywhere = known
        joined: FloatColumn = np.minimum(smallest, by_set[block.tree_aggregate_set_numbers])
        return np.minimum(joined, anywhere)

    def _unmet(
        self,
        block: Block,
        columns: dict[int, FloatColumn],
        smallest: list[FloatColumn],
        choice: int,
    ) -> BoolColumn:
        """The trees in which no nearest provider of the unsuffixed group meets a trait choice."""
        unmet: BoolColumn = np.ones(block.tree_count, np.bool_)
        met = self.trait_choices[choice].met[block.trait_set_numbers]
        for requirement_index in self.unsuffixed:
            having = tree_minima(block, np.where(met, columns[requirement_index], np.inf))
            having = self._with_sharing(block, having, requirement_index, choice)
            unmet &= np.floor(having) > np.floor(smallest[requirement_index])
        return unmet
