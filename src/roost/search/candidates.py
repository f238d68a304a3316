"""The search itself: tree by tree, lazily, so that what is not asked for is not done."""

from __future__ import annotations

import random
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from math import inf

import numpy as np

from roost.model.candidates import CandidateQuery
from roost.search.account import Account
from roost.search.batches import Batch, Batches, Solution, solution_key
from roost.search.effort import Effort, no_pause
from roost.search.forest import Forest, ProviderRef
from roost.search.plan import Part, make_plan
from roost.search.problem import Problem, Rules
from roost.search.scan import TreeGroup, scan_block
from roost.search.sharing import Lender, Lenders
from roost.search.solving import Step, solve

# A larger limit is as good as none: so many candidates are not held in memory.
_LIMIT_MAX = 100_000
# What it costs to find a candidate once more.
_REPETITION_UNITS = 20
# So many solutions of a problem are held for the next tree that poses it.
_SOLUTIONS_HELD_MAX = 1000
# A problem in which nothing was found for a while leaves so many turns to others: trees that have
# candidates are not to be left out for the sake of one that may have none.
_TURNS_LEFT_OUT = 64
# Candidates of more parts than these are fewer: what an answer takes grows with both.
_PARTS_USUAL = 10


@dataclass(frozen=True, slots=True)
class Order:
    """In which order candidates come, and how many at most."""

    # No more than these are looked for; nothing: all of them.
    maximum: int | None = None
    # Everything of one tree before the next, instead of one of each in turn.
    depth_first: bool = False
    shuffled: bool = False


@dataclass(frozen=True, slots=True)
class Found:
    """What a search found, in terms of its forest."""

    forest: Forest
    parts: tuple[Part, ...]
    lenders: tuple[Lender, ...]
    batches: Iterable[Batch]
    # How many candidates there are; nothing if that is not known before they are worked out.
    count: int | None
    # Candidates were kept back that the client had not renounced: there are more than the
    # maximum, or finding out whether there are took too long.
    truncated: bool = False


def find_candidates(
    forest: Forest,
    query: CandidateQuery,
    order: Order,
    account: Account | None = None,
    pause: Callable[[], None] = no_pause,
) -> Found:
    """The candidates for a query all of whose names exist in the forest's vocabulary.

    If neither the query nor the order bounds their number, they are worked out only while the
    batches are taken. `pause` is called again and again, after some milliseconds of work at most.
    """
    plan = make_plan(forest, query)
    if plan is None:
        return Found(forest, (), (), (), 0)
    endless = order.maximum is None and not order.shuffled and _is_endless(query.limit)
    # Nobody could be told that something was given up, once the answer has begun.
    effort = Effort(bounded=not endless, pause=pause)
    lenders = Lenders(forest, plan, pause)
    rules = Rules(plan, lenders, effort)
    groups = _groups(forest, rules, order, account)
    if account is not None:
        # An account is of everything, whatever the limit.
        groups = iter(list(groups))
    if endless:
        # All are wanted, so their order does not matter, and this one needs no memory.
        everything = _distinct(forest, rules, _in_any_order(rules, groups))
        batches = _until(everything, query.limit)
        return Found(forest, plan.parts, lenders.members, batches, None)
    walk = _depth_first if order.depth_first else _breadth_first
    batches = _distinct(forest, rules, walk(rules, groups))
    wanted = None if order.shuffled else query.limit
    bound = _bound(order, wanted, len(plan.parts))
    # What comes after the client's own limit is nobody's concern.
    kept, more = _first(batches, bound, pause, look_further=bound != wanted)
    if order.shuffled:
        kept = _shuffled(kept, query.limit)
    wants_more = query.limit is None or kept.count < query.limit
    truncated = wants_more and (more or effort.gave_up)
    return Found(forest, plan.parts, lenders.members, kept, kept.count, truncated)


def _is_endless(limit: int | None) -> bool:
    return limit is None or limit > _LIMIT_MAX


