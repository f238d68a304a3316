"""The solutions of a problem: for every part one provider, such that all rules hold.

Lazy: who wants ten solutions pays for ten. A branch that cannot lead anywhere is left as early
as the rules allow, and one that is like another in which nothing was found is not entered.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator
from functools import cached_property
from itertools import chain, product
from typing import TypeAlias

from roost.search.constraints import Likeness, constraints_of
from roost.search.feasibility import may_have_solution
from roost.search.problem import Problem, Rules

# For each part the provider that serves it.
Solution: TypeAlias = tuple[int, ...]

# So many steps without a solution are nothing to worry about.
_IDLE_STEPS_FREE = 1000
# Remembering costs more than trying until there is this much to remember.
_IDLE_STEPS_BEFORE_MEMORY = 64
_MEMORY_MAX = 100_000


def solve(rules: Rules, problem: Problem) -> Iterator[Solution]:
    """All solutions, each once."""
    if rules.free or _is_free(rules, problem):
        return product(*[problem.providers[demand] for demand in rules.demands])
    if rules.one_provider_a_tree and not _has_lenders(problem):
        everywhere = set(problem.providers[0]).intersection(*problem.providers[1:])
        single = (problem.only(provider, rules) for provider in sorted(everywhere))
        return chain.from_iterable(_search(rules, each) for each in single)
    return _search(rules, problem)


def _search(rules: Rules, problem: Problem) -> Iterator[Solution]:
    if may_have_solution(rules, problem):
        return _Search(rules, problem).solutions()
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

    def __init__(self, rules: Rules, problem: Problem) -> None:
        self._rules = rules
        self._choices = [problem.providers[demand] for demand in rules.demands]
        # The part with the fewest choices first: what fails, fails early.
        self._order = sorted(range(len(self._choices)), key=lambda part: len(self._choices[part]))
        self._constraints = constraints_of(rules, problem, self._order)
        self._problem = problem
        # States in which nothing can be found.
        self._dead: set[Hashable] = set()
        # Steps since the last solution.
        self._idle = 0

    def solutions(self) -> Iterator[Solution]:
        """All solutions, unless that takes too long."""
        order, choices = self._order, self._choices
        last = len(order) - 1
        chosen = [0] * len(order)
        walks = [iter(choices[order[0]])]
        # How many solutions there were when each walk began.
        found, found_before = 0, [0]
        while walks:
            depth = len(walks) - 1
            part = order[depth]
            for provider in walks[depth]:
                if not self._take(depth, part, provider):
                    continue
                chosen[part] = provider
                if depth == last:
                    found += 1
                    self._idle = 0
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
            if self._is_hopeless():
                return

    def _is_hopeless(self) -> bool:
        """Whether so much was tried in vain that it is time to give up."""
        self._idle += 1
        return self._idle > _IDLE_STEPS_FREE and not self._rules.effort.spend()

    def _remember_failure(self, depth: int) -> None:
        if self._idle > _IDLE_STEPS_BEFORE_MEMORY and len(self._dead) < _MEMORY_MAX:
            self._dead.add(self._state(depth))

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
