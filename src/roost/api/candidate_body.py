"""The body of `GET /allocation_candidates`, joined from pieces of JSON that are made once.

Thousands of candidates differ in nothing but uuids, and trees are shown whole and again and
again. So a candidate is a template into which uuids are filled, and a tree is a fragment that
is kept until the tree changes. Going through dictionaries would cost fifty times as much.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

import numpy as np

from roost.api.candidate_template import Piece, Template, Templates
from roost.api.microversions import Microversion
from roost.api.provider_summaries import summaries
from roost.search.batches import Batch
from roost.search.candidates import Found
from roost.search.effort import no_pause
from roost.search.rows import BoolColumn

_BIT_BYTES = 256 * 1024

# Pieces that are put together at once, because copying them one by one more often than needed
# costs more than finding the candidates.
Pieces: TypeAlias = list[Piece]


def candidate_body(
    found: Found, version: Microversion, pause: Callable[[], None] = no_pause
) -> bytes:
    """The whole body; `pause` is called again and again while it is made."""
    waiting: Pieces = []
    for pieces in _body(found, version):
        waiting += pieces
        pause()
    return b"".join(waiting)


def streamed_body(found: Found, version: Microversion) -> Iterator[bytes]:
    """The body bit by bit, so that no more than a bit of it is held at a time."""
    waiting: Pieces = []
    size = 0
    for pieces in _body(found, version):
        waiting += pieces
        size += sum(map(len, pieces))
        if size > _BIT_BYTES:
            yield b"".join(waiting)
            waiting, size = [], 0
    yield b"".join(waiting)


def _body(found: Found, version: Microversion) -> Iterator[Pieces]:
    """The candidates, then the providers that they take from."""
    givers = _Givers(found, nested=version >= (1, 29))
    yield [b'{"allocation_requests":[']
    yield from _separated(_candidates(found, version, givers))
    yield [b'],"provider_summaries":{']
    classes = frozenset(name for part in found.parts for name in part.resources)
    members = summaries(found.forest, givers.by_block(), classes, version)
    yield from _separated(members)
    yield [b"}}"]


def _separated(members: Iterator[Pieces]) -> Iterator[Pieces]:
    """The same with a comma before every member but the first."""
    first = True
    for several in members:
        pieces: Pieces = [b","] * (2 * len(several))
        pieces[1::2] = several
        yield pieces[1:] if first else pieces
        first = False


def _candidates(found: Found, version: Microversion, givers: _Givers) -> Iterator[Pieces]:
    templates = Templates(found.parts, [lender.uuid for lender in found.lenders], version)
    blocks = found.forest.blocks
    for batch in found.batches:
        template = templates.of(batch.solution)
        givers.add(batch, template)
        yield [template.filled(blocks[batch.block], batch.trees)]


class _Givers:
    """The trees (since 1.29) or the providers (before) from which some candidate takes."""

    def __init__(self, found: Found, *, nested: bool) -> None:
        self._found = found
        self._nested = nested
        # By block, for each of its trees or providers whether it is one: a byte each, since an
        # answer that is sent slowly holds them for long.
        self._marks: dict[int, BoolColumn] = {}

    def add(self, batch: Batch, template: Template) -> None:
        """Note from whom the candidates of a batch take."""
        marks = self._of(batch.block)
        if self._nested:
            if template.members:
                marks[batch.trees] = True
        else:
            starts = self._found.forest.blocks[batch.block].starts[batch.trees]
            for member in template.members:
                marks[starts + member] = True
        for number in template.lenders:
            lender = self._found.lenders[number]
            self._of(lender.home.block)[
                lender.home.tree if self._nested else lender.provider.place
            ] = True

    def by_block(self) -> Iterator[tuple[int, list[int]]]:
        """The numbers of the trees, or the places of the providers, of each block."""
        for block, marks in self._marks.items():
            yield block, np.flatnonzero(marks).tolist()

    def _of(self, block: int) -> BoolColumn:
        marks = self._marks.get(block)
        if marks is None:
            members = self._found.forest.blocks[block]
            size = members.tree_count if self._nested else len(members)
            marks = self._marks[block] = np.zeros(size, np.bool_)
        return marks
