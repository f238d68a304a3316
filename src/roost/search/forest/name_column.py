"""The names of the providers of a block, packed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from roost.search.forest.rows import IndexColumn


class NameColumn:
    """Names in UTF-8 by index, in a row: separate objects would need thrice as much.

    >>> column = NameColumn.of([b"host-1", "höst-2".encode()])
    >>> column.texts([1, 0]), len(column)
    (['höst-2', 'host-1'], 2)
    """

    __slots__ = ("_bounds", "packed")

    def __init__(self, packed: bytes, bounds: IndexColumn) -> None:
        # All names in a row, and where each begins; the last value is the end of the last name.
        self.packed = packed
        self._bounds = bounds

    @classmethod
    def of(cls, names: Sequence[bytes]) -> NameColumn:
        """A column of these names."""
        lengths = np.fromiter(map(len, names), np.int32, len(names))
        return cls(b"".join(names), _bounds(lengths))

    def __len__(self) -> int:
        return len(self._bounds) - 1

    def texts(self, indexes: npt.NDArray[np.integer] | Iterable[int]) -> list[str]:
        """The names at these indexes."""
        at = np.asarray(indexes, np.int64)
        begins, ends = self._bounds[at].tolist(), self._bounds[at + 1].tolist()
        if self.packed.isascii():
            # Characters are where bytes are, so one call decodes all names.
            text = self.packed.decode("ascii")
            return [text[begin:end] for begin, end in zip(begins, ends, strict=True)]
        packed = self.packed
        return [packed[begin:end].decode() for begin, end in zip(begins, ends, strict=True)]

    def selected(self, kept: npt.NDArray[np.bool_]) -> NameColumn:
        """Only the names of the providers that are kept."""
        lengths = np.diff(self._bounds)
        packed = np.frombuffer(self.packed, np.uint8)[np.repeat(kept, lengths)]
        return NameColumn(packed.tobytes(), _bounds(lengths[kept]))

    def followed_by(self, other: NameColumn) -> NameColumn:
        """These names, then those of another column."""
        bounds = np.concatenate((self._bounds[:-1], other._bounds + self._bounds[-1]))
        return NameColumn(self.packed + other.packed, bounds)


def _bounds(lengths: npt.NDArray[np.integer]) -> IndexColumn:
    return np.concatenate(([0], np.cumsum(lengths))).astype(np.int32)
