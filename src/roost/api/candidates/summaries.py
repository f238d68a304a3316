"""The provider summaries in an answer: capacity, usage and traits of providers or whole trees."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import cast

import numpy as np

from roost.api.candidates.summary_cache import SummaryCache
from roost.api.candidates.template import Piece
from roost.api.candidates.trait_lists import TraitLists
from roost.api.microversions import Microversion
from roost.search.block import Block
from roost.search.columns import IntColumn
from roost.search.forest import Forest

# The number of providers in one piece: a few hundred kilobytes. A tree is never divided.
_PROVIDERS_TOGETHER = 2000
# The number of trees of a block that are cut out of the columns one by one. For more trees, one
# pass over the whole columns is cheaper.
_SINGLE_TREES_MAX = 8

_IN_TREE = (
    b'"%b":{"resources":{%b},"traits":%b,"parent_provider_uuid":%b,"root_provider_uuid":"%b"}'
)


@dataclass(frozen=True, slots=True)
class _ShownFields:
    """The fields that a version shows of a single provider."""

    with_traits: bool
    # The resource classes to show; `None` for all of them.
    classes: Collection[str] | None


def summaries(
    forest: Forest,
    allocated: Iterable[tuple[int, IntColumn]],
    requested: Collection[str],
    version: Microversion,
    cache: SummaryCache,
) -> Iterator[list[Piece]]:
    """The entries of the object `provider_summaries`, some at a time.

    `allocated` has, for each block, the numbers of trees from 1.29 on, and the indexes of
    providers before.
    """
    if version >= (1, 29):
        for block_number, trees in allocated:
            yield from _trees_of_block(forest, forest.blocks[block_number], trees, cache)
        return
    shown = _ShownFields(
        with_traits=version >= (1, 17),
        classes=None if version >= (1, 27) else requested,
    )
    traits = cache.trait_lists(forest)
    for block_number, indexes in allocated:
        for index in indexes.tolist():
            yield [_provider(forest, forest.blocks[block_number], index, shown, traits)]


def _trees_of_block(
    forest: Forest, block: Block, trees: IntColumn, cache: SummaryCache
) -> Iterator[list[Piece]]:
    together = max(1, _PROVIDERS_TOGETHER * block.tree_count // len(block))
    for first in range(0, len(trees), together):
        several = trees[first : first + together]
        versions = block.tree_versions[several].tolist()
        texts = cache.find(versions)
        if None in texts:
            missing = [index for index, text in enumerate(texts) if text is None]
            traits = cache.trait_lists(forest)
            rendered = list(_render_trees(forest, block, several[missing].tolist(), traits))
            for index, text in zip(missing, rendered, strict=True):
                texts[index] = text
            missing_versions = [versions[index] for index in missing]
            cache.keep(forest, dict(zip(missing_versions, rendered, strict=True)))
        yield cast("list[Piece]", texts)


def _render_trees(
    forest: Forest, block: Block, trees: list[int], trait_lists: TraitLists
) -> Iterator[bytes]:
    whole = _Resources(forest, block, 0, len(block)) if len(trees) > _SINGLE_TREES_MAX else None
    for tree in trees:
        start, end = block.starts[tree : tree + 2].tolist()
        resources = whole or _Resources(forest, block, start, end)
        uuids = [block.uuids[index] for index in range(start, end)]
        parents = (block.parents[start:end] - start).tolist()
        traits = block.trait_set_numbers[start:end].tolist()
        yield b",".join(
            [
                _IN_TREE
                % (
                    uuid,
                    resources.of(start + offset),
                    trait_lists.of(traits[offset]),
                    b"null" if parents[offset] < 0 else b'"%b"' % uuids[parents[offset]],
                    uuids[0],
                )
                for offset, uuid in enumerate(uuids)
            ]
        )


def _provider(
    forest: Forest, block: Block, index: int, shown: _ShownFields, trait_lists: TraitLists
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
            first, last = np.searchsorted(inventory.indexes, (start, end)).tolist()
            text = b'"%s":{"capacity":%%d,"used":%%d}' % name.encode()
            for index, capacity, used in zip(
                inventory.indexes[first:last].tolist(),
                inventory.capacity[first:last].tolist(),
                inventory.used[first:last].tolist(),
                strict=True,
            ):
                self._pieces[index - start].append(text % (capacity, used))

    def of(self, index: int) -> bytes:
        """The entries of the object `resources` of the provider at this index."""
        return b",".join(self._pieces[index - self._start])
