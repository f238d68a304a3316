"""The set table: every distinct set of traits or aggregates once, with a number.

Hosts of one kind have the same traits. So a provider needs four bytes for its traits instead of a
set. The search evaluates a condition once for each distinct set, not once for each provider.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Hashable, Iterable
from typing import Generic, TypeVar

import numpy as np

from roost.search.columns import BoolColumn

Member = TypeVar("Member", bound=Hashable)

EMPTY_SET = 0


class SetTable(Generic[Member]):
    """The sets of a forest by number. It never changes: a `TableGrowth` makes a longer table.

    >>> growth: TableGrowth[str] = SetTable().growth()
    >>> fast = growth.set_number(frozenset({"SSD", "AVX"}))
    >>> growth.table.with_any(["SSD"]).tolist(), fast
    ([False, True], 1)
    """

    __slots__ = ("_count", "_numbering")

    def __init__(self, numbering: _Numbering[Member] | None = None, count: int = 1) -> None:
        self._numbering: _Numbering[Member] = _Numbering() if numbering is None else numbering
        # The table has the first sets of the numbering. Tables of later forests have more of them.
        self._count = count

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, set_number: int) -> frozenset[Member]:
        return self._numbering.sets[set_number]

    def with_any(self, members: Iterable[Member]) -> BoolColumn:
        """For each set number, whether the set has one of these members."""
        mask = np.zeros(self._count, dtype=np.bool_)
        for member in members:
            holders = self._numbering.holders.get(member)
            if holders is not None:
                # Sets that came after this table are left out.
                mask[_below(holders, self._count)] = True
        return mask

    def numbers_as(self, other: SetTable[Member]) -> bool:
        """Whether each number stands for the same set in both tables."""
        return self._numbering is other._numbering

    def growth(self) -> TableGrowth[Member]:
        """Begin a longer table, in which all these sets keep their numbers."""
        return TableGrowth(self, self._numbering)

    def copied(self) -> SetTable[Member]:
        """A table with the same sets, whose growth leaves nothing in the numbering of this one."""
        return SetTable(self._numbering.first(self._count), self._count)


class TableGrowth(Generic[Member]):
    """The numbers for the sets of new trees, and the table that has these sets."""

    def __init__(self, table: SetTable[Member], numbering: _Numbering[Member]) -> None:
        self._table = table
        self._numbering = numbering

    def __getitem__(self, set_number: int) -> frozenset[Member]:
        return self._numbering.sets[set_number]

    def set_number(self, members: frozenset[Member]) -> int:
        """The number of this set; a new set gets a new number."""
        found = self._numbering.numbers.get(members)
        return self._numbering.add(members) if found is None else found

    @property
    def table(self) -> SetTable[Member]:
        """A table with all sets so far; the same one again if no set is new."""
        count = self._numbering.count()
        if count != len(self._table):
            self._table = SetTable(self._numbering, count)
        return self._table


class _Numbering(Generic[Member]):
    """All sets that ever got a number, for the tables of one forest after another.

    It only grows, and an entry never changes. A reader ignores the entries after those of its
    table, which may be incomplete. So readers need no lock, and a growth copies nothing.
    """

    def __init__(self) -> None:
        self.sets: list[frozenset[Member]] = []
        # A set is here when all of its entries are complete.
        self.numbers: dict[frozenset[Member], int] = {}
        # For each member, the numbers of the sets that have it, ascending.
        self.holders: dict[Member, list[int]] = {}
        self._lock = threading.Lock()
        self.add(frozenset())

    def add(self, members: frozenset[Member]) -> int:
        """The number of a set, which gets the next one if it has none."""
        with self._lock:
            found = self.numbers.get(members)
            if found is None:
                found = len(self.sets)
                # First of all, so that no other set gets the number, even if this thread fails.
                self.sets.append(members)
                for member in members:
                    self.holders.setdefault(member, []).append(found)
                self.numbers[members] = found
            return found

    def count(self) -> int:
        """How many sets have a number. All their entries are complete."""
        with self._lock:
            return len(self.sets)

    def first(self, count: int) -> _Numbering[Member]:
        """Another numbering with the first of these sets."""
        copy: _Numbering[Member] = _Numbering()
        copy.sets = self.sets[:count]
        copy.numbers = {members: number for number, members in enumerate(copy.sets)}
        # A copy in one step, because another thread may add members meanwhile.
        holders = self.holders.copy()
        copy.holders = {member: _below(numbers, count) for member, numbers in holders.items()}
        return copy


def _below(numbers: list[int], end: int) -> list[int]:
    """Those of ascending numbers that are below an end."""
    return numbers[: bisect_left(numbers, end)]
