"""Provider summaries of whole trees in JSON, kept for later answers. `summaries.py` makes them."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from itertools import islice

from roost.api.candidates.trait_lists import TraitLists
from roost.search.forest import Forest

# The trees of 70,000 providers or more.
BYTES_MAX = 48 * 1024 * 1024
# In a small cloud, the cache grows to this size before it drops trees that have changed.
_BYTES_USUAL = 4 * 1024 * 1024
# What an entry takes beside its text.
_ENTRY_BYTES = 150


class SummaryCache:
    """The summaries of whole trees by version, and the lists of traits. For any number of threads.

    A tree that changes gets another version. Its old summary stays until the cache is full.
    """

    def __init__(self) -> None:
        self._trees: dict[int, bytes] = {}
        self._bytes = 0
        self._bytes_allowed = _BYTES_USUAL
        self._trait_lists: TraitLists | None = None
        self._lock = threading.Lock()

    def find(self, tree_versions: Iterable[int]) -> list[bytes | None]:
        """The summary of each of these versions; `None` for a version that is not in the cache."""
        return list(map(self._trees.get, tree_versions))

    def keep(self, forest: Forest, trees: Mapping[int, bytes]) -> None:
        """Remember the summaries of trees of this forest, by version."""
        with self._lock:
            for version, text in trees.items():
                if version not in self._trees:
                    self._trees[version] = text
                    self._bytes += len(text) + _ENTRY_BYTES
            if self._bytes > self._bytes_allowed:
                self._forget(forest)

    def trait_lists(self, forest: Forest) -> TraitLists:
        """The lists of traits of this forest."""
        lists = self._trait_lists
        if lists is None or not lists.belong_to(forest):
            lists = self._trait_lists = TraitLists(forest)
        return lists

    def _forget(self, forest: Forest) -> None:
        """Drop the trees that are not in the forest, then the older half if that is not enough."""
        current = {version for block in forest.blocks for version in block.tree_versions.tolist()}
        trees = {version: text for version, text in self._trees.items() if version in current}
        if _size(trees) > BYTES_MAX * 3 // 4:
            trees = dict(islice(trees.items(), len(trees) // 2, None))
        # One assignment, so a thread in `find` sees either the old table or the new one.
        self._trees = trees
        self._bytes = _size(trees)
        self._bytes_allowed = min(BYTES_MAX, max(_BYTES_USUAL, 2 * self._bytes))


def _size(trees: Mapping[int, bytes]) -> int:
    return sum(map(len, trees.values())) + _ENTRY_BYTES * len(trees)
