"""Feasibility: proofs that a problem has no solution, found by counting.

Without them the solver would try eight groups on seven devices in all their orders. The proof is a
flow: the amounts of the requirements flow to the providers that meet them, as if every amount could
be divided at will. A problem without such a flow has no solution. If all amounts are equal, a
problem with such a flow has a solution, as far as room is concerned.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping, Sequence

from roost.search.effort import Effort
from roost.search.problem import LocalProvider, Problem
from roost.search.rules import Rules


def may_have_solution(rules: Rules, problem: Problem) -> bool:
    """False if counting proves that the problem has no solution."""
    return (
        all(problem.providers)
        and _trait_choices_are_met(rules, problem)
        and _room_is_enough(rules, problem)
        and all([_can_be_isolated(rules, problem, slots) for slots in rules.plan.isolated_sets])
    )


def _trait_choices_are_met(rules: Rules, problem: Problem) -> bool:
    together = 0
    for choices in problem.met_trait_choices:
        for bits in choices:
            together |= bits
    return together == rules.all_trait_choices


def _room_is_enough(rules: Rules, problem: Problem) -> bool:
    room_by_class: dict[int, dict[LocalProvider, int]] = {}
    for contested, providers, rooms in rules.contested_rooms(problem):
        room_by_class.setdefault(contested.class_id, {}).update(zip(providers, rooms, strict=True))
    for contested in rules.contested_classes:
        amounts: Counter[int] = Counter()
        for slot, amount in contested.amount_by_slot.items():
            amounts[rules.requirement_index_by_slot[slot]] += amount
        if not can_flow(
            list(amounts.values()),
            [problem.providers[requirement_index] for requirement_index in amounts],
            room_by_class[contested.class_id],
            rules.effort,
        ):
            return False
    return True


def _can_be_isolated(rules: Rules, problem: Problem, slots: Sequence[int]) -> bool:
    """Whether each of these slots can have a provider of its own."""
    slots_by_requirement = Counter(rules.requirement_index_by_slot[slot] for slot in slots)
    eligible = [problem.providers[requirement_index] for requirement_index in slots_by_requirement]
    one_each = {provider: 1 for providers in eligible for provider in providers}
    return can_flow(list(slots_by_requirement.values()), eligible, one_each, rules.effort)


def can_flow(
    amounts: Sequence[int],
    eligible: Sequence[Sequence[LocalProvider]],
    limits: Mapping[LocalProvider, int],
    effort: Effort,
) -> bool:
    """Whether each amount can be divided among its eligible providers within their limits.

    True, too, if the effort is exhausted before that is known.

    >>> can_flow([1, 1, 1], [(1, 2), (1,), (2, 3)], {1: 1, 2: 1, 3: 1}, Effort())
    True
    >>> can_flow([1, 1, 1], [(1, 2), (1,), (2,)], {1: 1, 2: 1}, Effort())
    False
    """
    left = dict(limits)
    given: list[dict[int, int]] = [{} for _ in amounts]
    for source, wanted in enumerate(amounts):
        rest = wanted
        for provider in eligible[source]:
            if not rest:
                break
            amount = min(rest, left[provider])
            if amount > 0:
                given[source][provider] = amount
                left[provider] -= amount
                rest -= amount
        while rest:
            moved = _make_way(source, rest, eligible, given, left, effort=effort)
            if effort.exhausted:
                return True
            if not moved:
                return False
            rest -= moved
    return True


def _make_way(
    source: int,
    wanted: int,
    eligible: Sequence[Sequence[LocalProvider]],
    given: Sequence[dict[int, int]],
    left: dict[int, int],
    *,
    effort: Effort,
) -> int:
    """Move amounts of other sources to providers with room, along the shortest path.

    Returns how much room that gains for this source.
    """
    came_from: dict[int, tuple[int, int | None]] = {}
    queue: deque[tuple[int, int | None]] = deque([(source, None)])
    seen = {source}
    while queue:
        asker, through = queue.popleft()
        effort.spend(1 + len(eligible[asker]) // 8)
        for provider in eligible[asker]:
            if provider in came_from:
                continue
            came_from[provider] = asker, through
            if left[provider] > 0:
                return _shift(provider, wanted, came_from, given, left)
            effort.spend(1 + len(given) // 16)
            for holder, held in enumerate(given):
                if holder not in seen and held.get(provider):
                    seen.add(holder)
                    queue.append((holder, provider))
    return 0


def _shift(
    end: LocalProvider,
    wanted: int,
    came_from: Mapping[int, tuple[int, int | None]],
    given: Sequence[dict[int, int]],
    left: dict[int, int],
) -> int:
    """Move as much as the narrowest link of the path to this provider allows."""
    links = []
    provider: LocalProvider | None = end
    while provider is not None:
        asker, through = came_from[provider]
        links.append((asker, provider, through))
        provider = through
    amount = min(
        wanted,
        left[end],
        *(given[asker][through] for asker, _, through in links if through is not None),
    )
    left[end] -= amount
    for asker, taken, through in links:
        given[asker][taken] = given[asker].get(taken, 0) + amount
        if through is not None:
            given[asker][through] -= amount
    return amount
