"""The set table: every distinct set of traits or aggregates once, with a number.

Hosts of one kind have the same traits. So a provider needs four bytes for its traits instead of a
set. The search evaluates a condition once for each distinct set, not once for each provider.
"""

from __future__ import annotations

from array import array
from collections.abc import Hashable, Iterable
from typing import Generic, TypeVar

import numpy as np

from roost.search.forest.rows import BoolColumn

Member = TypeVar("Member", bound=Hashable)

EMPTY_SET = 0
_NO_SETS = array("i")


class SetTable(Generic[Member]):
    """The sets of a forest by number. It never changes: a `TableGrowth` makes a longer table.

    >>> growth: TableGrowth[str] = SetTable().growth()
    >>> fast = growth.set_number(frozenset({"SSD", "AVX"}))
    >>> growth.table.with_any(["SSD"]).tolist(), fast
    ([False, True], 1)
    """

    __slots__ = ("_holders", "_numbers", "_sets", "token")

    def __init__(self) -> None:
        self._sets: list[frozenset[Member]] = [frozenset()]
        self._numbers: dict[frozenset[Member], int] = {frozenset(): EMPTY_SET}
        # For each member, the numbers of the sets that have it. Each longer table copies those of
        # its new members: an array takes a third of the time of a list.
        self._holders: dict[Member, array[int]] = {}
        # Every table has its own token, by which kept work knows it without keeping it alive.
        self.token = object()

    def __len__(self) -> int:
        return len(self._sets)

    def __getitem__(self, set_number: int) -> frozenset[Member]:
        return self._sets[set_number]

    def set_number(self, members: frozenset[Member]) -> int | None:
        """The number of this set; `None` if the table does not have it."""
        return self._numbers.get(members)

    def with_any(self, members: Iterable[Member]) -> BoolColumn:
        """For each set number, whether the set has one of these members."""
        mask = np.zeros(len(self._sets), dtype=np.bool_)
        for member in members:
            holders = self._holders.get(member)
            if holders is not None:
                mask[np.frombuffer(holders, np.int32)] = True
        return mask

    def growth(self) -> TableGrowth[Member]:
        """Begin a longer table, in which all these sets keep their numbers."""
        return TableGrowth(self)

    def followed_by(self, new_sets: Iterable[frozenset[Member]]) -> SetTable[Member]:
        """A table with these sets, none of which this table has, after its own."""
        longer: SetTable[Member] = SetTable()
        longer._sets = [*self._sets, *new_sets]
        longer._numbers, longer._holders = self._numbers.copy(), self._holders.copy()
        new_holders: dict[Member, list[int]] = {}
        for set_number in range(len(self._sets), len(longer._sets)):
            members = longer._sets[set_number]
            longer._numbers[members] = set_number
            for member in members:
                new_holders.setdefault(member, []).append(set_number)
        for member, set_numbers in new_holders.items():
            longer._holders[member] = self._holders.get(member, _NO_SETS) + array("i", set_numbers)
        return longer


class TableGrowth(Generic[Member]):
    """The numbers for the sets of new trees, and the table that has these sets."""

    def __init__(self, table: SetTable[Member]) -> None:
        self._table = table
        # The sets that the table does not have, and their numbers.
        self._new_sets: list[frozenset[Member]] = []
        self._new_numbers: dict[frozenset[Member], int] = {}

    def __getitem__(self, set_number: int) -> frozenset[Member]:
        known = len(self._table)
        return self._table[set_number] if set_number < known else self._new_sets[set_number - known]

    def set_number(self, members: frozenset[Member]) -> int:
        """The number of this set; a new set gets a new number."""
        found = self._table.set_number(members)
        if found is None:
            found = self._new_numbers.get(members)
        if found is None:
            found = self._new_numbers[members] = len(self._table) + len(self._new_sets)
            self._new_sets.append(members)
        return found

    @property
    def table(self) -> SetTable[Member]:
        """A table with all sets so far; the same one again if no set is new."""
        if self._new_sets:
            self._table = self._table.followed_by(self._new_sets)
            self._new_sets, self._new_numbers = [], {}
        return self._table
