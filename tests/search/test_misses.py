"""The nearest misses of a query: which trees come nearest, and all that each of them lacks."""

from __future__ import annotations

import pytest

from roost.search.conditions.lack import Lack, LackRule
from roost.search.explain.misses import Miss
from support.properties import many
from support.scenarios.naive_misses import failed_checks, is_feasible
from support.scenarios.oracle import Group, World
from support.scenarios.scenario import Scenario, tell
from support.worlds.found_misses import found_misses
from support.worlds.notation import aggregate_uuid, provider_uuid, short_name
from support.worlds.oracle_forests import forest_of_world
from support.worlds.oracle_worlds import oracle_world
from support.worlds.queries import query_of
from support.worlds.requested_worlds import latest_requests

SHORT_UUIDS = {
    **{provider_uuid(name): name for name in ("H1", "H2", "H3", "N1", "N2", "G1", "G2", "S")},
    **{aggregate_uuid(name): name for name in "ABC"},
}


def misses_of(world: str, query: str, count: int = 9) -> tuple[Miss, ...]:
    return found_misses(forest_of_world(oracle_world(world)), query_of(query), count).nearest


def notes(misses: tuple[Miss, ...]) -> list[str]:
    """Each miss in one line: its root, then its lacks."""
    return [f"{SHORT_UUIDS[miss.root]}: {'; '.join(map(lack_note, miss.lacks))}" for miss in misses]


def lack_note(lack: Lack) -> str:
    """Group, stage, provider, class, amounts and names of a lack."""
    words = [
        "-" if lack.group is None else f"'{lack.group}'",
        lack.stage,
        "" if lack.provider is None else SHORT_UUIDS[lack.provider],
        short_name(lack.resource_class or ""),
        "" if lack.wanted is None else f"{lack.free}/{lack.wanted}",
        *(f"!{name}" if lack.rule is LackRule.FORBIDDEN else name for name in short(lack.traits)),
        *(
            f"!{name}" if lack.rule is LackRule.NOT_MEMBER_OF else name
            for name in short(lack.aggregates)
        ),
        "+".join(lack.groups),
        lack.rule if lack.rule in (LackRule.REACH, *PLACES, *TOGETHER) else "",
    ]
    return " ".join(filter(None, words))


PLACES = (LackRule.IN_TREE, LackRule.IN_SUBTREE)
TOGETHER = (LackRule.CAPACITY, LackRule.ISOLATE, LackRule.SAME_SUBTREE, LackRule.AT_ONCE)


def short(names: tuple[str, ...]) -> list[str]:
    return [SHORT_UUIDS.get(name, short_name(name)) for name in names]


@pytest.mark.parametrize(
    ("world", "query", "expected"),
    [
        # The least relative shortage comes first.
        (
            "H1(VCPU 8 used 6) H2(VCPU 8 used 5) H3(VCPU 8 used 7)",
            "VCPU:4",
            ["H2: '' room H2 VCPU 3/4", "H1: '' room H1 VCPU 2/4", "H3: '' room H3 VCPU 1/4"],
        ),
        # A tree that gives nothing of the class fails more than one that is full.
        (
            "H1(MEM 8) H2(VCPU 4 used 4, MEM 1)",
            "VCPU:4,MEM:2",
            [
                "H2: '' room H2 VCPU 0/4; '' room H2 MEM 1/2",
                "H1: '' class VCPU 0/4",
            ],
        ),
        # Enough in total, but not on one node.
        (
            "H1(DISK 9) N1<H1(VCPU 8 used 4) N2<H1(VCPU 8 used 3)",
            "resources_cpu=VCPU:8",
            ["H1: '_cpu' room N2 VCPU 5/8"],
        ),
        ("H1(VCPU 8 min 2 step 2)", "VCPU:3", ["H1: '' unit H1 VCPU 8/3"]),
        ("H1(VCPU 8 max 2 used 6)", "VCPU:3", ["H1: '' unit H1 VCPU 2/3; '' room H1 VCPU 2/3"]),
        # The child has the class. It fails more checks than the root, which does not.
        (
            "H1(MEM 8) N1<H1(VCPU 8 max 1 used 8, T1)",
            "VCPU:3&required=!T1",
            ["H1: '' unit N1 VCPU 0/3; '' room N1 VCPU 0/3; '' traits N1 VCPU !T1"],
        ),
        (
            "H1(MEM 8) N1<H1(VCPU 8 max 1 used 8, T1)",
            "resources_A=VCPU:3&required_A=!T1&group_policy=isolate&resources_B=MEM:1",
            ["H1: '_A' unit N1 VCPU 0/3; '_A' room N1 VCPU 0/3; '_A' traits N1 !T1"],
        ),
        # An amount that no column can hold.
        (
            "H1(VCPU 8)",
            f"VCPU:{2**70}",
            [f"H1: '' unit H1 VCPU 8/{2**70}; '' room H1 VCPU 8/{2**70}"],
        ),
        # The group takes from the child, and the trait is on the root.
        (
            "H1(MEM 8, T1) N1<H1(VCPU 8)",
            "resources_cpu=VCPU:1&required_cpu=T1",
            ["H1: '_cpu' traits N1 T1"],
        ),
        ("H1(VCPU 8, T1)", "VCPU:1&required=!T1", ["H1: '' traits H1 VCPU !T1"]),
        ("H1(VCPU 8)", "VCPU:1&required=T1", ["H1: '' together T1"]),
        ("H1(VCPU 8)", "VCPU:1&required=in:T1,T2", ["H1: '' together T1 T2"]),
        ("H1(VCPU 8, agg B)", "VCPU:1&member_of={A}", ["H1: '' aggregates H1 VCPU A"]),
        ("H1(VCPU 8, agg B)", "VCPU:1&member_of=!{B}", ["H1: '' aggregates H1 !B"]),
        ("H1(VCPU 8)", "VCPU:1&root_required=T1", ["H1: - root H1 T1"]),
        ("H1(VCPU 8, T1)", "VCPU:1&root_required=!T1", ["H1: - root H1 !T1"]),
        # The named tree is full; the free tree is not the named one.
        (
            "H1(VCPU 8 used 8) H2(VCPU 8)",
            "VCPU:1&in_tree=<H1>",
            ["H2: - root H2 in_tree", "H1: '' room H1 VCPU 0/1"],
        ),
        (
            "H1(VCPU 8 used 4) H2(VCPU 8)",
            "resources_X=VCPU:8&in_tree_X=<H1>",
            ["H1: '_X' room H1 VCPU 4/8", "H2: '_X' in_tree H2 in_tree"],
        ),
    ],
)
def test_a_tree_lacks_what_one_group_asks_for(world: str, query: str, expected: list[str]) -> None:
    assert notes(misses_of(world, query)) == expected


