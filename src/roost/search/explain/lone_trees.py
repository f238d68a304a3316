"""Lone trees: forests that have the inventories of one tree only, for many questions about it.

A question about one tree looks at whole columns of its block. In the forest of a lone tree these
columns are short. All numbers, indexes and sets are those of the whole forest.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from roost.model.candidates import CandidateQuery
from roost.search.candidates.effort import Effort
from roost.search.candidates.plan import make_plan
from roost.search.candidates.rules import Rules
from roost.search.candidates.scan import problem_in
from roost.search.candidates.sharing import SharingProviders
from roost.search.candidates.solving import solve
from roost.search.forest.block import Block
from roost.search.forest.forest import Forest, TreeRef


class LoneTrees:
    """The forests of single trees, each made once. Sharing providers keep their inventories."""

    def __init__(self, forest: Forest) -> None:
        self._whole = forest
        # The blocks with sharing providers, without the inventories of all other providers.
        self._sharing_blocks = {
            block_number: _only_at(block, np.asarray(block.sharing_indexes))
            for block_number, block in enumerate(forest.blocks)
            if block.sharing_indexes
        }
        self._found: dict[TreeRef, Forest] = {}

    def forest(self, tree: TreeRef) -> Forest:
        """The forest in which this tree has the same candidates as in the whole forest."""
        found = self._found.get(tree)
        if found is None:
            found = self._found[tree] = self._make(tree)
        return found

    def has_candidate(self, tree: TreeRef, query: CandidateQuery, effort: Effort) -> bool:
        """Whether a tree has a candidate for a query, as far as the effort suffices to know."""
        forest = self.forest(tree)
        plan = make_plan(forest, query)
        if plan is None:
            return False
        rules = Rules(plan, SharingProviders(forest, plan, effort.pause), effort)
        problem = problem_in(forest, tree, rules)
        return problem is not None and any(step is not None for step in solve(rules, problem))

    def _make(self, tree: TreeRef) -> Forest:
        block = self._whole.blocks[tree.block_number]
        begin, end = block.starts[tree.tree_number : tree.tree_number + 2].tolist()
        if block.sharing_indexes:
            lone = _only_at(block, np.union1d(np.arange(begin, end), block.sharing_indexes))
        else:
            lone = _only_between(block, begin, end)
        blocks = list(self._whole.blocks)
        for block_number, its in self._sharing_blocks.items():
            blocks[block_number] = its
        blocks[tree.block_number] = lone
        return replace(self._whole, blocks=tuple(blocks))


def _only_between(block: Block, begin: int, end: int) -> Block:
    """The block with the inventories of the providers from one index up to another one only."""
    inventories = {
        class_id: inventory.between(begin, end) for class_id, inventory in block.inventories.items()
    }
    return replace(block, inventories=inventories)


def _only_at(block: Block, kept: npt.NDArray[np.integer]) -> Block:
    """The block with the inventories of the providers at these indexes only."""
    inventories = {
        class_id: inventory.at(kept) for class_id, inventory in block.inventories.items()
    }
    return replace(block, inventories=inventories)
