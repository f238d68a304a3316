"""The body of `GET /allocation_candidates`, joined from pieces of JSON that are made once.

Thousands of candidates differ in their uuids only, so a candidate is a template into which uuids
are filled. Many answers show the same trees, so the JSON of a tree is kept until the tree
changes. Going through dictionaries would cost fifty times as much.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import TypeAlias

import numpy as np

from roost.api.candidates.summaries import (
    ShownFields,
    SummaryCache,
    single_summaries,
    tree_summaries,
)
from roost.api.candidates.template import Piece, Template, Templates
from roost.api.http.microversions import Microversion
from roost.search.candidates.effort import no_pause
from roost.search.candidates.search import FoundCandidates
from roost.search.candidates.walks import Batch, selection
from roost.search.forest.forest import Forest
from roost.search.forest.rows import BoolColumn, IntColumn

Pieces: TypeAlias = list[Piece]

_CHUNK_BYTES = 256 * 1024


def candidate_body(
    variants: Sequence[FoundCandidates],
    version: Microversion,
    cache: SummaryCache,
    pause: Callable[[], None] = no_pause,
) -> bytes:
    """The whole body; it calls `pause` after every few pieces.

    `variants` has what a search found, or what the variants of a query find in one forest.
    """
    # They are joined in one step: to copy each of them twice costs more than the search.
    whole: Pieces = []
    for pieces in _body(variants, version, cache):
        whole += pieces
        pause()
    return b"".join(whole)


def streamed_body(
    variants: Sequence[FoundCandidates], version: Microversion, cache: SummaryCache
) -> Iterator[bytes]:
    """The body in chunks, so that memory holds one chunk of it at a time."""
    waiting: Pieces = []
    size = 0
    for pieces in _body(variants, version, cache):
        waiting += pieces
        size += sum(map(len, pieces))
        if size > _CHUNK_BYTES:
            yield b"".join(waiting)
            waiting, size = [], 0
    yield b"".join(waiting)


def _body(
    variants: Sequence[FoundCandidates], version: Microversion, cache: SummaryCache
) -> Iterator[Pieces]:
    """The candidates, then the summaries of the providers in their allocations."""
    allocated = _AllocatedProviders(variants[0].forest, nested=version >= (1, 29))
    yield [b'{"allocation_requests":[']
    yield from _separated(
        chain.from_iterable(_candidates(found, version, allocated) for found in variants)
    )
    yield [b'],"provider_summaries":{']
    yield from _separated(_summaries(variants[0], version, allocated, cache))
    yield [b"}}"]


def _separated(entries: Iterable[Pieces]) -> Iterator[Pieces]:
    """The same entries, with a comma before each but the first."""
    first_separator = b""
    for several in entries:
        separated: Pieces = [b","] * (2 * len(several))
        separated[0], separated[1::2] = first_separator, several
        yield separated
        first_separator = b","


def _candidates(
    found: FoundCandidates, version: Microversion, allocated: _AllocatedProviders
) -> Iterator[Pieces]:
    sharing_uuids = [sharing.uuid for sharing in found.sharing_providers]
    templates = Templates(found.slots, sharing_uuids, version, found.alternatives)
    for batch in found.batches:
        template = templates.of(batch.solution)
        allocated.add(found, batch, template)
        yield [template.filled(found.forest.blocks[batch.block_number], batch.tree_numbers)]


def _summaries(
    found: FoundCandidates,
    version: Microversion,
    allocated: _AllocatedProviders,
    cache: SummaryCache,
) -> Iterator[Pieces]:
    forest, shown = found.forest, ShownFields.of(version, _requested(found))
    for block_number, marked in allocated.by_block():
        block = forest.blocks[block_number]
        if version >= (1, 29):
            yield from tree_summaries(forest, block, marked, cache)
        else:
            yield from single_summaries(forest, block, marked, shown, cache)


def _requested(found: FoundCandidates) -> frozenset[str]:
    """The resource classes of the query."""
    return frozenset(name for slot in found.slots for name in slot.resources)


class _AllocatedProviders:
    """The trees (from 1.29 on) or the providers (before) in the allocations of any candidate."""

    def __init__(self, forest: Forest, *, nested: bool) -> None:
        self._forest = forest
        self._nested = nested
        # By block number, a mark for each tree or provider of the block. A slow client makes an
        # answer hold all marks for long, so a mark takes one byte.
        self._marks: dict[int, BoolColumn] = {}

    def add(self, found: FoundCandidates, batch: Batch, template: Template) -> None:
        """Mark the trees or providers in the allocations of a batch."""
        marks = self._of(batch.block_number)
        if self._nested:
            if template.offsets:
                marks[selection(batch.tree_numbers)] = True
        else:
            starts = self._forest.blocks[batch.block_number].roots[selection(batch.tree_numbers)]
            for offset in template.offsets:
                marks[starts + offset] = True
        for sharing_number in template.sharing_numbers:
            provider = found.sharing_providers[sharing_number]
            self._of(provider.own_tree.block_number)[
                provider.own_tree.tree_number if self._nested else provider.ref.provider_index
            ] = True

    def by_block(self) -> Iterator[tuple[int, IntColumn]]:
        """The numbers of the trees, or the indexes of the providers, of each block."""
        for block_number, marks in self._marks.items():
            marked = np.flatnonzero(marks)
            if len(marked):
                yield block_number, marked

    def _of(self, block_number: int) -> BoolColumn:
        marks = self._marks.get(block_number)
        if marks is None:
            block = self._forest.blocks[block_number]
            size = block.tree_count if self._nested else len(block)
            marks = self._marks[block_number] = np.zeros(size, np.bool_)
        return marks
