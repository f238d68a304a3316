"""A block: some whole trees as columns of numbers. It never changes; a change makes a new one.

Blocks are small enough to be copied at every write and large enough that a query needs few
array operations. A reader keeps the blocks that it began with, whatever is written meanwhile.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from roost.search.rows import BoolColumn, IntColumn
from roost.search.uuid_column import UuidColumn

# Places of providers within a block, and other small numbers.
IndexColumn: TypeAlias = npt.NDArray[np.int32]

# Measured with 70,000 providers, 7 a tree, at 1,024 / 4,096 / 16,384: to find the trees of one
# aggregate takes 13 / 3.9 / 2.0 ms, to take a changed tree out of its block 0.4 / 1.2 / 5.0 ms.
BLOCK_PROVIDERS = 4096

NO_PLACES: IndexColumn = np.empty(0, np.int32)


@dataclass(frozen=True, slots=True)
class Stock:
    """One resource class in a block: a row for each provider that has it, by place."""

    places: IndexColumn
    capacity: IntColumn
    min_unit: IntColumn
    max_unit: IntColumn
    step_size: IntColumn
    used: IntColumn
    # What one more allocation can have at most; below zero where too much is used already.
    room: IntColumn
    # Every unit is one, as usual: then there is nothing but room to look at.
    plain: bool

    @classmethod
    def of(
        cls,
        *,
        places: IndexColumn,
        capacity: IntColumn,
        min_unit: IntColumn,
        max_unit: IntColumn,
        step_size: IntColumn,
        used: IntColumn,
    ) -> Stock:
        """The stock with these columns and what follows from them."""
        return cls(
            places=places,
            capacity=capacity,
            min_unit=min_unit,
            max_unit=max_unit,
            step_size=step_size,
            used=used,
            room=np.minimum(capacity - used, max_unit),
            plain=bool((min_unit == 1).all() and (step_size == 1).all()),
        )

    def fits(self, amount: int) -> BoolColumn:
        """For each row whether an allocation of this amount fits."""
        enough: BoolColumn = self.room >= amount
        if self.plain:
            return enough
        allowed: BoolColumn = (self.min_unit <= amount) & (amount % self.step_size == 0)
        return enough & allowed

    def with_used(self, used: IntColumn) -> Stock:
        """The same inventories, used otherwise."""
        return replace(self, used=used, room=np.minimum(self.capacity - used, self.max_unit))

    def kept(self, rows: BoolColumn, new_places: IndexColumn) -> Stock:
        """Only these rows, whose providers have moved to new places."""
        return Stock.of(
            places=new_places[self.places[rows]],
            capacity=self.capacity[rows],
            min_unit=self.min_unit[rows],
            max_unit=self.max_unit[rows],
            step_size=self.step_size[rows],
            used=self.used[rows],
        )

    def followed_by(self, other: Stock, offset: int) -> Stock:
        """These rows and the other's, whose providers stand `offset` places further."""
        return Stock.of(
            places=np.concatenate((self.places, other.places + np.int32(offset))),
            capacity=np.concatenate((self.capacity, other.capacity)),
            min_unit=np.concatenate((self.min_unit, other.min_unit)),
            max_unit=np.concatenate((self.max_unit, other.max_unit)),
            step_size=np.concatenate((self.step_size, other.step_size)),
            used=np.concatenate((self.used, other.used)),
        )


