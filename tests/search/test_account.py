"""The account of a search: what each constraint left, with examples."""

from __future__ import annotations

import pytest

from roost.model.candidates import CandidateQuery, RequestGroup
from roost.model.providers import AggregateFilter, TraitFilter
from roost.replica.replica import Replica
from roost.search.account import EXAMPLES_MAX, Account
from roost.search.candidate_order import CandidateOrder
from roost.search.candidates import find_candidates
from roost.store.database import Database
from support.api_client import ApiClient
from support.worlds.notation import aggregate_uuid, provider_uuid
from support.worlds.world import build_world

pytestmark = pytest.mark.parametrize("kind", ["sqlite"], indirect=True)


def account_of(database: Database, *groups: RequestGroup) -> list[str]:
    """The account as lines: suffixes, constraint, and the count of providers and trees left."""
    account = Account()
    find_candidates(Replica(database).current(), CandidateQuery(groups), CandidateOrder(), account)
    return [
        f"{'+'.join(entry.suffixes)} {entry.stage}: "
        f"{entry.provider_count} in {entry.tree_count}".strip()
        for entry in account.entries
    ]


def test_an_entry_for_each_constraint_of_each_group(api: ApiClient, database: Database) -> None:
    build_world(
        api,
        "H1(VCPU 8, agg A, T1)  H2(VCPU 8, T1)  H3(VCPU 8)  H4(VCPU 2, agg A)  "
        "N1<H1(GOLD 1)  N3<H3(GOLD 1)",
    )
    unsuffixed = RequestGroup(
        "",
        {"VCPU": 4},
        TraitFilter(forbidden=("CUSTOM_T2",)),
        AggregateFilter(((aggregate_uuid("A"),),)),
    )
    suffixed = RequestGroup("_X", {"CUSTOM_GOLD": 1})
    gold = Replica(database).current().vocabulary.class_ids["CUSTOM_GOLD"]
    assert account_of(database, unsuffixed, suffixed) == [
        "root: 0 in 4",
        "room for 4 of class 0: 3 in 3",
        "traits: 3 in 3",
        "member_of: 1 in 1",
        f"_X room for 1 of class {gold}: 2 in 2",
        "every group by itself: 0 in 1",
        "all groups together: 0 in 1",
    ]


def test_equal_groups_have_one_entry_together(api: ApiClient, database: Database) -> None:
    build_world(api, "P(VCPU 1)")
    groups = [RequestGroup(suffix, {"VCPU": 1}) for suffix in ("_A", "_B")]
    assert account_of(database, *groups)[1:] == [
        "_A+_B room for 1 of class 0: 1 in 1",
        "every group by itself: 0 in 1",
        # The provider has room for each of the groups, but not for both.
        "all groups together: 0 in 0",
    ]


def test_an_entry_names_a_few_examples(api: ApiClient, database: Database) -> None:
    build_world(api, "  ".join(f"H{host}(VCPU 4)" for host in range(9)))
    account = Account()
    query = CandidateQuery((RequestGroup("", {"VCPU": 1}),), limit=1)
    find_candidates(Replica(database).current(), query, CandidateOrder(), account)
    for entry in account.entries:
        # A search with an account looks at all trees, whatever the limit.
        assert entry.tree_count == 9
        assert len(entry.examples) == EXAMPLES_MAX
        assert set(entry.examples) < {provider_uuid(f"H{host}") for host in range(9)}
