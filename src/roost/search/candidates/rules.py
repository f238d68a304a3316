"""The rules of a plan: what must hold between its slots, the same for every tree."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import gcd
from typing import TypeAlias

import numpy as np

from roost.search.candidates.effort import Effort
from roost.search.candidates.plan import Plan
from roost.search.candidates.sharing import SharingProvider, SharingProviders
from roost.search.candidates.solving.problem import LocalProvider, Problem
from roost.search.forest.block_building import CAPACITY_MAX
from roost.search.forest.rows import IndexColumn, IntColumn

# The sharing providers of a plan, and the room of each for each requirement of a contested class.
SharingFacts: TypeAlias = tuple[tuple[SharingProvider, ...], tuple[int, ...]]

# The number of trait choices that fit into one integer of a column.
_BITS_PER_WORD = 62


@dataclass(frozen=True, slots=True)
class ContestedClass:
    """A resource class that several slots take, perhaps from one provider."""

    class_id: int
    amount_by_slot: Mapping[int, int]
    # Which requirements of the plan these slots have.
    requirement_indexes: tuple[int, ...]
    # The sum of all amounts: more room than that makes no difference.
    total: int
    # Every amount is a multiple of it: room beyond a multiple makes no difference either.
    unit: int


class Rules:
    """What must hold between the slots of a plan, whatever the tree."""

    def __init__(self, plan: Plan, sharing_providers: SharingProviders, effort: Effort) -> None:
        self.plan = plan
        self.sharing_providers = sharing_providers
        self.effort = effort
        # For each slot the index of its requirement.
        self.requirement_index_by_slot = tuple(slot.requirement_index for slot in plan.slots)
        self.contested_classes = tuple(_contested_classes(plan))
        # Every requirement of every contested class, in the order of `Problem.usable_rooms`.
        self.contested_requirement_indexes = tuple(
            (contested, requirement_index)
            for contested in self.contested_classes
            for requirement_index in contested.requirement_indexes
        )
        # Which requirements the unsuffixed group has, in the order of `Problem.met_trait_choices`.
        # Empty if the group requires no traits.
        self.unsuffixed_requirement_indexes = (
            plan.requirement_indexes_of("") if plan.trait_choices else ()
        )
        # The masks of the trait choices, as many together as fit into one integer.
        self.trait_choice_words = [
            plan.trait_choices[first : first + _BITS_PER_WORD]
            for first in range(0, len(plan.trait_choices), _BITS_PER_WORD)
        ]
        self.all_trait_choices = (1 << len(plan.trait_choices)) - 1
        self.one_provider_per_tree = not plan.query.nested and len(plan.slots) > 1

    @property
    def slots_are_independent(self) -> bool:
        """Whether every provider of one slot goes with every provider of every other slot."""
        return not (
            self.contested_classes
            or self.plan.trait_choices
            or self.plan.isolated_sets
            or self.plan.same_subtrees
            or self.one_provider_per_tree
        )

    @property
    def sharing_facts(self) -> SharingFacts:
        """All that the problems of trees take from sharing providers."""
        rooms = [
            self.usable_sharing_room(sharing_number, contested)
            for contested, requirement_index in self.contested_requirement_indexes
            for sharing_number, provider in enumerate(self.sharing_providers.providers)
            if requirement_index in provider.requirement_indexes
        ]
        return self.sharing_providers.providers, tuple(rooms)

    def usable_sharing_room(self, sharing_number: int, contested: ContestedClass) -> int:
        """The room that a sharing provider has of a contested class, as far as it can be used."""
        room = min(self.sharing_providers.room(sharing_number, contested.class_id), contested.total)
        return room - room % contested.unit

    def contested_rooms(
        self, problem: Problem
    ) -> Iterator[tuple[ContestedClass, tuple[LocalProvider, ...], tuple[int, ...]]]:
        """For each contested class and requirement: the providers, and the usable room of each."""
        for (contested, requirement_index), rooms in zip(
            self.contested_requirement_indexes, problem.usable_rooms, strict=True
        ):
            yield contested, problem.providers[requirement_index], rooms

    def from_one_provider(self, problem: Problem, provider: LocalProvider) -> Problem:
        """The problem with this provider, which meets every requirement, as the only one."""

        return self.picked(problem, [[several.index(provider)] for several in problem.providers])

    def picked(self, problem: Problem, positions: Sequence[Sequence[int]]) -> Problem:
        """The problem with these of the providers of each requirement, in this order."""

        def pick(requirement_index: int, values: tuple[int, ...]) -> tuple[int, ...]:
            return tuple([values[position] for position in positions[requirement_index]])

        contested = [index for _, index in self.contested_requirement_indexes]
        unsuffixed = self.unsuffixed_requirement_indexes
        return Problem(
            tuple(map(pick, range(len(positions)), problem.providers)),
            tuple(map(pick, contested, problem.usable_rooms)),
            tuple(map(pick, unsuffixed, problem.met_trait_choices)),
            problem.parents,
        )

    def trait_choices_of(self, trait_set_number: int) -> int:
        """The trait choices that a provider with this set of traits meets, as bits."""
        return sum(
            1 << bit for bit, mask in enumerate(self.plan.trait_choices) if mask[trait_set_number]
        )

    def trait_choice_columns(self, trait_set_numbers: IndexColumn) -> list[IntColumn]:
        """The same for a column of sets: as many columns as the bits need."""
        columns = []
        for masks in self.trait_choice_words:
            word: IntColumn = np.zeros(len(trait_set_numbers), np.int64)
            for bit, mask in enumerate(masks):
                word |= mask[trait_set_numbers].astype(np.int64) << bit
            columns.append(word)
        return columns

    def joined_trait_choices(self, columns: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
        """The bits of each provider, from the columns that `trait_choice_columns` makes."""
        if len(columns) == 1:
            return columns[0]
        return tuple(
            sum(word << (_BITS_PER_WORD * position) for position, word in enumerate(words))
            for words in zip(*columns, strict=True)
        )


def _are_apart(plan: Plan, slots: Mapping[int, int]) -> bool:
    """Whether one isolated set has all these slots."""
    return any([slots.keys() <= set(isolated) for isolated in plan.isolated_sets])


def _contested_classes(plan: Plan) -> Iterator[ContestedClass]:
    by_class: dict[int, dict[int, int]] = {}
    for slot, its in enumerate(plan.slots):
        for class_id, amount in plan.requirements[its.requirement_index].amounts:
            by_class.setdefault(class_id, {})[slot] = amount
    for class_id, amounts in by_class.items():
        if len(amounts) > 1 and not _are_apart(plan, amounts):
            requirement_indexes = dict.fromkeys(
                plan.slots[slot].requirement_index for slot in amounts
            )
            total = min(sum(amounts.values()), 2 * CAPACITY_MAX)
            yield ContestedClass(
                class_id, amounts, tuple(requirement_indexes), total, gcd(*amounts.values())
            )
