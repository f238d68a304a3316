"""Coupled trees: they take from pools, and their requirements depend on each other.

One flow does not cover them. Trees that take one after another show a number that is reached; what
every consumer must take shows a number that is not exceeded.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from roost.search.packing.linked import LinkedTrees, Packer
from roost.search.packing.program import Packed

# What is left of each pool: by part, sharing number and resource class.
PoolStocks: TypeAlias = dict[tuple[int, int, int], int]


class PartOfTree(NamedTuple):
    """One part in one tree: its patterns, and the stock that the tree has."""

    part_number: int
    trees: LinkedTrees
    stock: tuple[int, ...]
    # For each key of the patterns the pool that it stands for; `None` for the tree's own stock.
    pools: tuple[tuple[int, int] | None, ...]


@dataclass(frozen=True, slots=True)
class CoupledTree:
    """A tree that takes from pools."""

    # How many consumers it holds as far as parts without pools go.
    fits: int
    parts: Sequence[PartOfTree]


def taken_in_turn(
    trees: Iterable[CoupledTree], packers: Mapping[int, Packer], stocks: PoolStocks
) -> int:
    """How many consumers the trees reach if one takes after another what it can."""
    total = 0
    for tree in trees:
        effort = next(iter(packers.values())).rules.effort
        effort.pause()
        if effort.exhausted:
            break
        packed = [_packed(packers[part.part_number], part, stocks) for part in tree.parts]
        fits = min([tree.fits, *(each.fits for each in packed)])
        if fits > 0:
            total += fits
            for part, each in zip(tree.parts, packed, strict=True):
                _take(part, each, fits, stocks)
    return total


def _packed(packer: Packer, part: PartOfTree, stocks: PoolStocks) -> Packed:
    stock = tuple(
        left if pool is None else stocks[part.part_number, *pool]
        for left, pool in zip(part.stock, part.pools, strict=True)
    )
    return packer.pack(part.trees, stock)


def _take(part: PartOfTree, packed: Packed, fits: int, stocks: PoolStocks) -> None:
    """Take the patterns of so many consumers, those that take least from pools first."""
    patterns = part.trees.patterns.patterns

    def from_pools(each: int) -> int:
        return sum(
            amount
            for amount, pool in zip(patterns[each], part.pools, strict=True)
            if pool is not None
        )

    for each in sorted(range(len(patterns)), key=from_pools):
        count = min(fits, packed.counts[each])
        fits -= count
        for amount, pool in zip(patterns[each], part.pools, strict=True):
            if pool is not None:
                stocks[part.part_number, *pool] -= count * amount
