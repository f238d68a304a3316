"""Staged trees: for each requirement of a plan, the providers and the trees that each stage leaves.

Trees count by anchor: a tree is left if it has a provider of its own, or if a sharing provider that
is left reaches it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import compress
from typing import NamedTuple

import numpy as np

from roost.search.candidates.plan import Plan
from roost.search.candidates.scan import anchors, trees_with
from roost.search.conditions.condition import BlockView, RootCondition
from roost.search.conditions.requirement import Requirement, eligible_by_stage
from roost.search.conditions.stages import GROUP_STAGES, GroupStage
from roost.search.forest.block import Block
from roost.search.forest.forest import Forest, ProviderRef, TreeRef
from roost.search.forest.rows import BoolColumn, IndexColumn, SetMask


class LeftByStage(NamedTuple):
    """What one stage left of one requirement in one block."""

    # Providers of the block, each seen from its own tree.
    indexes: IndexColumn
    trees: BoolColumn


class StagedSharing:
    """For each requirement and stage, the sharing providers that are left."""

    def __init__(self, forest: Forest, plan: Plan, pause: Callable[[], None]) -> None:
        self._forest = forest
        # By requirement index, then by stage.
        self.refs = tuple(
            {stage: list[ProviderRef]() for stage in GROUP_STAGES} for _ in plan.requirements
        )
        for block_number, indexes in forest.sharing_indexes_by_block().items():
            pause()
            refs = [ProviderRef(block_number, index) for index in indexes]
            self._add_block(plan, block_number, list(filter(forest.aggregates_of, refs)))
        self._masks: dict[tuple[ProviderRef, ...], SetMask] = {}
        # In the same order: by a tree's aggregate set, whether one of them reaches the tree.
        self.reach_masks: tuple[dict[GroupStage, SetMask], ...] = tuple(
            {stage: self._mask(tuple(refs)) for stage, refs in by_stage.items()}
            for by_stage in self.refs
        )

    def reaches(self, ref: ProviderRef, tree_aggregates: frozenset[str]) -> bool:
        """Whether a sharing provider reaches the trees whose providers are in these aggregates."""
        return not tree_aggregates.isdisjoint(self._forest.aggregates_of(ref))

    def _add_block(self, plan: Plan, block_number: int, refs: list[ProviderRef]) -> None:
        block = self._forest.blocks[block_number]
        view = BlockView(block, block_number, as_sharing=True)
        own = [ref.provider_index for ref in refs]
        for requirement, by_stage in zip(plan.requirements, self.refs, strict=True):
            left = eligible_by_stage(requirement, view)
            for stage, indexes in zip(GROUP_STAGES, left, strict=True):
                by_stage[stage] += compress(refs, block.are_among(own, indexes))

    def _mask(self, refs: tuple[ProviderRef, ...]) -> SetMask:
        if not refs:
            return None
        mask = self._masks.get(refs)
        if mask is None:
            aggregates = frozenset[str]().union(*map(self._forest.aggregates_of, refs))
            mask = self._masks[refs] = self._forest.aggregate_sets.with_any(aggregates)
        return mask


class StagedTrees:
    """Looks at all trees of a forest, or at one of them, stage by stage."""

    def __init__(
        self, forest: Forest, plan: Plan, only_tree: TreeRef | None, pause: Callable[[], None]
    ) -> None:
        self._forest = forest
        self.plan = plan
        self.only_tree = only_tree
        self.sharing = StagedSharing(forest, plan, pause)
        # The blocks to look at.
        self.block_numbers = (
            range(len(forest.blocks)) if only_tree is None else (only_tree.block_number,)
        )
        # For each requirement and stage, the conditions by which roots exclude their trees.
        self._root_conditions: tuple[dict[GroupStage, tuple[RootCondition, ...]], ...] = tuple(
            {stage: _root_conditions(plan, requirement, stage) for stage in GROUP_STAGES}
            for requirement in plan.requirements
        )

    def anchors(self, block_number: int) -> BoolColumn:
        """The trees of a block to look at that root_required and in_tree admit."""
        return self._considered(anchors(self.plan, self._view(block_number)))

    def _view(self, block_number: int) -> BlockView:
        return BlockView(self._forest.blocks[block_number], block_number)

    def left_by_stage(self, requirement_index: int, block_number: int) -> Iterator[LeftByStage]:
        """What each stage leaves of a requirement in a block, in the order of `GroupStage`.

        A stage that leaves as much as the one before it leaves the same `LeftByStage`.
        """
        block, plan = self._forest.blocks[block_number], self.plan
        requirement = plan.requirements[requirement_index]
        reach_masks = self.sharing.reach_masks[requirement_index]
        root_conditions = self._root_conditions[requirement_index]
        left: LeftByStage | None = None
        reach_mask: SetMask = None
        roots: tuple[RootCondition, ...] = ()
        for stage, found in zip(
            GROUP_STAGES, eligible_by_stage(requirement, self._view(block_number)), strict=True
        ):
            indexes = self.in_considered(block, found)
            if (
                left is None
                or len(left.indexes) != len(indexes)
                or reach_mask is not reach_masks[stage]
                or roots != root_conditions[stage]
            ):
                reach_mask, roots = reach_masks[stage], root_conditions[stage]
                left = LeftByStage(indexes, self._trees(block_number, indexes, reach_mask, roots))
            yield left

    def sharing_elsewhere(self, requirement_index: int, stage: GroupStage) -> Iterator[ProviderRef]:
        """Sharing providers that the stage leaves for other trees, and not in their own tree.

        Their own tree is not considered, or its root is in a forbidden aggregate.
        """
        roots = self._root_conditions[requirement_index][stage]
        if self.only_tree is None and not roots:
            return
        for ref in self.sharing.refs[requirement_index][stage]:
            if self._serves_elsewhere(ref, roots) and any(
                self.sharing.reaches(ref, aggregates) for aggregates in self._served(roots)
            ):
                yield ref

    def _serves_elsewhere(self, ref: ProviderRef, roots: tuple[RootCondition, ...]) -> bool:
        block_number, tree_number = tree = self._forest.tree_of(ref)
        if self.only_tree is not None:
            return tree != self.only_tree
        return not all(root.trees(self._view(block_number))[tree_number] for root in roots)

    def _served(self, roots: tuple[RootCondition, ...]) -> Iterator[frozenset[str]]:
        """The aggregates of each considered tree that the stage does not exclude."""
        for block_number in self.block_numbers:
            block = self._forest.blocks[block_number]
            trees = self._considered(np.ones(block.tree_count, np.bool_))
            for root in roots:
                trees &= root.trees(self._view(block_number))
            for set_number in np.unique(block.tree_aggregate_set_numbers[trees]).tolist():
                yield self._forest.aggregate_sets[set_number]

    def serves(self, ref: ProviderRef) -> bool:
        """Whether a sharing provider reaches a considered tree."""
        return any(self.sharing.reaches(ref, aggregates) for aggregates in self._served(()))

    def in_considered(self, block: Block, indexes: IndexColumn) -> IndexColumn:
        """Those of these providers that are in a considered tree."""
        if self.only_tree is None:
            return indexes
        inside: BoolColumn = block.tree_numbers[indexes] == self.only_tree.tree_number
        return indexes[inside]

    def _trees(
        self,
        block_number: int,
        indexes: IndexColumn,
        reach_mask: SetMask,
        roots: tuple[RootCondition, ...],
    ) -> BoolColumn:
        block = self._forest.blocks[block_number]
        trees = trees_with(block, indexes, reach_mask)
        for root in roots:
            trees &= root.trees(self._view(block_number))
        return trees if reach_mask is None else self._considered(trees)

    def _considered(self, trees: BoolColumn) -> BoolColumn:
        """Those of these trees of a block to look at."""
        if self.only_tree is not None:
            is_in = bool(trees[self.only_tree.tree_number])
            trees[:] = False
            trees[self.only_tree.tree_number] = is_in
        return trees


def _root_conditions(
    plan: Plan, requirement: Requirement, stage: GroupStage
) -> tuple[RootCondition, ...]:
    """The conditions of the unsuffixed group that exclude trees at this stage or before."""
    passed = GROUP_STAGES[: GROUP_STAGES.index(stage) + 1] if "" in requirement.suffixes else ()
    return tuple(condition for condition in plan.root_conditions if condition.stage in passed)
