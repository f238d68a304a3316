"""Patterns: what the solutions of a problem take from the stock, each distinct pattern once."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from random import Random
from typing import NamedTuple, TypeAlias

from roost.search.batches import Solution
from roost.search.effort import Effort
from roost.search.problem import LocalProvider, Problem
from roost.search.rules import Rules
from roost.search.solving import solve

# A stock is known by its provider and its resource class.
StockKey: TypeAlias = tuple[LocalProvider, int]
# What one consumer takes of each stock, in the order of `Patterns.keys`.
Pattern: TypeAlias = tuple[int, ...]

# More solutions of one problem, or more patterns, are not listed.
_SOLUTIONS_MAX = 4000
_PATTERNS_MAX = 200
# The units of effort of one solution for each slot, and of one comparison of patterns.
_SLOT_UNITS = 4
_COMPARISON_UNITS = 4
# Of a problem with more solutions: how often the solver begins anew with the providers in another
# order, and how many solutions it gives each time.
_SAMPLES, _SAMPLE_SOLUTIONS = 60, 3


class Patterns(NamedTuple):
    """The patterns of a problem."""

    keys: tuple[StockKey, ...]
    patterns: tuple[Pattern, ...]
    # Whether the problem has no other patterns but those that take more.
    complete: bool


def patterns_of(rules: Rules, problem: Problem) -> Patterns:
    """The patterns of a problem, without those that take more than another one."""
    found: dict[frozenset[tuple[StockKey, int]], None] = {}
    complete = True
    for count, solution in enumerate(_solutions(rules, problem)):
        found[_takes(rules, solution)] = None
        if count >= _SOLUTIONS_MAX or len(found) > _PATTERNS_MAX:
            complete = False
            break
    complete = complete and not rules.effort.exhausted
    if not complete and not rules.effort.exhausted:
        for solution in _samples(rules, problem):
            found[_takes(rules, solution)] = None
    least = _least([dict(takes) for takes in found], rules.effort)
    keys = tuple(sorted({key for takes in least for key in takes}))
    return Patterns(
        keys, tuple(tuple(takes.get(key, 0) for key in keys) for takes in least), complete
    )


def _solutions(rules: Rules, problem: Problem) -> Iterator[Solution]:
    for step in solve(rules, problem):
        # The solver takes back what a solution costs. Here many solutions serve one count.
        rules.effort.spend(_SLOT_UNITS * len(rules.plan.slots))
        if rules.effort.exhausted:
            return
        if step is not None:
            yield step


def _takes(rules: Rules, solution: Solution) -> frozenset[tuple[StockKey, int]]:
    taken: dict[StockKey, int] = {}
    for slot, provider in zip(rules.plan.slots, solution, strict=True):
        for class_id, amount in rules.plan.requirements[slot.requirement_index].amounts:
            key = provider, class_id
            taken[key] = taken.get(key, 0) + amount
    return frozenset(taken.items())


def _least(found: list[dict[StockKey, int]], effort: Effort) -> list[dict[StockKey, int]]:
    """Those that take no more than another one takes, of each stock."""
    found = sorted(found, key=lambda takes: sum(takes.values()))
    least: list[dict[StockKey, int]] = []
    for takes in found:
        effort.spend(1 + len(least) * _COMPARISON_UNITS)
        if not any(
            all(takes.get(key, 0) >= amount for key, amount in smaller.items()) for smaller in least
        ):
            least.append(takes)
    return least


def _samples(rules: Rules, problem: Problem) -> Iterator[Solution]:
    """Some solutions that differ much: the solver alone changes the last slots first."""
    random = Random(0)
    for _ in range(_SAMPLES):
        rules.effort.spend(problem.size)
        if rules.effort.exhausted:
            return
        yield from islice(_solutions(rules, _shuffled(rules, problem, random)), _SAMPLE_SOLUTIONS)


def _shuffled(rules: Rules, problem: Problem, random: Random) -> Problem:
    """The problem with the providers of each requirement in another order."""
    orders = [random.sample(range(len(each)), len(each)) for each in problem.providers]

    def ordered(requirement_index: int, values: tuple[int, ...]) -> tuple[int, ...]:
        return tuple([values[position] for position in orders[requirement_index]])

    return problem._replace(
        providers=tuple(ordered(index, each) for index, each in enumerate(problem.providers)),
        usable_rooms=tuple(
            ordered(index, rooms)
            for (_, index), rooms in zip(
                rules.contested_requirement_indexes, problem.usable_rooms, strict=True
            )
        ),
        met_trait_choices=tuple(
            ordered(index, choices)
            for index, choices in zip(
                rules.unsuffixed_requirement_indexes, problem.met_trait_choices, strict=True
            )
        ),
    )