@pytest.mark.parametrize(
    ("world", "query", "expected"),
    [
        # The pool reaches the tree, and is not in the aggregate itself.
        (
            "H1(VCPU 8, agg A B) *S(DISK 9, agg B)",
            "VCPU:1,DISK:1&member_of={A}",
            [
                "H1: '' aggregates S DISK A",
                "S: '' class VCPU 0/1; '' aggregates S DISK A",
            ],
        ),
        # The pool has room, but none of its aggregates has a provider of the tree.
        (
            "H1(VCPU 8, agg A) *S(DISK 9, agg B)",
            "VCPU:1,DISK:1",
            ["H1: '' aggregates S DISK B reach", "S: '' class VCPU 0/1"],
        ),
        # The pool reaches the tree. It fails more checks than a provider without the class.
        (
            "H1(VCPU 8, agg A) *S(DISK 9 max 1 used 9, T1, agg A)",
            "VCPU:1,DISK:4&required=!T1",
            [
                "H1: '' unit S DISK 0/4; '' room S DISK 0/4; '' traits S DISK !T1",
                "S: '' class VCPU 0/1; '' unit S DISK 0/4; '' room S DISK 0/4; "
                "'' traits S DISK !T1",
            ],
        ),
        # in_subtree of the unsuffixed group excludes the pool in every tree but its own.
        (
            "H1(VCPU 8, agg A) *S(DISK 9, agg A)",
            "VCPU:1,DISK:1&in_subtree=<S>",
            [
                "S: '' class VCPU 0/1",
                "H1: - root H1 in_subtree; '' in_tree H1 VCPU in_subtree; "
                "'' in_tree S DISK in_subtree",
            ],
        ),
        # A full pool that reaches the tree, and local disk that is not so full.
        (
            "H1(VCPU 8, DISK 4 used 1, agg A) *S(DISK 9 used 8, agg A)",
            "VCPU:1,DISK:4",
            ["H1: '' room H1 DISK 3/4", "S: '' class VCPU 0/1; '' room S DISK 1/4"],
        ),
    ],
)
def test_a_sharing_provider_may_come_nearest(world: str, query: str, expected: list[str]) -> None:
    assert notes(misses_of(world, query)) == expected


