"""The problem that a tree poses: who in it could serve which part of the query.

Providers are named by their place within the tree, lenders from other trees by `~number`, so
hosts built alike and used alike pose the same problem, which is then solved once for all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from math import gcd
from typing import NamedTuple

import numpy as np

from roost.search.block import IndexColumn
from roost.search.building import CAPACITY_MAX
from roost.search.effort import Effort
from roost.search.plan import Plan
from roost.search.rows import IntColumn
from roost.search.sharing import Lenders

# So many required items fit into a number of a column.
_WORD_ITEMS = 62


class Problem(NamedTuple):
    """Who could serve each demand, and what must be known of them."""

    # For each demand, those who could serve it.
    providers: tuple[tuple[int, ...], ...]
    # For each contested (contest, demand) of the rules: the room of each of them, as far as it
    # matters.
    rooms: tuple[tuple[int, ...], ...] = ()
    # For each demand of the unsuffixed group: the required items that each of them has, as bits.
    items: tuple[tuple[int, ...], ...] = ()
    # The place of each provider's parent in the tree, if same_subtree asks.
    parents: tuple[int, ...] = ()

    @property
    def size(self) -> int:
        """How many numbers it consists of."""
        columns = chain(self.providers, self.rooms, self.items)
        return sum(map(len, columns)) + len(self.parents)

    @property
    def words(self) -> int:
        """What it takes in memory, in words of eight bytes: a tuple has seven of its own."""
        return 7 * (len(self.providers) + len(self.rooms) + len(self.items)) + self.size

    def only(self, provider: int, rules: Rules) -> Problem:
        """The same problem, if everything came from this provider, who could serve everything."""

        def pick(demand: int, values: tuple[int, ...]) -> tuple[int, ...]:
            return (values[self.providers[demand].index(provider)],)

        return Problem(
            tuple((provider,) for _ in self.providers),
            tuple(
                pick(demand, rooms)
                for (_, demand), rooms in zip(rules.contested, self.rooms, strict=True)
            ),
            tuple(
                pick(demand, items)
                for demand, items in zip(rules.spanning, self.items, strict=True)
            ),
            self.parents,
        )


@dataclass(frozen=True, slots=True)
class Contest:
    """A class that several parts demand, who may meet on one provider."""

    class_id: int
    # The amount that each part needs, by the part's number.
    amounts: Mapping[int, int]
    # The demands of these parts.
    demands: tuple[int, ...]
    # What all parts need together: more room than that makes no difference.
    total: int
    # Every amount is a multiple of it: what room has beyond a multiple makes none either.
    unit: int


class Rules:
    """What holds between the parts of a plan, the same for every tree."""

    def __init__(self, plan: Plan, lenders: Lenders, effort: Effort) -> None:
        self.plan = plan
        self.lenders = lenders
        # For each part the number of its demand.
        self.demands = tuple(part.demand for part in plan.parts)
        self.contests = tuple(_contests(plan))
        # Every demand of every contest, in the order of `Problem.rooms`.
        self.contested = tuple(
            (contest, demand) for contest in self.contests for demand in contest.demands
        )
        # The demands of the unsuffixed group, in the order of `Problem.items`.
        self.spanning = tuple(
            dict.fromkeys(plan.parts[part].demand for part in plan.unsuffixed) if plan.items else ()
        )
        # The tables of the required items, as many together as a number has bits.
        self.words = [
            plan.items[first : first + _WORD_ITEMS]
            for first in range(0, len(plan.items), _WORD_ITEMS)
        ]
        self.all_items = (1 << len(plan.items)) - 1
        self.effort = effort
        self.one_provider_a_tree = not plan.query.nested and len(plan.parts) > 1

    @property
    def free(self) -> bool:
        """Whether every choice for one part goes with every choice for the others."""
        return not (
            self.contests
            or self.plan.items
            or self.plan.isolated
            or self.plan.subtrees
            or self.one_provider_a_tree
        )

    def contested_rooms(
        self, problem: Problem
    ) -> Iterator[tuple[Contest, tuple[int, ...], tuple[int, ...]]]:
        """For each contest and demand: the providers, and the room of each."""
        for (contest, demand), rooms in zip(self.contested, problem.rooms, strict=True):
            yield contest, problem.providers[demand], rooms

    def items_of(self, traits: int) -> int:
        """The required items that a provider with this set of traits has, as bits."""
        return sum(1 << item for item, table in enumerate(self.plan.items) if table[traits])

    def item_words(self, traits: IndexColumn) -> list[IntColumn]:
        """The same for a column of sets, with as many numbers for each as its bits need."""
        words = []
        for tables in self.words:
            word: IntColumn = np.zeros(len(traits), np.int64)
            for bit, table in enumerate(tables):
                word |= table[traits].astype(np.int64) << bit
            words.append(word)
        return words

    def joined_words(self, words: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
        """The bits of each provider, from columns of words."""
        if len(words) == 1:
            return words[0]
        return tuple(
            sum(word << (_WORD_ITEMS * number) for number, word in enumerate(several))
            for several in zip(*words, strict=True)
        )


def _contests(plan: Plan) -> Iterator[Contest]:
    by_class: dict[int, dict[int, int]] = {}
    for number, part in enumerate(plan.parts):
        for class_id, amount in plan.demands[part.demand].needs:
            by_class.setdefault(class_id, {})[number] = amount
    for class_id, amounts in by_class.items():
        if len(amounts) > 1 and not amounts.keys() <= set(plan.isolated):
            demands = dict.fromkeys(plan.parts[number].demand for number in amounts)
            total = min(sum(amounts.values()), 2 * CAPACITY_MAX)
            yield Contest(class_id, amounts, tuple(demands), total, gcd(*amounts.values()))
