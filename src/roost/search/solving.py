"""The solutions of a problem: for every part one provider, such that all rules hold.

Lazy: who wants ten solutions pays for ten. A branch that cannot lead anywhere is left as early
as the rules allow, and one that is like another in which nothing was found is not entered.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from functools import cached_property
from itertools import product
from typing import TypeAlias

from roost.search.constraints import Likeness, constraints_of
from roost.search.feasibility import may_have_solution
from roost.search.problem import Problem, Rules

# For each part the provider that serves it.
Solution: TypeAlias = tuple[int, ...]

# Remembering costs more than trying until there is this much to remember.
_FAILURES_BEFORE_MEMORY = 64


def solve(rules: Rules, problem: Problem) -> Iterator[Solution]:
    """All solutions, each once."""
    if rules.free or _is_free(rules, problem):
        return product(*[problem.providers[demand] for demand in rules.demands])
    if may_have_solution(rules, problem):
        return _Search(rules, problem).solutions()
    return iter(())


def _is_free(rules: Rules, problem: Problem) -> bool:
    """Whether no rule can be broken in this problem, so that every combination is a solution."""
    plan = rules.plan
    if plan.isolated or plan.subtrees or rules.one_provider_a_tree:
        return False
    rooms = iter(problem.rooms)
    for contest in rules.contests:
        if any(min(next(rooms), default=0) < contest.total for _ in contest.demands):
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
        self._checks = constraints_of(rules, problem, self._order)
        self._problem = problem

    def solutions(self) -> Iterator[Solution]:
        order, choices = self._order, self._choices
        last = len(order) - 1
        chosen = [0] * len(order)
        walks = [iter(choices[order[0]])]
        found = 0
        found_before = [0]
        dead: set[Hashable] = set()
        failures = 0
        while walks:
            depth = len(walks) - 1
            part = order[depth]
            for provider in walks[depth]:
                if not self._take(depth, part, provider):
                    continue
                chosen[part] = provider
                if depth == last:
                    found += 1
                    yield tuple(chosen)
                    self._release(part, provider)
                    continue
                if dead and self._state(depth) in dead:
                    self._release(part, provider)
                    continue
                walks.append(iter(choices[order[depth + 1]]))
                found_before.append(found)
                break
            else:
                walks.pop()
                if found_before.pop() == found and walks:
                    failures += 1
                    if failures > _FAILURES_BEFORE_MEMORY:
                        dead.add(self._state(depth - 1))
                if walks:
                    part = order[depth - 1]
                    self._release(part, chosen[part])

    def _take(self, depth: int, part: int, provider: int) -> bool:
        """Choose the provider for the part, if all rules allow."""
        for number, rule in enumerate(self._checks):
            if not rule.take(depth, part, provider):
                for taken in self._checks[:number]:
                    taken.release(part, provider)
                return False
        return True

    def _release(self, part: int, provider: int) -> None:
        for rule in self._checks:
            rule.release(part, provider)

    @cached_property
    def _alike(self) -> Likeness:
        return Likeness(self._rules, self._problem)

    def _state(self, depth: int) -> Hashable:
        """All that the rules will ask of what was chosen so far."""
        return depth, tuple(rule.state(self._alike) for rule in self._checks)
