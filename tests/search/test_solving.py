"""The solutions of one tree: all of them, each once. Every search ends, even if packing is hard."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from math import factorial
from typing import TypeAlias

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roost.model.candidate_query.query import CandidateQuery, RequestGroup
from roost.search.candidates import effort, walks
from roost.search.candidates.ranking import CandidateOrder
from roost.search.candidates.search import find_candidates
from roost.search.candidates.solving import solver
from roost.search.candidates.solving.flow import can_flow
from support.properties import many
from support.worlds.forests import CLASSES, Node, forest_of

Slots: TypeAlias = list[tuple[str, Mapping[str, int]]]


def found(
    tree: list[Node], query: CandidateQuery, *, depth_first: bool = False
) -> list[tuple[int, ...]]:
    """The solutions of a query in one tree: for each slot, the offset of its provider."""
    answer = find_candidates(
        forest_of([tree]), query, CandidateOrder(10**6, depth_first=depth_first)
    )
    assert not answer.truncated
    return [batch.solution for batch in answer.batches for _ in batch.tree_numbers]


def expected(tree: list[Node], query: CandidateQuery) -> set[tuple[int, ...]]:
    """The same solutions, found by trying every combination of providers."""
    slots: Slots = [
        (group.suffix, resources)
        for group in query.groups
        for resources in (
            [group.resources]
            if group.suffix
            else [{name: amount} for name, amount in group.resources.items()]
        )
    ]
    rooms = [
        [
            number
            for number, node in enumerate(tree)
            if all(amount <= node.totals.get(name, 0) for name, amount in resources.items())
        ]
        for _, resources in slots
    ]
    return {choice for choice in product(*rooms) if _fits(tree, query, slots, choice)}


def _fits(
    tree: list[Node],
    query: CandidateQuery,
    slots: Slots,
    choice: tuple[int, ...],
) -> bool:
    taken: dict[tuple[int, str], int] = {}
    for (_, resources), provider in zip(slots, choice, strict=True):
        for name, amount in resources.items():
            taken[provider, name] = taken.get((provider, name), 0) + amount
    if any(amount > tree[node].totals.get(name, 0) for (node, name), amount in taken.items()):
        return False
    suffixed = [node for (suffix, _), node in zip(slots, choice, strict=True) if suffix]
    if query.isolate and len(set(suffixed)) < len(suffixed):
        return False
    for together in query.same_subtrees:
        members = {
            node for (suffix, _), node in zip(slots, choice, strict=True) if suffix in together
        }
        if not any(all(top in _above(tree, node) for node in members) for top in members):
            return False
    return True


def _above(tree: list[Node], node: int | None) -> set[int]:
    found = set()
    while node is not None:
        found.add(node)
        node = tree[node].parent
    return found


def group(suffix: str, **resources: int) -> RequestGroup:
    return RequestGroup(suffix, resources)


@st.composite
def trees(draw: st.DrawFn) -> list[Node]:
    """A root with children, most of which are interchangeable, and a few providers below them."""
    kinds = draw(
        st.lists(
            st.fixed_dictionaries({name: st.integers(1, 4) for name in CLASSES}),
            min_size=1,
            max_size=2,
        )
    )
    nodes = [Node(None, draw(st.sampled_from(kinds)))]
    for _ in range(draw(st.integers(2, 4))):
        parent = draw(st.sampled_from([0, 0, 0, len(nodes) - 1]))
        nodes.append(Node(parent, draw(st.sampled_from(kinds))))
    return nodes


@st.composite
def queries(draw: st.DrawFn) -> CandidateQuery:
    resources = st.dictionaries(st.sampled_from(list(CLASSES)), st.integers(1, 3), min_size=1)
    suffixes = ["_0", "_1", "_2", "_3"][: draw(st.integers(1, 4))]
    groups = [RequestGroup(suffix, draw(resources)) for suffix in suffixes]
    if draw(st.booleans()):
        groups.insert(draw(st.integers(0, len(groups))), RequestGroup("", draw(resources)))
    together = st.sets(st.sampled_from(suffixes), min_size=2).map(frozenset)
    subtrees = draw(st.lists(together, max_size=2)) if len(suffixes) > 1 else []
    return CandidateQuery(tuple(groups), isolate=draw(st.booleans()), same_subtrees=tuple(subtrees))


@given(
    tree=trees(),
    query=queries(),
    remembers=st.booleans(),
    impatient=st.booleans(),
    depth_first=st.booleans(),
)
@settings(max_examples=many(40))
def test_every_solution_is_found_once(
    tree: list[Node], query: CandidateQuery, remembers: bool, impatient: bool, depth_first: bool
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        if remembers:
            patch.setattr(solver, "_IDLE_MOVES_BEFORE_MEMORY", -1)
        if impatient:
            patch.setattr(solver, "_UNITS_AT_ONCE", 0)
            patch.setattr(walks, "_SOLUTIONS_HELD_MAX", 1)
        solutions = found(tree, query, depth_first=depth_first)
    assert set(solutions) == expected(tree, query)
    assert len(set(solutions)) == len(solutions)


@pytest.mark.parametrize("children", [5, 6])
def test_isolated_providers_and_providers_without_room_are_not_confused(children: int) -> None:
    host = [Node(None, {})] + [Node(0, {"VCPU": 4, "MEMORY_MB": 9})] * children
    groups = (
        group("_m", MEMORY_MB=1),
        group("", VCPU=1),
        *(group(f"_{suffix}", VCPU=4) for suffix in range(children - 1)),
    )
    assert len(found(host, CandidateQuery(groups, isolate=True))) == factorial(children)


def test_more_groups_than_devices_need_no_trying() -> None:
    host = [Node(None, {"VCPU": 1})] + [Node(0, {"SRIOV_NET_VF": 8})] * 15
    for isolate, devices in ((True, 16), (False, 121)):
        groups = tuple(group(f"_{suffix}", SRIOV_NET_VF=1) for suffix in range(devices))
        assert found(host, CandidateQuery(groups, isolate=isolate)) == []


def test_hundreds_of_isolated_groups_have_solutions() -> None:
    host = [Node(None, {"VCPU": 1})] + [Node(0, {"SRIOV_NET_VF": 1})] * 400
    groups = tuple(group(f"_{suffix}", SRIOV_NET_VF=1) for suffix in range(400))
    query = CandidateQuery(groups, isolate=True, limit=3)
    assert len(found(host, query)) == 3


def test_room_that_no_amount_fits_into_does_not_count() -> None:
    # 132 units are free, but only 30 amounts of four units fit.
    free = [8, 9, 10, 11, 12, 13, 14, 8, 11, 12, 13, 11]
    host = [Node(None, {"VCPU": 1})] + [Node(0, {"SRIOV_NET_VF": total}) for total in free]
    groups = tuple(group(f"_{suffix}", SRIOV_NET_VF=4) for suffix in range(31))
    assert found(host, CandidateQuery(groups)) == []


def test_siblings_are_interchangeable_below_a_same_subtree() -> None:
    nodes = [Node(None, {"VCPU": 1}), Node(0, {"MEMORY_MB": 9}), Node(0, {"MEMORY_MB": 9})]
    nodes += [Node(parent, {"SRIOV_NET_VF": 1}) for parent in (1, 2) for _ in range(13)]
    suffixes = [f"_{suffix}" for suffix in range(14)]
    groups = (group("_n", MEMORY_MB=1), *(group(suffix, SRIOV_NET_VF=1) for suffix in suffixes))
    query = CandidateQuery(groups, isolate=True, same_subtrees=(frozenset({"_n", *suffixes}),))
    assert found(nodes, query) == []


def test_a_search_with_exhausted_effort_ends_and_is_truncated(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(effort, "UNITS_MAX", 1000)
    # Every provider must take one 7. Then only four of them have room for a 5, but six 5s are
    # requested. Counting does not find that out.
    host = [Node(None, {"VCPU": 1})]
    host += [Node(0, {"SRIOV_NET_VF": 10 + child % 3}) for child in range(12)]
    amounts = [7] * 12 + [5] * 6
    groups = tuple(
        group(f"_{suffix}", SRIOV_NET_VF=amount) for suffix, amount in enumerate(amounts)
    )
    answer = find_candidates(forest_of([host]), CandidateQuery(groups), CandidateOrder(1000))
    assert answer.count == 0
    assert answer.truncated


@given(
    amounts=st.lists(st.integers(1, 3), min_size=1, max_size=4),
    room=st.dictionaries(st.integers(0, 3), st.integers(0, 3), min_size=1),
    data=st.data(),
)
@settings(max_examples=many(50))
def test_a_flow_exists_exactly_where_units_can_be_assigned_one_by_one(
    amounts: list[int], room: dict[int, int], data: st.DataObject
) -> None:
    eligible = [
        tuple(data.draw(st.sets(st.sampled_from(sorted(room))), label="eligible")) for _ in amounts
    ]
    units = [source for source, amount in enumerate(amounts) for _ in range(amount)]
    possible = any(
        all(
            sum(provider == taken for taken in assignment) <= available
            for provider, available in room.items()
        )
        for assignment in product(*(eligible[source] for source in units))
    )
    assert can_flow(amounts, eligible, room, effort.Effort()) == possible
