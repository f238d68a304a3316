"""The uuids of the providers of a block, packed."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from sys import byteorder
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

UUID_LENGTH = 36

ByteMatrix: TypeAlias = npt.NDArray[np.uint8]


class UuidColumn:
    """Uuids in ASCII by index, 36 bytes each: separate objects would need twice as much.

    >>> column = UuidColumn([b"c0ffee00-0000-0000-0000-000000000001"])
    >>> column[0], len(column), column.find(b"c0ffee00-0000-0000-0000-000000000002")
    (b'c0ffee00-0000-0000-0000-000000000001', 1, None)

    Another service may have written uuids without dashes into the database. Then the column keeps
    all uuids as they are, and has no matrix.
    """

    __slots__ = ("_fingerprints", "_odd", "_packed")

    def __init__(self, uuids: Sequence[bytes]) -> None:
        regular = all(len(uuid) == UUID_LENGTH for uuid in uuids)
        self._packed = b"".join(uuids) if regular else b""
        self._odd = None if regular else list(uuids)
        # Sorted, so that a search for a uuid skips this column in a microsecond: to look at
        # all uuids takes eighty.
        self._fingerprints = _sorted_fingerprints(self._packed)

    def __len__(self) -> int:
        return len(self._packed) // UUID_LENGTH if self._odd is None else len(self._odd)

    def __getitem__(self, index: int) -> bytes:
        if self._odd is not None:
            return self._odd[index]
        return self._packed[UUID_LENGTH * index : UUID_LENGTH * (index + 1)]

    def __iter__(self) -> Iterator[bytes]:
        return map(self.__getitem__, range(len(self)))

    @property
    def packed(self) -> bytes | None:
        """All uuids in a row; `None` if their lengths differ."""
        return self._packed if self._odd is None else None

    @property
    def matrix(self) -> ByteMatrix | None:
        """A row of bytes for each uuid, without a copy; `None` if their lengths differ."""
        if self._odd is not None:
            return None
        return np.frombuffer(self._packed, np.uint8).reshape(-1, UUID_LENGTH)

    def texts(self, indexes: npt.NDArray[np.integer]) -> npt.NDArray[np.bytes_]:
        """The uuids at these indexes, as a column that can be sorted."""
        matrix = self.matrix
        if matrix is None:
            return np.asarray([self[index] for index in indexes.tolist()], np.bytes_)
        texts: npt.NDArray[np.bytes_] = matrix[indexes].view(f"S{UUID_LENGTH}").reshape(-1)
        return texts

    def beginnings(self, indexes: npt.NDArray[np.integer]) -> npt.NDArray[np.uint64]:
        """The first eight bytes of the uuids at these indexes, as numbers in the same order."""
        beginnings: npt.NDArray[np.uint64] = self.texts(indexes).astype("S8").view(">u8")
        return beginnings.astype(np.uint64)

    def find(self, uuid: bytes) -> int | None:
        """The index of a uuid; `None` if the column does not have it."""
        if self._odd is not None:
            return self._odd.index(uuid) if uuid in self._odd else None
        if len(uuid) != UUID_LENGTH or not self._may_have(uuid):
            return None
        found = self._packed.find(uuid)
        # A match that does not start at the start of a uuid covers parts of two uuids.
        while found >= 0 and found % UUID_LENGTH:
            found = self._packed.find(uuid, found + 1)
        return None if found < 0 else found // UUID_LENGTH

    def _may_have(self, uuid: bytes) -> bool:
        fingerprint = int.from_bytes(uuid[:8], byteorder) ^ int.from_bytes(uuid[-8:], byteorder)
        position = bisect_left(self._fingerprints, fingerprint)
        return position < len(self._fingerprints) and self._fingerprints[position] == fingerprint

    def selected(self, indexes: npt.NDArray[np.integer]) -> UuidColumn:
        """Only the uuids at these indexes."""
        return UuidColumn([self[index] for index in indexes.tolist()])

    def followed_by(self, other: UuidColumn) -> UuidColumn:
        """These uuids, then those of another column."""
        return UuidColumn([*self, *other])


def _sorted_fingerprints(packed: bytes) -> array[int]:
    """The first and the last eight bytes of each uuid, in one number.

    Uuids that a client counts up differ at the end only, or at the start only.
    """
    matrix = np.frombuffer(packed, np.uint8).reshape(-1, UUID_LENGTH)
    fingerprints = (matrix[:, :8] ^ matrix[:, -8:]).view(np.uint64).reshape(-1)
    # Not an array of numpy, in which the search for one number takes ten times as long.
    return array("Q", np.sort(fingerprints).tobytes())
