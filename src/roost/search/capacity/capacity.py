"""A capacity: how many more consumers with one query all claims together can reach."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain
from typing import overload

import numpy as np
import numpy.typing as npt

from roost.search.capacity.limiting_classes import Limit
from roost.search.forest.forest import Forest
from roost.search.forest.rows import IndexColumn, IntColumn, column


class Method(StrEnum):
    """How a capacity was found."""

    COUNTING = "counting"
    """Units of each requirement were counted in each tree."""
    PACKING = "packing"
    """In some trees requirements compete, and their solutions were packed."""
    FLOW = "flow"
    """Trees share pools, and the pools were divided among them by a flow."""
    BOUNDS = "bounds"
    """Only bounds are known: one that claims reach, and one that no claims exceed."""


@dataclass(frozen=True, slots=True)
class RootCapacity:
    """How many consumers one tree holds, if no other tree takes from its pools."""

    uuid: str
    fits: int
    at_most: int


class RootCapacities(Sequence[RootCapacity]):
    """The capacities of many roots, as columns: as many objects would slow every thread down."""

    def __init__(self, uuids: npt.NDArray[np.bytes_], fits: IntColumn, at_most: IntColumn) -> None:
        self._uuids = uuids
        self._fits = fits
        self._at_most = at_most

    def __len__(self) -> int:
        return len(self._uuids)

    @overload
    def __getitem__(self, index: int) -> RootCapacity: ...

    @overload
    def __getitem__(self, index: slice) -> RootCapacities: ...

    def __getitem__(self, index: int | slice) -> RootCapacity | RootCapacities:
        uuids, fits, at_most = self._uuids[index], self._fits[index], self._at_most[index]
        if isinstance(index, slice):
            return RootCapacities(uuids, fits, at_most)
        return RootCapacity(bytes(uuids).decode(), int(fits), int(at_most))


@dataclass(frozen=True, slots=True)
class BlockCapacity:
    """The capacities of single trees of one block."""

    block_number: int
    tree_numbers: IndexColumn
    least: IntColumn
    most: IntColumn


@dataclass(frozen=True, slots=True)
class Capacity:
    """How many more consumers a forest holds."""

    # A sequence of claims reaches so many, and no sequence of claims exceeds so many.
    fits: int
    at_most: int
    method: Method
    # `None` if nothing fits, or if the query asks for no resources.
    limited_by: Limit | None
    forest: Forest
    blocks: tuple[BlockCapacity, ...]

    @property
    def exact(self) -> bool:
        """Whether no sequence of claims reaches more."""
        return self.fits == self.at_most

    def roots(self) -> RootCapacities:
        """The roots whose trees hold a consumer, by uuid. Each has all its pools to itself."""
        uuids, fits, at_most = [np.zeros(0, "S1")], [column(())], [column(())]
        for capacity in self.blocks:
            block, holding = self.forest.blocks[capacity.block_number], capacity.least > 0
            uuids.append(block.uuids.texts(block.starts[capacity.tree_numbers[holding]]))
            fits.append(capacity.least[holding])
            at_most.append(capacity.most[holding])
        texts = np.concatenate(uuids)
        order = np.argsort(texts)
        columns = (np.concatenate(fits)[order], np.concatenate(at_most)[order])
        return RootCapacities(texts[order], *columns)


def joined_capacity(forest: Forest, variants: Sequence[Capacity]) -> Capacity:
    """The capacity of a query with alternatives: each consumer takes one of its variants.

    As long as a tree may have a candidate for one variant, claims take no later one there. So the
    first variant that may fit counts, and all variants together are the bound.
    """
    blocks = joined_blocks(forest, [variant.blocks for variant in variants])
    at_most = sum(variant.at_most for variant in variants)
    first = next((variant for variant in variants if variant.at_most), variants[0])
    fits = first.fits
    if not forest.sharing_refs:
        # No claim in a tree takes from another tree.
        fits = sum(sum(block.least.tolist()) for block in blocks)
    method = first.method if fits == at_most else Method.BOUNDS
    limits = (variant.limited_by for variant in variants)
    return Capacity(fits, at_most, method, next(filter(None, limits), None), forest, blocks)


def joined_blocks(
    forest: Forest, variants: Iterable[Iterable[BlockCapacity]]
) -> tuple[BlockCapacity, ...]:
    """The capacities of single trees, where each consumer takes one of the variants."""
    by_number: dict[int, list[BlockCapacity]] = {}
    for block in chain.from_iterable(variants):
        by_number.setdefault(block.block_number, []).append(block)
    joined = []
    for block_number, blocks in sorted(by_number.items()):
        least = np.zeros(forest.blocks[block_number].tree_count, np.int64)
        most = np.zeros_like(least)
        for block in blocks:
            numbers = block.tree_numbers
            least[numbers] = np.where(most[numbers] == 0, block.least, least[numbers])
            most[numbers] += block.most
        kept = np.flatnonzero(most).astype(np.int32)
        joined.append(BlockCapacity(block_number, kept, least[kept], most[kept]))
    return tuple(joined)
