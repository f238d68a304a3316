"""A candidate as JSON, with holes where uuids go."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TypeAlias

import numpy as np
import orjson

from roost.api.microversions import Microversion
from roost.search.batches import Solution, solution_key
from roost.search.block import Block, IndexColumn
from roost.search.plan import Part
from roost.search.uuid_column import UUID_LENGTH, ByteMatrix

# Stamping uuids into many records at once pays from so many on: 20 take 40 us in either way.
_STAMPED_MIN = 20

# What the templates of an answer may take: they are for the trees that are built alike, and the
# same solution for other trees comes soon or not at all.
_TEMPLATES_BYTES_MAX = 1 << 20

_HOLE = b"%b"

# Text that can be joined, without being copied before.
Piece: TypeAlias = bytes | memoryview


class Template:
    """The candidates of trees built alike: they differ in nothing but uuids."""

    __slots__ = ("_holes", "_lender_uuids", "_text", "lenders", "members")

    def __init__(
        self,
        text: bytes,
        holes: Sequence[int],
        givers: Sequence[int],
        lender_uuids: Sequence[bytes],
    ) -> None:
        self._text = text
        # Who fills each hole: a member of the tree, by place, or a lender, by `~number`.
        self._holes = holes
        self._lender_uuids = lender_uuids
        # From whom something is taken.
        self.members = [giver for giver in givers if giver >= 0]
        self.lenders = [~giver for giver in givers if giver < 0]

    @property
    def size(self) -> int:
        """About how many bytes it takes, with its solution and what is taken from each."""
        return 2 * len(self._text) + 40 * len(self._holes) + 500

    def filled(self, block: Block, trees: list[int]) -> Piece:
        """The candidates of these trees of a block, with commas between them."""
        if len(trees) >= _STAMPED_MIN:
            matrix = block.uuids.matrix
            if matrix is not None and self._lenders_are_regular():
                return self._stamped(matrix, block.starts[trees])
        uuids, lender_uuids = block.uuids, self._lender_uuids
        text, holes = self._text, self._holes
        return b",".join(
            [
                text
                % tuple(
                    [
                        uuids[start + member] if member >= 0 else lender_uuids[~member]
                        for member in holes
                    ]
                )
                for start in map(block.starts.item, trees)
            ]
        )

    def _lenders_are_regular(self) -> bool:
        return all(len(self._lender_uuids[number]) == UUID_LENGTH for number in self.lenders)

    def _stamped(self, uuids: ByteMatrix, starts: IndexColumn) -> Piece:
        """The same by columns: every record has the same length, so all are made together."""
        pieces = self._text.split(_HOLE)
        record = (b"\0" * UUID_LENGTH).join(pieces) + b","
        records = np.tile(np.frombuffer(record, np.uint8), (len(starts), 1))
        offset = 0
        for piece, member in zip(pieces, self._holes, strict=False):
            offset += len(piece)
            records[:, offset : offset + UUID_LENGTH] = (
                uuids[starts + member]
                if member >= 0
                else np.frombuffer(self._lender_uuids[~member], np.uint8)
            )
            offset += UUID_LENGTH
        return records.reshape(-1)[:-1].data


class Templates:
    """The templates of one answer, by solution."""

    def __init__(
        self, parts: Sequence[Part], lender_uuids: Sequence[bytes], version: Microversion
    ) -> None:
        self._parts = parts
        self._lender_uuids = lender_uuids
        self._as_mapping = version >= (1, 12)
        self._with_mappings = version >= (1, 34)
        self._unsuffixed = [number for number, part in enumerate(parts) if not part.suffix]
        self._suffixed = [number for number, part in enumerate(parts) if part.suffix]
        # Each of them has one provider, so this is the same in all candidates.
        self._suffixed_mappings = b",".join(
            b'%b:["%b"]' % (orjson.dumps(parts[number].suffix), _HOLE) for number in self._suffixed
        )
        # What is taken from a provider that serves certain parts.
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
        served: dict[int, list[int]] = {}
        for number, provider in enumerate(solution):
            if self._parts[number].resources:
                served.setdefault(provider, []).append(number)
        allocations = b",".join([self._allocation(tuple(parts)) for parts in served.values()])
        givers = list(served)
        if not self._with_mappings:
            form = b'{"allocations":{%b}}' if self._as_mapping else b'{"allocations":[%b]}'
            return Template(form % allocations, givers, givers, self._lender_uuids)
        together = list(dict.fromkeys([solution[number] for number in self._unsuffixed]))
        mappings = [self._suffixed_mappings] if self._suffixed else []
        if together:
            mappings.insert(0, b'"":["%b"]' % b'","'.join([_HOLE] * len(together)))
        return Template(
            b'{"allocations":{%b},"mappings":{%b}}' % (allocations, b",".join(mappings)),
            [*givers, *together, *[solution[number] for number in self._suffixed]],
            givers,
            self._lender_uuids,
        )

    def _allocation(self, parts: tuple[int, ...]) -> bytes:
        found = self._allocations.get(parts)
        if found is None:
            amounts: dict[str, int] = {}
            for number in parts:
                for name, amount in self._parts[number].resources.items():
                    amounts[name] = amounts.get(name, 0) + amount
            form = (
                b'"%b":{"resources":%b}'
                if self._as_mapping
                else b'{"resource_provider":{"uuid":"%b"},"resources":%b}'
            )
            found = self._allocations[parts] = form % (_HOLE, orjson.dumps(amounts))
        return found
