"""A search passes over the blocks in which no tree can fit, and only over those."""

from __future__ import annotations

import numpy as np
import pytest

from roost.model.candidate_query.query import CandidateQuery, RequestGroup
from roost.model.providers import AggregateFilter, TraitFilter
from roost.search.candidates.effort import Effort, no_pause
from roost.search.candidates.plan import make_plan
from roost.search.candidates.rules import Rules
from roost.search.candidates.scan import may_fit
from roost.search.candidates.sharing import SharingProviders
from roost.search.forest.forest import Forest
from roost.search.forest.rows import ForestRows, MembershipRows, UsageRows, column
from roost.search.forest.vocabulary import Vocabulary
from support.worlds.forests import CLASSES, Node, rows_of

TRAITS = {"MISC_SHARES_VIA_AGGREGATE": 1, "CUSTOM_GOLD": 2, "CUSTOM_OLD": 3}
RACK, ROOM = "00000000-0000-4000-8000-00000000000a", "00000000-0000-4000-8000-00000000000b"


@pytest.fixture(autouse=True)
def _one_tree_per_block(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("roost.search.forest.block_building.BLOCK_PROVIDERS", 1)


def hosts(totals: list[dict[str, int]], traits: dict[int, str], racks: dict[int, str]) -> Forest:
    """A block for each host, which has these totals. Traits and aggregates are by host."""
    rows = rows_of([[Node(None, each)] for each in totals])
    return Forest.of(
        ForestRows(
            rows.providers,
            rows.inventories,
            rows.usages,
            MembershipRows(column([host + 1 for host in traits]), list(traits.values())),
            MembershipRows(column([host + 1 for host in racks]), list(racks.values())),
        ),
        Vocabulary.of(CLASSES, TRAITS),
    )


def chosen(forest: Forest, *groups: RequestGroup, root_required: tuple[str, ...] = ()) -> list[int]:
    """The numbers of the blocks at whose columns a search looks."""
    query = CandidateQuery(groups, root_required=TraitFilter(required=root_required))
    plan = make_plan(forest, query)
    assert plan is not None
    rules = Rules(plan, SharingProviders(forest, plan, no_pause), Effort())
    return [number for number, block in enumerate(forest.blocks) if may_fit(rules, block, number)]


CPUS = [{"VCPU": 8}, {"VCPU": 2}, {"MEMORY_MB": 8}, {"VCPU": 8}]


def test_blocks_without_room_are_left_out_until_they_have_room() -> None:
    forest = hosts(CPUS, {}, {})
    group = RequestGroup(resources={"VCPU": 8})
    assert chosen(forest, group) == [0, 3]
    used = UsageRows(column([1]), column([CLASSES["VCPU"]]), np.ones(1, np.int64))
    full = forest.with_all_usages(used, [1])
    assert chosen(full, group) == [3]
    assert chosen(full.with_all_usages(UsageRows(*[column([])] * 3), [1]), group) == [0, 3]


@pytest.mark.parametrize("suffix", ["", "_A"])
def test_blocks_without_required_traits_are_left_out(suffix: str) -> None:
    forest = hosts(CPUS, {0: "2", 1: "2,3", 3: "3"}, {})
    gold = TraitFilter(required=("CUSTOM_GOLD",))
    assert chosen(forest, RequestGroup(suffix, {"VCPU": 1}, gold)) == [0, 1]
    both = TraitFilter(required=("CUSTOM_GOLD", "CUSTOM_OLD"))
    assert 1 in chosen(forest, RequestGroup(suffix, {"VCPU": 1}, both))
    old_root = chosen(forest, RequestGroup(suffix, {"VCPU": 1}), root_required=("CUSTOM_OLD",))
    assert old_root == [1, 3]


def test_blocks_without_a_member_are_left_out() -> None:
    forest = hosts(CPUS, {}, {0: RACK, 1: f"{RACK},{ROOM}", 3: ROOM})
    in_room = AggregateFilter(any_of=((ROOM,),))
    assert chosen(forest, RequestGroup(resources={"VCPU": 1}, aggregates=in_room)) == [1, 3]


def test_in_tree_leaves_one_block() -> None:
    forest = hosts(CPUS, {}, {})
    fourth = forest.blocks[3].uuids[0].decode()
    assert chosen(forest, RequestGroup(resources={"VCPU": 1}, in_tree=fourth)) == [3]
    assert chosen(forest, RequestGroup("_A", {"VCPU": 1}, in_tree=fourth)) == [3]


def test_what_a_sharing_provider_has_is_missed_in_no_block() -> None:
    forest = hosts(CPUS, {2: "1,2"}, {0: RACK, 1: RACK, 2: RACK, 3: ROOM})
    gold = TraitFilter(required=("CUSTOM_GOLD",))
    group = RequestGroup(resources={"VCPU": 1, "MEMORY_MB": 8}, traits=gold)
    assert set(chosen(forest, group)) >= {0, 1}
