"""Eligibility: the providers of a block that meet a requirement, found by whole columns.

Room comes first: it alone is found without a look at every provider, and most providers of a
full cloud have none. Traits, aggregates and in_tree look only at the providers that are left.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from itertools import islice
from operator import is_not

import numpy as np

from roost.search.block import NO_INDEXES, Block, InventoryColumns
from roost.search.columns import IndexColumn
from roost.search.plan import Conditions, Plan, Requirement
from roost.search.stages import RESOURCE_STAGES, GroupStage


def eligible_indexes(
    plan: Plan,
    requirement_index: int,
    block: Block,
    block_number: int,
    *,
    as_sharing: bool = False,
) -> IndexColumn:
    """The indexes of the providers of a block that meet a requirement of the plan.

    `as_sharing`: in other trees than their own, where the aggregates of their root do not count.
    """
    requirement = plan.requirements[requirement_index]
    return _meeting(requirement, block, block_number, as_sharing=as_sharing)


def eligible_by_themselves(
    requirement: Requirement, block: Block, block_number: int
) -> IndexColumn:
    """The indexes of the providers of a block that meet a requirement, whatever their root is."""
    return _meeting(requirement, block, block_number, as_sharing=True)


def eligible_by_stage(
    requirement: Requirement, block: Block, block_number: int, *, as_sharing: bool = False
) -> Iterator[IndexColumn]:
    """The indexes of the providers that each stage leaves, in the order of `GroupStage`.

    A stage that excludes no provider leaves a column of the same length. The last column is that
    of `eligible_indexes`.
    """
    conditions = requirement.conditions
    indexes = NO_INDEXES
    for indexes in _with_resources_by_stage(requirement, block):
        yield indexes
    indexes = _with_traits(block, indexes, conditions)
    yield indexes
    indexes = _in_aggregates(block, indexes, conditions, as_sharing=as_sharing)
    yield indexes
    yield _in_tree(block, block_number, indexes, conditions)


def eligible_after(
    requirement: Requirement, stage: GroupStage, block: Block, block_number: int
) -> IndexColumn:
    """The indexes of the providers that one stage leaves, without a look at each stage before."""
    if stage in RESOURCE_STAGES:
        position = RESOURCE_STAGES.index(stage)
        return next(islice(_with_resources_by_stage(requirement, block), position, None))
    conditions = requirement.conditions
    indexes = _with_traits(block, _with_room(block, requirement), conditions)
    if stage is not GroupStage.TRAITS:
        indexes = _in_aggregates(block, indexes, conditions, as_sharing=False)
    if stage is GroupStage.IN_TREE:
        indexes = _in_tree(block, block_number, indexes, conditions)
    return indexes


def passing_class(
    requirement: Requirement, class_id: int, stage: GroupStage, block: Block
) -> IndexColumn:
    """The providers that pass all stages before this one, and this one for one class only."""
    position = RESOURCE_STAGES.index(stage)
    amounts = dict(requirement.amounts)
    inventory = block.inventories.get(class_id)
    if inventory is None or (stage is GroupStage.ROOM and inventory.room_max < amounts[class_id]):
        return NO_INDEXES
    passing = _passing_by_stage(inventory, amounts[class_id])[position]
    if not position or not len(passing):
        return passing
    before = list(_with_resources_by_stage(requirement, block))[position - 1]
    return _both(before, passing, len(block))


def _meeting(
    requirement: Requirement, block: Block, block_number: int, *, as_sharing: bool
) -> IndexColumn:
    conditions = requirement.conditions
    indexes = _with_room(block, requirement)
    indexes = _with_traits(block, indexes, conditions)
    indexes = _in_aggregates(block, indexes, conditions, as_sharing=as_sharing)
    return _in_tree(block, block_number, indexes, conditions)


def _with_room(block: Block, requirement: Requirement) -> IndexColumn:
    """The providers that have the classes, allow the amounts and have room for them, at once."""
    if not requirement.amounts:
        return _all_indexes(block, requirement)
    indexes: IndexColumn | None = None
    for class_id, amount in requirement.amounts:
        inventory = block.inventories.get(class_id)
        found = NO_INDEXES if inventory is None else inventory.indexes[inventory.fits(amount)]
        indexes = found if indexes is None else _both(indexes, found, len(block))
        if not len(indexes):
            break
    assert indexes is not None
    return indexes


def _with_resources_by_stage(requirement: Requirement, block: Block) -> Iterator[IndexColumn]:
    """The providers that have the classes, then allow the amounts, too, then have room for them."""
    if not requirement.amounts:
        everything = _all_indexes(block, requirement)
        yield from (everything, everything, everything)
        return
    by_class = [
        _passing_by_stage(block.inventories.get(class_id), amount)
        for class_id, amount in requirement.amounts
    ]
    if len(by_class) == 1:
        yield from by_class[0]
        return
    before: tuple[IndexColumn, ...] = ()
    indexes = NO_INDEXES
    for columns in zip(*by_class, strict=True):
        if not before or any(map(is_not, before, columns)):
            indexes = reduce(lambda first, second: _both(first, second, len(block)), columns)
            before = columns
        yield indexes


def _passing_by_stage(inventory: InventoryColumns | None, amount: int) -> tuple[IndexColumn, ...]:
    """The providers that have a class, those that allow the amount, and those with room for it."""
    if inventory is None:
        return NO_INDEXES, NO_INDEXES, NO_INDEXES
    indexes = inventory.indexes
    allows = inventory.allows(amount)
    allowing = indexes if allows.all() else indexes[allows]
    if inventory.room_max < amount:
        return indexes, allowing, NO_INDEXES
    return indexes, allowing, indexes[inventory.fits(amount)]


def _all_indexes(block: Block, requirement: Requirement) -> IndexColumn:
    """All providers, for a group without resources; none if the group asks nothing at all."""
    return NO_INDEXES if requirement.asks_nothing else np.arange(len(block), dtype=np.int32)


def _both(first: IndexColumn, second: IndexColumn, size: int) -> IndexColumn:
    """The indexes that are in both columns."""
    if not len(first) or not len(second):
        return NO_INDEXES
    present = np.zeros(size, np.bool_)
    present[second] = True
    return first[present[first]]


def _with_traits(block: Block, indexes: IndexColumn, conditions: Conditions) -> IndexColumn:
    if conditions.trait_mask is None:
        return indexes
    return indexes[conditions.trait_mask[block.trait_set_numbers[indexes]]]


def _in_aggregates(
    block: Block, indexes: IndexColumn, conditions: Conditions, *, as_sharing: bool
) -> IndexColumn:
    if conditions.member_of_mask is None and conditions.not_member_of_mask is None:
        return indexes
    with_root = conditions.unsuffixed and not as_sharing
    own = block.aggregate_set_numbers[indexes]
    roots = (
        block.aggregate_set_numbers[block.starts[block.tree_numbers[indexes]]] if with_root else own
    )
    if conditions.member_of_mask is None:
        passed = np.ones(len(indexes), np.bool_)
    else:
        # The provider's own set, or its root's set, must meet every member_of by itself.
        passed = conditions.member_of_mask[own] | conditions.member_of_mask[roots]
    if conditions.not_member_of_mask is not None:
        passed = passed & conditions.not_member_of_mask[own] & conditions.not_member_of_mask[roots]
    return indexes[passed]


def _in_tree(
    block: Block, block_number: int, indexes: IndexColumn, conditions: Conditions
) -> IndexColumn:
    """The providers in the tree of in_tree and in the subtree of in_subtree."""
    if conditions.in_tree is not None:
        if conditions.in_tree.block_number != block_number:
            return indexes[:0]
        indexes = indexes[block.tree_numbers[indexes] == conditions.in_tree.tree_number]
    if conditions.in_subtree is not None:
        if conditions.in_subtree.block_number != block_number:
            return indexes[:0]
        below = block.subtree(conditions.in_subtree.provider_index)
        indexes = _both(indexes, below, len(block))
    return indexes
