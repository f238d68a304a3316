"""The body of `GET /allocation_candidates`, joined from pieces of JSON that are made once.

Thousands of candidates differ in their uuids only, so a candidate is a template into which uuids
are filled. Many answers show the same trees, so the JSON of a tree is kept until the tree
changes. Going through dictionaries would cost fifty times as much.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

import numpy as np

from roost.api.candidates.summaries import summaries
from roost.api.candidates.summary_cache import SummaryCache
from roost.api.candidates.template import Piece, Template, Templates
from roost.api.microversions import Microversion
from roost.search.batches import Batch
from roost.search.candidates import FoundCandidates
from roost.search.columns import BoolColumn, IntColumn
from roost.search.effort import no_pause

_CHUNK_BYTES = 256 * 1024

# They are joined in one step: to copy each of them twice costs more than the search.
Pieces: TypeAlias = list[Piece]


def candidate_body(
    found: FoundCandidates,
    version: Microversion,
    cache: SummaryCache,
    pause: Callable[[], None] = no_pause,
) -> bytes:
    """The whole body; it calls `pause` after every few pieces."""
    waiting: Pieces = []
    for pieces in _body(found, version, cache):
        waiting += pieces
        pause()
    return b"".join(waiting)


def streamed_body(
    found: FoundCandidates, version: Microversion, cache: SummaryCache
) -> Iterator[bytes]:
    """The body in chunks, so that memory holds one chunk of it at a time."""
    waiting: Pieces = []
    size = 0
    for pieces in _body(found, version, cache):
        waiting += pieces
        size += sum(map(len, pieces))
        if size > _CHUNK_BYTES:
            yield b"".join(waiting)
            waiting, size = [], 0
    yield b"".join(waiting)


def _body(found: FoundCandidates, version: Microversion, cache: SummaryCache) -> Iterator[Pieces]:
    """The candidates, then the summaries of the providers in their allocations."""
    allocated = _AllocatedProviders(found, nested=version >= (1, 29))
    yield [b'{"allocation_requests":[']
    yield from _separated(_candidates(found, version, allocated))
    yield [b'],"provider_summaries":{']
    classes = frozenset(name for slot in found.slots for name in slot.resources)
    members = summaries(found.forest, allocated.by_block(), classes, version, cache)
    yield from _separated(members)
    yield [b"}}"]


def _separated(members: Iterator[Pieces]) -> Iterator[Pieces]:
    """The same members, with a comma before each but the first."""
    first = True
    for several in members:
        pieces: Pieces = [b","] * (2 * len(several))
        pieces[1::2] = several
        yield pieces[1:] if first else pieces
        first = False


def _candidates(
    found: FoundCandidates, version: Microversion, allocated: _AllocatedProviders
) -> Iterator[Pieces]:
    templates = Templates(
        found.slots, [sharing.uuid for sharing in found.sharing_providers], version
    )
    blocks = found.forest.blocks
    for batch in found.batches:
        template = templates.of(batch.solution)
        allocated.add(batch, template)
        yield [template.filled(blocks[batch.block], batch.trees)]


class _AllocatedProviders:
    """The trees (from 1.29 on) or the providers (before) in the allocations of any candidate."""

    def __init__(self, found: FoundCandidates, *, nested: bool) -> None:
        self._found = found
        self._nested = nested
        # By block, a mark for each of its trees or providers. A mark takes one byte, because a slow
        # client makes an answer hold all marks for a long time.
        self._marks: dict[int, BoolColumn] = {}

    def add(self, batch: Batch, template: Template) -> None:
        """Mark the trees or providers in the allocations of a batch."""
        marks = self._of(batch.block)
        if self._nested:
            if template.members:
                marks[batch.trees] = True
        else:
            starts = self._found.forest.blocks[batch.block].starts[batch.trees]
            for member in template.members:
                marks[starts + member] = True
        for sharing_number in template.sharing:
            provider = self._found.sharing_providers[sharing_number]
            self._of(provider.own_tree.block)[
                provider.own_tree.tree if self._nested else provider.ref.provider_index
            ] = True

    def by_block(self) -> Iterator[tuple[int, IntColumn]]:
        """The numbers of the trees, or the indexes of the providers, of each block."""
        for block, marks in self._marks.items():
            yield block, np.flatnonzero(marks)

    def _of(self, block: int) -> BoolColumn:
        marks = self._marks.get(block)
        if marks is None:
            members = self._found.forest.blocks[block]
            size = members.tree_count if self._nested else len(members)
            marks = self._marks[block] = np.zeros(size, np.bool_)
        return marks
