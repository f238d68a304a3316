"""Proofs that a problem has no solution, found by counting before anything is enumerated.

Eight groups for seven devices would otherwise be tried in all their orders.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from roost.search.problem import Problem, Rules


def may_have_solution(rules: Rules, problem: Problem) -> bool:
    """Whether counting and matching leave hope: every demand has somebody, and enough of them."""
    return (
        all(problem.providers)
        and _items_are_met(rules, problem)
        and _room_is_enough(rules, problem)
        and _can_be_isolated(rules, problem)
    )


def _items_are_met(rules: Rules, problem: Problem) -> bool:
    together = 0
    for masks in problem.items:
        for mask in masks:
            together |= mask
    return together == rules.all_items


def _room_is_enough(rules: Rules, problem: Problem) -> bool:
    """Whether the providers of each demand together have room for all who depend on them."""
    rooms = iter(problem.rooms)
    for contest in rules.contests:
        room_of: dict[int, int] = {}
        for demand in contest.demands:
            room_of.update(zip(problem.providers[demand], next(rooms), strict=True))
        for demand in contest.demands:
            reach = set(problem.providers[demand])
            needed = sum(
                amount
                for part, amount in contest.amounts.items()
                if reach.issuperset(problem.providers[rules.demands[part]])
            )
            if needed > sum(room_of[provider] for provider in reach):
                return False
    return True


def _can_be_isolated(rules: Rules, problem: Problem) -> bool:
    """Whether every isolated part can have a provider of its own."""
    choices = [problem.providers[rules.demands[part]] for part in rules.plan.isolated]
    return len(maximum_matching(choices)) == len(choices)


def maximum_matching(choices: Sequence[Sequence[int]]) -> Mapping[int, int]:
    """As many choosers as possible, each with a choice of its own: chooser by choice.

    Everybody who finds all choices taken asks their takers, one after the other, to move on.

    >>> sorted(maximum_matching([(1, 2), (1,), (2, 3)]).items())
    [(1, 1), (2, 0), (3, 2)]
    """
    taken_by: dict[int, int] = {}

    def find(chooser: int, asked: set[int]) -> bool:
        for choice in choices[chooser]:
            if choice in asked:
                continue
            asked.add(choice)
            if choice not in taken_by or find(taken_by[choice], asked):
                taken_by[choice] = chooser
                return True
        return False

    for chooser in range(len(choices)):
        if not find(chooser, set()):
            break
    return taken_by
