"""The account of a search: what each stage left of each request group, and of the trees."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from roost.model.candidates import CandidateQuery
from roost.search.columns import BoolColumn
from roost.search.effort import Effort, no_pause
from roost.search.forest import Forest, ProviderRef, TreeRef
from roost.search.joint_conditions import JointCondition, find_clash
from roost.search.plan import Plan, make_any_plan
from roost.search.problem import Problem
from roost.search.rules import Rules
from roost.search.scan import scan_trees
from roost.search.sharing import SharingProviders
from roost.search.solving import Step, solve
from roost.search.staged_trees import Left, StagedTrees
from roost.search.stages import GROUP_STAGES, GroupStage, RequestStage


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
    trees: Mapping[RequestStage, int]
    # Whether all problems were solved; if not, more trees may have a solution.
    is_exact: bool
    # The joint condition to blame, if each group has a provider in a tree, but no tree is left.
    clash: JointCondition | None
    # What the account looked at, for further questions about it.
    staged_trees: StagedTrees

    @property
    def is_feasible(self) -> bool:
        """Whether a tree has a candidate."""
        return self.trees[RequestStage.TOGETHER] > 0


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

    def add_block(self, left: Sequence[Sequence[Left]], size: int) -> None:
        """Add a block of this many providers. `left` is by requirement and stage."""
        before: list[Left] = []
        providers = trees = 0
        for position, count in enumerate(self.counts.values()):
            now = [left[index][position] for index in self.requirement_indexes]
            if len(before) != len(now) or any(map(_differ, before, now)):
                providers, trees = _counted(now, size)
                before = now
            count.providers += providers
            count.trees += trees

    def add_guests(self, trees: StagedTrees) -> None:
        """Add the sharing providers that are left in other trees than their own only."""
        for stage, count in self.counts.items():
            guests: set[ProviderRef] = set()
            for requirement_index in self.requirement_indexes:
                guests.update(trees.guests(requirement_index, stage))
            count.providers += len(guests)


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
        self._counts = dict.fromkeys(RequestStage, 0)
        # Whether a problem has a solution.
        self._solvable: dict[Problem, bool] = {}
        # The count of trees whose problem is among these.
        self._remembered_trees = 0
        # The problems that take long, with the count of their trees.
        self._hard: list[tuple[Problem, int, Iterator[Step]]] = []

    def account(self) -> Account:
        """The account of all blocks."""
        for block_number in self._trees.block_numbers:
            self._add_block(block_number)
        for funnel in self._funnels:
            funnel.add_guests(self._trees)
        for problem, tree_count, steps in self._hard:
            solvable = any(step is not None for step in steps)
            self._counts[RequestStage.TOGETHER] += tree_count if solvable else 0
            self._remember(problem, tree_count, solvable=solvable)
        groups = tuple(
            GroupAccount(suffix, funnel.counts) for suffix, funnel in self._by_suffix.items()
        )
        is_exact = not self._rules.effort.gave_up
        clash = self._clash() if is_exact else None
        return Account(groups, self._counts, is_exact, clash, self._trees)

    def _clash(self) -> JointCondition | None:
        tree_count = self._counts[RequestStage.GROUPS]
        if not tree_count or self._counts[RequestStage.TOGETHER]:
            return None
        return find_clash(
            self._forest,
            self._rules,
            self._solvable,
            is_complete=self._remembered_trees == tree_count,
            only_tree=self._trees.only_tree,
        )

    def _add_block(self, block_number: int) -> None:
        rules, block = self._rules, self._forest.blocks[block_number]
        left: list[list[Left]] = []
        for requirement_index in range(len(rules.plan.requirements)):
            rules.effort.pause()
            left.append(list(self._trees.left_by_stage(requirement_index, block_number)))
        for funnel in self._funnels:
            funnel.add_block(left, len(block))
        alive = self._trees.anchors(block_number)
        self._counts[RequestStage.ROOT] += _count(alive)
        for its in left:
            alive &= its[-1].trees
        self._counts[RequestStage.GROUPS] += _count(alive)
        eligible = [its[-1].indexes for its in left]
        for alike in scan_trees(self._forest, block_number, rules, eligible, alive):
            if self._has_solution(alike.problem, len(alike.tree_numbers)):
                self._counts[RequestStage.TOGETHER] += len(alike.tree_numbers)

    def _has_solution(self, problem: Problem, tree_count: int) -> bool:
        """Whether the problem of some trees has a solution; false if that takes long to see."""
        known = self._solvable.get(problem)
        if known is not None:
            self._remembered_trees += tree_count
            return known
        steps = solve(self._rules, problem)
        for step in steps:
            if step is None:
                self._hard.append((problem, tree_count, steps))
                return False
            self._remember(problem, tree_count, solvable=True)
            return True
        self._remember(problem, tree_count, solvable=False)
        return False

    def _remember(self, problem: Problem, tree_count: int, *, solvable: bool) -> None:
        if self._rules.effort.hold(problem.memory_words):
            self._solvable[problem] = solvable
            self._remembered_trees += tree_count


def _differ(first: Left, second: Left) -> bool:
    return first is not second


def _counted(left: Sequence[Left], size: int) -> tuple[int, int]:
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
