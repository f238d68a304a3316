"""Units: how many allocations of a requirement the stock of each provider holds."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from roost.model.capacity import remaining
from roost.search.block import Block, InventoryColumns
from roost.search.columns import IndexColumn, IntColumn
from roost.search.plan import Requirement

# More units than these count as so many: sums of them stay within 64 bits.
UNITS_MAX = 2**48


class Units(NamedTuple):
    """The units of some providers of a block for one requirement, in the order of indexes."""

    indexes: IndexColumn
    # Stock for so many allocations of the requirement.
    units: IntColumn
    # The number of slots with the requirement that one consumer may put on the provider.
    at_once: IntColumn

    def only(self, chosen: IndexColumn) -> Units:
        """The providers at these positions."""
        return Units(self.indexes[chosen], self.units[chosen], self.at_once[chosen])


def units_of(
    block: Block, requirement: Requirement, indexes: IndexColumn, slots: int, *, isolated: bool
) -> Units:
    """The units of providers that meet the requirement."""
    units: IntColumn = np.full(len(indexes), UNITS_MAX, np.int64)
    at_once: IntColumn = np.full(len(indexes), 1 if isolated else slots, np.int64)
    if len(indexes):
        for class_id, amount in requirement.amounts:
            inventory = block.inventories[class_id]
            rows = np.searchsorted(inventory.indexes, indexes)
            units = np.minimum(units, stock_at(inventory, rows) // amount)
            at_once = np.minimum(at_once, inventory.max_unit[rows] // amount)
    return Units(indexes, units, at_once)


def stock_at(inventory: InventoryColumns, rows: IndexColumn | IntColumn) -> IntColumn:
    """What remains of the inventories in these rows; zero where more than the capacity is used."""
    stock: IntColumn = np.maximum(remaining(inventory.capacity[rows], inventory.used[rows]), 0)
    return stock
