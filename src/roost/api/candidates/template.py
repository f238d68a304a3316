"""A candidate as JSON, with holes where uuids go."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TypeAlias

import numpy as np
import orjson

from roost.api.http.microversions import Microversion
from roost.search.candidates.plan import Slot
from roost.search.candidates.solving.problem import LocalProvider, Solution, solution_key
from roost.search.candidates.walks import selection
from roost.search.forest.block import Block
from roost.search.forest.rows import IndexColumn
from roost.search.forest.uuid_column import UUID_LENGTH, ByteMatrix, UuidColumn

# From this number of trees on, writing uuids into all records at once is faster: 20 trees take
# 40 us either way.
_STAMPED_MIN = 20

# What the templates of an answer may take. Trees that are built alike share a template, and they
# come soon after each other.
_TEMPLATES_BYTES_MAX = 1 << 20

_HOLE = b"%b"
# A uuid as one value: numpy copies it in half the time that its bytes would take.
_WHOLE_UUID = np.dtype(f"V{UUID_LENGTH}")

# Text that `join` takes without a copy.
Piece: TypeAlias = bytes | memoryview


class Template:
    """The candidates of trees that are built alike: they differ in their uuids only."""

    __slots__ = ("_holes", "_sharing_uuids", "_text", "offsets", "sharing_numbers")

    def __init__(
        self,
        text: bytes,
        holes: Sequence[LocalProvider],
        allocated: Sequence[LocalProvider],
        sharing_uuids: Sequence[bytes],
    ) -> None:
        self._text = text
        # The provider of each hole.
        self._holes = holes
        self._sharing_uuids = sharing_uuids
        self.offsets = [provider for provider in allocated if provider >= 0]
        self.sharing_numbers = [~provider for provider in allocated if provider < 0]

    @property
    def size(self) -> int:
        """About how many bytes the template takes, with its solution and allocations."""
        return 2 * len(self._text) + 40 * len(self._holes) + 500

    def filled(self, block: Block, tree_numbers: list[int]) -> Piece:
        """The candidates of these trees of a block, with commas between them."""
        if len(tree_numbers) >= _STAMPED_MIN:
            matrix = block.uuids.matrix
            if matrix is not None and self._sharing_is_regular():
                return self._stamped(matrix, block.roots[selection(tree_numbers)])
        text, starts = self._text, map(block.starts.item, tree_numbers)
        return b",".join([text % tuple(self._uuids(block.uuids, start)) for start in starts])

    def _uuids(self, uuids: UuidColumn, start: int) -> list[bytes]:
        """The uuid of each hole, in the tree whose root has this index."""
        packed, sharing_uuids = uuids.packed, self._sharing_uuids
        if packed is None:
            return [
                uuids[start + provider] if provider >= 0 else sharing_uuids[~provider]
                for provider in self._holes
            ]
        # Without a call for each uuid, of which a small answer has hundreds.
        return [
            packed[(at := UUID_LENGTH * (start + provider)) : at + UUID_LENGTH]
            if provider >= 0
            else sharing_uuids[~provider]
            for provider in self._holes
        ]

    def _sharing_is_regular(self) -> bool:
        return all(
            len(self._sharing_uuids[sharing_number]) == UUID_LENGTH
            for sharing_number in self.sharing_numbers
        )

    def _stamped(self, uuids: ByteMatrix, starts: IndexColumn) -> Piece:
        """The candidates as rows of a matrix: all records have the same length."""
        pieces = self._text.split(_HOLE)
        record = (b"\0" * UUID_LENGTH).join(pieces) + b","
        records = bytearray(record) * len(starts)
        whole = uuids.view(_WHOLE_UUID)[:, 0]
        offset = 0
        for piece, provider in zip(pieces, self._holes, strict=False):
            offset += len(piece)
            holes = np.ndarray(len(starts), _WHOLE_UUID, records, offset, len(record))
            holes[:] = (
                whole[starts + provider]
                if provider >= 0
                else np.frombuffer(self._sharing_uuids[~provider], _WHOLE_UUID)
            )
            offset += UUID_LENGTH
        return memoryview(records)[:-1]


class Templates:
    """The templates of one answer, by solution."""

    def __init__(
        self,
        slots: Sequence[Slot],
        sharing_uuids: Sequence[bytes],
        version: Microversion,
        alternatives: Mapping[str, int],
    ) -> None:
        self._slots = slots
        # What a candidate of a query with alternatives says besides.
        self._ending = b',"alternatives":%b' % orjson.dumps(alternatives) if alternatives else b""
        self._sharing_uuids = sharing_uuids
        self._as_mapping = version >= (1, 12)
        self._with_mappings = version >= (1, 34)
        self._unsuffixed = [slot for slot, its in enumerate(slots) if not its.suffix]
        self._suffixed = [slot for slot, its in enumerate(slots) if its.suffix]
        # A suffixed group has one provider, so this text is the same in all candidates.
        self._suffixed_mappings = b",".join(
            b'%b:["%b"]' % (orjson.dumps(slots[slot].suffix), _HOLE) for slot in self._suffixed
        )
        # The allocation of a provider, by the slots that it fills.
        self._allocations: dict[tuple[int, ...], bytes] = {}
        self._known: dict[Hashable, Template] = {}
        self._bytes = 0

    def of(self, solution: Solution) -> Template:
        """The template for a solution."""
        key = solution_key(solution)
        found = self._known.get(key)
        if found is None:
            if self._bytes > _TEMPLATES_BYTES_MAX:
                self._known.clear()
                self._allocations.clear()
                self._bytes = 0
            found = self._known[key] = self._make(solution)
            self._bytes += found.size
        return found

    def _make(self, solution: Solution) -> Template:
        filled: dict[LocalProvider, list[int]] = {}
        for slot, provider in enumerate(solution):
            if self._slots[slot].resources:
                filled.setdefault(provider, []).append(slot)
        allocations = b",".join([self._allocation(tuple(slots)) for slots in filled.values()])
        allocated = list(filled)
        if not self._with_mappings:
            form = b'{"allocations":{%b}}' if self._as_mapping else b'{"allocations":[%b]}'
            return Template(form % allocations, allocated, allocated, self._sharing_uuids)
        together = list(dict.fromkeys([solution[slot] for slot in self._unsuffixed]))
        mappings = [self._suffixed_mappings] if self._suffixed else []
        if together:
            mappings.insert(0, b'"":["%b"]' % b'","'.join([_HOLE] * len(together)))
        return Template(
            b'{"allocations":{%b},"mappings":{%b}%b}'
            % (allocations, b",".join(mappings), self._ending),
            [*allocated, *together, *[solution[slot] for slot in self._suffixed]],
            allocated,
            self._sharing_uuids,
        )

    def _allocation(self, slots: tuple[int, ...]) -> bytes:
        found = self._allocations.get(slots)
        if found is None:
            amounts: dict[str, int] = {}
            for slot in slots:
                for name, amount in self._slots[slot].resources.items():
                    amounts[name] = amounts.get(name, 0) + amount
            form = (
                b'"%b":{"resources":%b}'
                if self._as_mapping
                else b'{"resource_provider":{"uuid":"%b"},"resources":%b}'
            )
            found = self._allocations[slots] = form % (_HOLE, orjson.dumps(amounts))
        return found