def _until(batches: Iterator[Batch], bound: int | None) -> Iterator[Batch]:
    """The first batches, with so many candidates in all."""
    if bound is None:
        yield from batches
        return
    left = bound
    for batch in batches:
        yield batch._replace(trees=batch.trees[:left])
        left -= len(batch.trees)
        if left <= 0:
            return


def _bound(order: Order, wanted: int | None, parts: int) -> float:
    """How many candidates are held; all only if neither operator nor client bounds them."""
    if order.maximum is None and wanted is None:
        return inf
    maximum = _LIMIT_MAX if order.maximum is None else order.maximum
    by_parts = max(1, max(maximum, _LIMIT_MAX) * _PARTS_USUAL // parts)
    return min(maximum, by_parts, maximum if wanted is None else wanted)


def _first(
    batches: Iterator[Batch], bound: float, pause: Callable[[], None], *, look_further: bool
) -> tuple[Batches, bool]:
    """The first batches, with so many candidates in all, and whether there are more."""
    kept = Batches()
    for batch in batches:
        pause()
        left = bound - kept.count
        if left <= 0:
            return kept, True
        surplus = len(batch.trees) - left
        if surplus > 0:
            kept.append(batch._replace(trees=batch.trees[: int(left)]))
            return kept, True
        kept.append(batch)
        if not surplus and not look_further:
            break
    return kept, False


def _shuffled(batches: Batches, limit: int | None) -> Batches:
    """So many candidates, or all, in random order."""
    single = [
        Batch(block, [tree], solution) for block, trees, solution in batches for tree in trees
    ]
    shuffled = Batches()
    for batch in random.sample(single, len(single) if limit is None else min(limit, len(single))):
        shuffled.append(batch)
    return shuffled


def _groups(
    forest: Forest, rules: Rules, order: Order, account: Account | None
) -> Iterator[TreeGroup]:
    numbers = list(range(len(forest.blocks)))
    if order.shuffled:
        random.shuffle(numbers)
    for number in numbers:
        groups = scan_block(forest, number, rules, account)
        if account is not None:
            groups = _accounted(forest, number, rules, list(groups), account)
        yield from groups


def _accounted(
    forest: Forest, number: int, rules: Rules, groups: list[TreeGroup], account: Account
) -> Iterator[TreeGroup]:
    """Those of the groups that have a solution, told to the account."""
    solvable = [group for group in groups if any(map(_is_solution, solve(rules, group.problem)))]
    trees = np.asarray([tree for group in solvable for tree in group.trees], np.int32)
    account.trees_left("all groups together", forest.blocks[number], trees)
    return iter(solvable)


def _is_solution(step: Step) -> bool:
    return step is not None


def _in_any_order(rules: Rules, groups: Iterator[TreeGroup]) -> Iterator[Batch]:
    for block, trees, problem in groups:
        for solution in solve(rules, problem):
            rules.effort.pause()
            if solution is not None:
                yield Batch(block, trees, solution)


def _depth_first(rules: Rules, groups: Iterator[TreeGroup]) -> Iterator[Batch]:
    """Everything of one tree before the next; what takes long comes after all others."""
    hard: list[tuple[int, list[int], Iterator[Step]]] = []
    for block, trees, problem in groups:
        steps = solve(rules, problem)
        found: list[Solution] = []
        for solution in steps:
            if solution is None:
                # Those that are not held are worked out again for each of the other trees.
                are_held = len(found) <= _SOLUTIONS_HELD_MAX
                hard.append((block, trees if are_held else trees[:1], steps))
                break
            if len(found) <= _SOLUTIONS_HELD_MAX:
                found.append(solution)
            yield Batch(block, trees[:1], solution)
        for tree in trees[1:]:
            again = found if len(found) <= _SOLUTIONS_HELD_MAX else solve(rules, problem)
            for solution in again:
                if solution is not None:
                    yield Batch(block, [tree], solution)
    for block, trees, steps in hard:
        for solution in steps:
            if solution is not None:
                yield Batch(block, trees, solution)


def _breadth_first(rules: Rules, groups: Iterator[TreeGroup]) -> Iterator[Batch]:
    """One candidate of each tree in turn, so that no host is left out for another's sake."""
    known: dict[Problem, _Posed] = {}
    for block, trees, problem in groups:
        posed = known.get(problem)
        if posed is None:
            posed = _Posed(solve(rules, problem))
            posed.first = posed.next()
            if rules.effort.hold(problem.words):
                known[problem] = posed
            elif not posed.ended:
                # Of what cannot be held there is the first solution only.
                rules.effort.gave_up = True
        if posed.first is not None:
            yield Batch(block, trees, posed.first)
        posed.groups.append((block, trees))
    waiting = [posed for posed in known.values() if not posed.ended]
    known.clear()
    turn = 1
    while waiting:
        for posed in waiting:
            solution = posed.next() if posed.due <= turn else None
            if solution is not None:
                for block, trees in posed.groups:
                    yield Batch(block, trees, solution)
            elif posed.due <= turn:
                posed.wait(turn)
        waiting = [posed for posed in waiting if not posed.ended]
        turn = max(turn + 1, min((posed.due for posed in waiting), default=0))


@dataclass(slots=True)
class _Posed:
    """A problem that some trees pose, and how far it is solved."""

    steps: Iterator[Step]
    first: Solution | None = None
    ended: bool = False
    # The turn in which it is tried again, and how many turns it was left out before.
    due: int = 0
    left_out: int = 0
    # Blocks with those of their trees that pose it.
    groups: list[tuple[int, list[int]]] = field(default_factory=list)

    def next(self) -> Solution | None:
        """The next solution; nothing if there is none, or none yet."""
        for step in self.steps:
            if step is not None:
                self.left_out = 0
            return step
        self.ended = True
        return None

    def wait(self, turn: int) -> None:
        """Leave more and more turns to others, as long as no solution is found."""
        self.left_out = max(_TURNS_LEFT_OUT, 2 * self.left_out)
        self.due = turn + self.left_out


def _distinct(forest: Forest, rules: Rules, batches: Iterator[Batch]) -> Iterator[Batch]:
    """Each candidate once: one that takes from sharing providers only has several anchors."""
    if not rules.lenders:
        return batches
    return _Distinct(forest, rules).of(batches)


class _Distinct:
    """Remembers candidates that take from lenders only."""

    def __init__(self, forest: Forest, rules: Rules) -> None:
        self._forest = forest
        self._effort = rules.effort
        self._homes = rules.lenders.homes
        self._numbers = rules.lenders.numbers
        self._seen: set[Hashable] = set()

    def of(self, batches: Iterator[Batch]) -> Iterator[Batch]:
        """The batches without what was in earlier ones."""
        for batch in batches:
            trees = batch.trees
            if max(batch.solution) < 0:
                trees = trees[:1]
            kept = [tree for tree in trees if self._is_new(batch.block, tree, batch.solution)]
            if kept:
                yield batch._replace(trees=kept)
            else:
                self._effort.spend(_REPETITION_UNITS)
                if self._effort.exhausted:
                    return

    def _is_new(self, block: int, tree: int, solution: Solution) -> bool:
        if max(solution) >= 0:
            if (block, tree) not in self._homes:
                return True
            names = self._named(block, tree, solution)
            if max(names) >= 0:
                return True
            solution = names
        key = solution_key(solution)
        if key in self._seen:
            return False
        self._seen.add(key)
        return True

    def _named(self, block: int, tree: int, solution: Solution) -> Solution:
        """The solution with members that are lenders, too, named as lenders."""
        start = int(self._forest.blocks[block].starts[tree])
        return tuple(
            [
                provider
                if provider < 0
                else ~self._numbers.get(ProviderRef(block, start + provider), -1)
                for provider in solution
            ]
        )
