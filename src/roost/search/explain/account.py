"""The account of a search: what each stage left of each request group, and of the trees.

An account counts. To know the empty stage alone, the first stage that leaves no tree, one tree that
a stage leaves is enough: most stages show it in the first block, and outlines prove that most
further blocks add nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from roost.model.candidate_query.query import CandidateQuery
from roost.search.candidates.effort import Effort, no_pause
from roost.search.candidates.kept_work import KeptWork, SearchWork
from roost.search.candidates.plan import make_any_plan
from roost.search.candidates.rules import Rules
from roost.search.candidates.scan import (
    AlikeTrees,
    EligibleTrees,
    alike_trees,
    eligible_trees,
    excluding_stage,
    with_trait_choices,
)
from roost.search.candidates.sharing import SharingProviders
from roost.search.candidates.solving.problem import Problem
from roost.search.candidates.solving.solver import Step, solve
from roost.search.conditions.condition import BlockView
from roost.search.conditions.stages import GROUP_STAGES, RESOURCE_STAGES, GroupStage, TreeStage
from roost.search.explain.joint_conditions import JointCondition, find_conflict, without_conditions
from roost.search.explain.staged_trees import LeftByStage, StagedTrees
from roost.search.forest.block import Block
from roost.search.forest.forest import Forest, ProviderRef, TreeRef
from roost.search.forest.rows import BoolColumn


@dataclass(slots=True)
class StageCount:
    """How many providers and trees one stage left."""

    providers: int = 0
    trees: int = 0


@dataclass(frozen=True, slots=True)
class GroupAccount:
    """What each stage left of one request group."""

    suffix: str
    counts: Mapping[GroupStage, StageCount]


@dataclass(frozen=True, slots=True)
class Account:
    """What each stage left, of every tree of a forest or of one tree."""

    # In the order of the query.
    groups: tuple[GroupAccount, ...]
    # The trees that each stage of the request leaves, by block number.
    left: Mapping[TreeStage, Mapping[int, BoolColumn]]
    # Whether all problems were solved; if not, more trees may have a solution.
    is_exact: bool
    # The joint condition to blame, if each group has a provider in a tree, but no tree is left.
    conflict: JointCondition | None
    # What the account looked at, for further questions about it.
    staged_trees: StagedTrees

    @property
    def trees(self) -> dict[TreeStage, int]:
        """How many trees each stage of the request left."""
        return {stage: sum(map(_count, columns.values())) for stage, columns in self.left.items()}

    @property
    def is_feasible(self) -> bool:
        """Whether a tree has a candidate."""
        return any(column.any() for column in self.left[TreeStage.TOGETHER].values())


class EmptyStage(NamedTuple):
    """The first stage that leaves no tree."""

    stage: GroupStage | TreeStage
    # The request group; `None` for a stage of the request.
    suffix: str | None = None
    # The class that alone is to blame, if one is.
    resource_class: str | None = None
    # The joint condition to blame at the stage `together`, if it is known.
    conflict: JointCondition | None = None


def take_account(
    forest: Forest,
    query: CandidateQuery,
    *,
    only_tree: TreeRef | None = None,
    pause: Callable[[], None] = no_pause,
) -> Account:
    """The account of a query all of whose names exist: of every tree, or of this one only.

    It looks at every block, whatever the limit of the query and the outlines of the blocks.
    """
    trees = StagedTrees(forest, make_any_plan(forest, query), only_tree, pause)
    return _AccountTaker(forest, trees, pause).account()


class _Funnel:
    """Counts what each stage leaves of the groups that have these requirements."""

    def __init__(self, requirement_indexes: tuple[int, ...]) -> None:
        self.requirement_indexes = requirement_indexes
        self.counts = {stage: StageCount() for stage in GROUP_STAGES}

    def add_block(self, left: Sequence[Sequence[LeftByStage]], size: int) -> None:
        """Add a block of this many providers. `left` is by requirement and stage."""
        before: list[LeftByStage] = []
        providers = trees = 0
        for position, count in enumerate(self.counts.values()):
            now = [left[index][position] for index in self.requirement_indexes]
            if len(before) != len(now) or any(map(_differ, before, now)):
                providers, trees = _counted(now, size)
                before = now
            count.providers += providers
            count.trees += trees

    def add_sharing(self, trees: StagedTrees) -> None:
        """Add the sharing providers that are left in other trees than their own only."""
        for stage, count in self.counts.items():
            sharing: set[ProviderRef] = set()
            for requirement_index in self.requirement_indexes:
                sharing.update(trees.sharing_elsewhere(requirement_index, stage))
            count.providers += len(sharing)


class SolvedTrees:
    """Finds the trees that have a candidate, and solves each problem that trees pose once."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        # The trees that have a candidate, by block number.
        self.together: dict[int, BoolColumn] = {}
        # Whether a problem has a solution.
        self.solvable: dict[Problem, bool] = {}
        # The count of trees whose problem is among these.
        self.remembered_trees = 0
        # The trees whose problems take long.
        self._hard: list[tuple[AlikeTrees, Iterator[Step]]] = []

    def add_block(self, block: Block, block_number: int, found: EligibleTrees | None) -> None:
        """Add a block, of which only these trees may have a candidate."""
        together = self.together[block_number] = np.zeros(block.tree_count, np.bool_)
        if found is None:
            return
        if self._rules.slots_are_independent:
            together[found.tree_numbers] = True
            return
        for alike in alike_trees(block, block_number, self._rules, found):
            self._add_alike(alike)

    def finish(self) -> None:
        """Solve the problems that take long."""
        for alike, steps in self._hard:
            self._remember(alike, solvable=any(step is not None for step in steps))

    def _add_alike(self, alike: AlikeTrees) -> None:
        """Add trees with one problem; later, if it takes long to see whether it has a solution."""
        known = self.solvable.get(alike.problem)
        if known is not None:
            self._remember(alike, solvable=known)
            return
        steps = solve(self._rules, alike.problem)
        first = next(steps, False)
        if first is None:
            self._hard.append((alike, steps))
        else:
            self._remember(alike, solvable=first is not False)

    def _remember(self, alike: AlikeTrees, *, solvable: bool) -> None:
        if solvable:
            self.together[alike.block_number][alike.tree_numbers] = True
        known = alike.problem in self.solvable
        if known or self._rules.effort.hold(alike.problem.memory_words):
            self.solvable[alike.problem] = solvable
            self.remembered_trees += len(alike.tree_numbers)


