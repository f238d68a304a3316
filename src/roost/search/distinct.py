"""Distinct candidates: one that takes from sharing providers only has several anchors."""

from __future__ import annotations

from collections.abc import Hashable, Iterator

from roost.search.batches import Batch, Solution, solution_key
from roost.search.forest import Forest, ProviderRef
from roost.search.rules import Rules

# What it costs to find a candidate once more.
_REPETITION_UNITS = 20


def distinct(forest: Forest, rules: Rules, batches: Iterator[Batch]) -> Iterator[Batch]:
    """The batches, with each candidate only once."""
    if not rules.sharing:
        return batches
    return _Distinct(forest, rules).of(batches)


class _Distinct:
    """Remembers the candidates that take from sharing providers only."""

    def __init__(self, forest: Forest, rules: Rules) -> None:
        self._forest = forest
        self._effort = rules.effort
        self._own_trees = rules.sharing.own_trees
        self._sharing_numbers = rules.sharing.sharing_numbers
        self._seen: set[Hashable] = set()

    def of(self, batches: Iterator[Batch]) -> Iterator[Batch]:
        """The batches without the candidates of earlier ones."""
        for batch in batches:
            trees = batch.trees
            if max(batch.solution) < 0:
                trees = trees[:1]
            kept = [
                tree for tree in trees if self._is_new(batch.block_number, tree, batch.solution)
            ]
            if kept:
                yield batch._replace(trees=kept)
            else:
                self._effort.spend(_REPETITION_UNITS)
                if self._effort.exhausted:
                    return

    def _is_new(self, block_number: int, tree: int, solution: Solution) -> bool:
        if max(solution) >= 0:
            if (block_number, tree) not in self._own_trees:
                return True
            solution = self._by_sharing_number(block_number, tree, solution)
            if max(solution) >= 0:
                return True
        key = solution_key(solution)
        if key in self._seen:
            return False
        self._seen.add(key)
        return True

    def _by_sharing_number(self, block_number: int, tree: int, solution: Solution) -> Solution:
        """The solution, in which all sharing providers stand by sharing number."""
        start = int(self._forest.blocks[block_number].starts[tree])
        return tuple(
            [
                provider
                if provider < 0
                else ~self._sharing_numbers.get(ProviderRef(block_number, start + provider), -1)
                for provider in solution
            ]
        )
