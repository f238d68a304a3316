"""The search itself: tree by tree, lazily, so that what is not asked for is not done."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from roost.model.candidates import CandidateQuery
from roost.search.account import Account
from roost.search.forest import Forest, ProviderRef
from roost.search.plan import Part, make_plan
from roost.search.problem import Problem, Rules
from roost.search.scan import TreeGroup, scan_block
from roost.search.sharing import Lender, Lenders
from roost.search.solving import Solution, solve

# A larger limit is as good as none: so many candidates are not held in memory.
_LIMIT_MAX = 100_000


class Batch(NamedTuple):
    """The same answer for some trees of a block: for each part of the query who serves it.

    Members of a tree by their place in it, lenders by `~number`. A candidate for each tree.
    """

    block: int
    trees: list[int]
    solution: Solution


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
    forest: Forest, query: CandidateQuery, order: Order, account: Account | None = None
) -> Found:
    """The candidates for a query all of whose names exist in the forest's vocabulary.

    If neither the query nor the order bounds their number, they are worked out only while the
    batches are taken.
    """
    plan = make_plan(forest, query)
    if plan is None:
        return Found(forest, (), (), (), 0)
    lenders = Lenders(forest, plan)
    endless = order.maximum is None and not order.shuffled and _is_endless(query.limit)
    # Nobody could be told that something was given up, once the answer has begun.
    rules = Rules(plan, lenders, bounded=not endless)
    groups = _groups(forest, rules, order, account)
    if account is not None:
        # An account is of everything, whatever the limit.
        groups = iter(list(groups))
    if endless:
        # All are wanted, so their order does not matter, and this one needs no memory.
        everything = _distinct(forest, lenders, _in_any_order(rules, groups))
        batches = _until(everything, query.limit)
        return Found(forest, plan.parts, lenders.members, batches, None)
    walk = _depth_first if order.depth_first else _breadth_first
    batches = _distinct(forest, lenders, walk(rules, groups))
    wanted = None if order.shuffled else query.limit
    bound = _smaller(order.maximum, wanted)
    # What comes after the client's own limit is nobody's concern.
    kept, more = _first(batches, bound, look_further=bound != wanted)
    if order.shuffled:
        kept = _shuffled(kept, query.limit)
    count = sum(len(batch.trees) for batch in kept)
    wants_more = query.limit is None or count < query.limit
    truncated = wants_more and (more or rules.effort.exhausted)
    return Found(forest, plan.parts, lenders.members, kept, count, truncated)


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


def _smaller(first: int | None, second: int | None) -> int | None:
    given = [bound for bound in (first, second) if bound is not None]
    return min(given, default=None)


def _first(
    batches: Iterator[Batch], bound: int | None, *, look_further: bool
) -> tuple[list[Batch], bool]:
    """The first batches, with so many candidates in all, and whether there are more."""
    if bound is None:
        return list(batches), False
    if not bound:
        return [], look_further and next(batches, None) is not None
    kept, left = [], bound
    for batch in batches:
        kept.append(batch._replace(trees=batch.trees[:left]))
        left -= len(batch.trees)
        if left < 0:
            return kept, True
        if not left:
            return kept, look_further and next(batches, None) is not None
    return kept, False


def _shuffled(batches: list[Batch], limit: int | None) -> list[Batch]:
    """So many candidates, or all, in random order."""
    single = [
        Batch(block, [tree], solution) for block, trees, solution in batches for tree in trees
    ]
    return random.sample(single, len(single) if limit is None else min(limit, len(single)))


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
    solvable = [group for group in groups if next(solve(rules, group.problem), None) is not None]
    trees = np.asarray([tree for group in solvable for tree in group.trees], np.int32)
    account.trees_left("all groups together", forest.blocks[number], trees)
    return iter(solvable)


def _in_any_order(rules: Rules, groups: Iterator[TreeGroup]) -> Iterator[Batch]:
    for block, trees, problem in groups:
        for solution in solve(rules, problem):
            yield Batch(block, trees, solution)


def _depth_first(rules: Rules, groups: Iterator[TreeGroup]) -> Iterator[Batch]:
    """Everything of one tree before the next."""
    for block, trees, problem in groups:
        solutions = _Solutions(solve(rules, problem))
        for tree in trees:
            for solution in solutions.from_first():
                yield Batch(block, [tree], solution)


def _breadth_first(rules: Rules, groups: Iterator[TreeGroup]) -> Iterator[Batch]:
    """One candidate of each tree in turn, so that no host is left out for another's sake."""
    known: dict[Problem, _Solutions] = {}
    waiting: list[tuple[int, list[int], _Solutions]] = []
    for block, trees, problem in groups:
        solutions = known.get(problem)
        if solutions is None:
            solutions = known[problem] = _Solutions(solve(rules, problem))
        solution = solutions.at(0)
        if solution is not None:
            yield Batch(block, trees, solution)
            waiting.append((block, trees, solutions))
    turn = 1
    while waiting:
        still_waiting = []
        for entry in waiting:
            block, trees, solutions = entry
            solution = solutions.at(turn)
            if solution is not None:
                yield Batch(block, trees, solution)
                still_waiting.append(entry)
        waiting = still_waiting
        turn += 1


class _Solutions:
    """The solutions of a problem that many trees pose, each worked out once, when asked for."""

    __slots__ = ("_coming", "_found")

    def __init__(self, coming: Iterator[Solution]) -> None:
        self._coming = coming
        self._found: list[Solution] = []

    def from_first(self) -> Iterator[Solution]:
        """One after the other."""
        index = 0
        while (solution := self.at(index)) is not None:
            yield solution
            index += 1

    def at(self, index: int) -> Solution | None:
        """The solution with this number; they are asked for in order."""
        if index < len(self._found):
            return self._found[index]
        solution = next(self._coming, None)
        if solution is not None:
            self._found.append(solution)
        return solution


def _distinct(forest: Forest, lenders: Lenders, batches: Iterator[Batch]) -> Iterator[Batch]:
    """Each candidate once: one that takes from sharing providers only has several anchors."""
    if not lenders:
        return batches
    return _Distinct(forest, lenders).of(batches)


class _Distinct:
    """Remembers candidates that take from lenders only."""

    def __init__(self, forest: Forest, lenders: Lenders) -> None:
        self._forest = forest
        self._homes = lenders.homes
        self._numbers = {lender.provider: ~number for number, lender in enumerate(lenders.members)}
        self._seen: set[Solution] = set()

    def of(self, batches: Iterator[Batch]) -> Iterator[Batch]:
        """The batches without what was in earlier ones."""
        for batch in batches:
            trees = batch.trees
            if max(batch.solution) < 0:
                trees = trees[:1]
            kept = [tree for tree in trees if self._is_new(batch.block, tree, batch.solution)]
            if kept:
                yield batch._replace(trees=kept)

    def _is_new(self, block: int, tree: int, solution: Solution) -> bool:
        if max(solution) >= 0:
            if (block, tree) not in self._homes:
                return True
            start = int(self._forest.blocks[block].starts[tree])
            names = [
                provider
                if provider < 0
                else self._numbers.get(ProviderRef(block, start + provider), 0)
                for provider in solution
            ]
            if max(names) >= 0:
                return True
            solution = tuple(names)
        if solution in self._seen:
            return False
        self._seen.add(solution)
        return True
