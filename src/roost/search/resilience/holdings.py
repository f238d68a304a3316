"""Holdings: what the consumers hold, tree by tree, as something that can move.

What a consumer holds from one tree moves whole to one tree. What it holds from one provider is a
part, and moves to one provider. Parts on distinct providers stay on distinct providers.
`HoldingPlaces` tells which trees take a kind of holding, and how often at most.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from operator import ge, itemgetter
from typing import TypeAlias

import numpy as np

from roost.search.forest.rows import AllocationRows, BoolColumn, IntColumn
from roost.search.resilience.tree_room import FREE_MAX, Amount, TreeRoom, column_of

# What a consumer holds from one provider.
HoldingPart: TypeAlias = tuple[Amount, ...]
# A sharing provider from which the consumer also holds, or the aggregates of its other tree.
Tie: TypeAlias = tuple[str, int]
# A tree, the parts that a consumer holds from it, and the providers of these parts.
_Piece: TypeAlias = tuple[int, list[HoldingPart], list[int]]
_Signature: TypeAlias = tuple[tuple[int, ...], ...]

_NO_TIES: frozenset[Tie] = frozenset()
_ROWS_AT_ONCE = 1024
# A mask has a byte for each tree.
_MASKS_MAX = 500
# What it costs to count how often a kind fits into each tree: this many providers are one unit.
_COUNTED_AT_ONCE = 30
# How many amounts without a place are kept for the same classes.
_HOPELESS_MAX = 20
# The counts that are kept, in words of eight bytes.
_WORDS_MAX = 8_000_000


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
            room.number(*ref): room.forest.aggregates_of(ref) for ref in room.forest.sharing_refs
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


class HoldingPlaces:
    """The places of each kind in the trees as they are, worked out once. `spend` counts work."""

    def __init__(self, room: TreeRoom, ties: SharingTies, spend: Callable[[int], None]) -> None:
        self._room = room
        self._ties = ties
        self._spend = spend
        self._provider_count = int(room.starts[-1])
        self._roomiest: dict[_Signature, list[int]] = {}
        # By classes and ties: amounts for which no tree has a place.
        self._hopeless: dict[tuple[_Signature, frozenset[Tie]], list[tuple[int, ...]]] = {}
        self._counts: dict[HoldingKind, IntColumn] = {}
        self._fitting: dict[HoldingKind, list[int]] = {}

    def with_most(self, kind: HoldingKind) -> list[int]:
        """The trees that have most of every class of a kind, those with most first."""
        signature = _signature(kind)
        found = self._roomiest.get(signature)
        if found is None:
            if len(self._roomiest) * self._room.tree_count > _WORDS_MAX:
                self._roomiest.clear()
            shares = []
            for class_id in kind.amounts:
                most = self._room.classes[class_id].most_of_tree
                shares.append(most / max(1, int(most.max())))
            least = np.minimum.reduce(shares)
            order = np.argsort(-least, kind="stable")
            found = self._roomiest[signature] = order[least[order] > 0].tolist()
        return found

    def has_none(self, kind: HoldingKind) -> bool:
        """Whether no tree takes a kind, because it is known that none takes a smaller one."""
        amounts = _amounts(kind)
        return any(
            all(map(ge, amounts, known))
            for known in self._hopeless.get((_signature(kind), kind.ties), ())
        )

    def count(self, kind: HoldingKind) -> IntColumn:
        """By tree, how often a kind fits there at most."""
        found = self._counts.get(kind)
        if found is None:
            self._spend(len(kind.parts) * self._provider_count // _COUNTED_AT_ONCE)
            if len(self._counts) * self._room.tree_count > _WORDS_MAX:
                self._counts.clear()
                self._fitting.clear()
            found = self._counts[kind] = self._counted(kind)
            if not found.any():
                self._note_hopeless(kind)
        return found

    def fitting(self, kind: HoldingKind) -> list[int]:
        """The trees that take a kind, those that take most of it first."""
        found = self._fitting.get(kind)
        if found is None:
            counts = self.count(kind)
            order = np.argsort(-counts, kind="stable")
            found = self._fitting[kind] = order[counts[order] > 0].tolist()
        return found

    def _note_hopeless(self, kind: HoldingKind) -> None:
        # Where units count, a provider may take more and not less.
        if all(self._room.classes[class_id].units is None for class_id in kind.amounts):
            known = self._hopeless.setdefault((_signature(kind), kind.ties), [])
            if len(known) < _HOPELESS_MAX:
                known.append(_amounts(kind))

    def _counted(self, kind: HoldingKind) -> IntColumn:
        room, bounds = self._room, []
        for part, times in Counter(kind.parts).items():
            often = np.full(self._provider_count, FREE_MAX)
            for class_id, amount in part:
                its = room.classes[class_id]
                times_free = column_of(its.free) // max(1, amount)
                often = np.where(its.taking(amount), np.minimum(often, times_free), 0)
            # Each consumer puts equal parts on distinct providers.
            able = np.add.reduceat((often > 0).astype(np.int64), room.starts[:-1])
            in_all = np.add.reduceat(often, room.starts[:-1]) // times
            bounds.append(np.where(able >= times, in_all, 0))
        counts: IntColumn = np.minimum.reduce(bounds)
        mask = self._ties.mask(kind.ties)
        return counts if mask is None else np.where(mask, counts, 0)


def _signature(kind: HoldingKind) -> _Signature:
    """The classes of each part."""
    return tuple([tuple([class_id for class_id, _ in part]) for part in kind.parts])


def _amounts(kind: HoldingKind) -> tuple[int, ...]:
    return tuple([amount for part in kind.parts for _, amount in part])


def looks_of_trees(room: TreeRoom) -> list[int]:
    """For each tree a number; equal numbers for trees whose providers have equal room."""
    columns = [values for its in room.classes.values() for values in its.columns]
    values = np.array(columns).T.copy()
    numbers: dict[bytes, int] = {}
    found = []
    for start, end in pairwise(room.starts.tolist()):
        found.append(numbers.setdefault(values[start:end].tobytes(), len(numbers)))
    return found
