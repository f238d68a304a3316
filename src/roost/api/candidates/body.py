"""The body of `GET /allocation_candidates`, joined from pieces of JSON that are made once.

Thousands of candidates differ in their uuids only, so a candidate is a template into which uuids
are filled. Many answers show the same trees, so the JSON of a tree is kept until the tree
changes. Going through dictionaries would cost fifty times as much.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain, groupby
from operator import attrgetter

import numpy as np

from roost.api.candidates.kept_body import BodyWriter, KeptBody, Part, Pieces, with_commas
from roost.api.candidates.summaries import ShownFields, single_summaries, tree_summaries
from roost.api.candidates.summary_cache import SummaryCache
from roost.api.candidates.template import Template, Templates
from roost.api.microversions import Microversion
from roost.search.batches import Batch, selection
from roost.search.candidates import FoundCandidates
from roost.search.columns import BoolColumn, IntColumn
from roost.search.effort import no_pause
from roost.search.forest import Forest

_CHUNK_BYTES = 256 * 1024


def candidate_body(
    found: FoundCandidates,
    version: Microversion,
    cache: SummaryCache,
    pause: Callable[[], None] = no_pause,
    earlier: KeptBody | None = None,
    *,
    further: Sequence[FoundCandidates] = (),
) -> KeptBody:
    """The whole body; it calls `pause` after every few pieces.

    `earlier` is a body for the same question in the same version, perhaps from another forest.
    `further` has what later variants of the query find in the same forest.
    """
    variants = (found, *further)
    sharing_uuids = [[provider.uuid for provider in its.sharing_providers] for its in variants]
    writer = BodyWriter((found.forest.vocabulary, sharing_uuids), earlier, pause)
    allocated = _AllocatedProviders(found.forest, nested=version >= (1, 29))
    writer.add(b'{"allocation_requests":[')
    writer.add_parts(
        chain.from_iterable(
            _candidate_parts(number, its, version, allocated) for number, its in enumerate(variants)
        )
    )
    writer.add(b'],"provider_summaries":{')
    writer.add_parts(_summary_parts(found, version, allocated, cache))
    writer.add(b"}}")
    return writer.finish()


def streamed_body(
    found: FoundCandidates,
    version: Microversion,
    cache: SummaryCache,
    *,
    further: Sequence[FoundCandidates] = (),
) -> Iterator[bytes]:
    """The body in chunks, so that memory holds one chunk of it at a time."""
    waiting: Pieces = []
    size = 0
    for pieces in _body((found, *further), version, cache):
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
        chain.from_iterable(
            _candidates(found, found.batches, _templates(found, version), allocated)
            for found in variants
        )
    )
    yield [b'],"provider_summaries":{']
    yield from _separated(_summaries(variants[0], version, allocated, cache))
    yield [b"}}"]


def _separated(entries: Iterable[Pieces]) -> Iterator[Pieces]:
    """The same entries, with a comma before each but the first."""
    is_first = True
    for several in entries:
        yield with_commas(several, is_first=is_first)
        is_first = False


def _candidate_parts(
    number: int, found: FoundCandidates, version: Microversion, allocated: _AllocatedProviders
) -> Iterator[Part]:
    """A part for each run of batches of one block, of the variant with this number."""
    templates = _templates(found, version)
    runs_before: Counter[int] = Counter()
    for block_number, batches in groupby(found.batches, attrgetter("block_number")):
        run = list(batches)
        for batch in run:
            allocated.add(found, batch, templates.of(batch.solution))
        token = found.forest.blocks[block_number].token
        key = f"candidates {number}", token, runs_before[block_number]
        yield Part(key, run, partial(_candidates, found, run, templates))
        runs_before[block_number] += 1


def _summary_parts(
    found: FoundCandidates,
    version: Microversion,
    allocated: _AllocatedProviders,
    cache: SummaryCache,
) -> Iterator[Part]:
    """A part for each block."""
    for block_number, marked in allocated.by_block():
        yield Part(
            ("summaries", found.forest.blocks[block_number].token, 0),
            marked.tobytes(),
            partial(_block_summaries, found, version, block_number, marked, cache),
        )


def _summaries(
    found: FoundCandidates,
    version: Microversion,
    allocated: _AllocatedProviders,
    cache: SummaryCache,
) -> Iterator[Pieces]:
    for block_number, marked in allocated.by_block():
        yield from _block_summaries(found, version, block_number, marked, cache)


def _block_summaries(
    found: FoundCandidates,
    version: Microversion,
    block_number: int,
    marked: IntColumn,
    cache: SummaryCache,
) -> Iterator[Pieces]:
    """The summaries of what `_AllocatedProviders` has marked in a block."""
    forest, block = found.forest, found.forest.blocks[block_number]
    if version >= (1, 29):
        return tree_summaries(forest, block, marked, cache)
    shown = ShownFields.of(version, _requested(found))
    return single_summaries(forest, block, marked, shown, cache)


def _candidates(
    found: FoundCandidates,
    batches: Iterable[Batch],
    templates: Templates,
    allocated: _AllocatedProviders | None = None,
) -> Iterator[Pieces]:
    for batch in batches:
        template = templates.of(batch.solution)
        if allocated is not None:
            allocated.add(found, batch, template)
        yield [template.filled(found.forest.blocks[batch.block_number], batch.tree_numbers)]


def _templates(found: FoundCandidates, version: Microversion) -> Templates:
    sharing_uuids = [sharing.uuid for sharing in found.sharing_providers]
    return Templates(found.slots, sharing_uuids, version, found.choices)


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
