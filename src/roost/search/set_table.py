"""The set table: every distinct set of traits or aggregates once, with a number.

Hosts of one kind have the same traits. So a provider needs four bytes for its traits instead of a
set. The search evaluates a condition once for each distinct set, not once for each provider.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Generic, TypeVar

import numpy as np

from roost.search.columns import BoolColumn

Member = TypeVar("Member", bound=Hashable)

EMPTY_SET = 0


class SetTable(Generic[Member]):
    """All sets that the forest ever had, by number. It only grows, so old forests may share it.

    >>> table: SetTable[str] = SetTable()
    >>> fast = table.set_number(frozenset({"SSD", "AVX"}))
    >>> table.with_any(["SSD"]).tolist(), fast
    ([False, True], 1)
    """

    def __init__(self) -> None:
        self._sets: list[frozenset[Member]] = []
        self._set_numbers: dict[frozenset[Member], int] = {}
        # For each member, the numbers of the sets that have it.
        self._holders: dict[Member, list[int]] = {}
        self.set_number(frozenset())

    def __len__(self) -> int:
        return len(self._sets)

    def __getitem__(self, set_number: int) -> frozenset[Member]:
        return self._sets[set_number]

    def set_number(self, members: frozenset[Member]) -> int:
        """The number of this set; a new set gets a new number. For one thread at a time."""
        found = self._set_numbers.get(members)
        if found is None:
            found = len(self._sets)
            # The set is added before its number: a thread that reads meanwhile finds no number
            # without a set.
            self._sets.append(members)
            for member in members:
                self._holders.setdefault(member, []).append(found)
            self._set_numbers[members] = found
        return found

    def copied(self) -> SetTable[Member]:
        """A table with the same numbers, whatever another thread adds to this one meanwhile."""
        table: SetTable[Member] = SetTable()
        for members in self._sets.copy():
            table.set_number(members)
        return table

    def with_any(self, members: Iterable[Member]) -> BoolColumn:
        """For each set number, whether the set has one of these members."""
        holders = [self._holders[member].copy() for member in members if member in self._holders]
        mask = np.zeros(len(self._sets), dtype=np.bool_)
        for set_numbers in holders:
            mask[set_numbers] = True
        return mask
