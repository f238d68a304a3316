"""Lone trees: a tree poses the same problem in the whole forest and in the forest of it alone."""

from __future__ import annotations

import pytest

from roost.search.candidates.effort import Effort, no_pause
from roost.search.candidates.plan import Plan, make_plan
from roost.search.candidates.problem import Problem
from roost.search.candidates.rules import Rules
from roost.search.candidates.scan import problem_in
from roost.search.candidates.sharing import SharingProviders
from roost.search.explain.lone_trees import LoneTrees
from roost.search.forest.forest import Forest, TreeRef
from support.properties import many
from support.scenarios.scenario import Scenario, tell
from support.worlds.oracle_forests import forest_of_world
from support.worlds.requested_worlds import latest_requests


@pytest.mark.hypothesis
def test_a_lone_tree_poses_the_problem_that_it_poses_in_the_whole_forest() -> None:
    def check(scenario: Scenario) -> None:
        for world, _, query in latest_requests(scenario):
            forest = forest_of_world(world)
            plan = make_plan(forest, query)
            if plan is None:
                continue
            lone_trees = LoneTrees(forest)
            for tree in trees_of(forest):
                lone = lone_trees.forest(tree)
                assert posed(lone, plan, tree) == posed(forest, plan, tree)

    tell(many(15), check)


def trees_of(forest: Forest) -> list[TreeRef]:
    return [
        TreeRef(block_number, tree_number)
        for block_number, block in enumerate(forest.blocks)
        for tree_number in range(block.tree_count)
    ]


def posed(forest: Forest, plan: Plan, tree: TreeRef) -> tuple[Problem | None, tuple[object, ...]]:
    sharing = SharingProviders(forest, plan, no_pause)
    return problem_in(forest, tree, Rules(plan, sharing, Effort())), sharing.providers
