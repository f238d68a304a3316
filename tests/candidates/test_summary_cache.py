"""The cache of provider summaries keeps trees, forgets changed trees, and has a bound."""

from __future__ import annotations

from dataclasses import replace

import pytest

from roost.api.candidates import summaries
from roost.api.candidates.summaries import SummaryCache
from roost.search.forest.forest import Forest
from roost.search.forest.rows import UsageRows, column
from roost.search.forest.vocabulary import Vocabulary
from support.worlds.forests import CLASSES, Node, forest_of

HOST = [Node(None, {"VCPU": 8})]
TREES = 20
SUMMARY = b"x" * 1000


def versions(forest: Forest) -> list[int]:
    return [version for block in forest.blocks for version in block.tree_versions.tolist()]


def claim(forest: Forest, provider_id: int) -> Forest:
    usages = UsageRows(column([provider_id]), column([CLASSES["VCPU"]]), column([1]))
    return forest.with_all_usages(usages, [provider_id])


def keep_missing(cache: SummaryCache, forest: Forest) -> int:
    """Use the cache as an answer with all trees does, and count the trees that are missing."""
    numbers = versions(forest)
    found = cache.find(numbers)
    missing = [number for number, text in zip(numbers, found, strict=True) if text is None]
    cache.keep(forest, dict.fromkeys(missing, SUMMARY))
    return len(missing)


def test_a_tree_is_found_until_it_changes() -> None:
    cache = SummaryCache()
    forest = forest_of([HOST] * TREES)
    assert keep_missing(cache, forest) == TREES
    assert keep_missing(cache, forest) == 0
    assert keep_missing(cache, claim(forest, 3)) == 1


def test_a_tree_that_has_changed_is_the_only_tree_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each of many claims costs one tree, and the cache stays small."""
    monkeypatch.setattr(summaries, "_BYTES_USUAL", 2 * TREES * len(SUMMARY))
    cache = SummaryCache()
    forest = forest_of([HOST] * TREES)
    keep_missing(cache, forest)
    seen = set(versions(forest))
    for number in range(500):
        forest = claim(forest, 1 + number % TREES)
        seen.update(versions(forest))
        assert keep_missing(cache, forest) == 1
        assert sum(text is not None for text in cache.find(seen)) <= 3 * TREES


def test_a_forest_that_is_too_large_is_kept_in_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(summaries, "BYTES_MAX", TREES * len(SUMMARY))
    monkeypatch.setattr(summaries, "_BYTES_USUAL", len(SUMMARY))
    cache = SummaryCache()
    forest = forest_of([HOST] * 10 * TREES)
    for number in versions(forest):
        cache.keep(forest, {number: SUMMARY})
    found = [text for text in cache.find(versions(forest)) if text is not None]
    assert 0 < len(found) <= TREES
    assert cache.find(versions(forest)[-1:]) == [SUMMARY]


def test_trait_lists_are_those_of_the_given_forest() -> None:
    cache = SummaryCache()
    forest = forest_of([HOST] * TREES)
    lists = cache.trait_lists(forest)
    assert lists.of(0) == b"[]"
    assert cache.trait_lists(claim(forest, 3)) is lists
    renamed = forest.with_vocabulary(Vocabulary.of(CLASSES, {"CUSTOM_GOLD": 1}))
    assert cache.trait_lists(renamed) is not lists
    growth = forest.trait_sets.growth()
    number = growth.set_number(frozenset({1}))
    grown = replace(renamed, trait_sets=growth.table)
    assert cache.trait_lists(renamed).of(0) == b"[]"
    assert cache.trait_lists(grown).of(number) == b'["CUSTOM_GOLD"]'
