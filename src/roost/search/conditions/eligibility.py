"""Eligibility: the providers of a block that meet a requirement, found by whole columns.

Room comes first: it alone is found without a look at every provider, and most providers of a
full cloud have none. The further conditions look only at the providers that are left.
"""

from __future__ import annotations

from collections.abc import Iterator

from roost.search.candidates.plan import Requirement
from roost.search.conditions.condition import BlockView
from roost.search.conditions.stages import GROUP_STAGES, RESOURCE_STAGES, GroupStage
from roost.search.forest.block import NO_INDEXES
from roost.search.forest.rows import IndexColumn


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


def eligible_after(requirement: Requirement, stage: GroupStage, view: BlockView) -> IndexColumn:
    """The indexes of the providers that one stage leaves, without a look at each stage before."""
    if stage in RESOURCE_STAGES:
        return requirement.wanted.passing_at(stage, view.block)
    indexes = requirement.wanted.passing_at(GroupStage.ROOM, view.block)
    passed = GROUP_STAGES[: GROUP_STAGES.index(stage) + 1]
    for condition in requirement.further:
        if condition.stages[0] in passed:
            indexes = condition.passing(view, indexes)
    return indexes
