"""The walk in the order of a ranking: it ranks all trees, then solves the best ones first."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from itertools import chain, groupby
from operator import attrgetter
from typing import NamedTuple

import numpy as np

from roost.search.batches import Batch, Solution
from roost.search.columns import IndexColumn
from roost.search.forest import Forest
from roost.search.problem import Problem
from roost.search.ranking import Merits, Ranking, merits_of
from roost.search.rules import Rules
from roost.search.scan import AlikeTrees
from roost.search.solving import Step, solve

# The number of solutions of one tree that are ranked.
_RANKED_MAX = 10_000
# The number of solutions that all trees of a walk in rounds hold together.
_HELD_MAX = 400_000
# The number of solutions that are kept for further trees that pose the same problem.
_KEPT_MAX = 100_000


class _RankedTree(NamedTuple):
    """A tree and its problem."""

    block_number: int
    tree_number: int
    problem: Problem


def ranked(
    forest: Forest, rules: Rules, scanned: Iterator[AlikeTrees], ranking: Ranking
) -> Iterator[Batch]:
    """The candidates in the order of a ranking; those that take long to find come last."""
    merits = merits_of(ranking, forest, rules)
    found = list(scanned)
    trees = _in_order(forest, merits, found, rules)
    walk = _RankedWalk(rules, merits)
    if ranking.in_rounds:
        yield from walk.in_rounds(list(trees))
    else:
        for tree in trees:
            yield from walk.of_tree(tree, _RANKED_MAX)
    yield from walk.rest()


def _in_order(
    forest: Forest, merits: Merits, found: list[AlikeTrees], rules: Rules
) -> Iterator[_RankedTree]:
    """All trees; those of equal merit in the order of the uuids of their roots."""
    if not found:
        return
    values, uuids, columns = [], [], []
    for block_number, several in groupby(found, attrgetter("block_number")):
        rules.effort.pause()
        block = forest.blocks[block_number]
        tree_numbers: IndexColumn = np.asarray(
            list(chain.from_iterable(alike.tree_numbers for alike in several)), np.int32
        )
        values.append(merits.of_trees(block_number, tree_numbers))
        uuids.append(block.uuids.texts(block.starts[tree_numbers]))
        columns.append(tree_numbers)
    sizes = [len(alike.tree_numbers) for alike in found]
    numbers = np.repeat(np.arange(len(found)), sizes)
    tree_numbers = np.concatenate(columns)
    for position in np.lexsort((np.concatenate(uuids), np.concatenate(values))).tolist():
        alike = found[numbers.item(position)]
        yield _RankedTree(alike.block_number, tree_numbers.item(position), alike.problem)


class _RankedWalk:
    """Solves trees one after another, and ranks the solutions of each."""

    def __init__(self, rules: Rules, merits: Merits) -> None:
        self._rules = rules
        self._merits = merits
        # Solutions for further trees that pose the same problem.
        self._known: dict[Problem, list[Solution]] = {}
        self._kept = 0
        # Solvers that need long for the next solution, and the trees that wait for them.
        self._hard: dict[Problem, tuple[Iterator[Step], list[_RankedTree]]] = {}

    def of_tree(self, tree: _RankedTree, solutions_max: int) -> Iterator[Batch]:
        """The candidates of a tree, the best first."""
        block_number, tree_number, problem = tree
        solutions = self._known.get(problem)
        if solutions is None:
            solutions = self._solutions(problem, solutions_max)
        if problem in self._hard:
            self._hard[problem][1].append(tree)
        merits, pause = self._merits, self._rules.effort.pause

        def rank(solution: Solution) -> tuple[float, tuple[bytes, ...]]:
            pause()
            return (
                merits.of_solution(block_number, tree_number, solution),
                merits.uuids(block_number, tree_number, solution),
            )

        for solution in sorted(solutions, key=rank):
            yield Batch(block_number, [tree_number], solution)

    def in_rounds(self, trees: list[_RankedTree]) -> Iterator[Batch]:
        """One candidate of each tree in every round."""
        solutions_max = min(_RANKED_MAX, max(1, _HELD_MAX // max(1, len(trees))))
        waiting = deque(self.of_tree(tree, solutions_max) for tree in trees)
        while waiting:
            candidates = waiting.popleft()
            batch = next(candidates, None)
            if batch is not None:
                yield batch
                waiting.append(candidates)

    def rest(self) -> Iterator[Batch]:
        """The further candidates of problems that take long, not ranked."""
        for steps, trees in self._hard.values():
            for step in steps:
                if step is not None:
                    for tree in trees:
                        yield Batch(tree.block_number, [tree.tree_number], step)

    def _solutions(self, problem: Problem, solutions_max: int) -> list[Solution]:
        """The solutions of a problem, as far as they are ranked."""
        steps = solve(self._rules, problem)
        found: list[Solution] = []
        for step in steps:
            self._rules.effort.pause()
            if step is None:
                self._hard[problem] = steps, []
                break
            if len(found) == solutions_max:
                self._rules.effort.gave_up = True
                break
            found.append(step)
        if problem in self._hard or self._kept + len(found) <= _KEPT_MAX:
            self._kept += len(found)
            self._known[problem] = found
        return found
