"""The integer program for many trees at once: the same patterns, and a stock for each tree.

Trees with the same patterns mostly have the same prices. So the prices of one tree bound all trees
from above, and taking patterns in all trees at once bounds them from below. Only the trees whose
bounds differ are packed one by one.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from roost.search.columns import IntColumn
from roost.search.effort import Effort
from roost.search.packing.patterns import Pattern
from roost.search.packing.program import Prices, components_of, pack_priced, units_of_rows
from roost.search.packing.units import UNITS_MAX

# Prices are below 2**25. With smaller stocks than this, the cost of a thousand stays in 64 bits.
_STOCK_MAX = 2**28


def pack_columns(
    patterns: Sequence[Pattern], stocks: IntColumn, effort: Effort
) -> tuple[IntColumn, IntColumn]:
    """For each row of `stocks` how many patterns fit: at least, and at most."""
    count = len(stocks)
    least, most = np.zeros(count, np.int64), np.zeros(count, np.int64)
    for members in components_of(patterns):
        takes = np.array([patterns[each] for each in members], np.int64)
        rows = np.flatnonzero(takes.any(axis=0))
        if not len(rows):
            return np.full(count, UNITS_MAX, np.int64), np.full(count, UNITS_MAX, np.int64)
        found = _pack_connected(takes[:, rows], stocks[:, rows], effort)
        least += found[0]
        most += found[1]
    return least, most


def _pack_connected(
    takes: IntColumn, stocks: IntColumn, effort: Effort
) -> tuple[IntColumn, IntColumn]:
    units = np.array(units_of_rows(list(map(tuple, takes.tolist()))), np.int64)
    takes, stocks = takes // units, stocks // units
    if len(takes) == 1:
        fits = _most(takes[0], stocks)
        return fits, fits
    least = _taken_in_halves(takes, stocks, effort)
    most = _bound_by_single_stocks(takes, stocks)
    patterns = list(map(tuple, takes.tolist()))
    known: dict[tuple[int, ...], tuple[int, int]] = {}
    for position in np.flatnonzero(least < most).tolist():
        effort.pause()
        if least[position] == most[position]:
            # Prices of an earlier tree have proven it.
            continue
        stock = tuple(stocks[position].tolist())
        bounds = known.get(stock)
        if bounds is None:
            packed, prices = pack_priced(patterns, stock, effort)
            bounds = known[stock] = packed.fits, packed.at_most
            most = np.minimum(most, _bounds(prices, stocks))
        least[position] = max(least[position], bounds[0])
        most[position] = min(most[position], bounds[1])
    return least, most


def _most(takes: IntColumn, stocks: IntColumn) -> IntColumn:
    """How often one pattern fits into each stock."""
    taken = takes > 0
    fits: IntColumn = (stocks[:, taken] // takes[taken]).min(axis=1)
    return fits


def _taken_in_halves(takes: IntColumn, stocks: IntColumn, effort: Effort) -> IntColumn:
    """Take half of what fits of the pattern that fits most often, again and again."""
    left = stocks.copy()
    total: IntColumn = np.zeros(len(stocks), np.int64)
    rows = np.arange(len(stocks))
    while True:
        effort.spend(len(takes) * (20 + stocks.size // 200))
        most = np.stack([_most(pattern, left) for pattern in takes], axis=1)
        best = most.argmax(axis=1)
        count = (most[rows, best] + 1) // 2
        if not count.any() or effort.exhausted:
            return total
        total += count
        left -= takes[best] * count[:, None]


def _bound_by_single_stocks(takes: IntColumn, stocks: IntColumn) -> IntColumn:
    """What a stock allows from which every pattern takes, and all stocks together."""
    bound: IntColumn = np.full(len(stocks), UNITS_MAX, np.int64)
    least = takes.min(axis=0)
    for row in np.flatnonzero(least > 0).tolist():
        bound = np.minimum(bound, stocks[:, row] // least[row])
    if stocks.max(initial=0) < _STOCK_MAX:
        bound = np.minimum(bound, stocks.sum(axis=1) // takes.sum(axis=1).min())
    return bound


def _bounds(prices: Prices, stocks: IntColumn) -> IntColumn:
    if stocks.max(initial=0) >= _STOCK_MAX:
        return np.full(len(stocks), UNITS_MAX, np.int64)
    bounds: IntColumn = stocks @ np.array(prices.prices, np.int64) // prices.cheapest
    return bounds
