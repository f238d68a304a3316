"""A body that takes parts of an earlier body is the body that is made without it."""

from __future__ import annotations

import pytest

from roost.api.candidates.body import candidate_body
from roost.api.candidates.kept_body import KeptBody
from roost.api.candidates.summary_cache import SummaryCache
from roost.api.microversions import Microversion
from roost.model.candidates import CandidateQuery, RequestGroup
from roost.search.candidate_order import CandidateOrder
from roost.search.candidates import find_candidates
from roost.search.columns import column
from roost.search.forest import Forest
from roost.search.rows import ForestRows, MembershipRows, UsageRows
from roost.search.vocabulary import Vocabulary
from support.worlds.forests import CLASSES, Node, rows_of

TRAITS = {"MISC_SHARES_VIA_AGGREGATE": 1, "CUSTOM_GOLD": 2}
RACK = "00000000-0000-4000-8000-00000000000a"
POOL, HOST = [Node(None, {"MEMORY_MB": 8})], [Node(None, {"VCPU": 8})]
VERSIONS = [Microversion(1, 10), Microversion(1, 28), Microversion(1, 39)]
QUERY = CandidateQuery((RequestGroup(resources={"VCPU": 1, "MEMORY_MB": 8}),))


@pytest.fixture
def forest(monkeypatch: pytest.MonkeyPatch) -> Forest:
    """Two pools and three hosts in one rack, each in a block of its own."""
    monkeypatch.setattr("roost.search.block_building.BLOCK_PROVIDERS", 1)
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
    return forest.with_usages(used, [provider_id])


def body(forest: Forest, version: Microversion, earlier: KeptBody | None = None) -> KeptBody:
    found = find_candidates(forest, QUERY, CandidateOrder(maximum=1000))
    return candidate_body(found, version, SummaryCache(), earlier=earlier)


def refuse(*args: object) -> None:
    raise AssertionError("a part is made anew")


@pytest.mark.parametrize("version", VERSIONS)
def test_parts_of_blocks_that_have_changed_are_made_anew(
    forest: Forest, version: Microversion
) -> None:
    earlier = body(forest, version)
    for provider_id, name in ((3, "VCPU"), (5, "VCPU"), (1, "MEMORY_MB")):
        changed = claim(forest, provider_id, name)
        assert body(changed, version, earlier).text == body(changed, version).text


@pytest.mark.parametrize("version", VERSIONS)
def test_parts_with_other_sharing_providers_are_made_anew(
    forest: Forest, version: Microversion
) -> None:
    """The only pool with room is the first sharing provider of the search, whichever it is."""
    first, second = claim(forest, 2, "MEMORY_MB"), claim(forest, 1, "MEMORY_MB")
    assert body(second, version, body(first, version)).text == body(second, version).text


@pytest.mark.parametrize("version", VERSIONS)
def test_parts_with_other_names_are_made_anew(forest: Forest, version: Microversion) -> None:
    names = {"MISC_SHARES_VIA_AGGREGATE": 1, "CUSTOM_SILVER": 2}
    renamed = forest.with_vocabulary(Vocabulary.of(CLASSES, names))
    assert body(renamed, version, body(forest, version)).text == body(renamed, version).text


def test_a_body_that_took_parts_gives_them_to_the_next_one(
    forest: Forest, monkeypatch: pytest.MonkeyPatch
) -> None:
    version = VERSIONS[-1]
    again = body(forest, version, body(forest, version))
    for name in ("body.tree_summaries", "template.Template.filled"):
        monkeypatch.setattr(f"roost.api.candidates.{name}", refuse)
    assert body(forest, version, again).text == again.text
