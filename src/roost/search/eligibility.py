"""Eligibility: the providers of a block that meet a requirement, found by whole columns.

Room comes first: it alone is found without a look at every provider, and most providers of a
full cloud have none. Traits, aggregates and in_tree look only at the providers that are left.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from roost.search.account import Account
from roost.search.block import NO_INDEXES, Block
from roost.search.columns import IndexColumn
from roost.search.plan import Conditions, Plan, Requirement


@dataclass(frozen=True, slots=True)
class _RequirementReport:
    """Reports what each stage of one requirement left, if the search has an account."""

    account: Account | None
    requirement_index: int
    suffixes: tuple[str, ...]
    block: Block

    def left(self, stage: str, indexes: IndexColumn) -> None:
        if self.account is not None:
            self.account.providers_left(
                self.requirement_index, self.suffixes, stage, self.block, indexes
            )


def eligible_indexes(
    plan: Plan,
    requirement_index: int,
    block: Block,
    block_number: int,
    *,
    as_sharing: bool = False,
    account: Account | None = None,
) -> IndexColumn:
    """The indexes of the providers of a block that meet a requirement of the plan.

    `as_sharing`: in other trees than their own, where the aggregates of their root do not count.
    """
    requirement = plan.requirements[requirement_index]
    report = _RequirementReport(account, requirement_index, requirement.suffixes, block)
    return _meeting(requirement, block, block_number, report, as_sharing=as_sharing)


def eligible_by_themselves(
    requirement: Requirement, block: Block, block_number: int
) -> IndexColumn:
    """The indexes of the providers of a block that meet a requirement, whatever their root is."""
    report = _RequirementReport(None, 0, requirement.suffixes, block)
    return _meeting(requirement, block, block_number, report, as_sharing=True)


def _meeting(
    requirement: Requirement,
    block: Block,
    block_number: int,
    report: _RequirementReport,
    *,
    as_sharing: bool,
) -> IndexColumn:
    conditions = requirement.conditions
    indexes = _with_room(block, requirement, report)
    if conditions.trait_mask is not None:
        indexes = indexes[conditions.trait_mask[block.trait_set_numbers[indexes]]]
        report.left("traits", indexes)
    if conditions.member_of_mask is not None or conditions.not_member_of_mask is not None:
        indexes = _in_aggregates(block, indexes, conditions, as_sharing=as_sharing)
        report.left("member_of", indexes)
    if conditions.in_tree is not None:
        here = conditions.in_tree.block_number == block_number
        indexes = (
            indexes[block.tree_numbers[indexes] == conditions.in_tree.tree_number]
            if here
            else indexes[:0]
        )
        report.left("in_tree", indexes)
    if conditions.in_subtree is not None:
        top = conditions.in_subtree
        below = (
            block.subtree(top.provider_index) if top.block_number == block_number else NO_INDEXES
        )
        indexes = _both(indexes, below, len(block))
        report.left("in_subtree", indexes)
    return indexes


def _with_room(block: Block, requirement: Requirement, report: _RequirementReport) -> IndexColumn:
    if not requirement.amounts:
        return np.arange(len(block), dtype=np.int32)
    indexes: IndexColumn | None = None
    for class_id, amount in requirement.amounts:
        inventory = block.inventories.get(class_id)
        found = NO_INDEXES if inventory is None else inventory.indexes[inventory.fits(amount)]
        indexes = found if indexes is None else _both(indexes, found, len(block))
        report.left(f"room for {amount} of class {class_id}", indexes)
        if report.account is None and not len(indexes):
            break
    assert indexes is not None
    return indexes


def _both(first: IndexColumn, second: IndexColumn, size: int) -> IndexColumn:
    """The indexes that are in both columns."""
    present = np.zeros(size, np.bool_)
    present[second] = True
    return first[present[first]]


def _in_aggregates(
    block: Block, indexes: IndexColumn, conditions: Conditions, *, as_sharing: bool
) -> IndexColumn:
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
