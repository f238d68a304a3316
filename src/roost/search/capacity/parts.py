"""The parts of a plan: slots that depend on each other, apart from those that do not.

Slots of different parts take different resource classes, and no rule is about both. So a tree that
holds n consumers for each part holds n consumers.

Units are how many allocations of a requirement the stock of each provider holds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import NamedTuple

import numpy as np

from roost.model.capacity import free_amount
from roost.search.candidates.plan import Plan
from roost.search.candidates.rules import Rules
from roost.search.conditions.requirement import Requirement
from roost.search.forest.block import Block, InventoryColumns
from roost.search.forest.rows import IndexColumn, IntColumn

# More units than these count as so many: sums of them stay within 64 bits.
UNITS_MAX = 2**48


@dataclass(frozen=True, slots=True)
class PlanPart:
    """Some slots of a plan, as a plan of its own."""

    plan: Plan
    # For each requirement of this plan, its index in the whole plan.
    requirement_indexes: tuple[int, ...]
    # For each requirement of this plan, how many slots have it.
    slot_counts: tuple[int, ...]
    # Pairs of requirements that must not meet on a provider, or compete for it if they meet.
    rivals: frozenset[tuple[int, int]]
    # Whether isolation keeps the slots of each requirement apart.
    isolated: tuple[bool, ...]
    # The requirements that same_subtree is about.
    subtree: tuple[int, ...]
    # Whether every same_subtree and every isolated set has all slots of its requirements or none,
    # and at most one same_subtree is there. Counting covers nothing else.
    countable: bool


def parts_of(rules: Rules) -> list[PlanPart]:
    """The parts of the plan, in the order of their first slots."""
    plan = rules.plan
    links: list[Iterable[int]] = [contested.amount_by_slot for contested in rules.contested_classes]
    links += [*plan.isolated_sets, *plan.same_subtrees]
    if plan.trait_choices:
        links.append(plan.unsuffixed_slots)
    if rules.one_provider_per_tree:
        links.append(range(len(plan.slots)))
    together = list(range(len(plan.slots)))
    for slots in links:
        names = {together[slot] for slot in slots}
        together = [min(names) if name in names else name for name in together]
    return [
        _part(plan, [slot for slot, name in enumerate(together) if name == part])
        for part in dict.fromkeys(together)
    ]


def _part(plan: Plan, slots: list[int]) -> PlanPart:
    requirement_indexes = list(dict.fromkeys(plan.slots[slot].requirement_index for slot in slots))
    new_slots = {slot: position for position, slot in enumerate(slots)}
    part = replace(
        plan,
        requirements=tuple(plan.requirements[index] for index in requirement_indexes),
        slots=tuple(
            replace(
                plan.slots[slot],
                requirement_index=requirement_indexes.index(plan.slots[slot].requirement_index),
            )
            for slot in slots
        ),
        trait_choices=(
            plan.trait_choices if any(not plan.slots[slot].suffix for slot in slots) else ()
        ),
        isolated_sets=_renumbered(plan.isolated_sets, new_slots),
        same_subtrees=_renumbered(plan.same_subtrees, new_slots),
    )
    counts = Counter(slot.requirement_index for slot in part.slots)
    isolated = [_requirements(part, slots) for slots in part.isolated_sets]
    subtrees = [_requirements(part, slots) for slots in part.same_subtrees]
    return PlanPart(
        part,
        tuple(requirement_indexes),
        tuple(counts[index] for index in range(len(requirement_indexes))),
        frozenset(_rivals(part, isolated)),
        tuple(
            any(inside[index] == counts[index] for inside in isolated)
            for index in range(len(requirement_indexes))
        ),
        tuple(subtrees[0]) if subtrees else (),
        len(subtrees) <= 1
        and all(
            inside[index] == counts[index] for inside in (*isolated, *subtrees) for index in inside
        ),
    )


def _requirements(part: Plan, slots: Iterable[int]) -> Counter[int]:
    """The requirements of these slots, and how many of the slots have each."""
    return Counter(part.slots[slot].requirement_index for slot in slots)


def _renumbered(
    sets: Iterable[tuple[int, ...]], new_slots: Mapping[int, int]
) -> tuple[tuple[int, ...], ...]:
    """Those sets of slots that are in the part: a part has all slots of a set or none."""
    return tuple(
        tuple(new_slots[slot] for slot in slots) for slots in sets if slots[0] in new_slots
    )


def _rivals(part: Plan, isolated: Sequence[Counter[int]]) -> Iterable[tuple[int, int]]:
    for first, second in combinations(range(len(part.requirements)), 2):
        classes = [
            {class_id for class_id, _ in part.requirements[index].amounts}
            for index in (first, second)
        ]
        if classes[0] & classes[1] or any({first, second} <= inside.keys() for inside in isolated):
            yield first, second


class Units(NamedTuple):
    """The units of some providers of a block for one requirement, in the order of indexes."""

    indexes: IndexColumn
    # Stock for so many allocations of the requirement.
    units: IntColumn
    # The number of slots with the requirement that one consumer may put on the provider.
    at_once: IntColumn

    def only(self, chosen: IndexColumn) -> Units:
        """The providers at these positions."""
        return Units(self.indexes[chosen], self.units[chosen], self.at_once[chosen])


def units_of(
    block: Block, requirement: Requirement, indexes: IndexColumn, slots: int, *, isolated: bool
) -> Units:
    """The units of providers that meet the requirement."""
    units: IntColumn = np.full(len(indexes), UNITS_MAX, np.int64)
    at_once: IntColumn = np.full(len(indexes), 1 if isolated else slots, np.int64)
    if len(indexes):
        for class_id, amount in requirement.amounts:
            inventory = block.inventories[class_id]
            rows = np.searchsorted(inventory.indexes, indexes)
            units = np.minimum(units, free_at(inventory, rows) // amount)
            at_once = np.minimum(at_once, inventory.max_unit[rows] // amount)
    return Units(indexes, units, at_once)


def free_at(inventory: InventoryColumns, rows: IndexColumn | IntColumn) -> IntColumn:
    """What is free of the inventories in these rows; zero where more than the capacity is used."""
    free: IntColumn = np.maximum(free_amount(inventory.capacity[rows], inventory.used[rows]), 0)
    return free
