"""Provider summaries: what there is and how much of it is used, for providers and whole trees."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import orjson

from roost.api.candidate_template import Piece
from roost.api.microversions import Microversion
from roost.search.block import Block
from roost.search.forest import Forest

# All that a process keeps of rendered trees: those of 70,000 providers or more.
KEPT_BYTES_MAX = 48 * 1024 * 1024

# So many providers make a piece of a few hundred kilobytes; a tree is never divided.
_PROVIDERS_TOGETHER = 2000
# Up to so many trees of a block are read one by one, more of them together.
_SINGLE_TREES_MAX = 8


_IN_TREE = (
    b'"%b":{"resources":{%b},"traits":%b,"parent_provider_uuid":%b,"root_provider_uuid":"%b"}'
)


@dataclass(frozen=True, slots=True)
class _Look:
    """What a version shows of a single provider."""

    with_traits: bool
    # Only these classes; nothing: all.
    classes: Collection[str] | None


def summaries(
    forest: Forest,
    givers: Iterable[tuple[int, list[int]]],
    requested: Collection[str],
    version: Microversion,
) -> Iterator[list[Piece]]:
    """The members of the object `provider_summaries`, some at a time.

    Since 1.29 those of whole trees, which are given by block; before, of single providers.
    """
    if version >= (1, 29):
        for number, trees in givers:
            yield from _trees_of_block(forest, forest.blocks[number], trees)
        return
    look = _Look(
        with_traits=version >= (1, 17),
        classes=None if version >= (1, 27) else requested,
    )
    for number, places in givers:
        for place in places:
            yield [_provider(forest, forest.blocks[number], place, look)]


def _trees_of_block(forest: Forest, block: Block, trees: list[int]) -> Iterator[list[Piece]]:
    kept = block.fragments
    together = max(1, _PROVIDERS_TOGETHER * block.tree_count // len(block))
    for first in range(0, len(trees), together):
        several = trees[first : first + together]
        fragments = [kept[tree] for tree in several]
        missing = [index for index, fragment in enumerate(fragments) if fragment is None]
        rendered = _render_trees(forest, block, [several[index] for index in missing])
        for index, fragment in zip(missing, rendered, strict=True):
            fragments[index] = kept[several[index]] = fragment
            forest.kept.bytes += len(fragment)
        yield [fragment for fragment in fragments if fragment is not None]
        if forest.kept.bytes > KEPT_BYTES_MAX:
            _make_room(forest)


def _make_room(forest: Forest) -> None:
    """Forget rendered trees, if they are really too many: those of former blocks are gone."""
    forest.kept.bytes = sum(
        len(fragment) for block in forest.blocks for fragment in block.fragments if fragment
    )
    if forest.kept.bytes > KEPT_BYTES_MAX // 2:
        for block in forest.blocks:
            block.fragments[:] = [None] * block.tree_count
        forest.kept.bytes = 0


def _render_trees(forest: Forest, block: Block, trees: list[int]) -> Iterator[bytes]:
    # Single trees are cut out of the columns; many are cheaper with the columns as a whole.
    whole = _Resources(forest, block, 0, len(block)) if len(trees) > _SINGLE_TREES_MAX else None
    for tree in trees:
        start, end = block.starts[tree : tree + 2].tolist()
        resources = whole or _Resources(forest, block, start, end)
        uuids = [block.uuids[place] for place in range(start, end)]
        parents = (block.parents[start:end] - start).tolist()
        traits = block.traits[start:end].tolist()
        yield b",".join(
            [
                _IN_TREE
                % (
                    uuid,
                    resources.of(start + index),
                    _traits(forest, traits[index]),
                    # A root has a parent below zero.
                    b"null" if parents[index] < 0 else b'"%b"' % uuids[parents[index]],
                    uuids[0],
                )
                for index, uuid in enumerate(uuids)
            ]
        )


def _provider(forest: Forest, block: Block, place: int, look: _Look) -> bytes:
    """One provider, as it was shown before trees were."""
    uuid = block.uuids[place]
    resources = _Resources(forest, block, place, place + 1, look.classes).of(place)
    if not look.with_traits:
        return b'"%b":{"resources":{%b}}' % (uuid, resources)
    traits = _traits(forest, int(block.traits[place]))
    return b'"%b":{"resources":{%b},"traits":%b}' % (uuid, resources, traits)


class _Resources:
    """The resources of some neighbours in a block, each rendered."""

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
        for class_id, stock in block.stocks.items():
            name = forest.vocabulary.class_names.get(class_id)
            # A database that others wrote may have inventory of a class that is gone.
            if name is None or (classes is not None and name not in classes):
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


def _traits(forest: Forest, number: int) -> bytes:
    found = forest.trait_fragments.get(number)
    if found is None:
        names = forest.vocabulary.trait_names
        # By id: standard traits before custom ones, as clients have always seen them.
        known = (names.get(id_) for id_ in sorted(forest.trait_sets[number]))
        found = orjson.dumps([name for name in known if name is not None])
        forest.trait_fragments[number] = found
    return found
