"""The body of `GET /allocation_candidates`, joined from pieces of JSON that are made once.

Thousands of candidates differ in nothing but uuids, and trees are shown whole and again and
again. So a candidate is a template into which uuids are filled, and a tree is a fragment that
is kept until the tree changes. Going through dictionaries would cost fifty times as much.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import TypeAlias

from roost.api.candidate_template import Piece, Template, Templates
from roost.api.microversions import Microversion
from roost.api.provider_summaries import summaries
from roost.search.candidates import Batch, Found
from roost.search.forest import ProviderRef, TreeRef

_BIT_BYTES = 256 * 1024

# Pieces that are put together at once, because copying them one by one more often than needed
# costs more than finding the candidates.
Pieces: TypeAlias = list[Piece]


def candidate_body(found: Found, version: Microversion) -> bytes:
    """The whole body."""
    return b"".join(chain.from_iterable(_body(found, version)))


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
    members = summaries(found.forest, givers.trees, givers.providers, classes, version)
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
        # Sets that keep their order: of trees, by block, and of providers.
        self.trees: dict[int, dict[int, None]] = {}
        self.providers: dict[ProviderRef, None] = {}

    def add(self, batch: Batch, template: Template) -> None:
        """Note from whom the candidates of a batch take."""
        if self._nested:
            if template.members:
                self.trees.setdefault(batch.block, {}).update(dict.fromkeys(batch.trees))
            for number in template.lenders:
                self._add_tree(self._found.lenders[number].home)
            return
        starts = self._found.forest.blocks[batch.block].starts
        for tree in batch.trees:
            start = int(starts[tree])
            for member in template.members:
                self.providers[ProviderRef(batch.block, start + member)] = None
        for number in template.lenders:
            self.providers[self._found.lenders[number].provider] = None

    def _add_tree(self, tree: TreeRef) -> None:
        self.trees.setdefault(tree.block, {})[tree.tree] = None
