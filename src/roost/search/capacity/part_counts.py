"""Counting: how many consumers each tree of a block holds for one part, by whole columns.

A requirement with m slots holds n consumers on providers with u units each, if the units that n
consumers may take add up: sum(min(u, n * at_once)) >= n * m. (A bipartite graph of slots and
providers can be coloured with n colours so that every colour is one consumer.)

With same_subtree, each provider of one requirement heads a cell: all other slots are below it or on
it. A tree holds as many consumers as its cells together.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from roost.search.candidates.rules import Rules
from roost.search.capacity.parts import UNITS_MAX, PlanPart, Units, free_at
from roost.search.forest.block import Block
from roost.search.forest.rows import BoolColumn, IndexColumn, IntColumn, SetMask

_NO_CELL = -1


@dataclass(frozen=True, slots=True)
class PartCount:
    """The count of one part in all trees of a block."""

    # For each tree the number of consumers; where `linked`, only a bound from above.
    fits: IntColumn
    # The trees in which the requirements depend on each other, so that counting does not suffice.
    linked: BoolColumn


class SharedLinks(NamedTuple):
    """Where sharing providers link the requirements of a part, by the aggregate set of a tree."""

    # Sharing providers that rivals can meet on reach the tree.
    rivals: SetMask
    # By trait choice and requirement: sharing providers that do not meet the choice reach the tree.
    missing: Mapping[tuple[int, int], SetMask]


def count_part(
    block: Block,
    part: PlanPart,
    rules: Rules,
    units: list[Units],
    *,
    links: SharedLinks,
    commodities: AbstractSet[int],
) -> PartCount:
    """Count a part in all trees of a block, without the requirements that are commodities.

    `rules` are those of the part. `units` has the providers of the block for each requirement.
    """
    linked = _linked(block, part, rules, units, links)
    fits: IntColumn = np.full(block.tree_count, UNITS_MAX, np.int64)
    for requirement_index, its in enumerate(units):
        if requirement_index in commodities:
            continue
        by_itself = held(
            block.tree_numbers[its.indexes],
            block.tree_count,
            its,
            part.slot_counts[requirement_index],
        )
        fits = np.minimum(fits, by_itself)
    if linked.any() or not part.countable:
        fits = np.minimum(fits, _bound_by_classes(block, part, units, commodities))
    if not part.countable or not set(part.subtree).isdisjoint(commodities):
        return PartCount(fits, np.ones(block.tree_count, np.bool_))
    if part.subtree:
        by_cells, counted = _count_cells(block, part, units)
        fits = np.where(counted, np.minimum(fits, by_cells), fits)
        linked |= ~counted
    return PartCount(fits, linked)


def _bound_by_classes(
    block: Block, part: PlanPart, units: list[Units], commodities: AbstractSet[int]
) -> IntColumn:
    """What each tree holds at most of the classes that several requirements take."""
    bound: IntColumn = np.full(block.tree_count, UNITS_MAX, np.int64)
    amounts: dict[int, dict[int, int]] = {}
    for requirement_index, requirement in enumerate(part.plan.requirements):
        for class_id, amount in requirement.amounts:
            its = amounts.setdefault(class_id, {})
            its[requirement_index] = amount * part.slot_counts[requirement_index]
    for class_id, its in amounts.items():
        inventory = block.inventories.get(class_id)
        if len(its) == 1 or inventory is None or not commodities.isdisjoint(its):
            continue
        indexes = np.unique(np.concatenate([units[each].indexes for each in its]))
        rows = np.searchsorted(inventory.indexes, indexes)
        free = np.minimum(free_at(inventory, rows), UNITS_MAX)
        sums = _sums(block.tree_numbers[indexes], block.tree_count, free)
        bound = np.minimum(bound, sums // sum(its.values()))
    return bound


def held(groups: IndexColumn, group_count: int, units: Units, slots: int) -> IntColumn:
    """For each group of providers, how many consumers it holds for a requirement.

    `groups` has the group of each provider of `units`.
    """
    most = _sums(groups, group_count, units.units) // slots
    if slots == 1:
        return most
    least: IntColumn = np.zeros(group_count, np.int64)
    # Above UNITS_MAX a product would not fit into a column.
    most = np.minimum(most, UNITS_MAX // slots)
    while (least < most).any():
        middle = (least + most + 1) // 2
        taken = np.minimum(units.units, units.at_once * middle[groups])
        enough = _sums(groups, group_count, taken) >= middle * slots
        least = np.where(enough, middle, least)
        most = np.where(enough, most, middle - 1)
    return least


def _sums(groups: IndexColumn, group_count: int, values: IntColumn) -> IntColumn:
    sums: IntColumn = np.zeros(group_count, np.int64)
    np.add.at(sums, groups, values)
    return np.minimum(sums, UNITS_MAX)


def _linked(
    block: Block, part: PlanPart, rules: Rules, units: list[Units], links: SharedLinks
) -> BoolColumn:
    """The trees in which rivals meet, or a trait choice depends on what is chosen."""
    reached_by = block.tree_aggregate_set_numbers
    linked = np.zeros(block.tree_count, np.bool_)
    if links.rivals is not None:
        linked |= links.rivals[reached_by]
    if rules.one_provider_per_tree:
        linked[:] = True
    for first, second in part.rivals:
        meeting = np.intersect1d(units[first].indexes, units[second].indexes, assume_unique=True)
        linked[block.tree_numbers[meeting]] = True
    for position, choice in enumerate(rules.plan.trait_choices):
        settled = np.zeros(block.tree_count, np.bool_)
        for requirement_index in rules.unsuffixed_requirement_indexes:
            indexes = units[requirement_index].indexes
            all_meet_it = np.ones(block.tree_count, np.bool_)
            missing = ~choice[block.trait_set_numbers[indexes]]
            all_meet_it[block.tree_numbers[indexes[missing]]] = False
            missing_mask = links.missing.get((position, requirement_index))
            if missing_mask is not None:
                all_meet_it &= ~missing_mask[reached_by]
            settled |= all_meet_it
        linked |= ~settled
    return linked


def _count_cells(block: Block, part: PlanPart, units: list[Units]) -> tuple[IntColumn, BoolColumn]:
    """For each tree the count of all its cells, and whether one requirement heads cells there."""
    fits: IntColumn = np.zeros(block.tree_count, np.int64)
    counted = np.zeros(block.tree_count, np.bool_)
    for head in part.subtree:
        if part.slot_counts[head] > 1:
            continue
        chosen = ~counted & _is_headed(block, part.subtree, units, head)
        if not chosen.any():
            continue
        fits = np.where(chosen, _in_cells(block, part, units, head), fits)
        counted |= chosen
    return fits, counted


def _is_headed(block: Block, subtree: tuple[int, ...], units: list[Units], head: int) -> BoolColumn:
    """The trees in which the slot of this requirement is above all others, whatever is chosen."""
    headed = np.ones(block.tree_count, np.bool_)
    eligible = np.zeros(len(block), np.bool_)
    for requirement_index in subtree:
        eligible[units[requirement_index].indexes] = True
    above = block.parents[units[head].indexes]
    trees = block.tree_numbers[units[head].indexes]
    for _ in range(_depth_max(block)):
        alive = above >= 0
        if not alive.any():
            break
        above, trees = above[alive], trees[alive]
        headed[trees[eligible[above]]] = False
        above = block.parents[above]
    return headed


def _in_cells(block: Block, part: PlanPart, units: list[Units], head: int) -> IntColumn:
    heads = units[head].indexes
    cell_of_head = np.full(len(block), _NO_CELL, np.int32)
    cell_of_head[heads] = np.arange(len(heads), dtype=np.int32)
    in_cell: IntColumn = units[head].units
    for requirement_index in part.subtree:
        if requirement_index == head:
            continue
        its = units[requirement_index]
        cells = _cells(block, cell_of_head, its.indexes)
        inside = np.flatnonzero(cells != _NO_CELL).astype(np.int32)
        count = held(
            cells[inside], len(heads), its.only(inside), part.slot_counts[requirement_index]
        )
        in_cell = np.minimum(in_cell, count)
    return _sums(block.tree_numbers[heads], block.tree_count, in_cell)


def _cells(block: Block, cell_of_head: IndexColumn, indexes: IndexColumn) -> IndexColumn:
    """For each of these providers the cell of the head that it is, or that is above it."""
    cells: IndexColumn = np.full(len(indexes), _NO_CELL, np.int32)
    above = indexes
    for _ in range(_depth_max(block)):
        alive = above >= 0
        found = np.where(alive, cell_of_head[above], _NO_CELL)
        cells = np.where(cells == _NO_CELL, found, cells).astype(np.int32)
        above = np.where(alive, block.parents[above], -1).astype(np.int32)
        if not (above >= 0).any():
            break
    return cells


def _depth_max(block: Block) -> int:
    """More levels than any tree of the block has, even if another service wrote a loop."""
    return int(np.diff(block.starts).max(initial=0)) + 1
