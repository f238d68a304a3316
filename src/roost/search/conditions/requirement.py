"""A requirement: what the provider of a slot must give and be, and the providers that meet it.

The search finds the eligible providers of a block by whole columns. Room comes first: it alone is
found without a look at every provider, and most providers of a full cloud have none. The further
conditions look only at the providers that are left.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from roost.model.candidate_query.query import RequestGroup
from roost.model.providers import ProviderFilter
from roost.search.conditions import FURTHER_CONDITIONS
from roost.search.conditions.amounts import ResourceAmount, WantedResources
from roost.search.conditions.condition import BlockView, Condition
from roost.search.conditions.stages import GROUP_STAGES, RESOURCE_STAGES, GroupStage
from roost.search.forest.block import NO_INDEXES
from roost.search.forest.forest import Forest
from roost.search.forest.rows import IndexColumn, IntColumn

# The group of a provider list. Any suffix does: only the unsuffixed group looks at whole trees.
_LIST_SUFFIX = "_LIST"


@dataclass(frozen=True, slots=True)
class Requirement:
    """What the provider of a slot must give and be."""

    wanted: WantedResources
    # The rest of its conditions, in the order of their stages.
    further: tuple[Condition, ...]
    # The suffixes of the request groups that have it.
    suffixes: tuple[str, ...]
    # All its conditions, in the order of their stages.
    conditions: tuple[Condition, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "conditions", (self.wanted, *self.further))

    @property
    def amounts(self) -> tuple[ResourceAmount, ...]:
        """The amounts that a provider must give."""
        return self.wanted.amounts


def requirement_of(forest: Forest, group: RequestGroup) -> Requirement:
    """The requirement of a suffixed group all of whose names exist; it may ask nothing at all."""
    wanted = WantedResources.of_resources(forest, group.resources)
    return Requirement(wanted, further_conditions(forest, group), (group.suffix,))


def further_conditions(forest: Forest, group: RequestGroup) -> tuple[Condition, ...]:
    """The conditions of a group besides those on amounts."""
    found = [kind.of(forest, group) for kind in FURTHER_CONDITIONS]
    return tuple([condition for condition in found if condition is not None])


def eligible_indexes(requirement: Requirement, view: BlockView) -> IndexColumn:
    """The indexes of the providers of a block that meet a requirement."""
    indexes = requirement.wanted.passing_at(GroupStage.ROOM, view.block)
    for condition in requirement.further:
        if not len(indexes):
            break
        indexes = condition.passing(view, indexes)
    return indexes


def eligible_by_stage(requirement: Requirement, view: BlockView) -> Iterator[IndexColumn]:
    """The indexes of the providers that each stage leaves, in the order of `GroupStage`.

    A stage that excludes no provider leaves a column of the same length. The last column is that
    of `eligible_indexes`.
    """
    indexes = NO_INDEXES
    for stage in GROUP_STAGES:
        if stage in RESOURCE_STAGES:
            indexes = requirement.wanted.passing_at(stage, view.block)
        for condition in requirement.further:
            if stage in condition.stages:
                indexes = condition.passing(view, indexes)
        yield indexes


def find_provider_ids(forest: Forest, wanted: ProviderFilter) -> IntColumn:
    """The sorted ids of the providers that a provider list asks for.

    The list asks of each provider what a suffixed group asks of one. All names of the filter exist.
    The store checks its conditions on rows.
    """
    group = RequestGroup(_LIST_SUFFIX, wanted.resources, wanted.traits, wanted.aggregates)
    requirement = requirement_of(forest, group)
    found = [
        block.ids[eligible_indexes(requirement, BlockView(block, block_number))]
        for block_number, block in enumerate(forest.blocks)
    ]
    return np.sort(np.concatenate(found)) if found else np.empty(0, np.int64)
