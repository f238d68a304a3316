"""The account of a search: how many providers and trees each stage leaves."""

from __future__ import annotations

import pytest

from roost.model.candidate_query.query import CandidateQuery, RequestGroup
from roost.model.providers import AggregateFilter, TraitFilter
from roost.replica.replica import Replica
from roost.search.explain.account import take_account
from roost.store.database import Database
from support.api_client import ApiClient
from support.worlds.notation import aggregate_uuid, provider_uuid
from support.worlds.world import build_world

pytestmark = pytest.mark.parametrize("kind", ["sqlite"], indirect=True)


def account_of(
    database: Database, *groups: RequestGroup, tree: str | None = None, isolate: bool = False
) -> list[str]:
    """The account as lines: providers and trees after each stage; the trees of the request."""
    forest = Replica(database).current()
    only_tree = None if tree is None else forest.find_tree(provider_uuid(tree))
    account = take_account(forest, CandidateQuery(groups, isolate), only_tree=only_tree)
    lines = [
        f"{group.suffix or '-'} "
        + " ".join(f"{count.providers}/{count.trees}" for count in group.counts.values())
        for group in account.groups
    ]
    return [*lines, " ".join(f"{stage}={count}" for stage, count in account.trees.items())]


def test_a_funnel_has_every_stage_of_each_group(api: ApiClient, database: Database) -> None:
    build_world(
        api,
        "H1(VCPU 8, agg A, T1)  H2(VCPU 8, T1)  H3(VCPU 8 max 2)  H4(VCPU 2, agg A)  "
        "N1<H1(GOLD 1)  N3<H3(GOLD 1)  H5(VCPU 9, agg A, T2)",
    )
    unsuffixed = RequestGroup(
        "",
        {"VCPU": 4},
        TraitFilter(forbidden=("CUSTOM_T2",)),
        AggregateFilter(((aggregate_uuid("A"),),)),
    )
    suffixed = RequestGroup("_X", {"CUSTOM_GOLD": 1}, in_tree=provider_uuid("H1"))
    assert account_of(database, unsuffixed, suffixed) == [
        # class, unit, room, traits, aggregates, in_tree
        "- 5/5 4/4 3/3 2/2 1/1 1/1",
        "_X 2/2 2/2 2/2 2/2 2/2 1/1",
        "root=5 groups=1 together=1",
    ]


def test_equal_groups_have_a_funnel_each(api: ApiClient, database: Database) -> None:
    build_world(api, "P(VCPU 1)")
    groups = [RequestGroup(suffix, {"VCPU": 1}) for suffix in ("_A", "_B")]
    assert account_of(database, *groups) == [
        "_A 1/1 1/1 1/1 1/1 1/1 1/1",
        "_B 1/1 1/1 1/1 1/1 1/1 1/1",
        # The provider has room for each of the groups, but not for both.
        "root=1 groups=1 together=0",
    ]


def test_the_unsuffixed_group_counts_the_providers_of_any_class_and_the_trees_with_all(
    api: ApiClient, database: Database
) -> None:
    build_world(api, "H1(VCPU 8)  N1<H1(MEM 8)  H2(VCPU 8)  H3(VCPU 8, MEM 8)")
    group = RequestGroup("", {"VCPU": 1, "MEMORY_MB": 1})
    assert account_of(database, group)[0] == "- 4/2 4/2 4/2 4/2 4/2 4/2"


def test_required_traits_of_the_unsuffixed_group_count_at_together(
    api: ApiClient, database: Database
) -> None:
    build_world(api, "H1(VCPU 8, T1)  H2(VCPU 8)")
    group = RequestGroup("", {"VCPU": 1}, TraitFilter(required=("CUSTOM_T1",)))
    assert account_of(database, group) == [
        "- 2/2 2/2 2/2 2/2 2/2 2/2",
        "root=2 groups=2 together=1",
    ]


def test_a_sharing_provider_counts_in_every_tree_that_it_serves(
    api: ApiClient, database: Database
) -> None:
    build_world(api, "H1(VCPU 8, agg A)  H2(VCPU 8, agg A)  H3(VCPU 8)  *S(DISK 5, agg A)")
    disk = RequestGroup("_D", {"DISK_GB": 1})
    assert account_of(database, RequestGroup("", {"VCPU": 1}), disk) == [
        "- 3/3 3/3 3/3 3/3 3/3 3/3",
        # The trees of H1 and H2, and the provider's own.
        "_D 1/3 1/3 1/3 1/3 1/3 1/3",
        "root=4 groups=2 together=2",
    ]
    assert account_of(database, disk, tree="H1") == [
        "_D 1/1 1/1 1/1 1/1 1/1 1/1",
        "root=1 groups=1 together=1",
    ]
    assert account_of(database, disk, tree="H3") == [
        "_D 0/0 0/0 0/0 0/0 0/0 0/0",
        "root=1 groups=0 together=0",
    ]


def test_a_tree_whose_root_is_in_a_forbidden_aggregate_ends_at_aggregates(
    api: ApiClient, database: Database
) -> None:
    build_world(api, "H1(agg B)  N<H1(VCPU 8, agg A)  *S(DISK 5, agg A)")
    group = RequestGroup(
        "", {"DISK_GB": 1}, aggregates=AggregateFilter(forbidden=(aggregate_uuid("B"),))
    )
    assert account_of(database, group) == [
        "- 1/2 1/2 1/2 1/2 1/1 1/1",
        "root=2 groups=1 together=1",
    ]


@pytest.mark.parametrize(
    ("group", "funnel"),
    [
        # A group that asks nothing has no provider.
        (RequestGroup("_X", traits=TraitFilter(forbidden=("CUSTOM_T1",))), "0/0 " * 6),
        # in_tree names a provider that does not exist.
        (
            RequestGroup("_X", {"VCPU": 1}, in_tree=provider_uuid("NOPE")),
            "1/1 1/1 1/1 1/1 1/1 0/0",
        ),
    ],
    ids=["asks nothing", "unknown in_tree"],
)
def test_a_query_without_a_plan_has_an_account(
    api: ApiClient, database: Database, group: RequestGroup, funnel: str
) -> None:
    build_world(api, "P(VCPU 1)")
    other = RequestGroup("_Y", {"VCPU": 1})
    assert account_of(database, other, group) == [
        "_Y 1/1 1/1 1/1 1/1 1/1 1/1",
        f"_X {funnel.strip()}",
        "root=1 groups=0 together=0",
    ]
