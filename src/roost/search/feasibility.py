"""Proofs that a problem has no solution, found by counting before anything is enumerated.

Eight groups for seven devices would otherwise be tried in all their orders. The proof is a flow:
what the demands need is sent to the providers that could serve them, as if it could be divided
at will. Where not even that works out, nothing does; for equal amounts the opposite holds, too.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping, Sequence

from roost.search.effort import Effort
from roost.search.problem import Problem, Rules


def may_have_solution(rules: Rules, problem: Problem) -> bool:
    """Whether counting leaves hope: every demand has somebody, and they have enough together."""
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
    room_of: dict[int, dict[int, int]] = {}
    for contest, providers, rooms in rules.contested_rooms(problem):
        room_of.setdefault(contest.class_id, {}).update(zip(providers, rooms, strict=True))
    for contest in rules.contests:
        needed: Counter[int] = Counter()
        for part, amount in contest.amounts.items():
            needed[rules.demands[part]] += amount
        if not can_flow(
            list(needed.values()),
            [problem.providers[demand] for demand in needed],
            room_of[contest.class_id],
            rules.effort,
        ):
            return False
    return True


def _can_be_isolated(rules: Rules, problem: Problem) -> bool:
    """Whether every isolated part can have a provider of its own."""
    wanted = Counter(rules.demands[part] for part in rules.plan.isolated)
    choices = [problem.providers[demand] for demand in wanted]
    one_each = {provider: 1 for providers in choices for provider in providers}
    return can_flow(list(wanted.values()), choices, one_each, rules.effort)


def can_flow(
    needs: Sequence[int],
    choices: Sequence[Sequence[int]],
    room: Mapping[int, int],
    effort: Effort,
) -> bool:
    """Whether what is needed can be divided among the choices so that nobody gets too much.

    If the effort does not suffice, it may be so.

    >>> can_flow([1, 1, 1], [(1, 2), (1,), (2, 3)], {1: 1, 2: 1, 3: 1}, Effort())
    True
    >>> can_flow([1, 1, 1], [(1, 2), (1,), (2,)], {1: 1, 2: 1}, Effort())
    False
    """
    left = dict(room)
    given: list[dict[int, int]] = [{} for _ in needs]
    for chooser, need in enumerate(needs):
        rest = need
        for choice in choices[chooser]:
            if not rest:
                break
            amount = min(rest, left[choice])
            if amount > 0:
                given[chooser][choice] = amount
                left[choice] -= amount
                rest -= amount
        while rest:
            moved = _make_way(chooser, rest, choices, given, left, effort=effort)
            if effort.exhausted:
                return True
            if not moved:
                return False
            rest -= moved
    return True


def _make_way(
    chooser: int,
    wanted: int,
    choices: Sequence[Sequence[int]],
    given: Sequence[dict[int, int]],
    left: dict[int, int],
    *,
    effort: Effort,
) -> int:
    """Let others move on to where there is room, along the shortest way; how much that gains."""
    came_from: dict[int, tuple[int, int | None]] = {}
    queue: deque[tuple[int, int | None]] = deque([(chooser, None)])
    seen = {chooser}
    while queue:
        asker, through = queue.popleft()
        effort.spend(1 + len(choices[asker]) // 8)
        for choice in choices[asker]:
            if choice in came_from:
                continue
            came_from[choice] = asker, through
            if left[choice] > 0:
                return _shift(choice, wanted, came_from, given, left)
            effort.spend(1 + len(given) // 16)
            for holder, held in enumerate(given):
                if holder not in seen and held.get(choice):
                    seen.add(holder)
                    queue.append((holder, choice))
    return 0


def _shift(
    end: int,
    wanted: int,
    came_from: Mapping[int, tuple[int, int | None]],
    given: Sequence[dict[int, int]],
    left: dict[int, int],
) -> int:
    """Carry out the way that ends where there is room, as far as its narrowest place allows."""
    steps = []
    choice: int | None = end
    while choice is not None:
        asker, through = came_from[choice]
        steps.append((asker, choice, through))
        choice = through
    amount = min(
        wanted,
        left[end],
        *(given[asker][through] for asker, _, through in steps if through is not None),
    )
    left[end] -= amount
    for asker, taken, through in steps:
        given[asker][taken] = given[asker].get(taken, 0) + amount
        if through is not None:
            given[asker][through] -= amount
    return amount
