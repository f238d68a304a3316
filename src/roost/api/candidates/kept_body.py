"""A body that is kept with the places of its parts, for the next answer to the same question.

A part has the candidates, or the summaries, of one block. Most changes are claims, and a claim
changes one block. So the next body takes the parts of all other blocks from the body before it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from roost.api.candidates.template import Piece

Pieces: TypeAlias = list[Piece]
# What the part has, the token of its block, and how many such parts of the block come before it.
PartKey: TypeAlias = tuple[str, object, int]

_PLACE_BYTES = 400


class Part(NamedTuple):
    """Some entries of an object or list of the body, all of one block."""

    key: PartKey
    # Parts with equal keys and equal contents have equal texts.
    content: object
    # Makes the text, some pieces at a time.
    render: Callable[[], Iterator[Pieces]]


class _Place(NamedTuple):
    """Where a part is in its body."""

    content: object
    begin: int
    end: int


@dataclass(frozen=True, slots=True)
class KeptBody:
    """A body, and where its parts are."""

    text: bytes
    # What all parts depend on, besides their question, their block and their content.
    facts: object
    _places: dict[PartKey, _Place]

    @property
    def size(self) -> int:
        """About how many bytes it takes."""
        return len(self.text) + _PLACE_BYTES * len(self._places)

    def text_of(self, part: Part) -> Piece | None:
        """The text of a part; `None` if the body does not have this part."""
        place = self._places.get(part.key)
        if place is None or place.content != part.content:
            return None
        return memoryview(self.text)[place.begin : place.end]


class BodyWriter:
    """Joins a body from pieces, and takes the parts that have not changed from an earlier body."""

    def __init__(self, facts: object, earlier: KeptBody | None, pause: Callable[[], None]) -> None:
        self._facts = facts
        self._earlier = earlier if earlier is not None and earlier.facts == facts else None
        self._pause = pause
        # They are joined in one step: to copy each of them twice costs more than the search.
        self._pieces: Pieces = []
        self._size = 0
        self._places: dict[PartKey, _Place] = {}

    def add(self, piece: Piece) -> None:
        """Add a piece."""
        self._pieces.append(piece)
        self._size += len(piece)

    def add_parts(self, parts: Iterable[Part]) -> None:
        """Add these parts, with commas between them. Pause after every few pieces."""
        first = True
        for part in parts:
            if not first:
                self.add(b",")
            first = False
            begin = self._size
            self._add_part(part)
            self._places[part.key] = _Place(part.content, begin, self._size)

    def finish(self) -> KeptBody:
        """The body of all that was added."""
        return KeptBody(b"".join(self._pieces), self._facts, self._places)

    def _add_part(self, part: Part) -> None:
        text = None if self._earlier is None else self._earlier.text_of(part)
        if text is not None:
            self.add(text)
            return
        begin = self._size
        for pieces in part.render():
            self._pieces += with_commas(pieces, is_first=self._size == begin)
            self._size += sum(map(len, pieces)) + len(pieces)
            self._pause()
        # The first piece has no comma before it.
        self._size -= 1


def with_commas(pieces: Pieces, *, is_first: bool) -> Pieces:
    """The pieces with a comma before each, except before the first of all."""
    separated: Pieces = [b","] * (2 * len(pieces))
    separated[1::2] = pieces
    return separated[1:] if is_first else separated
