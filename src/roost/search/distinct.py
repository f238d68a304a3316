"""Distinct candidates.

A candidate of nothing but sharing providers is found for every anchor that they reach, and is
returned once.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator

from roost.search.batches import Batch, Solution, solution_key
from roost.search.forest import Forest, ProviderRef
from roost.search.rules import Rules

# What it costs to find a candidate once more.
_REPETITION_UNITS = 20


def distinct(forest: Forest, rules: Rules, batches: Iterator[Batch]) -> Iterator[Batch]:
    """The batches, with each candidate only once."""
    if not rules.sharing_providers:
        return batches
    return _Distinct(forest, rules).of(batches)


class _Distinct:
    """Remembers the candidates that take from sharing providers only."""

    def __init__(self, forest: Forest, rules: Rules) -> None:
        self._forest = forest
        self._effort = rules.effort
        self._own_trees = rules.sharing_providers.own_trees
        self._sharing_numbers = rules.sharing_providers.sharing_numbers
        self._seen: set[Hashable] = set()

    def of(self, batches: Iterator[Batch]) -> Iterator[Batch]:
        """The batches without the candidates of earlier ones."""
        for batch in batches:
            tree_numbers = batch.tree_numbers
            if max(batch.solution) < 0:
                tree_numbers = tree_numbers[:1]
            new = [
                tree_number
                for tree_number in tree_numbers
                if self._is_new(batch.block_number, tree_number, batch.solution)
            ]
            if new:
                yield batch._replace(tree_numbers=new)
            else:
                self._effort.spend(_REPETITION_UNITS)
                if self._effort.exhausted:
                    return

    def _is_new(self, block_number: int, tree_number: int, solution: Solution) -> bool:
        if max(solution) >= 0:
            if (block_number, tree_number) not in self._own_trees:
                return True
            solution = self._by_sharing_number(block_number, tree_number, solution)
            if max(solution) >= 0:
                return True
        key = solution_key(solution)
        if key in self._seen:
            return False
        self._seen.add(key)
        return True

    def _by_sharing_number(
        self, block_number: int, tree_number: int, solution: Solution
    ) -> Solution:
        """The solution, in which all sharing providers stand by sharing number."""
        start = int(self._forest.blocks[block_number].starts[tree_number])
        return tuple(
            [
                provider
                if provider < 0
                else ~self._sharing_numbers.get(ProviderRef(block_number, start + provider), -1)
                for provider in solution
            ]
        )
