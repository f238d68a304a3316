"""The provider summaries in an answer: capacity, usage and traits of providers or whole trees."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import cast

import numpy as np
import orjson

from roost.api.candidates.template import Piece
from roost.api.http.microversions import Microversion
from roost.search.forest.block import Block
from roost.search.forest.forest import Forest
from roost.search.forest.rows import IntColumn

# The number of providers in one piece: a few hundred kilobytes. A tree is never divided.
_PROVIDERS_TOGETHER = 2000
# The number of trees of a block that are cut out of the columns one by one. For more trees, one
# pass over the whole columns is cheaper.
_SINGLE_TREES_MAX = 8

# The trees of 70,000 providers or more.
BYTES_MAX = 48 * 1024 * 1024
# In a small cloud, the cache grows to this size before it drops trees that have changed.
_BYTES_USUAL = 4 * 1024 * 1024
# What an entry takes beside its text.
_ENTRY_BYTES = 150

_PROVIDER_OF_TREE = (
    b'"%b":{"resources":{%b},"traits":%b,"parent_provider_uuid":%b,"root_provider_uuid":"%b"}'
)


@dataclass(frozen=True, slots=True)
class ShownFields:
    """The fields that a version shows of a single provider."""

    with_traits: bool
    # The resource classes to show; `None` for all of them.
    classes: Collection[str] | None

    @classmethod
    def of(cls, version: Microversion, requested: Collection[str]) -> ShownFields:
        """The fields that this version shows after a request for these resource classes."""
        return cls(
            with_traits=version >= (1, 17), classes=None if version >= (1, 27) else requested
        )


class SummaryCache:
    """The summaries of whole trees by version, and the lists of traits. For any number of threads.

    A tree that changes gets another version. Its old summary stays until the cache is full.
    """

    def __init__(self) -> None:
        self._trees: dict[int, bytes] = {}
        self._bytes = 0
        self._bytes_allowed = _BYTES_USUAL
        self._trait_lists: _TraitLists | None = None
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

    def trait_lists(self, forest: Forest) -> _TraitLists:
        """The lists of traits of this forest."""
        lists = self._trait_lists
        if lists is None or not lists.belong_to(forest):
            lists = self._trait_lists = _TraitLists(forest)
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


class _TraitLists:
    """The list of trait names of each set of traits in a forest, made once and kept."""

    def __init__(self, forest: Forest) -> None:
        self._sets = forest.trait_sets
        self._vocabulary = forest.vocabulary
        self._texts: dict[int, bytes] = {}

    def belong_to(self, forest: Forest) -> bool:
        """Whether the forest has the same sets, and its traits have the same names."""
        return self._sets is forest.trait_sets and self._vocabulary is forest.vocabulary

    def of(self, set_number: int) -> bytes:
        """The list for the set with this set number."""
        text = self._texts.get(set_number)
        if text is None:
            names = self._vocabulary.trait_names
            # By id: standard traits before custom ones, as clients have always seen them.
            known = (names.get(id_) for id_ in sorted(self._sets[set_number]))
            text = self._texts[set_number] = orjson.dumps(
                [name for name in known if name is not None]
            )
        return text


def tree_summaries(
    forest: Forest, block: Block, tree_numbers: IntColumn, cache: SummaryCache
) -> Iterator[list[Piece]]:
    """From 1.29 on: the entries of `provider_summaries` for these trees, some at a time."""
    together = max(1, _PROVIDERS_TOGETHER * block.tree_count // len(block))
    for first in range(0, len(tree_numbers), together):
        several = tree_numbers[first : first + together]
        tree_versions = block.tree_versions[several].tolist()
        texts = cache.find(tree_versions)
        if None in texts:
            missing = [position for position, text in enumerate(texts) if text is None]
            traits = cache.trait_lists(forest)
            rendered = list(_render_trees(forest, block, several[missing].tolist(), traits))
            for position, text in zip(missing, rendered, strict=True):
                texts[position] = text
            missing_versions = [tree_versions[position] for position in missing]
            cache.keep(forest, dict(zip(missing_versions, rendered, strict=True)))
        yield cast("list[Piece]", texts)


def single_summaries(
    forest: Forest, block: Block, indexes: IntColumn, shown: ShownFields, cache: SummaryCache
) -> Iterator[list[Piece]]:
    """Before 1.29: the entries of `provider_summaries` for the providers at these indexes."""
    traits = cache.trait_lists(forest)
    for index in indexes.tolist():
        yield [_provider(forest, block, index, shown, traits)]


def _render_trees(
    forest: Forest, block: Block, tree_numbers: list[int], trait_lists: _TraitLists
) -> Iterator[bytes]:
    whole = (
        _Resources(forest, block, 0, len(block)) if len(tree_numbers) > _SINGLE_TREES_MAX else None
    )
    for tree_number in tree_numbers:
        start, end = block.starts[tree_number : tree_number + 2].tolist()
        resources = whole or _Resources(forest, block, start, end)
        uuids = [block.uuids[index] for index in range(start, end)]
        parents = (block.parents[start:end] - start).tolist()
        trait_set_numbers = block.trait_set_numbers[start:end].tolist()
        yield b",".join(
            [
                _PROVIDER_OF_TREE
                % (
                    uuid,
                    resources.of(start + offset),
                    trait_lists.of(trait_set_numbers[offset]),
                    b"null" if parents[offset] < 0 else b'"%b"' % uuids[parents[offset]],
                    uuids[0],
                )
                for offset, uuid in enumerate(uuids)
            ]
        )


def _provider(
    forest: Forest, block: Block, index: int, shown: ShownFields, trait_lists: _TraitLists
) -> bytes:
    """One provider, as versions before 1.29 show it."""
    uuid = block.uuids[index]
    resources = _Resources(forest, block, index, index + 1, shown.classes).of(index)
    if not shown.with_traits:
        return b'"%b":{"resources":{%b}}' % (uuid, resources)
    traits = trait_lists.of(int(block.trait_set_numbers[index]))
    return b'"%b":{"resources":{%b},"traits":%b}' % (uuid, resources, traits)


class _Resources:
    """The resources, in JSON, of the providers from one index of a block to another."""

    def __init__(
        self,
        forest: Forest,
        block: Block,
        start: int,
        end: int,
        classes: Collection[str] | None = None,
    ) -> None:
        self._start = start
        self._pieces: list[list[bytes]] = [[] for _ in range(end - start)]
        for class_id, inventory in block.inventories.items():
            name = forest.vocabulary.class_names.get(class_id)
            # A database that another service filled may have inventory of a class that is gone.
            if name is None or (classes is not None and name not in classes):
                continue
            first_row, end_row = np.searchsorted(inventory.indexes, (start, end)).tolist()
            text = b'"%s":{"capacity":%%d,"used":%%d}' % name.encode()
            for index, capacity, used in zip(
                inventory.indexes[first_row:end_row].tolist(),
                inventory.capacity[first_row:end_row].tolist(),
                inventory.used[first_row:end_row].tolist(),
                strict=True,
            ):
                self._pieces[index - start].append(text % (capacity, used))

    def of(self, index: int) -> bytes:
        """The entries of the object `resources` of the provider at this index."""
        return b",".join(self._pieces[index - self._start])
