"""Provider summaries: what there is and how much of it is used, for providers and whole trees."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import orjson

from roost.api.candidate_template import Piece
from roost.api.microversions import Microversion
from roost.search.block import Block
from roost.search.forest import Forest, ProviderRef

# A rendered provider has 300 to 900 bytes. Rendered trees are kept in clouds up to this size;
# in larger ones each answer renders its trees anew, and memory stays small.
KEPT_PROVIDERS_MAX = 300_000

# So many trees make a piece of a few hundred kilobytes.
_TREES_TOGETHER = 256
# Up to so many trees of a block are read one by one, more of them together.
_SINGLE_TREES_MAX = 8


@dataclass(frozen=True, slots=True)
class _Look:
    """What a version shows of a provider."""

    with_traits: bool
    with_tree: bool
    # Only these classes; nothing: all.
    classes: Collection[str] | None


def summaries(
    forest: Forest,
    trees: Mapping[int, Iterable[int]],
    providers: Iterable[ProviderRef],
    requested: Collection[str],
    version: Microversion,
) -> Iterator[list[Piece]]:
    """The members of the object `provider_summaries`, some at a time.

    Since 1.29 those of whole trees, which are given by block; before, of single providers.
    """
    if version >= (1, 29):
        keep = forest.provider_count <= KEPT_PROVIDERS_MAX
        for number, members in trees.items():
            yield from _trees_of_block(forest, forest.blocks[number], list(members), keep=keep)
        return
    look = _Look(
        with_traits=version >= (1, 17),
        with_tree=False,
        classes=None if version >= (1, 27) else requested,
    )
    for number, place in providers:
        yield [_provider(forest, forest.blocks[number], place, look)]


def _trees_of_block(
    forest: Forest, block: Block, trees: list[int], *, keep: bool
) -> Iterator[list[Piece]]:
    kept = block.fragments
    for first in range(0, len(trees), _TREES_TOGETHER):
        several = trees[first : first + _TREES_TOGETHER]
        fragments = [kept[tree] for tree in several]
        missing = [index for index, fragment in enumerate(fragments) if fragment is None]
        rendered = _render_trees(forest, block, [several[index] for index in missing])
        for index, fragment in zip(missing, rendered, strict=True):
            fragments[index] = fragment
            if keep:
                kept[several[index]] = fragment
        yield [fragment for fragment in fragments if fragment is not None]


def _render_trees(forest: Forest, block: Block, trees: list[int]) -> Iterator[bytes]:
    look = _Look(with_traits=True, with_tree=True, classes=None)
    # Single trees are cut out of the columns; many are cheaper with the columns as a whole.
    whole = (
        _Resources(forest, block, 0, len(block), look) if len(trees) > _SINGLE_TREES_MAX else None
    )
    for tree in trees:
        start, end = block.starts[tree : tree + 2].tolist()
        resources = whole or _Resources(forest, block, start, end, look)
        yield b",".join(
            [
                _summary(forest, block, place, resources.of(place), look)
                for place in range(start, end)
            ]
        )


def _provider(forest: Forest, block: Block, place: int, look: _Look) -> bytes:
    resources = _Resources(forest, block, place, place + 1, look)
    return _summary(forest, block, place, resources.of(place), look)


class _Resources:
    """The resources of some neighbours in a block, each rendered."""

    def __init__(self, forest: Forest, block: Block, start: int, end: int, look: _Look) -> None:
        self._start = start
        self._pieces: list[list[bytes]] = [[] for _ in range(end - start)]
        for class_id, stock in block.stocks.items():
            name = forest.vocabulary.class_names[class_id]
            if look.classes is not None and name not in look.classes:
                continue
            first, last = np.searchsorted(stock.places, (start, end)).tolist()
            text = b'"%s":{"capacity":%%d,"used":%%d}' % name.encode()
            for place, capacity, used in zip(
                stock.places[first:last].tolist(),
                stock.capacity[first:last].tolist(),
                stock.used[first:last].tolist(),
                strict=True,
            ):
                self._pieces[place - start].append(text % (capacity, used))

    def of(self, place: int) -> bytes:
        """The members of the object `resources` of the provider at this place."""
        return b",".join(self._pieces[place - self._start])


def _summary(forest: Forest, block: Block, place: int, resources: bytes, look: _Look) -> bytes:
    uuids = block.uuids
    if not look.with_traits:
        return b'"%b":{"resources":{%b}}' % (uuids[place], resources)
    traits = _traits(forest, int(block.traits[place]))
    if not look.with_tree:
        return b'"%b":{"resources":{%b},"traits":%b}' % (uuids[place], resources, traits)
    parent = int(block.parents[place])
    return (
        b'"%b":{"resources":{%b},"traits":%b,"parent_provider_uuid":%b,"root_provider_uuid":"%b"}'
        % (
            uuids[place],
            resources,
            traits,
            b"null" if parent < 0 else b'"%b"' % uuids[parent],
            uuids[int(block.starts[block.trees[place]])],
        )
    )


def _traits(forest: Forest, number: int) -> bytes:
    found = forest.trait_fragments.get(number)
    if found is None:
        names = forest.vocabulary.trait_names
        # By id: standard traits before custom ones, as clients have always seen them.
        found = orjson.dumps([names[id_] for id_ in sorted(forest.trait_sets[number])])
        forest.trait_fragments[number] = found
    return found
