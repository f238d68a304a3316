"""Sharing providers: who lends what to which trees.

A sharing provider serves every tree with a member in one of its aggregates. Which these are
depends on nothing but the set of all aggregates in a tree, and few trees differ in that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from roost.search.block import Block
from roost.search.eligibility import eligible_places
from roost.search.forest import Forest, ProviderRef, TreeRef
from roost.search.plan import Plan
from roost.search.rows import BoolColumn

# Which lenders serve each demand of the plan, by their numbers.
Serving: TypeAlias = tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class Lender:
    """A sharing provider that can serve some demands in other trees than its own."""

    provider: ProviderRef
    home: TreeRef
    uuid: bytes
    traits: int
    aggregates: frozenset[str]
    demands: frozenset[int]


class Lenders:
    """All lenders for one plan."""

    def __init__(self, forest: Forest, plan: Plan, pause: Callable[[], None]) -> None:
        self._forest = forest
        self._demand_count = len(plan.demands)
        self.members = tuple(_lenders(forest, plan, pause))
        self.tables = tuple(self._table(number) for number in range(self._demand_count))
        self.numbers = {lender.provider: number for number, lender in enumerate(self.members)}
        self._serving: dict[int, Serving] = {}
        self._above: dict[int, list[int]] = {}
        self.homes = frozenset(lender.home for lender in self.members)

    def __bool__(self) -> bool:
        return bool(self.members)

    def room(self, lender: Lender, class_id: int) -> int:
        """How much of a class the lender, who has that class, can still give."""
        stock = self._block(lender).stocks[class_id]
        row = int(np.searchsorted(stock.places, lender.provider.place))
        return int(stock.room[row])

    def above(self, number: int) -> list[int]:
        """The numbers of the lenders above this one, and its own."""
        found = self._above.get(number)
        if found is None:
            found = self._above[number] = self._find_above(self.members[number])
        return found

    def serving(self, tree: TreeRef, aggregates: int) -> Serving:
        """Who serves each demand in a tree whose members are in these aggregates together."""
        found = self._serving.get(aggregates)
        if found is None:
            found = self._serving[aggregates] = self._who_serves(aggregates)
        if tree in self.homes:
            # At home they are members like any other.
            return tuple(
                tuple(number for number in numbers if self.members[number].home != tree)
                for numbers in found
            )
        return found

    def _find_above(self, lender: Lender) -> list[int]:
        block, place = self._block(lender), lender.provider.place
        seen: set[int] = set()
        found: list[int] = []
        while place >= 0 and place not in seen:
            seen.add(place)
            number = self.numbers.get(ProviderRef(lender.provider.block, place))
            if number is not None:
                found.append(number)
            place = int(block.parents[place])
        return found

    def _block(self, lender: Lender) -> Block:
        return self._forest.blocks[lender.provider.block]

    def _table(self, demand: int) -> BoolColumn | None:
        """By number of a tree's aggregate set: whether somebody serves the demand there."""
        aggregates: set[str] = set()
        for lender in self.members:
            if demand in lender.demands:
                aggregates |= lender.aggregates
        return self._forest.aggregate_sets.with_any(aggregates) if aggregates else None

    def _who_serves(self, aggregates: int) -> Serving:
        members = self._forest.aggregate_sets[aggregates]
        near = [
            (number, lender)
            for number, lender in enumerate(self.members)
            if not members.isdisjoint(lender.aggregates)
        ]
        return tuple(
            tuple(number for number, lender in near if demand in lender.demands)
            for demand in range(self._demand_count)
        )


def _lenders(forest: Forest, plan: Plan, pause: Callable[[], None]) -> Iterator[Lender]:
    by_block: dict[int, list[int]] = {}
    for block_number, place in forest.sharing:
        by_block.setdefault(block_number, []).append(place)
    for number, places in by_block.items():
        pause()
        yield from _lenders_of_block(forest, plan, number, places)


def _lenders_of_block(forest: Forest, plan: Plan, number: int, places: list[int]) -> list[Lender]:
    block = forest.blocks[number]
    able = [
        set(eligible_places(plan, demand, block, number, alone=True).tolist())
        if plan.anchor is None or not plan.demands[demand].conditions.spanning
        # in_tree of the unsuffixed group: nobody from outside.
        else set()
        for demand in range(len(plan.demands))
    ]
    lenders = []
    for place in places:
        demands = frozenset(demand for demand, found in enumerate(able) if place in found)
        aggregates = forest.aggregate_sets[int(block.aggregates[place])]
        if demands and aggregates:
            lenders.append(
                Lender(
                    ProviderRef(number, place),
                    TreeRef(number, int(block.trees[place])),
                    block.uuids[place],
                    int(block.traits[place]),
                    aggregates,
                    demands,
                )
            )
    return lenders
