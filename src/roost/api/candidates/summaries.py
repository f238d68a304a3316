"""The provider summaries in an answer: capacity, usage and traits of providers or whole trees."""

from __future__ import annotations

from collections.abc import Collection, Iterator
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
    forest: Forest, block: Block, tree_numbers: list[int], trait_lists: TraitLists
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
    forest: Forest, block: Block, index: int, shown: ShownFields, trait_lists: TraitLists
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