class _AccountTaker:
    """Goes through the blocks of a forest and counts."""

    def __init__(self, forest: Forest, trees: StagedTrees, pause: Callable[[], None]) -> None:
        self._forest = forest
        self._trees = trees
        plan = trees.plan
        self._rules = Rules(plan, SharingProviders(forest, plan, pause), Effort(pause=pause))
        by_suffix = {
            group.suffix: plan.requirement_indexes_of(group.suffix) for group in plan.query.groups
        }
        # Equal groups have one funnel.
        funnels = {indexes: _Funnel(indexes) for indexes in by_suffix.values()}
        self._by_suffix = {suffix: funnels[indexes] for suffix, indexes in by_suffix.items()}
        self._funnels = tuple(funnels.values())
        self._solved = SolvedTrees(self._rules)
        self._left: dict[TreeStage, dict[int, BoolColumn]] = {stage: {} for stage in TreeStage}
        self._left[TreeStage.TOGETHER] = self._solved.together

    def account(self) -> Account:
        """The account of all blocks."""
        for block_number in self._trees.block_numbers:
            self._add_block(block_number)
        for funnel in self._funnels:
            funnel.add_sharing(self._trees)
        self._solved.finish()
        groups = tuple(
            GroupAccount(suffix, funnel.counts) for suffix, funnel in self._by_suffix.items()
        )
        is_exact = not self._rules.effort.gave_up
        account = Account(groups, self._left, is_exact, None, self._trees)
        tree_count = account.trees[TreeStage.GROUPS]
        if not is_exact or not tree_count or account.is_feasible:
            return account
        conflict = find_conflict(
            self._forest,
            self._rules,
            self._solved.solvable,
            is_complete=self._solved.remembered_trees == tree_count,
            only_tree=self._trees.only_tree,
        )
        return replace(account, conflict=conflict)

    def _add_block(self, block_number: int) -> None:
        rules, block = self._rules, self._forest.blocks[block_number]
        left: list[list[LeftByStage]] = []
        for requirement_index in range(len(rules.plan.requirements)):
            rules.effort.pause()
            left.append(list(self._trees.left_by_stage(requirement_index, block_number)))
        for funnel in self._funnels:
            funnel.add_block(left, len(block))
        alive = self._trees.anchors(block_number)
        self._left[TreeStage.ROOT][block_number] = alive
        for its in left:
            alive = alive & its[-1].trees
        self._left[TreeStage.GROUPS][block_number] = alive
        eligible = [its[-1].indexes for its in left]
        found = with_trait_choices(block, rules, eligible, alive)
        self._solved.add_block(block, block_number, found)


