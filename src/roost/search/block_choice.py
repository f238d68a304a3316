"""The choice of blocks: a search skips a block whose outline shows that no tree fits.

To look at an outline takes a few microseconds, to look at the columns of a block fifty or more.
That matters in a large cloud if few trees fit the query.
"""

from __future__ import annotations

from roost.search.block import Block
from roost.search.conditions.condition import BlockView
from roost.search.plan import Requirement
from roost.search.rules import Rules
from roost.search.stages import GroupStage


def may_fit(rules: Rules, block: Block, block_number: int) -> bool:
    """Whether a tree of the block may have a candidate, as far as the outline shows."""
    plan, trait_set_numbers = rules.plan, block.outline.trait_set_numbers
    view = BlockView(block, block_number)
    for condition in plan.root_conditions:
        if condition.excludes(view):
            return False
    reach_masks = rules.sharing_providers.reach_masks
    for requirement, reach_mask in zip(plan.requirements, reach_masks, strict=True):
        # The outline does not show which trees a sharing provider reaches.
        if reach_mask is None and empty_stage(requirement, view) is not None:
            return False
    if any(
        reach_masks[requirement_index] is not None
        for requirement_index in rules.unsuffixed_requirement_indexes
    ):
        return True
    return all(choice[trait_set_numbers].any() for choice in plan.trait_choices)


def empty_stage(requirement: Requirement, view: BlockView) -> GroupStage | None:
    """A stage that leaves no provider of the block, as far as the outline shows; `None` if none."""
    for condition in requirement.conditions:
        stage = condition.excluding_stage(view)
        if stage is not None:
            return stage
    return None
