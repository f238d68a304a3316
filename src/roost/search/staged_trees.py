"""Staged trees: for each requirement of a plan, the providers and the trees that each stage leaves.

Trees count by anchor: a tree is left if it has a provider of its own, or if a sharing provider that
is left reaches it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from roost.search.block import Block
from roost.search.columns import BoolColumn, IndexColumn
from roost.search.eligibility import eligible_after, eligible_by_stage
from roost.search.forest import Forest, ProviderRef, TreeRef
from roost.search.plan import Plan, SetMask
from roost.search.scan import anchors, trees_with
from roost.search.staged_sharing import StagedSharing
from roost.search.stages import GROUP_STAGES, GroupStage

# The stages at which forbidden aggregates of a root exclude its tree for the unsuffixed group.
_AFTER_AGGREGATES = (GroupStage.AGGREGATES, GroupStage.IN_TREE)


class Left(NamedTuple):
    """What one stage left of one requirement in one block."""

    # Providers of the block, each seen from its own tree.
    indexes: IndexColumn
    trees: BoolColumn


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

        # For each requirement and stage, by a root's aggregate set, whether its tree is left.
        self._root_masks: tuple[dict[GroupStage, SetMask], ...] = tuple(
            {
                stage: plan.root_aggregate_mask
                if requirement.conditions.unsuffixed and stage in _AFTER_AGGREGATES
                else None
                for stage in GROUP_STAGES
            }
            for requirement in plan.requirements
        )

    def anchors(self, block_number: int) -> BoolColumn:
        """The trees of a block to look at that root_required and in_tree admit."""
        return self._considered(anchors(self.plan, self._forest.blocks[block_number], block_number))

    def left_by_stage(self, requirement_index: int, block_number: int) -> Iterator[Left]:
        """What each stage leaves of a requirement in a block, in the order of `GroupStage`.

        A stage that leaves as much as the one before it leaves the same `Left`.
        """
        block, plan = self._forest.blocks[block_number], self.plan
        requirement = plan.requirements[requirement_index]
        reach_masks = self.sharing.reach_masks[requirement_index]
        root_masks = self._root_masks[requirement_index]
        before: tuple[int, SetMask, SetMask, Left] | None = None
        for stage, found in zip(
            GROUP_STAGES, eligible_by_stage(requirement, block, block_number), strict=True
        ):
            indexes = self.in_considered(block, found)
            reach_mask = reach_masks[stage]
            root_mask = root_masks[stage]
            if (
                before is None
                or before[:1] != (len(indexes),)
                or (before[1] is not reach_mask or before[2] is not root_mask)
            ):
                trees = self._trees(block, indexes, reach_mask, root_mask)
                before = len(indexes), reach_mask, root_mask, Left(indexes, trees)
            yield before[3]

    def left_after(
        self, requirement_index: int, stage: GroupStage, block_number: int
    ) -> BoolColumn:
        """The trees of a block that one stage leaves of a requirement."""
        block = self._forest.blocks[block_number]
        requirement = self.plan.requirements[requirement_index]
        indexes = eligible_after(requirement, stage, block, block_number)
        return self._trees(
            block,
            self.in_considered(block, indexes),
            self.sharing.reach_masks[requirement_index][stage],
            self._root_masks[requirement_index][stage],
        )

    def guests(self, requirement_index: int, stage: GroupStage) -> Iterator[ProviderRef]:
        """The sharing providers left that serve a considered tree, but are not left in their own.

        Their own tree is not considered, or its root is in a forbidden aggregate.
        """
        root_mask = self._root_masks[requirement_index][stage]
        if self.only_tree is None and root_mask is None:
            return
        for ref in self.sharing.refs[requirement_index][stage]:
            if self._is_guest(ref, root_mask) and any(
                self.sharing.reaches(ref, aggregates) for aggregates in self._served(root_mask)
            ):
                yield ref

    def _is_guest(self, ref: ProviderRef, root_mask: SetMask) -> bool:
        block = self._forest.blocks[ref.block_number]
        tree_number = int(block.tree_numbers[ref.provider_index])
        if self.only_tree is not None:
            return TreeRef(ref.block_number, tree_number) != self.only_tree
        root_set_number = block.aggregate_set_numbers[block.starts[tree_number]]
        return root_mask is not None and not root_mask[root_set_number]

    def _served(self, root_mask: SetMask) -> Iterator[frozenset[str]]:
        """The aggregates of each considered tree that the stage does not exclude."""
        for block_number in self.block_numbers:
            block = self._forest.blocks[block_number]
            trees = self._considered(np.ones(block.tree_count, np.bool_))
            if root_mask is not None:
                trees &= root_mask[block.aggregate_set_numbers[block.roots]]
            for set_number in np.unique(block.tree_aggregate_set_numbers[trees]).tolist():
                yield self._forest.aggregate_sets[set_number]

    def serves(self, ref: ProviderRef) -> bool:
        """Whether a sharing provider reaches a considered tree."""
        return any(self.sharing.reaches(ref, aggregates) for aggregates in self._served(None))

    def in_considered(self, block: Block, indexes: IndexColumn) -> IndexColumn:
        """Those of these providers that are in a considered tree."""
        if self.only_tree is None:
            return indexes
        inside: BoolColumn = block.tree_numbers[indexes] == self.only_tree.tree_number
        return indexes[inside]

    def _trees(
        self, block: Block, indexes: IndexColumn, reach_mask: SetMask, root_mask: SetMask
    ) -> BoolColumn:
        trees = trees_with(block, indexes, reach_mask)
        if root_mask is not None:
            trees &= root_mask[block.aggregate_set_numbers[block.roots]]
        return trees if reach_mask is None else self._considered(trees)

    def _considered(self, trees: BoolColumn) -> BoolColumn:
        """Those of these trees of a block to look at."""
        if self.only_tree is not None:
            is_in = bool(trees[self.only_tree.tree_number])
            trees[:] = False
            trees[self.only_tree.tree_number] = is_in
        return trees