def _differ(first: LeftByStage, second: LeftByStage) -> bool:
    return first is not second


def _counted(left: Sequence[LeftByStage], size: int) -> tuple[int, int]:
    """The number of providers that one of these has, and of trees that all of these have."""
    first, *rest = left
    if not rest:
        return len(first.indexes), _count(first.trees)
    present = np.zeros(size, np.bool_)
    trees = first.trees
    for its in left:
        present[its.indexes] = True
        trees = trees & its.trees
    return _count(present), _count(trees)


def _count(column: BoolColumn) -> int:
    return int(np.count_nonzero(column))


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
    stage_position, group_position = min(
        (_first_empty(forest, trees, group.suffix, pause), position)
        for position, group in enumerate(query.groups)
    )
    if stage_position < len(GROUP_STAGES):
        suffix = query.groups[group_position].suffix
        return _blaming(forest, trees, GROUP_STAGES[stage_position], suffix)
    block_numbers = range(len(forest.blocks))
    if not any(trees.anchors(block_number).any() for block_number in block_numbers):
        return EmptyStage(TreeStage.ROOT)
    rules = Rules(plan, SharingProviders(forest, plan, pause), Effort(pause=pause))
    # The problems that trees pose, with the count of their trees; the kept scans have them.
    problems: Counter[Problem] = Counter()
    for alike in work.scans(rules, block_numbers):
        problems[alike.problem] += len(alike.tree_numbers)
    excluded = bool(plan.trait_choices) and _trait_choices_exclude(forest, rules, problems.total())
    if not problems and not excluded:
        return EmptyStage(TreeStage.GROUPS)
    conflict = find_conflict(forest, rules, problems, is_complete=not excluded)
    return EmptyStage(TreeStage.TOGETHER, conflict=conflict)


def _trait_choices_exclude(forest: Forest, rules: Rules, left: int) -> bool:
    """Whether more trees than are left have an eligible provider for each group."""
    without = without_conditions(rules)
    for block_number in range(len(forest.blocks)):
        found = eligible_trees(forest, block_number, without)
        left -= 0 if found is None else len(found.tree_numbers)
        if left < 0:
            return True
    return False


def _first_empty(forest: Forest, trees: StagedTrees, suffix: str, pause: Callable[[], None]) -> int:
    """The position of the first stage of a group that leaves no tree; behind all if none does."""
    requirement_indexes = trees.plan.requirement_indexes_of(suffix)
    position = 0
    for block_number in range(len(forest.blocks)):
        pause()
        if position == len(GROUP_STAGES):
            break
        if _shown_empty(forest, trees, requirement_indexes, block_number) <= position:
            continue
        left = [list(trees.left_by_stage(index, block_number)) for index in requirement_indexes]
        for stages in list(zip(*left, strict=True))[position:]:
            if not np.logical_and.reduce([its.trees for its in stages]).any():
                break
            position += 1
    return position


def _shown_empty(
    forest: Forest, trees: StagedTrees, requirement_indexes: tuple[int, ...], block_number: int
) -> int:
    """The position of a stage that leaves no tree of a block, as far as the outline shows."""
    view = BlockView(forest.blocks[block_number], block_number)
    shown = len(GROUP_STAGES)
    for requirement_index in requirement_indexes:
        stage = excluding_stage(trees.plan.requirements[requirement_index], view)
        # The outline does not show which trees a sharing provider reaches.
        if stage is not None and trees.sharing.reach_masks[requirement_index][stage] is None:
            shown = min(shown, GROUP_STAGES.index(stage))
    return shown


def _blaming(forest: Forest, trees: StagedTrees, stage: GroupStage, suffix: str) -> EmptyStage:
    """The empty stage of a group, with the first class that alone empties it."""
    if stage in RESOURCE_STAGES:
        classes = [
            (requirement_index, class_id)
            for requirement_index in trees.plan.requirement_indexes_of(suffix)
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
