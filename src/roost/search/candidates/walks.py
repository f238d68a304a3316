"""Walks: the orders in which a search goes through the trees, and the batches that it yields.

Every walk is lazy: it solves no problem before a caller asks for the next batch. The walk in the
order of a ranking first ranks all trees. `Batches` holds what a walk has yielded in little memory.
"""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain, groupby
from operator import attrgetter
from typing import NamedTuple

import numpy as np

from roost.search.candidates.ranking import Merits, Ranking, merits_of
from roost.search.candidates.rules import Rules
from roost.search.candidates.scan import AlikeTrees
from roost.search.candidates.solving.problem import Problem, Solution
from roost.search.candidates.solving.solver import Step, solve
from roost.search.forest.forest import Forest
from roost.search.forest.rows import IndexColumn

# The number of solutions of a problem that are held for further trees that pose it.
_SOLUTIONS_HELD_MAX = 1000
# If the next solution of a problem takes long, the walk passes over the problem for so many rounds,
# then for twice as many. So the trees with quick solutions come first.
_ROUNDS_LEFT_OUT = 64
# The number of solutions of one tree that are ranked.
_RANKED_MAX = 10_000
# The number of solutions that all trees of a walk in rounds hold together.
_HELD_MAX = 400_000
# The number of solutions that are kept for further trees that pose the same problem.
_KEPT_MAX = 100_000
# Packing costs about a microsecond for each batch, so only large answers are packed.
_PACKED_MIN = 4096


class Batch(NamedTuple):
    """One solution for some trees of a block: a candidate for each of these trees."""

    block_number: int
    # Ascending.
    tree_numbers: list[int]
    solution: Solution


def in_any_order(rules: Rules, scanned: Iterator[AlikeTrees]) -> Iterator[Batch]:
    """All solutions of all trees; holds none of them."""
    for block_number, tree_numbers, problem in scanned:
        for step in solve(rules, problem):
            rules.effort.pause()
            if step is not None:
                yield Batch(block_number, tree_numbers, step)


def depth_first(rules: Rules, scanned: Iterator[AlikeTrees]) -> Iterator[Batch]:
    """All candidates of one tree before the next; those that take long come last."""
    hard: list[tuple[int, list[int], Iterator[Step]]] = []
    for block_number, tree_numbers, problem in scanned:
        steps = solve(rules, problem)
        found: list[Solution] = []
        for step in steps:
            if step is None:
                # Solutions that are not held are worked out again for each further tree.
                are_held = len(found) <= _SOLUTIONS_HELD_MAX
                hard.append((block_number, tree_numbers if are_held else tree_numbers[:1], steps))
                break
            if len(found) <= _SOLUTIONS_HELD_MAX:
                found.append(step)
            yield Batch(block_number, tree_numbers[:1], step)
        for tree_number in tree_numbers[1:]:
            again = found if len(found) <= _SOLUTIONS_HELD_MAX else solve(rules, problem)
            for step in again:
                if step is not None:
                    yield Batch(block_number, [tree_number], step)
    for block_number, tree_numbers, steps in hard:
        for step in steps:
            if step is not None:
                yield Batch(block_number, tree_numbers, step)


def breadth_first(rules: Rules, scanned: Iterator[AlikeTrees]) -> Iterator[Batch]:
    """One candidate of each tree in every round, so that a limit keeps as many trees as it can."""
    known: dict[Problem, _SolvedProblem] = {}
    for block_number, tree_numbers, problem in scanned:
        posed = known.get(problem)
        if posed is None:
            posed = _SolvedProblem(solve(rules, problem))
            posed.first = posed.next()
            if rules.effort.hold(problem.memory_words):
                known[problem] = posed
            elif not posed.ended:
                # Of a problem that cannot be held, the walk returns the first solution only.
                rules.effort.gave_up = True
        if posed.first is not None:
            yield Batch(block_number, tree_numbers, posed.first)
        posed.trees.append((block_number, tree_numbers))
    waiting = [posed for posed in known.values() if not posed.ended]
    known.clear()
    round_number = 1
    while waiting:
        for posed in waiting:
            solution = posed.next() if posed.due <= round_number else None
            if solution is not None:
                for block_number, tree_numbers in posed.trees:
                    yield Batch(block_number, tree_numbers, solution)
            elif posed.due <= round_number:
                posed.wait(round_number)
        waiting = [posed for posed in waiting if not posed.ended]
        round_number = max(round_number + 1, min((posed.due for posed in waiting), default=0))


@dataclass(slots=True)
class _SolvedProblem:
    """A problem with the trees that pose it, and how far it is solved."""

    steps: Iterator[Step]
    first: Solution | None = None
    ended: bool = False
    # The round in which it is tried again, and how many rounds it left out before.
    due: int = 0
    left_out: int = 0
    # The block number and the tree numbers of each `AlikeTrees` that pose it.
    trees: list[tuple[int, list[int]]] = field(default_factory=list)

    def next(self) -> Solution | None:
        """The next solution; `None` if there is none, or none yet."""
        for step in self.steps:
            if step is not None:
                self.left_out = 0
            return step
        self.ended = True
        return None

    def wait(self, round_number: int) -> None:
        """Leave out more and more rounds, as long as no solution is found."""
        self.left_out = max(_ROUNDS_LEFT_OUT, 2 * self.left_out)
        self.due = round_number + self.left_out


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


def selection(tree_numbers: list[int]) -> slice | list[int]:
    """Ascending tree numbers as an index of columns.

    For neighbours it is a slice, which numpy need not convert.

    >>> selection([4, 5, 6]), selection([4, 6])
    (slice(4, 7, None), [4, 6])
    """
    first, last = tree_numbers[0], tree_numbers[-1]
    return slice(first, last + 1) if last - first + 1 == len(tree_numbers) else tree_numbers


class Batches:
    """Batches in their order. A caller iterates once, and what it has taken is no longer held.

    A batch of three slots for one tree takes 24 bytes packed, and ten times as much otherwise.
    """

    def __init__(self) -> None:
        self._packed: deque[array[int]] = deque()
        self._recent: list[Batch] = []
        # The count of candidates, not of batches.
        self.count = 0

    def append(self, batch: Batch) -> None:
        """Add a batch at the end."""
        self.count += len(batch.tree_numbers)
        self._recent.append(batch)
        if len(self._recent) >= _PACKED_MIN:
            self._packed.append(_packed(self._recent))
            self._recent = []

    def __iter__(self) -> Iterator[Batch]:
        while self._packed:
            yield from _unpacked(self._packed.popleft())
        recent, self._recent = self._recent, []
        yield from recent


def _packed(batches: list[Batch]) -> array[int]:
    """For each batch: block number, count of trees, count of slots, tree numbers, solution."""
    integers = array("i")
    for block_number, tree_numbers, solution in batches:
        integers.extend((block_number, len(tree_numbers), len(solution)))
        integers.extend(tree_numbers)
        integers.extend(solution)
    return integers


def _unpacked(integers: array[int]) -> Iterator[Batch]:
    position, end = 0, len(integers)
    while position < end:
        block_number, tree_count, slot_count = integers[position : position + 3]
        middle = position + 3 + tree_count
        tree_numbers = integers[position + 3 : middle].tolist()
        position = middle + slot_count
        yield Batch(block_number, tree_numbers, tuple(integers[middle:position]))
