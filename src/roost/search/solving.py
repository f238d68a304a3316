"""The solutions of a problem: for every part one provider, such that all rules hold.

Lazy: who wants ten solutions pays for ten. A branch that cannot lead anywhere is left as early
as the rules allow, and one that is like another in which nothing was found is not entered.

A search that has tried much in vain says so between two solutions, so that other problems can
have their turn before it goes on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator
from functools import cached_property
from itertools import chain, product
from typing import TypeAlias

from roost.search.batches import Solution
from roost.search.constraints import Likeness, constraints_of
from roost.search.feasibility import may_have_solution
from roost.search.problem import Problem, Rules

# A solution, or nothing if none was found yet and the search would have to go on.
Step: TypeAlias = Solution | None

# Units of work without a solution after which other problems have their turn.
_UNITS_AT_ONCE = 4000
# Remembering costs more than trying until there is this much to remember.
_IDLE_STEPS_BEFORE_MEMORY = 64
# What a state takes in memory, in words of eight bytes: by itself, for each part that was chosen
# for, and for each same_subtree.
_STATE_WORDS, _PART_WORDS, _SUBTREE_WORDS = 60, 60, 15
# What a solution may cost without being dear: to try twice for every part.
_TRIES_A_PART = 2


def solve(rules: Rules, problem: Problem) -> Iterator[Step]:
    """All solutions, each once, unless the effort does not suffice."""
    if rules.free or _is_free(rules, problem):
        return product(*[problem.providers[demand] for demand in rules.demands])
    if rules.one_provider_a_tree and not _has_lenders(problem):
        everywhere = set(problem.providers[0]).intersection(*problem.providers[1:])
        single = (problem.only(provider, rules) for provider in sorted(everywhere))
        return chain.from_iterable(_search(rules, each) for each in single)
    return _search(rules, problem)


def _search(rules: Rules, problem: Problem) -> Iterator[Step]:
    effort = rules.effort
    # Every number of a problem is looked at a few times.
    units = 8 + problem.size // 2
    effort.spend(units)
    if not effort.exhausted and may_have_solution(rules, problem):
        return _Search(rules, problem, units).steps()
    return iter(())


def _has_lenders(problem: Problem) -> bool:
    return any(provider < 0 for providers in problem.providers for provider in providers)


def _is_free(rules: Rules, problem: Problem) -> bool:
    """Whether no rule can be broken in this problem, so that every combination is a solution."""
    plan = rules.plan
    if plan.isolated or plan.subtrees or rules.one_provider_a_tree:
        return False
    for contest, _, rooms in rules.contested_rooms(problem):
        if min(rooms, default=0) < contest.total:
            return False
    always = 0
    for masks in problem.items:
        common = rules.all_items
        for mask in masks:
            common &= mask
        always |= common
    return always == rules.all_items


class _Search:
    """One depth-first walk through the choices of all parts."""

    def __init__(self, rules: Rules, problem: Problem, units: int) -> None:
        self._rules = rules
        self._effort = rules.effort
        self._choices = [problem.providers[demand] for demand in rules.demands]
        # The part with the fewest choices first: what fails, fails early.
        self._order = sorted(range(len(self._choices)), key=lambda part: len(self._choices[part]))
        self._constraints = constraints_of(rules, problem, self._order)
        self._problem = problem
        # States in which nothing can be found.
        self._dead: set[Hashable] = set()
        # Steps since the last solution.
        self._idle = 0
        # What a try costs; what was spent since the last solution, and how much of that is
        # nothing to worry about.
        self._try_units = 2 + len(rules.plan.subtrees) // 8
        self._units = units
        self._units_free = units + _TRIES_A_PART * len(self._order) * self._try_units

    def steps(self) -> Iterator[Step]:
        """All solutions, unless that takes too long, and nothing after every long while."""
        order, choices = self._order, self._choices
        last = len(order) - 1
        chosen = [0] * len(order)
        walks = [iter(choices[order[0]])]
        # How many solutions there were when each walk began.
        found, found_before = 0, [0]
        turn_ends = _UNITS_AT_ONCE
        while walks and not self._effort.exhausted:
            depth = len(walks) - 1
            part = order[depth]
            tries = 1
            for provider in walks[depth]:
                tries += 1
                if not self._take(depth, part, provider):
                    continue
                chosen[part] = provider
                if depth == last:
                    found += 1
                    self._spend(tries * self._try_units)
                    self._succeed()
                    tries, turn_ends = 0, _UNITS_AT_ONCE
                    yield tuple(chosen)
                    self._release(part, provider)
                    continue
                if self._dead and self._state(depth) in self._dead:
                    self._release(part, provider)
                    continue
                walks.append(iter(choices[order[depth + 1]]))
                found_before.append(found)
                break
            else:
                walks.pop()
                failed = found_before.pop() == found
                if walks:
                    if failed:
                        self._remember_failure(depth - 1)
                    part = order[depth - 1]
                    self._release(part, chosen[part])
            self._idle += 1
            self._spend(tries * self._try_units)
            if self._units > turn_ends:
                turn_ends = self._units + _UNITS_AT_ONCE
                yield None

    def _spend(self, units: int) -> None:
        self._units += units
        self._effort.spend(units)

    def _succeed(self) -> None:
        """Begin to count anew: what led to a solution was not in vain."""
        self._effort.regain(min(self._units, self._units_free))
        self._units = 0
        self._idle = 0

    def _remember_failure(self, depth: int) -> None:
        if self._idle > _IDLE_STEPS_BEFORE_MEMORY:
            state = self._state(depth)
            subtrees = len(self._rules.plan.subtrees)
            if self._effort.remember(
                _STATE_WORDS + _PART_WORDS * (depth + 1) + _SUBTREE_WORDS * subtrees
            ):
                self._dead.add(state)

    def _take(self, depth: int, part: int, provider: int) -> bool:
        """Choose the provider for the part, if all constraints allow."""
        for number, constraint in enumerate(self._constraints):
            if not constraint.take(depth, part, provider):
                for taken in self._constraints[:number]:
                    taken.release(part, provider)
                return False
        return True

    def _release(self, part: int, provider: int) -> None:
        for constraint in self._constraints:
            constraint.release(part, provider)

    @cached_property
    def _alike(self) -> Likeness:
        return Likeness(self._rules, self._problem)

    def _state(self, depth: int) -> Hashable:
        """All that the constraints will ask of what was chosen so far.

        What is held of one provider belongs together, but not which of those that are alike it is.
        """
        held: dict[int, list[Hashable]] = {}
        for constraint in self._constraints:
            for provider, fact in constraint.held():
                held.setdefault(provider, []).append(fact)
        self._spend(6 + 2 * len(held) + len(self._rules.plan.subtrees) // 2)
        kind = self._alike.kind
        return (
            depth,
            tuple([constraint.state() for constraint in self._constraints]),
            frozenset(
                Counter(
                    (kind(provider), frozenset(facts)) for provider, facts in held.items()
                ).items()
            ),
        )
