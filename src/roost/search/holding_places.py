"""Places: which trees take a kind of holding, and how often at most."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from operator import ge
from typing import TypeAlias

import numpy as np

from roost.search.columns import IntColumn
from roost.search.holdings import HoldingKind, SharingTies, Tie
from roost.search.tree_room import FREE_MAX, TreeRoom, column_of

# What it costs to count how often a kind fits into each tree: this many providers are one unit.
_COUNTED_AT_ONCE = 30
# How many amounts without a place are kept for the same classes.
_HOPELESS_MAX = 20
# The counts that are kept, in words of eight bytes.
_WORDS_MAX = 8_000_000

_Signature: TypeAlias = tuple[tuple[int, ...], ...]


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
        """Whether it is known that no tree takes a kind, because none takes less."""
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
