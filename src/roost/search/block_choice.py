"""The choice of blocks: a search skips a block whose outline shows that no tree fits.

To look at an outline takes a few microseconds, to look at the columns of a block fifty or more.
That matters in a large cloud if few trees fit the query.
"""

from __future__ import annotations

from roost.search.block import Block
from roost.search.plan import Requirement
from roost.search.rules import Rules
from roost.search.stages import GroupStage


def may_fit(rules: Rules, block: Block, block_number: int) -> bool:
    """Whether a tree of the block may have a candidate, as far as the outline shows."""
    plan, trait_set_numbers = rules.plan, block.outline.trait_set_numbers
    if plan.only_anchor is not None and plan.only_anchor.block_number != block_number:
        return False
    if plan.root_trait_mask is not None and not plan.root_trait_mask[trait_set_numbers].any():
        return False
    reach_masks = rules.sharing_providers.reach_masks
    for requirement, reach_mask in zip(plan.requirements, reach_masks, strict=True):
        # The outline does not show which trees a sharing provider reaches.
        if reach_mask is None and not _may_meet(requirement, block, block_number):
            return False
    if any(
        reach_masks[requirement_index] is not None
        for requirement_index in rules.unsuffixed_requirement_indexes
    ):
        return True
    return all(choice[trait_set_numbers].any() for choice in plan.trait_choices)


def _may_meet(requirement: Requirement, block: Block, block_number: int) -> bool:
    """Whether a provider of the block may meet a requirement."""
    return empty_stage(requirement, block, block_number) is None


def empty_stage(requirement: Requirement, block: Block, block_number: int) -> GroupStage | None:
    """A stage that leaves no provider of the block, as far as the outline shows; `None` if none."""
    for class_id, amount in requirement.amounts:
        inventory = block.inventories.get(class_id)
        if inventory is None:
            return GroupStage.CLASS
        if inventory.room_max < amount:
            return GroupStage.ROOM
    conditions, outline = requirement.conditions, block.outline
    if (conditions.in_tree is not None and conditions.in_tree.block_number != block_number) or (
        conditions.in_subtree is not None and conditions.in_subtree.block_number != block_number
    ):
        return GroupStage.IN_TREE
    if (
        conditions.trait_mask is not None
        and not conditions.trait_mask[outline.trait_set_numbers].any()
    ):
        return GroupStage.TRAITS
    # The root's aggregates, which may count for a provider, are in the same block.
    if (
        conditions.member_of_mask is not None
        and not conditions.member_of_mask[outline.aggregate_set_numbers].any()
    ):
        return GroupStage.AGGREGATES
    return None
