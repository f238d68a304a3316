"""Walks: the orders in which a search goes through the trees and their solutions.

Every walk is lazy: it solves no problem before a caller asks for the next batch.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from roost.search.batches import Batch, Solution
from roost.search.problem import Problem
from roost.search.rules import Rules
from roost.search.scan import AlikeTrees
from roost.search.solving import Step, solve

# The number of solutions of a problem that are held for further trees that pose it.
_SOLUTIONS_HELD_MAX = 1000
# A problem without a solution for a while leaves out this number of rounds. So trees that have
# candidates come before a tree that may have none.
_ROUNDS_LEFT_OUT = 64


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
    known: dict[Problem, _PosedProblem] = {}
    for block_number, tree_numbers, problem in scanned:
        posed = known.get(problem)
        if posed is None:
            posed = _PosedProblem(solve(rules, problem))
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
class _PosedProblem:
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
