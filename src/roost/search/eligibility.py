"""Eligibility: the providers of a block that meet a requirement, found by whole columns.

Room comes first: it alone is found without a look at every provider, and most providers of a
full cloud have none. The further conditions look only at the providers that are left.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from roost.search.block import NO_INDEXES, Block
from roost.search.columns import IndexColumn
from roost.search.conditions.condition import BlockView
from roost.search.plan import Requirement
from roost.search.stages import GROUP_STAGES, RESOURCE_STAGES, GroupStage

_FURTHER_STAGES = GROUP_STAGES[len(RESOURCE_STAGES) :]


def eligible_indexes(
    requirement: Requirement, block: Block, block_number: int, *, as_sharing: bool = False
) -> IndexColumn:
    """The indexes of the providers of a block that meet a requirement.

    `as_sharing`: in other trees than their own, where the aggregates of their root do not count.
    """
    view = BlockView(block, block_number, as_sharing)
    indexes = requirement.wanted.passing(view, NO_INDEXES)
    for condition in requirement.further:
        if not len(indexes):
            break
        indexes = condition.passing(view, indexes)
    return indexes


def eligible_by_stage(
    requirement: Requirement, block: Block, block_number: int, *, as_sharing: bool = False
) -> Iterator[IndexColumn]:
    """The indexes of the providers that each stage leaves, in the order of `GroupStage`.

    A stage that excludes no provider leaves a column of the same length. The last column is that
    of `eligible_indexes`.
    """
    view = BlockView(block, block_number, as_sharing)
    indexes = NO_INDEXES
    for indexes in requirement.wanted.passing_by_stage(block):
        yield indexes
    for stage in _FURTHER_STAGES:
        for condition in requirement.further:
            if stage in condition.stages:
                indexes = condition.passing(view, indexes)
        yield indexes


def eligible_after(
    requirement: Requirement, stage: GroupStage, block: Block, block_number: int
) -> IndexColumn:
    """The indexes of the providers that one stage leaves, without a look at each stage before."""
    if stage in RESOURCE_STAGES:
        position = RESOURCE_STAGES.index(stage)
        return next(islice(requirement.wanted.passing_by_stage(block), position, None))
    view = BlockView(block, block_number)
    passed = GROUP_STAGES[: GROUP_STAGES.index(stage) + 1]
    indexes = NO_INDEXES
    for condition in requirement.conditions:
        if condition.stages[0] in passed:
            indexes = condition.passing(view, indexes)
    return indexes