@pytest.mark.parametrize(
    ("world", "query", "expected"),
    [
        (
            "H1() N1<H1(VCPU 8) N2<H1(VCPU 8)",
            "resources_A=VCPU:1&resources_B=VCPU:1&resources_C=VCPU:1&group_policy=isolate",
            ["H1: - together VCPU 2/3 _A+_B+_C isolate"],
        ),
        (
            "H1(VCPU 6)",
            "resources_A=VCPU:4&resources_B=VCPU:4&group_policy=none",
            ["H1: - together H1 VCPU 6/8 _A+_B capacity"],
        ),
        (
            "H1(VCPU 6)",
            "VCPU:4&resources_B=VCPU:4",
            ["H1: - together H1 VCPU 6/8 +_B capacity"],
        ),
        (
            "H1() N1<H1(VCPU 8) N2<H1(MEM 8)",
            "resources_A=VCPU:1&resources_B=MEM:1&same_subtree=_A,_B&group_policy=none",
            ["H1: - together _A+_B same_subtree"],
        ),
        # Each of the traits is there, but one provider of the group cannot have both.
        (
            "H1() N1<H1(VCPU 8, T1) N2<H1(VCPU 8, T2)",
            "VCPU:1&required=T1,T2",
            ["H1: '' together T1 T2"],
        ),
        # Each of two conditions can be met, but not both at once.
        (
            "H1() N1<H1(VCPU 8) N2<H1(VCPU 8)",
            "resources_A=VCPU:1&resources_B=VCPU:1&same_subtree=_A,_B&group_policy=isolate",
            ["H1: - together _A+_B at_once"],
        ),
        # Two conditions fail, each by itself. The room for VCPU suffices.
        (
            "H1() N1<H1(VCPU 8, MEM 1) N2<H1(DISK 1)",
            "resources_A=VCPU:1,MEM:1&resources_B=VCPU:1,MEM:1&resources_C=DISK:1"
            "&same_subtree=_A,_C&group_policy=none",
            ["H1: - together N1 MEM 1/2 _A+_B capacity; - together _A+_C same_subtree"],
        ),
        # One condition fails by itself, and two more fail at once.
        (
            "H1() N1<H1(VCPU 8, MEM 1) N2<H1(VCPU 8)",
            "resources_A=VCPU:1&resources_B=VCPU:1&resources_C=MEM:1&resources_D=MEM:1"
            "&same_subtree=_A,_B&isolate=_A,_B&group_policy=none",
            ["H1: - together N1 MEM 1/2 _C+_D capacity; - together _A+_B at_once"],
        ),
        # Each set of groups is isolated for itself: only one of the sets fails.
        (
            "H1() N1<H1(VCPU 8) N2<H1(VCPU 8)",
            "resources_A=VCPU:1&resources_B=VCPU:1&resources_C=VCPU:1"
            "&isolate=_A,_B&isolate=_A,_B,_C",
            ["H1: - together VCPU 2/3 _A+_B+_C isolate"],
        ),
    ],
)
def test_groups_that_do_not_go_together(world: str, query: str, expected: list[str]) -> None:
    assert notes(misses_of(world, query)) == expected


def test_a_tree_with_a_candidate_is_no_miss() -> None:
    world = "H1(VCPU 8) H2(VCPU 8 used 8) H3(VCPU 1)"
    assert notes(misses_of(world, "VCPU:2")) == [
        "H3: '' room H3 VCPU 1/2",
        "H2: '' room H2 VCPU 0/2",
    ]


def test_as_many_misses_as_wanted_of_equal_trees_by_uuid() -> None:
    world = "H1(VCPU 1) H2(VCPU 1) H3(VCPU 1)"
    roots = [miss.root for miss in misses_of(world, "VCPU:2", 2)]
    assert roots == sorted(provider_uuid(name) for name in ("H1", "H2", "H3"))[:2]
    assert misses_of(world, "VCPU:2", 0) == ()


def test_one_tree_alone() -> None:
    forest = forest_of_world(oracle_world("H1(VCPU 8) H2(VCPU 8 used 7)"))
    query = query_of("VCPU:2")
    trees = {name: forest.find_tree(provider_uuid(name)) for name in ("H1", "H2")}
    assert found_misses(forest, query, 5, trees["H1"]).nearest == ()
    assert notes(found_misses(forest, query, 5, trees["H2"]).nearest) == ["H2: '' room H2 VCPU 1/2"]


@pytest.mark.parametrize(
    "query", ["VCPU:1&in_tree=<missing>", "VCPU:1&required_X=!T1&same_subtree=_X"]
)
def test_a_query_that_no_forest_meets_has_no_miss(query: str) -> None:
    assert misses_of("H1(VCPU 8)", query) == ()


def test_an_empty_forest_has_no_miss() -> None:
    assert misses_of("", "VCPU:1") == ()


@pytest.mark.hypothesis
def test_misses_are_all_trees_without_candidates_in_the_order_of_a_naive_count() -> None:
    def check(scenario: Scenario) -> None:
        for world, request, query in latest_requests(scenario):
            found = found_misses(forest_of_world(world), query, len(world.providers)).nearest
            failed = {miss.root: miss.failed for miss in found}
            if {group.in_tree for group in request.query.groups} - {None, *world.providers}:
                assert failed == {}
                continue
            if any(map(asks_nothing, request.query.groups)):
                assert failed == {}
                continue
            counted = {
                root: failed_checks(world, request.query, root)
                for root in world.roots()
                if not is_feasible(world, request.query, root)
            }
            # Rules between groups are checked where each group has a provider. One is broken.
            assert {
                root: count if counted[root] else 0 for root, count in failed.items()
            } == counted
            assert all(failed.values())
            for miss in found:
                for lack in miss.lacks:
                    if lack.rule is LackRule.INVENTORY and lack.provider is None:
                        assert not offering(world, miss.root, lack.resource_class or "")
            assert list(failed.values()) == sorted(failed.values())

    tell(many(15), check)


def offering(world: World, root: str, name: str) -> list[str]:
    """The providers of a tree, and those that share with it, that have inventory of a class."""
    return [
        uuid
        for uuid, provider in world.providers.items()
        if name in provider.inventories
        and (world.root(uuid) == root or (provider.sharing and root in world.anchors(uuid)))
    ]


def asks_nothing(group: Group) -> bool:
    return not (group.resources or group.required or group.member_of)
