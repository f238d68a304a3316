"""Every condition tells the same in each way: by mask, by outline, by gap, by lacks, by change."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from roost.model.candidate_query.query import CandidateQuery
from roost.search.candidates.plan import Plan, make_any_plan
from roost.search.conditions.condition import (
    BlockView,
    Condition,
    NearProvider,
    RootCondition,
)
from roost.search.conditions.lack import Lack
from roost.search.conditions.places import InTree
from roost.search.forest.forest import Forest, ProviderRef, TreeRef
from support.properties import many
from support.scenarios.scenario import Scenario, tell
from support.worlds.oracle_forests import forest_of_world
from support.worlds.requested_worlds import latest_requests

pytestmark = pytest.mark.hypothesis


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("block_building", "forest"):
        monkeypatch.setattr(f"roost.search.forest.{module}.BLOCK_PROVIDERS", 4)


def plans(scenario: Scenario) -> Iterator[tuple[Forest, Plan, CandidateQuery]]:
    for requested in latest_requests(scenario):
        forest = forest_of_world(requested.world)
        yield forest, make_any_plan(forest, requested.query), requested.query


def views(forest: Forest) -> Iterator[BlockView]:
    for block_number, block in enumerate(forest.blocks):
        yield BlockView(block, block_number)
        yield BlockView(block, block_number, as_sharing=True)


def lacks_at(condition: Condition, view: BlockView, index: int, suffix: str) -> list[Lack]:
    ref = ProviderRef(view.block_number, index)
    return list(condition.lacks(NearProvider(ref, view, suffix, None, frozenset())))


def check_condition(
    condition: Condition, view: BlockView, query: CandidateQuery, suffix: str
) -> None:
    everything = np.arange(len(view.block), dtype=np.int32)
    passing = set(condition.passing(view, everything).tolist())
    if condition.is_void and not condition.excluding_stage(view):
        # A group that asks for nothing has no provider, and no provider lacks anything.
        assert not passing
        return
    near = set(np.flatnonzero(condition.gaps(view) == 0).tolist())
    lacks = {index: lacks_at(condition, view, index, suffix) for index in everything.tolist()}
    assert near == {index for index, its in lacks.items() if not its}
    # What the root lacks, the providers of the unsuffixed group do not lack again.
    assert passing == near or (not view.as_sharing and not suffix and passing < near)
    if condition.excluding_stage(view) is not None:
        assert not passing
    for lack in (lack for its in lacks.values() for lack in its):
        assert lack.condition is condition
        assert lack.stage in condition.stages
        changes = list(condition.changes(query, lack))
        assert all(change.apply(query) != query for change in changes)
        has_change = lack.resource_class is None and not lack.wanted
        assert changes or not has_change


def check_root_condition(condition: RootCondition, forest: Forest, view: BlockView) -> None:
    trees = condition.trees(view).tolist()
    assert trees == (condition.gaps(view) == 0).tolist()
    for tree_number, meets in enumerate(trees):
        tree = TreeRef(view.block_number, tree_number)
        lacks = list(condition.lacks(tree, view.block))
        assert meets == (not lacks)
        assert all(lack.stage is condition.stage for lack in lacks)
    if condition.excludes(view):
        assert not any(trees)


def test_a_condition_tells_the_same_in_each_way() -> None:
    seen: set[type[Condition] | type[RootCondition]] = set()

    def check(scenario: Scenario) -> None:
        for forest, plan, query in plans(scenario):
            for view in views(forest):
                for requirement in plan.requirements:
                    for condition in requirement.conditions:
                        seen.add(type(condition))
                        check_condition(condition, view, query, requirement.suffixes[0])
                for root_condition in plan.root_conditions:
                    seen.add(type(root_condition))
                    check_root_condition(root_condition, forest, view)

    tell(many(20), check)
    assert {"Traits", "Aggregates", "InTree", "OnlyAnchor", "RootTraits", "RootAggregates"} <= {
        kind.__name__ for kind in seen
    }
    assert InTree in seen
