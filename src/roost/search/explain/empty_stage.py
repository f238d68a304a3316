"""The empty stage: the first stage of an account that leaves no tree.

An account counts. To know the empty stage alone, one tree that a stage leaves is enough: most
stages show it in the first block, and outlines prove that most further blocks add nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from roost.model.candidates import CandidateQuery
from roost.search.candidates.effort import Effort
from roost.search.candidates.kept_work import KeptWork, SearchWork
from roost.search.candidates.plan import make_any_plan
from roost.search.candidates.problem import Problem
from roost.search.candidates.rules import Rules
from roost.search.candidates.scan import anchors, excluding_stage
from roost.search.candidates.sharing import SharingProviders
from roost.search.conditions.condition import BlockView
from roost.search.conditions.stages import GROUP_STAGES, RESOURCE_STAGES, GroupStage, RequestStage
from roost.search.explain.account import Account, requirements_of
from roost.search.explain.joint_conditions import JointCondition, find_conflict
from roost.search.explain.staged_trees import StagedTrees
from roost.search.forest.forest import Forest
from roost.search.forest.rows import BoolColumn


class EmptyStage(NamedTuple):
    """The first stage that leaves no tree."""

    stage: GroupStage | RequestStage
    # The request group; `None` for a stage of the request.
    suffix: str | None = None
    # The class that alone is to blame, if one is.
    resource_class: str | None = None
    # The joint condition to blame at the stage `together`, if it is known.
    conflict: JointCondition | None = None


def empty_stage_of(forest: Forest, account: Account) -> EmptyStage | None:
    """The first stage that leaves no tree; `None` if a tree has a candidate.

    The stages of the groups come first, stage by stage over all groups.
    """
    for stage in GROUP_STAGES:
        for group in account.groups:
            if not group.counts[stage].trees:
                return _blaming(forest, account.staged_trees, stage, group.suffix)
    for request_stage, tree_count in account.trees.items():
        if not tree_count:
            return EmptyStage(request_stage, conflict=account.conflict)
    return None


def find_empty_stage(
    forest: Forest, query: CandidateQuery, kept_work: KeptWork | None, pause: Callable[[], None]
) -> EmptyStage:
    """The empty stage of a query for which a search, which left this work, found no candidate."""
    work = SearchWork(forest, query, kept_work)
    plan = work.plan or make_any_plan(forest, query)
    trees = StagedTrees(forest, plan, None, pause)
    empty = [
        (_first_empty(forest, trees, group.suffix, pause), position)
        for position, group in enumerate(query.groups)
    ]
    stage_position, group_position = min(empty)
    if stage_position < len(GROUP_STAGES):
        return _blaming(
            forest, trees, GROUP_STAGES[stage_position], query.groups[group_position].suffix
        )
    if not any(
        anchors(plan, BlockView(block, block_number)).any()
        for block_number, block in enumerate(forest.blocks)
    ):
        return EmptyStage(RequestStage.ROOT)
    rules = Rules(plan, SharingProviders(forest, plan, pause), Effort(pause=pause))
    problems = _problems(forest, rules, work)
    excluded = bool(plan.trait_choices) and _trait_choices_exclude(forest, rules, trees, problems)
    if not problems and not excluded:
        return EmptyStage(RequestStage.GROUPS)
    conflict = find_conflict(forest, rules, problems, is_complete=not excluded)
    return EmptyStage(RequestStage.TOGETHER, conflict=conflict)


def _first_empty(forest: Forest, trees: StagedTrees, suffix: str, pause: Callable[[], None]) -> int:
    """The position of the first stage of a group that leaves no tree; 6 if all stages do."""
    requirement_indexes = requirements_of(trees.plan, suffix)
    position = 0
    for block_number in range(len(forest.blocks)):
        pause()
        while position < len(GROUP_STAGES) and _leaves_tree(
            forest, trees, requirement_indexes, position, block_number
        ):
            position += 1
        if position == len(GROUP_STAGES):
            break
    return position


def _leaves_tree(
    forest: Forest,
    trees: StagedTrees,
    requirement_indexes: tuple[int, ...],
    position: int,
    block_number: int,
) -> bool:
    """Whether a stage leaves a tree of the block for all requirements of a group."""
    stage, block = GROUP_STAGES[position], forest.blocks[block_number]
    left: BoolColumn | None = None
    for requirement_index in requirement_indexes:
        if trees.sharing.reach_masks[requirement_index][stage] is None:
            requirement = trees.plan.requirements[requirement_index]
            shown = excluding_stage(requirement, BlockView(block, block_number))
            if shown is not None and GROUP_STAGES.index(shown) <= position:
                return False
        its = trees.left_after(requirement_index, stage, block_number)
        left = its if left is None else left & its
        if not left.any():
            return False
    return True


def _problems(forest: Forest, rules: Rules, work: SearchWork) -> dict[Problem, int]:
    """The problems that trees pose, with the count of their trees; the kept scans have them."""
    found: dict[Problem, int] = {}
    for alike in work.scans(rules, range(len(forest.blocks))):
        found[alike.problem] = found.get(alike.problem, 0) + len(alike.tree_numbers)
    return found


def _trait_choices_exclude(
    forest: Forest, rules: Rules, trees: StagedTrees, problems: Mapping[Problem, int]
) -> bool:
    """Whether trait choices exclude a tree that has an eligible provider for each group."""
    left = sum(problems.values())
    for block_number, block in enumerate(forest.blocks):
        rules.effort.pause()
        alive = anchors(rules.plan, BlockView(block, block_number))
        for requirement_index in range(len(rules.plan.requirements)):
            if not alive.any():
                break
            alive &= trees.left_after(requirement_index, GroupStage.IN_TREE, block_number)
        left -= int(np.count_nonzero(alive))
        if left < 0:
            return True
    return False


def _blaming(forest: Forest, trees: StagedTrees, stage: GroupStage, suffix: str) -> EmptyStage:
    """The empty stage of a group, with the first class that alone empties it."""
    if stage in RESOURCE_STAGES:
        requirement_indexes = requirements_of(trees.plan, suffix)
        classes = [
            (requirement_index, class_id)
            for requirement_index in requirement_indexes
            for class_id, _ in trees.plan.requirements[requirement_index].amounts
        ]
        for requirement_index, class_id in classes:
            if len(classes) == 1 or not _any_passes(
                forest, trees, requirement_index, class_id, stage
            ):
                return EmptyStage(stage, suffix, forest.vocabulary.class_names[class_id])
    return EmptyStage(stage, suffix)


def _any_passes(
    forest: Forest, trees: StagedTrees, requirement_index: int, class_id: int, stage: GroupStage
) -> bool:
    """Whether a provider of a considered tree, or one that shares with it, passes for one class."""
    wanted = trees.plan.requirements[requirement_index].wanted
    for block_number in trees.block_numbers:
        block = forest.blocks[block_number]
        passing = wanted.passing_class(class_id, stage, block)
        if len(trees.in_considered(block, passing)):
            return True
    if trees.only_tree is None:
        return False
    return any(
        trees.serves(ref)
        and ref.provider_index
        in wanted.passing_class(class_id, stage, forest.blocks[ref.block_number])
        for ref in forest.sharing_refs
    )


def largest_free(forest: Forest, class_id: int, amount: int) -> int:
    """The largest free amount of a class on one provider that allows this amount; 0 if none is.

    No provider has room for the amount.
    """
    inventories = [
        block.inventories[class_id] for block in forest.blocks if class_id in block.inventories
    ]
    largest = 0
    # A provider that allows the amount has no more than its room. So most blocks need no look.
    for inventory in sorted(inventories, key=lambda its: its.room_max, reverse=True):
        if inventory.room_max <= largest:
            break
        free = inventory.room[inventory.allows(amount)]
        largest = max(largest, int(free.max(initial=0)))
    return largest
