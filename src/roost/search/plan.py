"""The plan: a query in terms of one forest. Names become ids, conditions become masks.

A plan has slots. Each slot takes one provider: a slot for every suffixed request group, and a slot
for every resource class of the unsuffixed group. Equal slots share one requirement, so eight equal
request groups cost as much as one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import chain
from typing import NamedTuple, TypeAlias

from roost.model.candidates import CandidateQuery, RequestGroup
from roost.model.providers import AggregateFilter, TraitFilter
from roost.search.block_building import CAPACITY_MAX
from roost.search.columns import BoolColumn
from roost.search.forest import Forest, ProviderRef, TreeRef

# For each set of traits or aggregates, by set number, whether the set meets a condition.
# `None`: every set does.
SetMask: TypeAlias = BoolColumn | None

# The tree of an in_tree or in_subtree that no provider has. No block has it.
NO_TREE = TreeRef(-1, -1)


@dataclass(frozen=True, slots=True)
class Conditions:
    """What a request group requires of a provider besides room."""

    # By the provider's trait set.
    trait_mask: SetMask
    # By an aggregate set: it has an aggregate of each positive member_of; it has no forbidden one.
    member_of_mask: SetMask
    not_member_of_mask: SetMask
    # The tree to which in_tree binds the provider, and the top of the subtree of in_subtree.
    in_tree: TreeRef | None
    in_subtree: ProviderRef | None
    # The unsuffixed group: the aggregates of the tree's root count for every provider of the tree.
    unsuffixed: bool


class ResourceAmount(NamedTuple):
    """An amount of one resource class."""

    class_id: int
    amount: int


@dataclass(frozen=True, slots=True)
class Requirement:
    """What the provider of a slot must give and be."""

    amounts: tuple[ResourceAmount, ...]
    conditions: Conditions
    # The suffixes of the request groups that have it.
    suffixes: tuple[str, ...]
    # Whether the group has neither resources nor a positive condition: no provider meets it.
    asks_nothing: bool = False


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
    # By a root's trait set.
    root_trait_mask: SetMask
    # By a root's aggregate set: forbidden aggregates of a root forbid the unsuffixed group.
    root_aggregate_mask: SetMask
    # The only tree that may be an anchor.
    only_anchor: TreeRef | None
    # The trait choices of the unsuffixed group, each by trait set. A choice is one trait,
    # or several of which one suffices. The providers of the group must meet them together.
    trait_choices: tuple[BoolColumn, ...]
    # The slots that have different providers, set by set, and those of each same_subtree.
    isolated_sets: tuple[tuple[int, ...], ...]
    same_subtrees: tuple[tuple[int, ...], ...]

    @property
    def unsuffixed_slots(self) -> tuple[int, ...]:
        """The slots of the unsuffixed group."""
        return tuple(slot for slot, its in enumerate(self.slots) if not its.suffix)


def make_plan(forest: Forest, query: CandidateQuery) -> Plan | None:
    """The plan for a query all of whose names exist; `None` if no provider can meet it."""
    if any(map(_asks_nothing, query.groups)):
        return None
    plan = make_any_plan(forest, query)
    bound_trees = (requirement.conditions.in_tree for requirement in plan.requirements)
    return None if NO_TREE in (plan.only_anchor, *bound_trees) else plan


def make_any_plan(forest: Forest, query: CandidateQuery) -> Plan:
    """The plan for a query all of whose names exist, even if no provider can meet it."""
    drafts: dict[tuple[object, ...], _RequirementDraft] = {}
    slots: list[Slot] = []
    only_anchor: TreeRef | None = None
    for group in query.groups:
        binding = _binding_of(forest, group)
        if not group.suffix:
            only_anchor = binding.tree(forest)
        for resources in _resources_by_slot(group):
            key = (
                tuple(resources.items()),
                group.traits,
                group.aggregates,
                binding,
                not group.suffix,
            )
            draft = drafts.setdefault(
                key, _RequirementDraft(len(drafts), group, binding, resources)
            )
            draft.suffixes.append(group.suffix)
            slots.append(Slot(group.suffix, draft.requirement_index, resources))
    unsuffixed = next((group for group in query.groups if not group.suffix), None)
    suffixed_slots = {its.suffix: slot for slot, its in enumerate(slots) if its.suffix}
    return Plan(
        query=query,
        requirements=tuple(draft.finished(forest) for draft in drafts.values()),
        slots=tuple(slots),
        root_trait_mask=_trait_mask(forest, query.root_required, with_required=True),
        root_aggregate_mask=(
            None if unsuffixed is None else _not_member_of_mask(forest, unsuffixed.aggregates)
        ),
        only_anchor=only_anchor,
        trait_choices=(
            () if unsuffixed is None else tuple(_trait_choices(forest, unsuffixed.traits))
        ),
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


class _Binding(NamedTuple):
    """Where in_tree and in_subtree bind a request group to."""

    in_tree: TreeRef | None = None
    in_subtree: ProviderRef | None = None

    def tree(self, forest: Forest) -> TreeRef | None:
        """The only tree of the group's providers; `None` if the group may have any tree."""
        return self.in_tree if self.in_subtree is None else forest.tree_of(self.in_subtree)


