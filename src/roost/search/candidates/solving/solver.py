"""Solving a problem: for every slot one provider, so that all constraints hold.

The solver is lazy: a caller that takes ten solutions pays for ten. It leaves a branch as soon as a
constraint is broken. It does not enter a branch that is like an earlier branch without a solution.
Before it begins, counting may prove that the problem has no solution.

After much work in vain the solver returns `None` instead of a solution. So a caller can go on with
other problems first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from functools import cached_property
from itertools import chain, product
from typing import TypeAlias

from roost.search.candidates.rules import Rules
from roost.search.candidates.solving.constraints import Interchangeability, constraints_of
from roost.search.candidates.solving.flow import can_flow
from roost.search.candidates.solving.problem import LocalProvider, Problem, Solution

# A solution; `None` if the solver has found none yet and would have to go on.
Step: TypeAlias = Solution | None

# After so many units of work without a solution, the solver gives `None` and may go on later.
_UNITS_AT_ONCE = 4000
# For fewer moves without a solution than this, remembering dead ends costs more than it saves.
_IDLE_MOVES_BEFORE_MEMORY = 64
# The memory of a state in words of eight bytes: for itself, for each slot that has a provider, and
# for each same_subtree.
_STATE_WORDS, _SLOT_WORDS, _SUBTREE_WORDS = 60, 60, 15
# The number of tries for each slot that a solution usually costs; these tries are not in vain.
_TRIES_PER_SLOT = 2


def solve(rules: Rules, problem: Problem) -> Iterator[Step]:
    """All solutions, each once, as far as the effort suffices."""
    if rules.slots_are_independent or _every_combination_fits(rules, problem):
        return product(
            *[
                problem.providers[requirement_index]
                for requirement_index in rules.requirement_index_by_slot
            ]
        )
    if rules.one_provider_per_tree and not problem.has_sharing:
        everywhere = set(problem.providers[0]).intersection(*problem.providers[1:])
        single = (rules.from_one_provider(problem, provider) for provider in sorted(everywhere))
        return chain.from_iterable(_tried(rules, each) for each in single)
    return _tried(rules, problem)


def _tried(rules: Rules, problem: Problem) -> Iterator[Step]:
    effort = rules.effort
    # The proofs look a few times at every integer of a problem.
    units = 8 + problem.size // 2
    effort.spend(units)
    if not effort.exhausted and may_have_solution(rules, problem):
        return _Solver(rules, problem, units).steps()
    return iter(())


def _every_combination_fits(rules: Rules, problem: Problem) -> bool:
    """Whether every combination of providers is a solution of this problem."""
    plan = rules.plan
    if plan.isolated_sets or plan.same_subtrees or rules.one_provider_per_tree:
        return False
    for contested, _, rooms in rules.contested_rooms(problem):
        if min(rooms, default=0) < contested.total:
            return False
    always = 0
    for choices in problem.met_trait_choices:
        common = rules.all_trait_choices
        for bits in choices:
            common &= bits
        always |= common
    return always == rules.all_trait_choices


class _Solver:
    """Tries the providers of each slot, depth first."""

    def __init__(self, rules: Rules, problem: Problem, units: int) -> None:
        self._rules = rules
        self._effort = rules.effort
        self._eligible = [
            problem.providers[requirement_index]
            for requirement_index in rules.requirement_index_by_slot
        ]
        # The slot with the fewest providers comes first, so that dead ends show early.
        self._order = sorted(range(len(self._eligible)), key=lambda slot: len(self._eligible[slot]))
        self._constraints = constraints_of(rules, problem, self._order)
        self._problem = problem
        # States below which there is no solution.
        self._dead: set[Hashable] = set()
        # Moves into a branch, or out of one, since the last solution.
        self._idle_moves = 0
        # The units of one try.
        self._try_units = 2 + len(rules.plan.same_subtrees) // 8
        # The units spent since the last solution.
        self._units = units
        # How many of these are the usual price of a solution.
        self._units_free = units + _TRIES_PER_SLOT * len(self._order) * self._try_units

    def steps(self) -> Iterator[Step]:
        """All solutions, as far as the effort suffices, and `None` after much work in vain."""
        order, eligible = self._order, self._eligible
        last = len(order) - 1
        chosen = [0] * len(order)
        branches = [iter(eligible[order[0]])]
        # The count of solutions before each branch.
        found, found_before = 0, [0]
        step_ends = _UNITS_AT_ONCE
        while branches and not self._effort.exhausted:
            depth = len(branches) - 1
            slot = order[depth]
            tries = 1
            for provider in branches[depth]:
                tries += 1
                if not self._take(depth, slot, provider):
                    continue
                chosen[slot] = provider
                if depth == last:
                    found += 1
                    self._spend(tries * self._try_units)
                    self._succeed()
                    tries, step_ends = 0, _UNITS_AT_ONCE
                    yield tuple(chosen)
                    self._release(slot, provider)
                    continue
                if self._dead and self._state(depth) in self._dead:
                    self._release(slot, provider)
                    continue
                branches.append(iter(eligible[order[depth + 1]]))
                found_before.append(found)
                break
            else:
                branches.pop()
                failed = found_before.pop() == found
                if branches:
                    if failed:
                        self._remember_failure(depth - 1)
                    slot = order[depth - 1]
                    self._release(slot, chosen[slot])
            self._idle_moves += 1
            self._spend(tries * self._try_units)
            if self._units > step_ends:
                step_ends = self._units + _UNITS_AT_ONCE
                yield None

    def _spend(self, units: int) -> None:
        self._units += units
        self._effort.spend(units)

    def _succeed(self) -> None:
        """Take back the usual price of a solution, and count from zero again."""
        self._effort.regain(min(self._units, self._units_free))
        self._units = 0
        self._idle_moves = 0

    def _remember_failure(self, depth: int) -> None:
        if self._idle_moves > _IDLE_MOVES_BEFORE_MEMORY:
            state = self._state(depth)
            subtrees = len(self._rules.plan.same_subtrees)
            if self._effort.remember(
                _STATE_WORDS + _SLOT_WORDS * (depth + 1) + _SUBTREE_WORDS * subtrees
            ):
                self._dead.add(state)

    def _take(self, depth: int, slot: int, provider: LocalProvider) -> bool:
        """Choose the provider for the slot, if all constraints hold."""
        for position, constraint in enumerate(self._constraints):
            if not constraint.take(depth, slot, provider):
                for taken in self._constraints[:position]:
                    taken.release(slot, provider)
                return False
        return True

    def _release(self, slot: int, provider: LocalProvider) -> None:
        for constraint in self._constraints:
            constraint.release(slot, provider)

    @cached_property
    def _interchangeability(self) -> Interchangeability:
        return Interchangeability(self._rules, self._problem)

    def _state(self, depth: int) -> Hashable:
        """All that the constraints need to know of the providers chosen so far.

        States with interchangeable providers are equal.
        """
        held: dict[LocalProvider, list[Hashable]] = {}
        for constraint in self._constraints:
            for provider, fact in constraint.held():
                held.setdefault(provider, []).append(fact)
        self._spend(6 + 2 * len(held) + len(self._rules.plan.same_subtrees) // 2)
        kind = self._interchangeability.kind
        return (
            depth,
            tuple([constraint.state() for constraint in self._constraints]),
            frozenset(
                Counter(
                    (kind(provider), frozenset(facts)) for provider, facts in held.items()
                ).items()
            ),
        )


# Feasibility: proofs that a problem has no solution, found by counting.
#
# Without them the solver would try eight groups on seven devices in all their orders. The proof is
# a flow: the amounts of the requirements flow to the providers that meet them, as if every amount
# could be divided at will. A problem without such a flow has no solution. If all amounts are equal,
# a problem with such a flow has a solution, as far as room is concerned.


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
