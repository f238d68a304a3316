"""The integer program: how many patterns fit into a stock together.

Any prices of the stocks bound the number from above: no pattern costs less than the cheapest one,
and all patterns together cost no more than the whole stock. The simplex method finds good prices.
Taking patterns one after another bounds the number from below. If the bounds differ, a search
between them decides, as far as its effort goes.

Trees with the same patterns mostly have the same prices. So the prices of one tree bound all trees
from above, and taking patterns in all trees at once bounds them from below. Only the trees whose
bounds differ are packed one by one: 10,000 worn hosts take 9 milliseconds instead of 1,000.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import gcd
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from roost.search.candidates.effort import Effort
from roost.search.capacity.parts import UNITS_MAX
from roost.search.forest.rows import IntColumn

# What one consumer takes of each stock, in the order of `Patterns.keys`.
Pattern: TypeAlias = tuple[int, ...]

# The moves of one search between the bounds.
_MOVES_MAX = 20_000
# The units of effort of one move, besides one for each stock.
_MOVE_UNITS = 10
_PRICE_SCALE = 2**24
# Prices are below 2**25. With smaller stocks than this, the cost of a thousand stays in 64 bits.
_STOCK_MAX = 2**28
# A larger table of the simplex method would take too long.
_TABLE_MAX = 100_000


class Prices(NamedTuple):
    """Prices of the stocks: no pattern costs less than `cheapest`."""

    prices: tuple[int, ...]
    cheapest: int

    def bound(self, stock: Sequence[int]) -> int:
        """No more patterns than these fit into the stock."""
        return sum(map(int.__mul__, self.prices, stock)) // self.cheapest


class Packed(NamedTuple):
    """How often each pattern is taken, and a bound on how many can be taken in all."""

    counts: tuple[int, ...]
    at_most: int

    @property
    def fits(self) -> int:
        """How many patterns are taken."""
        return sum(self.counts)


class _Component(NamedTuple):
    """Patterns that take from common stocks, in the largest units that all of them take."""

    # The numbers of the patterns, and those of the stocks with their units.
    members: list[int]
    rows: list[int]
    units: list[int]
    patterns: list[Pattern]


def _components(patterns: Sequence[Pattern]) -> Iterator[_Component]:
    """The patterns, those together that take from a common stock."""
    components: list[tuple[set[int], list[int]]] = []
    for number, pattern in enumerate(patterns):
        taken = {row for row, amount in enumerate(pattern) if amount}
        members = [number]
        apart = []
        for component in components:
            if component[0] & taken:
                taken |= component[0]
                members += component[1]
            else:
                apart.append(component)
        components = [*apart, (taken, members)]
    for taken, members in components:
        rows = sorted(taken)
        units = [gcd(*(patterns[each][row] for each in members)) for row in rows]
        smaller = [
            tuple(patterns[each][row] // unit for row, unit in zip(rows, units, strict=True))
            for each in members
        ]
        yield _Component(members, rows, units, smaller)


def pack(patterns: Sequence[Pattern], stock: Sequence[int], effort: Effort) -> Packed:
    """Fit as many patterns as possible into the stock.

    A single pattern may take nothing. Of several patterns, every one takes something.
    """
    counts = [0] * len(patterns)
    at_most = 0
    for members, rows, units, smaller in _components(patterns):
        left = [stock[row] // unit for row, unit in zip(rows, units, strict=True)]
        if len(members) == 1:
            count = _most(smaller[0], left)
            packed = Packed((count,), count)
        else:
            packed, _ = pack_priced(smaller, left, effort)
        at_most += packed.at_most
        for each, count in zip(members, packed.counts, strict=True):
            counts[each] = count
    return Packed(tuple(counts), at_most)


def pack_priced(
    patterns: Sequence[Pattern], stock: Sequence[int], effort: Effort
) -> tuple[Packed, Prices]:
    """Fit as many patterns as possible into a stock; the prices bound any stock from above."""
    shares, prices = _relaxed(patterns, stock, effort)
    at_most = prices.bound(stock)
    counts = _taken_in_order(patterns, stock, shares, effort)
    if sum(counts) < at_most:
        search = _Search(patterns, prices, shares, effort)
        counts, proven = search.improve(stock, counts, at_most)
        if proven:
            at_most = sum(counts)
    return Packed(tuple(counts), at_most), prices


def _most(pattern: Pattern, stock: Sequence[int]) -> int:
    return min(
        (left // amount for amount, left in zip(pattern, stock, strict=True) if amount),
        default=UNITS_MAX,
    )


def _taken_in_order(
    patterns: Sequence[Pattern], stock: Sequence[int], shares: Sequence[float], effort: Effort
) -> list[int]:
    """Take the whole part of each share, then as many more as fit, largest share first."""
    effort.spend(len(patterns) * len(stock) // 2)
    left = list(stock)
    counts = [0] * len(patterns)
    order = sorted(range(len(patterns)), key=lambda each: -(shares[each] % 1.0))
    wanted = [(each, int(shares[each] + 1e-9)) for each in range(len(patterns))]
    for each, most in [*wanted, *((each, None) for each in order)]:
        count = _most(patterns[each], left)
        count = count if most is None else min(count, most)
        if count:
            counts[each] += count
            left = [
                rest - count * amount for rest, amount in zip(left, patterns[each], strict=True)
            ]
    return counts


def _relaxed(
    patterns: Sequence[Pattern], stock: Sequence[int], effort: Effort
) -> tuple[list[float], Prices]:
    """The best shares of the patterns if they could be divided, and prices that prove it."""
    rows, columns = len(stock), len(patterns)
    if (rows + 1) * (columns + rows + 1) > _TABLE_MAX:
        return [0.0] * columns, _prices(patterns, stock, [])
    table: npt.NDArray[np.float64] = np.zeros((rows + 1, columns + rows + 1))
    table[:rows, :columns] = np.array(patterns, np.float64).T
    # Each row is scaled, so that large amounts lose no digits.
    scale = np.maximum(table[:rows, :columns].max(axis=1), 1.0)
    table[:rows, :columns] /= scale[:, None]
    table[:rows, columns : columns + rows] = np.eye(rows)
    table[:rows, -1] = np.array(stock, np.float64) / scale
    table[-1, :columns] = -1.0
    basis = list(range(columns, columns + rows))
    for _ in range(8 * (rows + columns)):
        effort.spend(60 + table.size // 50)
        entering = int(table[-1, :-1].argmin())
        if table[-1, entering] > -1e-9:
            break
        steps = table[:rows, entering]
        ratios = np.full(rows, np.inf)
        np.divide(table[:rows, -1], steps, out=ratios, where=steps > 1e-9)
        leaving = int(ratios.argmin())
        if ratios[leaving] == np.inf or effort.exhausted:
            break
        table[leaving] /= table[leaving, entering]
        factors = table[:, entering].copy()
        factors[leaving] = 0.0
        table -= factors[:, None] * table[leaving]
        basis[leaving] = entering
    shares = [0.0] * columns
    for row, column in enumerate(basis):
        if column < columns:
            shares[column] = max(0.0, float(table[row, -1]))
    found = table[-1, columns : columns + rows] / scale
    return shares, _prices(patterns, stock, found.tolist())


def _prices(patterns: Sequence[Pattern], stock: Sequence[int], found: list[float]) -> Prices:
    """Prices in whole numbers: those that were found, or a single stock's if these prove more."""
    best = Prices((1,) * len(stock), min(sum(pattern) for pattern in patterns))
    largest = max(found, default=0.0)
    tries = [
        tuple(int(row == each) for each in range(len(stock)))
        for row, column in enumerate(zip(*patterns, strict=True))
        if min(column) > 0
    ]
    if largest > 0:
        tries.append(tuple(max(0, round(price / largest * _PRICE_SCALE)) for price in found))
    for prices in tries:
        cheapest = min(sum(map(int.__mul__, prices, pattern)) for pattern in patterns)
        if cheapest > 0:
            proven = Prices(prices, cheapest)
            if proven.bound(stock) < best.bound(stock):
                best = proven
    return best


