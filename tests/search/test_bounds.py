"""The work and the memory of one search are bounded, whatever the query and the cloud."""

from __future__ import annotations

import itertools
import random
import time
from itertools import permutations

import numpy as np
import pytest

from roost.model.candidate_query.query import CandidateQuery, RequestGroup
from roost.search.candidates import effort, walks
from roost.search.candidates.ranking import CandidateOrder
from roost.search.candidates.search import FoundCandidates, find_candidates
from roost.search.candidates.solving import solver
from roost.search.candidates.solving.problem import solution_key
from roost.search.candidates.walks import Batch, Batches
from roost.search.forest.forest import Forest
from support.worlds.forests import Node, forest_of

DEVICE = "SRIOV_NET_VF"
MAXIMUM = 100_000
UP_TO_MAXIMUM = CandidateOrder(MAXIMUM)
# A search on an idle machine takes a fraction of it.
SECONDS = 10


def cloud(hosts: list[list[int]]) -> Forest:
    """Hosts with devices below their root; a device has so many units."""
    return forest_of(
        [[Node(None, {"VCPU": 1})] + [Node(0, {DEVICE: n}) for n in devices] for devices in hosts]
    )


def asking(amounts: list[int], *, isolate: bool = False) -> CandidateQuery:
    groups = [RequestGroup(f"_{suffix}", {DEVICE: amount}) for suffix, amount in enumerate(amounts)]
    return CandidateQuery(tuple(groups), isolate=isolate)


def timed(
    forest: Forest, query: CandidateQuery, order: CandidateOrder = UP_TO_MAXIMUM
) -> FoundCandidates:
    """The candidates of a search, which must not take longer than `SECONDS`."""
    began = time.process_time()
    found = find_candidates(forest, query, order)
    assert time.process_time() - began < SECONDS
    return found


def tight_host(seed: int, amounts: list[int], devices: int) -> list[int]:
    """Devices of many sizes, which together have little more room than all amounts need."""
    weights = random.Random(seed).choices(range(20, 40), k=devices)
    total = sum(amounts) + 3
    rooms = [weight * total // sum(weights) for weight in weights]
    return [rooms[0] + total - sum(rooms), *rooms[1:]]


AMOUNTS = random.Random(9).choices(range(7, 19), k=24)


def test_candidates_times_groups_are_bounded() -> None:
    found = timed(cloud([[10_000] * 20]), asking([1] * 200))
    assert found.count == 5000
    assert found.truncated
    assert sum(len(batch.tree_numbers) for batch in found.batches) == found.count


def test_few_groups_have_as_many_candidates_as_the_maximum() -> None:
    found = timed(cloud([[10_000] * 20]), asking([1] * 10))
    assert found.count == MAXIMUM
    assert found.truncated


@pytest.mark.parametrize("depth_first", [False, True])
@pytest.mark.parametrize("hosts", [1, 320])
@pytest.mark.slow
def test_all_hosts_share_one_effort(hosts: int, depth_first: bool) -> None:
    forest = cloud([tight_host(seed, AMOUNTS, 12) for seed in range(hosts)])
    found = timed(forest, asking(AMOUNTS), CandidateOrder(MAXIMUM, depth_first=depth_first))
    assert found.truncated


@pytest.mark.parametrize("depth_first", [False, True])
def test_hosts_with_hard_problems_do_not_hide_a_host_with_an_easy_problem(
    depth_first: bool,
) -> None:
    hard = [tight_host(seed, AMOUNTS, 12) for seed in range(40)]
    forest = cloud([*hard, [40] * 12])
    found = timed(forest, asking(AMOUNTS), CandidateOrder(100, depth_first=depth_first))
    assert found.count == 100


def test_the_same_query_has_the_same_answer() -> None:
    forest = cloud([tight_host(seed, AMOUNTS, 12) for seed in range(20)] + [[30] * 14])
    answers = [list(timed(forest, asking(AMOUNTS), CandidateOrder(20)).batches) for _ in range(2)]
    assert answers[0] == answers[1]


def test_many_same_subtrees_are_bounded() -> None:
    query = asking([1] * 30, isolate=True)
    names = [group.suffix for group in query.groups]
    pairs = random.Random(1).sample(list(permutations(names, 2)), 200)
    query = CandidateQuery(query.groups, isolate=True, same_subtrees=tuple(map(frozenset, pairs)))
    found = timed(cloud([[1] * 64] * 100), query)
    assert found.count == 0


def test_an_answer_is_truncated_if_its_problems_cannot_all_be_held(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(effort, "WORDS_MAX", 2000)
    hosts = [[4 + (host >> bit & 1) for bit in range(8)] for host in range(256)]
    found = timed(cloud(hosts), asking([3, 2]))
    # Each host has a candidate, but not all of its candidates.
    assert {number for batch in found.batches for number in batch.tree_numbers} == set(range(256))
    assert found.truncated


def test_packed_batches_come_back_as_they_were() -> None:
    batches = [Batch(n % 7, [n, n + 1][: 1 + n % 2], (n, ~n, 0)) for n in range(10_000)]
    kept = Batches()
    for batch in batches:
        kept.append(batch)
    assert kept.count == sum(len(batch.tree_numbers) for batch in batches)
    assert list(kept) == batches


def test_a_search_pauses_often() -> None:
    forest = cloud([tight_host(seed, AMOUNTS, 12) for seed in range(20)])
    pauses = [time.thread_time()]
    find_candidates(
        forest,
        asking(AMOUNTS),
        CandidateOrder(MAXIMUM),
        pause=lambda: pauses.append(time.thread_time()),
    )
    assert float(np.median(np.diff(pauses))) < 0.05
    assert len(pauses) > 1000


@pytest.mark.parametrize("held", [1, 1000])
@pytest.mark.parametrize("units", [0, 20, 4000])
def test_alike_hosts_have_the_same_solutions_in_both_orders(
    monkeypatch: pytest.MonkeyPatch, held: int, units: int
) -> None:
    monkeypatch.setattr(walks, "_SOLUTIONS_HELD_MAX", held)
    monkeypatch.setattr(solver, "_UNITS_AT_ONCE", units)
    forest = cloud([[3, 4, 5]] * 3)
    orders = (CandidateOrder(MAXIMUM), CandidateOrder(MAXIMUM, depth_first=True))
    breadth, depth = (
        sorted((number, batch.solution) for batch in found.batches for number in batch.tree_numbers)
        for found in (timed(forest, asking([2, 2, 3]), order) for order in orders)
    )
    assert breadth == depth
    assert len(set(depth)) == len(depth) > 30


def test_solutions_of_two_sharing_providers_do_not_collide() -> None:
    solutions = list(itertools.product((~0, ~1), repeat=10))
    assert len({hash(solution_key(solution)) for solution in solutions}) == len(solutions)
