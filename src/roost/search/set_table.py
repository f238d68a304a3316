"""Sets of traits or aggregates, each distinct one stored once and known by a number.

Hosts of one kind have the same traits, so a provider needs four bytes for them instead of a set,
and a condition is evaluated once for each distinct set instead of once for each provider.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Generic, TypeVar

import numpy as np

from roost.search.rows import BoolColumn

Member = TypeVar("Member", bound=Hashable)

EMPTY_SET = 0


class SetTable(Generic[Member]):
    """All sets that were ever seen, by number. It only grows, so old snapshots may share it.

    >>> table: SetTable[str] = SetTable()
    >>> fast = table.number(frozenset({"SSD", "AVX"}))
    >>> table.with_any(["SSD"]).tolist(), fast
    ([False, True], 1)
    """

    def __init__(self) -> None:
        self._sets: list[frozenset[Member]] = []
        self._numbers: dict[frozenset[Member], int] = {}
        # For each member the numbers of the sets that have it.
        self._holders: dict[Member, list[int]] = {}
        self.number(frozenset())

    def __len__(self) -> int:
        return len(self._sets)

    def __getitem__(self, number: int) -> frozenset[Member]:
        return self._sets[number]

    def number(self, members: frozenset[Member]) -> int:
        """The number of this set, a new one if it was never seen. For one thread at a time."""
        found = self._numbers.get(members)
        if found is None:
            found = len(self._sets)
            # First the set, then where it is found: who reads meanwhile finds no number
            # that is too high.
            self._sets.append(members)
            for member in members:
                self._holders.setdefault(member, []).append(found)
            self._numbers[members] = found
        return found

    def with_any(self, members: Iterable[Member]) -> BoolColumn:
        """For each set whether it has one of these members."""
        holders = [self._holders[member].copy() for member in members if member in self._holders]
        table = np.zeros(len(self._sets), dtype=np.bool_)
        for numbers in holders:
            table[numbers] = True
        return table