@dataclass(frozen=True, slots=True)
class _RequirementDraft:
    """A requirement while the plan still collects the request groups that have it."""

    # Which of the plan's requirements it becomes.
    requirement_index: int
    group: RequestGroup
    binding: _Binding
    resources: Mapping[str, int]
    suffixes: list[str] = field(default_factory=list)

    def finished(self, forest: Forest) -> Requirement:
        return Requirement(
            _amounts(forest, self.resources),
            _conditions(forest, self.group, self.binding),
            tuple(self.suffixes),
            _asks_nothing(self.group),
        )


def requirement_of(forest: Forest, group: RequestGroup) -> Requirement:
    """The requirement of a suffixed group all of whose names exist, wherever its providers are."""
    draft = _RequirementDraft(0, group, _Binding(), group.resources, [group.suffix])
    return replace(draft.finished(forest), asks_nothing=False)


def _asks_nothing(group: RequestGroup) -> bool:
    """Whether the group has neither resources nor a positive condition: no provider meets it."""
    has_positive = group.traits.required or group.traits.any_of or group.aggregates.any_of
    return not (group.resources or has_positive or group.in_subtree)


def _binding_of(forest: Forest, group: RequestGroup) -> _Binding:
    """Where the group is bound to; `NO_TREE` if that does not exist."""
    in_tree = None if group.in_tree is None else forest.find_tree(group.in_tree) or NO_TREE
    if not group.resources and in_tree != NO_TREE:
        # in_tree does not bind a group without resources, as long as such a tree exists.
        in_tree = None
    if group.in_subtree is None:
        return _Binding(in_tree)
    in_subtree = forest.find_provider(group.in_subtree)
    if in_subtree is None or in_tree not in (None, forest.tree_of(in_subtree)):
        return _Binding(NO_TREE)
    return _Binding(in_tree, in_subtree)


def _resources_by_slot(group: RequestGroup) -> list[dict[str, int]]:
    """The resources of each slot of the group."""
    if group.suffix:
        return [dict(group.resources)]
    return [{name: amount} for name, amount in group.resources.items()]


def _amounts(forest: Forest, resources: Mapping[str, int]) -> tuple[ResourceAmount, ...]:
    # Cut to a number that fits into the columns and is still above every capacity.
    return tuple(
        ResourceAmount(forest.vocabulary.class_ids[name], min(amount, CAPACITY_MAX + 1))
        for name, amount in resources.items()
    )


def _conditions(forest: Forest, group: RequestGroup, binding: _Binding) -> Conditions:
    unsuffixed = not group.suffix
    return Conditions(
        # The providers of the unsuffixed group need its required traits only together.
        trait_mask=_trait_mask(forest, group.traits, with_required=not unsuffixed),
        member_of_mask=_member_of_mask(forest, group.aggregates),
        not_member_of_mask=_not_member_of_mask(forest, group.aggregates),
        in_tree=binding.in_tree,
        in_subtree=binding.in_subtree,
        unsuffixed=unsuffixed,
    )


def _trait_choices(forest: Forest, wanted: TraitFilter) -> Iterator[BoolColumn]:
    """By trait set, for each trait choice, whether the set meets the choice."""
    ids = forest.vocabulary.trait_ids
    for names in dict.fromkeys(chain(zip(wanted.required, strict=True), wanted.any_of)):
        yield forest.trait_sets.with_any(ids[name] for name in names)


def _trait_mask(forest: Forest, wanted: TraitFilter, *, with_required: bool) -> SetMask:
    ids = forest.vocabulary.trait_ids
    forbidden = (
        [~forest.trait_sets.with_any(ids[name] for name in wanted.forbidden)]
        if wanted.forbidden
        else []
    )
    return _all_of(chain(_trait_choices(forest, wanted) if with_required else (), forbidden))


def _member_of_mask(forest: Forest, wanted: AggregateFilter) -> SetMask:
    return _all_of(forest.aggregate_sets.with_any(uuids) for uuids in dict.fromkeys(wanted.any_of))


def _not_member_of_mask(forest: Forest, wanted: AggregateFilter) -> SetMask:
    if not wanted.forbidden:
        return None
    return ~forest.aggregate_sets.with_any(wanted.forbidden)


def _all_of(masks: Iterable[BoolColumn]) -> SetMask:
    """The sets that meet all conditions. One mask is held at a time."""
    return reduce(_both, masks, None)


def _both(first: SetMask, second: BoolColumn) -> BoolColumn:
    return second if first is None else first & second
