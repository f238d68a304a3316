"""The plan: a query in terms of one forest. Names become ids, conditions become masks.

A plan has slots. Each slot takes one provider: a slot for every suffixed request group, and a slot
for every resource class of the unsuffixed group. Equal slots share one requirement, so eight equal
request groups cost as much as one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from roost.model.candidate_query.query import CandidateQuery, RequestGroup
from roost.search.conditions import asks_nothing
from roost.search.conditions.amounts import WantedResources
from roost.search.conditions.condition import Condition, RootCondition
from roost.search.conditions.requirement import Requirement, further_conditions
from roost.search.conditions.stages import TreeStage
from roost.search.conditions.traits import RootTraits, trait_choices
from roost.search.forest.forest import Forest
from roost.search.forest.rows import BoolColumn


@dataclass(frozen=True, slots=True)
class Slot:
    """One provider to be chosen: for a suffixed group, or for one class of the unsuffixed group."""

    suffix: str
    # Which of the plan's requirements it has.
    requirement_index: int
    resources: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Plan:
    """All that the search needs to know of a query."""

    query: CandidateQuery
    requirements: tuple[Requirement, ...]
    slots: tuple[Slot, ...]
    # What the root of a tree must be.
    root_conditions: tuple[RootCondition, ...]
    # The trait choices of the unsuffixed group, each by trait set. A choice is one trait,
    # or several of which one suffices. The providers of the group must meet them together.
    trait_choices: tuple[BoolColumn, ...]
    # Sets of slots: no two slots of an isolated set have the same provider.
    isolated_sets: tuple[tuple[int, ...], ...]
    # In each of these sets, the provider of one slot is above those of all others.
    same_subtrees: tuple[tuple[int, ...], ...]

    @property
    def unsuffixed_slots(self) -> tuple[int, ...]:
        """The slots of the unsuffixed group."""
        return tuple(slot for slot, its in enumerate(self.slots) if not its.suffix)

    def requirement_indexes_of(self, suffix: str) -> tuple[int, ...]:
        """The requirements of a group; several for the unsuffixed group."""
        indexes = [slot.requirement_index for slot in self.slots if slot.suffix == suffix]
        return tuple(dict.fromkeys(indexes))


def make_plan(forest: Forest, query: CandidateQuery) -> Plan | None:
    """The plan for a query all of whose names exist; `None` if no provider can meet it."""
    if any([not group.resources and asks_nothing(group) for group in query.groups]):
        return None
    plan = make_any_plan(forest, query)
    is_void = any([condition.is_void for condition in plan.root_conditions]) or any(
        [condition.is_void for its in plan.requirements for condition in its.further]
    )
    return None if is_void else plan


def make_any_plan(forest: Forest, query: CandidateQuery) -> Plan:
    """The plan for a query all of whose names exist, even if no provider can meet it."""
    # The index of each requirement, and the suffixes of its groups.
    drafts: dict[tuple[bool, WantedResources, tuple[Condition, ...]], tuple[int, list[str]]] = {}
    slots: list[Slot] = []
    unsuffixed: tuple[Condition, ...] = ()
    for group in query.groups:
        further = further_conditions(forest, group)
        unsuffixed = unsuffixed if group.suffix else further
        for resources in _resources_by_slot(group):
            is_void = not resources and asks_nothing(group)
            wanted = WantedResources.of_resources(forest, resources, is_void=is_void)
            key = not group.suffix, wanted, further
            requirement_index, suffixes = drafts.setdefault(key, (len(drafts), []))
            suffixes.append(group.suffix)
            slots.append(Slot(group.suffix, requirement_index, resources))
    suffixed_slots = {its.suffix: slot for slot, its in enumerate(slots) if its.suffix}
    return Plan(
        query=query,
        requirements=tuple(
            [
                Requirement(wanted, further, tuple(suffixes))
                for (_, wanted, further), (_, suffixes) in drafts.items()
            ]
        ),
        slots=tuple(slots),
        root_conditions=_root_conditions(forest, query, unsuffixed),
        trait_choices=tuple([choice.met for choice in trait_choices(forest, query)]),
        isolated_sets=_slot_sets(
            suffixed_slots,
            [frozenset(suffixed_slots)] if query.isolate else query.isolated_sets,
        ),
        same_subtrees=_slot_sets(suffixed_slots, query.same_subtrees),
    )


def _slot_sets(
    slots: Mapping[str, int], sets: Iterable[frozenset[str]]
) -> tuple[tuple[int, ...], ...]:
    """The slots of each set of suffixes; a set of one slot asks nothing."""
    return tuple(
        tuple(sorted(slots[suffix] for suffix in suffixes))
        for suffixes in dict.fromkeys(sets)
        if len(suffixes) > 1
    )


def _root_conditions(
    forest: Forest, query: CandidateQuery, unsuffixed: Iterable[Condition]
) -> tuple[RootCondition, ...]:
    """What these conditions of the unsuffixed group, and the query, ask of the root.

    Those of the stage of roots come first.
    """
    found = [*[condition.of_root(forest) for condition in unsuffixed], RootTraits.of(forest, query)]
    asked = [condition for condition in found if condition is not None]
    return tuple(sorted(asked, key=lambda its: its.stage is not TreeStage.ROOT))


def _resources_by_slot(group: RequestGroup) -> list[dict[str, int]]:
    """The resources of each slot of the group."""
    if group.suffix:
        return [dict(group.resources)]
    return [{name: amount} for name, amount in group.resources.items()]