@dataclass(frozen=True, slots=True)
class Block:
    """Whole trees, one after the other; within a tree the root stands first."""

    ids: IntColumn
    # The lowest and the highest of the ids.
    id_range: tuple[int, int]
    uuids: UuidColumn
    # The place of the parent; -1 for a root.
    parents: IndexColumn
    # Which tree of the block a provider belongs to.
    trees: IndexColumn
    # Where each tree begins, and at the end where the last one ends.
    starts: IndexColumn
    # Numbers of sets, for each provider.
    traits: IndexColumn
    aggregates: IndexColumn
    # The number of the set of all aggregates of all members, for each tree.
    tree_aggregates: IndexColumn
    stocks: Mapping[int, Stock]
    # Places of sharing providers.
    sharing: tuple[int, ...]
    # What renderers made of each tree, to be used again until the tree changes.
    fragments: list[bytes | None]

    def __len__(self) -> int:
        return len(self.uuids)

    @property
    def tree_count(self) -> int:
        """How many trees there are."""
        return len(self.starts) - 1

    @property
    def roots(self) -> IndexColumn:
        """The place of each tree's root."""
        return self.starts[:-1]

    def places_of(self, ids: Sequence[int]) -> IndexColumn:
        """Where the providers with these ids, which are few and sorted, stand, if they are here."""
        low, high = self.id_range
        near = ids[bisect_left(ids, low) : bisect_right(ids, high)]
        if not near:
            return NO_PLACES
        # Looking for one after the other is four times as fast as numpy's own way.
        found = [np.flatnonzero(self.ids == id_) for id_ in near]
        return np.concatenate(found).astype(np.int32)

    def places_in(self, wanted: BoolColumn) -> IndexColumn:
        """Where the providers stand whose ids are wanted; the last member is for higher ids."""
        found = wanted[np.minimum(self.ids, len(wanted) - 1)]
        return np.flatnonzero(found).astype(np.int32)

    def trees_with_roots_at(self, places: IndexColumn) -> BoolColumn:
        """For each tree whether its root stands at one of these places."""
        trees = self.trees[places]
        found = np.zeros(self.tree_count, np.bool_)
        found[trees[self.starts[trees] == places]] = True
        return found

    def with_usages(self, places: IndexColumn, used: Mapping[int, Mapping[int, int]]) -> Block:
        """The same trees, of which the providers at these places are used otherwise.

        `used` has the amounts by class and provider's id, and may speak of other providers, too.
        """
        stocks = {
            class_id: self._with_usage(stock, places, used.get(class_id, {}))
            for class_id, stock in self.stocks.items()
        }
        fragments = self.fragments.copy()
        for tree in set(self.trees[places].tolist()):
            fragments[tree] = None
        return replace(self, stocks=stocks, fragments=fragments)

    def _with_usage(self, stock: Stock, places: IndexColumn, used_of: Mapping[int, int]) -> Stock:
        rows = np.searchsorted(stock.places, places).clip(max=len(stock.places) - 1)
        rows = rows[stock.places[rows] == places]
        if not len(rows):
            return stock
        used = stock.used.copy()
        used[rows] = [used_of.get(id_, 0) for id_ in self.ids[stock.places[rows]].tolist()]
        return stock.with_used(used)

    def without(self, dropped: BoolColumn) -> Block:
        """The block without those trees."""
        kept = ~dropped[self.trees]
        new_places = (np.cumsum(kept) - 1).astype(np.int32)
        new_trees = (np.cumsum(~dropped) - 1).astype(np.int32)
        sizes = np.diff(self.starts)[~dropped]
        parents = self.parents[kept]
        stocks = {}
        for class_id, stock in self.stocks.items():
            rows = kept[stock.places]
            if rows.any():
                stocks[class_id] = stock.kept(rows, new_places)
        ids = self.ids[kept]
        return Block(
            ids=ids,
            id_range=id_range(ids),
            uuids=self.uuids.kept(np.flatnonzero(kept)),
            parents=np.where(parents < 0, np.int32(-1), new_places[parents]),
            trees=new_trees[self.trees[kept]],
            starts=_starts(sizes),
            traits=self.traits[kept],
            aggregates=self.aggregates[kept],
            tree_aggregates=self.tree_aggregates[~dropped],
            stocks=stocks,
            sharing=tuple(int(new_places[place]) for place in self.sharing if kept[place]),
            fragments=[
                fragment
                for fragment, gone in zip(self.fragments, dropped.tolist(), strict=True)
                if not gone
            ],
        )

    def followed_by(self, other: Block) -> Block:
        """These trees and the other's."""
        offset = len(self)
        stocks = dict(self.stocks)
        for class_id, stock in other.stocks.items():
            mine = stocks.get(class_id)
            stocks[class_id] = (
                replace(stock, places=stock.places + np.int32(offset))
                if mine is None
                else mine.followed_by(stock, offset)
            )
        parents = np.where(other.parents < 0, other.parents, other.parents + np.int32(offset))
        return Block(
            ids=np.concatenate((self.ids, other.ids)),
            id_range=(
                min(self.id_range[0], other.id_range[0]),
                max(self.id_range[1], other.id_range[1]),
            ),
            uuids=self.uuids.followed_by(other.uuids),
            parents=np.concatenate((self.parents, parents)),
            trees=np.concatenate((self.trees, other.trees + np.int32(self.tree_count))),
            starts=np.concatenate((self.starts[:-1], other.starts + np.int32(offset))),
            traits=np.concatenate((self.traits, other.traits)),
            aggregates=np.concatenate((self.aggregates, other.aggregates)),
            tree_aggregates=np.concatenate((self.tree_aggregates, other.tree_aggregates)),
            stocks=stocks,
            sharing=(*self.sharing, *(place + offset for place in other.sharing)),
            fragments=[*self.fragments, *other.fragments],
        )


def id_range(ids: IntColumn) -> tuple[int, int]:
    """The lowest and the highest of some ids."""
    return int(ids.min()), int(ids.max())


def _starts(sizes: npt.NDArray[np.integer]) -> IndexColumn:
    """Where trees of these sizes begin."""
    return np.concatenate(([0], np.cumsum(sizes))).astype(np.int32)
