"""A capacity: how many more consumers with one query all claims together can reach."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from roost.search.columns import IndexColumn, IntColumn
from roost.search.forest import Forest
from roost.search.packing.limits import LimitingClass


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
    # The class that is used up first; `None` if nothing fits.
    limited_by: LimitingClass | None
    forest: Forest
    blocks: tuple[BlockCapacity, ...]

    @property
    def exact(self) -> bool:
        """Whether no sequence of claims reaches more."""
        return self.fits == self.at_most

    def roots(self) -> list[RootCapacity]:
        """The roots whose trees hold a consumer, by uuid. Each has all its pools to itself."""
        found = [root for capacity in self.blocks for root in self._roots(capacity)]
        return sorted(found, key=lambda root: root.uuid)

    def _roots(self, capacity: BlockCapacity) -> Iterator[RootCapacity]:
        block = self.forest.blocks[capacity.block_number]
        for tree_number, fits, at_most in zip(
            capacity.tree_numbers.tolist(),
            capacity.least.tolist(),
            capacity.most.tolist(),
            strict=True,
        ):
            if fits:
                uuid = block.uuids[int(block.starts[tree_number])].decode()
                yield RootCapacity(uuid, fits, at_most)