class _Search:
    """Looks for more patterns than are known, as long as prices do not exclude them."""

    def __init__(
        self,
        patterns: Sequence[Pattern],
        prices: Prices,
        shares: Sequence[float],
        effort: Effort,
    ) -> None:
        # Patterns with a large share first: their counts are likely to be right.
        self._order = sorted(range(len(patterns)), key=lambda each: -shares[each])
        self._patterns = patterns
        self._prices = prices
        self._effort = effort
        self._moves = 0
        self._best: list[int] = []
        self._known = 0
        self._goal = 0
        self._seen: set[tuple[int, ...]] = set()

    def improve(
        self, stock: Sequence[int], counts: list[int], at_most: int
    ) -> tuple[list[int], bool]:
        """Counts with the largest sum that was found, and whether no sum is larger."""
        self._best, self._known, self._goal = counts, sum(counts), at_most
        self._try(0, tuple(stock), [0] * len(self._patterns), 0)
        return self._best, self._known >= at_most or not self._is_over

    @property
    def _is_over(self) -> bool:
        return self._moves > _MOVES_MAX or self._effort.exhausted

    def _try(self, depth: int, stock: tuple[int, ...], counts: list[int], taken: int) -> None:
        if taken > self._known:
            self._best, self._known = list(counts), taken
        if self._known >= self._goal or depth == len(self._order) or self._is_over:
            return
        if taken + self._prices.bound(stock) <= self._known:
            return
        # Equal stocks at equal depths were reached with equal cost, but perhaps with fewer taken.
        state = (depth, taken, *stock)
        if state in self._seen:
            return
        self._seen.add(state)
        each = self._order[depth]
        pattern = self._patterns[each]
        for count in range(_most(pattern, stock), -1, -1):
            self._moves += 1
            self._effort.spend(_MOVE_UNITS + len(stock))
            counts[each] = count
            left = tuple(rest - count * amount for rest, amount in zip(stock, pattern, strict=True))
            self._try(depth + 1, left, counts, taken + count)
            if self._is_over or self._known >= self._goal:
                break
        counts[each] = 0


def pack_columns(
    patterns: Sequence[Pattern], stocks: IntColumn, effort: Effort
) -> tuple[IntColumn, IntColumn]:
    """For each row of `stocks` how many patterns fit: at least, and at most."""
    count = len(stocks)
    least, most = np.zeros(count, np.int64), np.zeros(count, np.int64)
    for _, rows, units, smaller in _components(patterns):
        if not rows:
            return np.full(count, UNITS_MAX, np.int64), np.full(count, UNITS_MAX, np.int64)
        found = _connected_columns(smaller, stocks[:, rows] // np.array(units, np.int64), effort)
        least += found[0]
        most += found[1]
    return least, most


def _connected_columns(
    patterns: list[Pattern], stocks: IntColumn, effort: Effort
) -> tuple[IntColumn, IntColumn]:
    takes = np.array(patterns, np.int64)
    if len(takes) == 1:
        fits = _most_of_columns(takes[0], stocks)
        return fits, fits
    least = _taken_in_halves(takes, stocks, effort)
    most = _bound_by_single_stocks(takes, stocks)
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


def _most_of_columns(takes: IntColumn, stocks: IntColumn) -> IntColumn:
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
        most = np.stack([_most_of_columns(pattern, left) for pattern in takes], axis=1)
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
