"""A body with summaries that earlier answers left is the body that is made without them."""

from __future__ import annotations

import pytest

from roost.api.candidates.body import candidate_body
from roost.api.candidates.summaries import SummaryCache
from roost.api.http.microversions import Microversion
from roost.model.candidate_query.query import CandidateQuery, RequestGroup
from roost.search.candidates.ranking import CandidateOrder
from roost.search.candidates.search import find_candidates
from roost.search.forest.forest import Forest
from roost.search.forest.rows import ForestRows, MembershipRows, UsageRows, column
from roost.search.forest.vocabulary import Vocabulary
from support.worlds.forests import CLASSES, Node, rows_of

TRAITS = {"MISC_SHARES_VIA_AGGREGATE": 1, "CUSTOM_GOLD": 2}
RACK = "00000000-0000-4000-8000-00000000000a"
POOL, HOST = [Node(None, {"MEMORY_MB": 8})], [Node(None, {"VCPU": 8})]
VERSIONS = [Microversion(1, 10), Microversion(1, 28), Microversion(1, 39)]
QUERY = CandidateQuery((RequestGroup(resources={"VCPU": 1, "MEMORY_MB": 8}),))


@pytest.fixture
def forest(monkeypatch: pytest.MonkeyPatch) -> Forest:
    """Two pools and three hosts in one rack, each in a block of its own."""
    monkeypatch.setattr("roost.search.forest.block_building.BLOCK_PROVIDERS", 1)
    rows = rows_of([POOL, POOL, HOST, HOST, HOST])
    everyone = column([1, 2, 3, 4, 5])
    traits = MembershipRows(everyone, ["1", "1", "2", "2", "2"])
    racks = MembershipRows(everyone, [RACK] * 5)
    return Forest.of(
        ForestRows(rows.providers, rows.inventories, rows.usages, traits, racks),
        Vocabulary.of(CLASSES, TRAITS),
    )


def claim(forest: Forest, provider_id: int, name: str) -> Forest:
    used = UsageRows(column([provider_id]), column([CLASSES[name]]), column([1]))
    return forest.with_all_usages(used, [provider_id])


def body(forest: Forest, version: Microversion, cache: SummaryCache | None = None) -> bytes:
    found = find_candidates(forest, QUERY, CandidateOrder(maximum=1000))
    return candidate_body([found], version, cache or SummaryCache())


def after(forest: Forest, version: Microversion) -> SummaryCache:
    """The summaries that an answer from this forest leaves."""
    cache = SummaryCache()
    body(forest, version, cache)
    return cache


@pytest.mark.parametrize("version", VERSIONS)
def test_summaries_of_trees_that_have_changed_are_made_anew(
    forest: Forest, version: Microversion
) -> None:
    cache = after(forest, version)
    for provider_id, name in ((3, "VCPU"), (5, "VCPU"), (1, "MEMORY_MB")):
        changed = claim(forest, provider_id, name)
        assert body(changed, version, cache) == body(changed, version)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_body_names_the_sharing_provider_that_has_room(
    forest: Forest, version: Microversion
) -> None:
    """The only pool with room is the first sharing provider of the search, whichever it is."""
    first, second = claim(forest, 2, "MEMORY_MB"), claim(forest, 1, "MEMORY_MB")
    assert body(second, version, after(first, version)) == body(second, version)
    assert body(second, version) != body(first, version)


@pytest.mark.parametrize("version", VERSIONS)
def test_summaries_with_other_names_are_made_anew(forest: Forest, version: Microversion) -> None:
    swapped = {**CLASSES, "VCPU": CLASSES["MEMORY_MB"], "MEMORY_MB": CLASSES["VCPU"]}
    renamed = forest.with_vocabulary(Vocabulary.of(swapped, TRAITS))
    assert body(renamed, version, after(forest, version)) == body(renamed, version)
