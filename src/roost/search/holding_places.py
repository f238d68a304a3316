"""Places: which trees take a kind of holding, and how often at most."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import pairwise

import numpy as np

from roost.search.columns import IntColumn
from roost.search.holdings import HoldingKind, SharingTies
from roost.search.tree_room import TreeRoom

# What it costs to count how often a kind fits into each tree: this many providers are one unit.
_COUNTED_AT_ONCE = 200


class HoldingPlaces:
    """The places of each kind in the trees as they are, worked out once. `spend` counts work."""

    def __init__(self, room: TreeRoom, ties: SharingTies, spend: Callable[[int], None]) -> None:
        self._room = room
        self._ties = ties
        self._spend = spend
        self._provider_count = int(room.starts[-1])
        self._roomiest: dict[tuple[tuple[int, ...], ...], list[int]] = {}
        self._counts: dict[HoldingKind, IntColumn] = {}
        self._fitting: dict[HoldingKind, list[int]] = {}

    def with_most(self, kind: HoldingKind) -> list[int]:
        """The trees that have most of every class of a kind, those with most first."""
        signature = tuple([tuple([class_id for class_id, _ in part]) for part in kind.parts])
        found = self._roomiest.get(signature)
        if found is None:
            shares = []
            for class_id in kind.amounts:
                most = self._room.classes[class_id].most_of_tree
                shares.append(most / max(1, int(most.max())))
            least = np.minimum.reduce(shares)
            order = np.argsort(-least, kind="stable")
            found = self._roomiest[signature] = order[least[order] > 0].tolist()
        return found

    def count(self, kind: HoldingKind) -> IntColumn:
        """By tree, how often a kind fits there at most."""
        found = self._counts.get(kind)
        if found is None:
            self._spend(len(kind.parts) * self._provider_count // _COUNTED_AT_ONCE)
            found = self._counts[kind] = self._counted(kind)
        return found

    def fitting(self, kind: HoldingKind) -> list[int]:
        """The trees that take a kind, those that take most of it first."""
        found = self._fitting.get(kind)
        if found is None:
            counts = self.count(kind)
            order = np.argsort(-counts, kind="stable")
            found = self._fitting[kind] = order[counts[order] > 0].tolist()
        return found

    def _counted(self, kind: HoldingKind) -> IntColumn:
        room, bounds = self._room, []
        for part, times in Counter(kind.parts).items():
            often = np.full(self._provider_count, np.iinfo(np.int64).max)
            for class_id, amount in part:
                its = room.classes[class_id]
                free = np.frombuffer(its.free, np.int64)
                fits = free >= amount
                for provider in its.units:
                    fits[provider] &= its.takes(provider, amount, 0)
                often = np.where(fits, np.minimum(often, free // max(1, amount)), 0)
            # Each consumer puts equal parts on distinct providers.
            able = np.add.reduceat((often > 0).astype(np.int64), room.starts[:-1])
            in_all = np.add.reduceat(often, room.starts[:-1]) // times
            bounds.append(np.where(able >= times, in_all, 0))
        counts: IntColumn = np.minimum.reduce(bounds)
        mask = self._ties.mask(kind.ties)
        return counts if mask is None else np.where(mask, counts, 0)


def looks_of_trees(room: TreeRoom) -> list[int]:
    """For each tree a number; equal numbers for trees whose providers have equal room."""
    rooms = list(room.classes.values())
    frees = np.array([np.frombuffer(its.free, np.int64) for its in rooms]).T.copy()
    numbers: dict[tuple[bytes, tuple[object, ...]], int] = {}
    found = []
    for start, end in pairwise(room.starts.tolist()):
        units = tuple(
            its.units.get(provider) for its in rooms if its.units for provider in range(start, end)
        )
        found.append(numbers.setdefault((frees[start:end].tobytes(), units), len(numbers)))
    return found
