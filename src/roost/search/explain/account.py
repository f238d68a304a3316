"""The account of a search: what each stage left of each request group, and of the trees."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from roost.model.candidates import CandidateQuery
from roost.search.candidates.effort import Effort, no_pause
from roost.search.candidates.plan import Plan, make_any_plan
from roost.search.candidates.problem import Problem
from roost.search.candidates.rules import Rules
from roost.search.candidates.scan import AlikeTrees, scan_trees
from roost.search.candidates.sharing import SharingProviders
from roost.search.candidates.solving import Step, solve
from roost.search.conditions.stages import GROUP_STAGES, GroupStage, RequestStage
from roost.search.explain.joint_conditions import JointCondition, find_conflict
from roost.search.explain.staged_trees import LeftByStage, StagedTrees
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
    left: Mapping[RequestStage, Mapping[int, BoolColumn]]
    # Whether all problems were solved; if not, more trees may have a solution.
    is_exact: bool
    # The joint condition to blame, if each group has a provider in a tree, but no tree is left.
    conflict: JointCondition | None
    # What the account looked at, for further questions about it.
    staged_trees: StagedTrees

    @property
    def trees(self) -> dict[RequestStage, int]:
        """How many trees each stage of the request left."""
        return {stage: sum(map(_count, columns.values())) for stage, columns in self.left.items()}

    @property
    def is_feasible(self) -> bool:
        """Whether a tree has a candidate."""
        return any(column.any() for column in self.left[RequestStage.TOGETHER].values())


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
    plan = make_any_plan(forest, query)
    effort = Effort(pause=pause)
    rules = Rules(plan, SharingProviders(forest, plan, pause), effort)
    taker = _AccountTaker(forest, rules, StagedTrees(forest, plan, only_tree, pause))
    return taker.account()


def requirements_of(plan: Plan, suffix: str) -> tuple[int, ...]:
    """The indexes of the requirements of a group; several for the unsuffixed group."""
    return tuple(
        dict.fromkeys(slot.requirement_index for slot in plan.slots if slot.suffix == suffix)
    )


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


class _AccountTaker:
    """Goes through the blocks of a forest and counts."""

    def __init__(self, forest: Forest, rules: Rules, trees: StagedTrees) -> None:
        self._forest = forest
        self._rules = rules
        self._trees = trees
        plan = rules.plan
        by_suffix = {
            group.suffix: requirements_of(plan, group.suffix) for group in plan.query.groups
        }
        # Equal groups have one funnel.
        funnels = {indexes: _Funnel(indexes) for indexes in by_suffix.values()}
        self._by_suffix = {suffix: funnels[indexes] for suffix, indexes in by_suffix.items()}
        self._funnels = tuple(funnels.values())
        self._left: dict[RequestStage, dict[int, BoolColumn]] = {
            stage: {} for stage in RequestStage
        }
        # Whether a problem has a solution.
        self._solvable: dict[Problem, bool] = {}
        # The count of trees whose problem is among these.
        self._remembered_trees = 0
        # The trees whose problems take long.
        self._hard: list[tuple[AlikeTrees, Iterator[Step]]] = []

    def account(self) -> Account:
        """The account of all blocks."""
        for block_number in self._trees.block_numbers:
            self._add_block(block_number)
        for funnel in self._funnels:
            funnel.add_sharing(self._trees)
        for alike, steps in self._hard:
            self._remember(alike, solvable=any(step is not None for step in steps))
        groups = tuple(
            GroupAccount(suffix, funnel.counts) for suffix, funnel in self._by_suffix.items()
        )
        is_exact = not self._rules.effort.gave_up
        account = Account(groups, self._left, is_exact, None, self._trees)
        tree_count = account.trees[RequestStage.GROUPS]
        if not is_exact or not tree_count or account.is_feasible:
            return account
        conflict = find_conflict(
            self._forest,
            self._rules,
            self._solvable,
            is_complete=self._remembered_trees == tree_count,
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
        self._left[RequestStage.ROOT][block_number] = alive
        for its in left:
            alive = alive & its[-1].trees
        self._left[RequestStage.GROUPS][block_number] = alive
        self._left[RequestStage.TOGETHER][block_number] = np.zeros_like(alive)
        eligible = [its[-1].indexes for its in left]
        for alike in scan_trees(self._forest, block_number, rules, eligible, alive):
            self._add_alike(alike)

    def _add_alike(self, alike: AlikeTrees) -> None:
        """Add trees with one problem; later, if it takes long to see whether it has a solution."""
        known = self._solvable.get(alike.problem)
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
            together = self._left[RequestStage.TOGETHER][alike.block_number]
            together[alike.tree_numbers] = True
        known = alike.problem in self._solvable
        if known or self._rules.effort.hold(alike.problem.memory_words):
            self._solvable[alike.problem] = solvable
            self._remembered_trees += len(alike.tree_numbers)


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
