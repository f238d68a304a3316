"""Holdings: what the consumers hold, tree by tree, as something that can move.

What a consumer holds from one tree moves whole to one tree. What it holds from one provider is a
part, and moves to one provider. Parts on distinct providers stay on distinct providers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import TypeAlias

import numpy as np

from roost.search.columns import BoolColumn, IntColumn
from roost.search.forest import Forest, ProviderRef
from roost.search.rows import AllocationRows
from roost.search.tree_room import Amount, TreeRoom

# What a consumer holds from one provider.
HoldingPart: TypeAlias = tuple[Amount, ...]
# A sharing provider from which the consumer also holds, or the aggregates of its other tree.
Tie: TypeAlias = tuple[str, int]

_NO_TIES: frozenset[Tie] = frozenset()
_ROWS_AT_ONCE = 1024
# A mask has a byte for each tree.
_MASKS_MAX = 500


@dataclass(frozen=True, slots=True, eq=False)
class HoldingKind:
    """What several consumers hold alike from a tree. Equal kinds are one object."""

    # Equal parts are neighbours.
    parts: tuple[HoldingPart, ...]
    # What the new tree must be tied to.
    ties: frozenset[Tie]
    # The sum of all parts, by class.
    amounts: Mapping[int, int]

    @classmethod
    def of(cls, parts: tuple[HoldingPart, ...], ties: frozenset[Tie]) -> HoldingKind:
        """The kind with these parts."""
        amounts: dict[int, int] = {}
        for class_id, amount in (amount for part in parts for amount in part):
            amounts[class_id] = amounts.get(class_id, 0) + amount
        return cls(parts, ties, amounts)


def holdings_by_tree(
    room: TreeRoom, rows: AllocationRows, ties: SharingTies, pause: Callable[[], None]
) -> list[list[HoldingKind]]:
    """For each tree, what each of its consumers holds from it."""
    kinds: dict[tuple[tuple[HoldingPart, ...], frozenset[Tie]], HoldingKind] = {}
    found: list[list[HoldingKind]] = [[] for _ in range(room.tree_count)]
    for pieces in _by_consumer(room, rows):
        pause()
        for tree, held, providers in pieces:
            tied = ties.of(tree, providers, pieces) if ties and len(pieces) > 1 else _NO_TIES
            parts = tuple(sorted(held, reverse=True)) if len(held) > 1 else tuple(held)
            kind = kinds.get((parts, tied))
            if kind is None:
                kind = kinds[parts, tied] = HoldingKind.of(parts, tied)
            found[tree].append(kind)
    return found


# A tree, the parts that a consumer holds from it, and the providers of these parts.
_Piece: TypeAlias = tuple[int, list[HoldingPart], list[int]]


def _by_consumer(room: TreeRoom, rows: AllocationRows) -> Iterator[list[_Piece]]:
    """For each consumer, what it holds from each of its trees."""
    consumers = rows.consumers[room.known]
    classes, used = rows.class_ids[room.known], rows.used[room.known]
    # The root of a tree comes before all below it, so this is also the order of trees.
    order = np.lexsort((classes, room.providers, consumers))
    trees = room.trees[room.providers[order]]
    columns = (consumers[order], trees, room.providers[order], classes[order], used[order])
    for _, held in groupby(_allocations(columns), itemgetter(0)):
        pieces: list[_Piece] = []
        for (_, tree, provider), amounts in groupby(held, itemgetter(0, 1, 2)):
            if not pieces or pieces[-1][0] != tree:
                pieces.append((tree, [], []))
            part = tuple([(class_id, amount) for _, _, _, class_id, amount in amounts])
            pieces[-1][1].append(part)
            pieces[-1][2].append(provider)
        yield pieces


def _allocations(columns: Sequence[IntColumn]) -> Iterator[tuple[int, ...]]:
    """The rows of these columns. Only some of them are in memory as objects of Python."""
    for start in range(0, len(columns[0]), _ROWS_AT_ONCE):
        some = (values[start : start + _ROWS_AT_ONCE].tolist() for values in columns)
        yield from zip(*some, strict=True)


class SharingTies:
    """Which trees belong together because one has a sharing provider that reaches another."""

    def __init__(self, room: TreeRoom) -> None:
        self._forest = room.forest
        self._shares = {
            room.number(ref.block_number, ref.provider_index): _aggregates(room.forest, ref)
            for ref in room.forest.sharing_refs
        }
        blocks = room.forest.blocks
        # By tree, the number of the set of all its aggregates.
        self._sets = np.concatenate(
            [np.zeros(0, np.int32), *[block.tree_aggregate_set_numbers for block in blocks]]
        )
        self._trees = room.trees
        self._tree_count = room.tree_count
        self._masks: dict[Tie, BoolColumn] = {}

    def __bool__(self) -> bool:
        return bool(self._shares)

    def of(self, tree: int, providers: Sequence[int], pieces: Sequence[_Piece]) -> frozenset[Tie]:
        """What the new tree of a piece must be tied to, by the consumer's remaining pieces."""
        ties: set[Tie] = set()
        for other, _, others in pieces:
            if other == tree:
                continue
            ties |= {("reached by", pool) for pool in others if self._reaches(pool, tree)}
            if any(self._reaches(pool, other) for pool in providers):
                ties.add(("reaches", int(self._sets[other])))
        return frozenset(ties)

    def mask(self, ties: frozenset[Tie]) -> BoolColumn | None:
        """By tree, whether it has these ties; `None` without ties."""
        if not ties:
            return None
        if len(self._masks) > _MASKS_MAX:
            self._masks.clear()
        for tie in ties - self._masks.keys():
            self._masks[tie] = self._mask(tie)
        mask: BoolColumn = np.logical_and.reduce([self._masks[tie] for tie in ties])
        return mask

    def _mask(self, tie: Tie) -> BoolColumn:
        relation, number = tie
        if relation == "reached by":
            found: BoolColumn = self._forest.aggregate_sets.with_any(self._shares[number])[
                self._sets
            ]
            return found
        aggregates = self._forest.aggregate_sets[number]
        mask = np.zeros(self._tree_count, np.bool_)
        for provider, its in self._shares.items():
            if not aggregates.isdisjoint(its):
                mask[self._trees[provider]] = True
        return mask

    def _reaches(self, provider: int, tree: int) -> bool:
        aggregates = self._shares.get(provider)
        if aggregates is None:
            return False
        return not aggregates.isdisjoint(self._forest.aggregate_sets[int(self._sets[tree])])


def _aggregates(forest: Forest, ref: ProviderRef) -> frozenset[str]:
    block = forest.blocks[ref.block_number]
    return forest.aggregate_sets[int(block.aggregate_set_numbers[ref.provider_index])]
