"""Checks: every single condition of a plan. The plan itself has them joined in masks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from roost.model.candidates import RequestGroup
from roost.model.providers import AggregateFilter, TraitFilter
from roost.search.columns import BoolColumn, IntColumn
from roost.search.forest import Forest, ProviderRef, TreeRef
from roost.search.lack import LackRule
from roost.search.plan import Plan, ResourceAmount


class SetCheck(NamedTuple):
    """One condition on the traits or on the aggregates of a provider."""

    rule: LackRule
    # One of these is required, or this one is forbidden.
    names: tuple[str, ...]
    # By set number.
    met: BoolColumn


@dataclass(frozen=True, slots=True)
class RequirementChecks:
    """All that the provider of a slot must pass."""

    amounts: tuple[ResourceAmount, ...]
    traits: tuple[SetCheck, ...]
    member_of: tuple[SetCheck, ...]
    not_member_of: tuple[SetCheck, ...]
    # The tree to which in_tree binds a suffixed group. That of the unsuffixed group binds the root.
    in_tree: TreeRef | None
    # The top of the subtree to which in_subtree binds the group.
    in_subtree: ProviderRef | None
    # For the unsuffixed group, the aggregates of the root count for all providers of the tree.
    counts_root: bool
    # in_tree of the unsuffixed group excludes sharing providers.
    excludes_sharing: bool


@dataclass(frozen=True, slots=True)
class PlanChecks:
    """The checks of all requirements, of the root, and of the trait choices."""

    requirements: tuple[RequirementChecks, ...]
    # For each requirement, how many slots have it.
    slot_counts: tuple[int, ...]
    root_traits: tuple[SetCheck, ...]
    root_aggregates: tuple[SetCheck, ...]
    only_anchor: TreeRef | None
    # What binds the unsuffixed group to this tree: in_tree, in_subtree or both.
    anchor_rules: tuple[LackRule, ...]
    trait_choices: tuple[SetCheck, ...]
    # Which requirements the unsuffixed group has.
    unsuffixed: tuple[int, ...]

    @classmethod
    def of(cls, forest: Forest, plan: Plan) -> PlanChecks:
        """The checks of a plan."""
        groups = {group.suffix: group for group in plan.query.groups}
        unsuffixed = groups.get("")
        indexes = [slot.requirement_index for slot in plan.slots]
        return cls(
            requirements=tuple(
                _requirement_checks(forest, plan, requirement_index, groups)
                for requirement_index in range(len(plan.requirements))
            ),
            slot_counts=tuple(map(indexes.count, range(len(plan.requirements)))),
            root_traits=(
                *required_traits(forest, plan.query.root_required),
                *_forbidden_traits(forest, plan.query.root_required),
            ),
            root_aggregates=(
                () if unsuffixed is None else tuple(_not_member_of(forest, unsuffixed.aggregates))
            ),
            only_anchor=plan.only_anchor,
            anchor_rules=() if unsuffixed is None else tuple(_anchor_rules(unsuffixed)),
            trait_choices=(
                () if unsuffixed is None else tuple(required_traits(forest, unsuffixed.traits))
            ),
            unsuffixed=tuple(
                dict.fromkeys(plan.slots[slot].requirement_index for slot in plan.unsuffixed_slots)
            ),
        )


def failed_by_set(checks: Sequence[SetCheck]) -> IntColumn | None:
    """For each set number, how many of the checks fail; `None` without checks."""
    if not checks:
        return None
    failed = np.zeros(len(checks[0].met), np.int64)
    for check in checks:
        failed += ~check.met
    return failed


def required_traits(forest: Forest, wanted: TraitFilter) -> Iterator[SetCheck]:
    """A check for each required trait, and for each set of which one trait suffices."""
    ids = forest.vocabulary.trait_ids
    choices = (*((name,) for name in wanted.required), *wanted.any_of)
    for names in dict.fromkeys(choices):
        met = forest.trait_sets.with_any(ids[name] for name in names)
        yield SetCheck(LackRule.REQUIRED, names, met)


def _requirement_checks(
    forest: Forest, plan: Plan, requirement_index: int, groups: dict[str, RequestGroup]
) -> RequirementChecks:
    requirement = plan.requirements[requirement_index]
    group = groups[requirement.suffixes[0]]
    # Required traits of the unsuffixed group are trait choices.
    required: Iterable[SetCheck] = required_traits(forest, group.traits) if group.suffix else ()
    return RequirementChecks(
        amounts=requirement.amounts,
        traits=(*required, *_forbidden_traits(forest, group.traits)),
        member_of=tuple(
            SetCheck(LackRule.MEMBER_OF, uuids, forest.aggregate_sets.with_any(uuids))
            for uuids in dict.fromkeys(group.aggregates.any_of)
        ),
        not_member_of=tuple(_not_member_of(forest, group.aggregates)),
        in_tree=requirement.conditions.in_tree if group.suffix else None,
        in_subtree=requirement.conditions.in_subtree,
        counts_root=not group.suffix,
        excludes_sharing=not group.suffix and group.in_tree is not None,
    )


def _anchor_rules(unsuffixed: RequestGroup) -> Iterator[LackRule]:
    if unsuffixed.in_tree is not None:
        yield LackRule.IN_TREE
    if unsuffixed.in_subtree is not None:
        yield LackRule.IN_SUBTREE


def _forbidden_traits(forest: Forest, wanted: TraitFilter) -> Iterator[SetCheck]:
    ids = forest.vocabulary.trait_ids
    for name in dict.fromkeys(wanted.forbidden):
        yield SetCheck(LackRule.FORBIDDEN, (name,), ~forest.trait_sets.with_any([ids[name]]))


def _not_member_of(forest: Forest, wanted: AggregateFilter) -> Iterator[SetCheck]:
    for uuid in dict.fromkeys(wanted.forbidden):
        yield SetCheck(LackRule.NOT_MEMBER_OF, (uuid,), ~forest.aggregate_sets.with_any([uuid]))
