"""The integer program: how many patterns fit into a stock together.

Any prices of the stocks bound the number from above: no pattern costs less than the cheapest one,
and all patterns together cost no more than the whole stock. The simplex method finds good prices.
Taking patterns one after another bounds the number from below. If the bounds differ, a search
between them decides, as far as its effort goes.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from math import gcd
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from roost.search.effort import Effort
from roost.search.packing.patterns import Pattern
from roost.search.packing.units import UNITS_MAX

# The moves of one search between the bounds.
_MOVES_MAX = 20_000
# The units of effort of one move, besides one for each stock.
_MOVE_UNITS = 10
_PRICE_SCALE = 2**24


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


def pack(patterns: Sequence[Pattern], stock: Sequence[int], effort: Effort) -> Packed:
    """Fit as many patterns as possible into the stock.

    A single pattern may take nothing. Of several patterns, every one takes something.
    """
    if not patterns:
        return Packed((), 0)
    if len(patterns) == 1:
        count = _most(patterns[0], stock)
        return Packed((count,), count)
    counts = [0] * len(patterns)
    at_most = 0
    for members in components_of(patterns):
        rows = [row for row in range(len(stock)) if any(patterns[each][row] for each in members)]
        small = [tuple(patterns[each][row] for row in rows) for each in members]
        packed = _pack_connected(small, [stock[row] for row in rows], effort)
        at_most += packed.at_most
        for each, count in zip(members, packed.counts, strict=True):
            counts[each] = count
    return Packed(tuple(counts), at_most)


def components_of(patterns: Sequence[Pattern]) -> list[list[int]]:
    """The patterns, those together that take from a common stock."""
    components: list[tuple[set[int], list[int]]] = []
    for number, pattern in enumerate(patterns):
        rows = {row for row, amount in enumerate(pattern) if amount}
        members = [number]
        apart = []
        for component in components:
            if component[0] & rows:
                rows |= component[0]
                members += component[1]
            else:
                apart.append(component)
        components = [*apart, (rows, members)]
    return [members for _, members in components]


def units_of_rows(patterns: Sequence[Pattern]) -> list[int]:
    """For each stock the largest unit in which all patterns take from it."""
    return [reduce(gcd, column) or 1 for column in zip(*patterns, strict=True)]


def _pack_connected(patterns: list[Pattern], stock: list[int], effort: Effort) -> Packed:
    if len(patterns) == 1:
        count = _most(patterns[0], stock)
        return Packed((count,), count)
    units = units_of_rows(patterns)
    stock = [left // unit for left, unit in zip(stock, units, strict=True)]
    patterns = [
        tuple(amount // unit for amount, unit in zip(pattern, units, strict=True))
        for pattern in patterns
    ]
    return pack_priced(patterns, stock, effort)[0]


def pack_priced(
    patterns: Sequence[Pattern], stock: Sequence[int], effort: Effort
) -> tuple[Packed, Prices]:
    """Fit as many patterns as possible into a stock; the prices bound any stock from above."""
    shares, prices = _relaxed(patterns, stock, effort)
    at_most = prices.bound(stock)
    counts = _taken_in_order(patterns, stock, shares)
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
    patterns: Sequence[Pattern], stock: Sequence[int], shares: Sequence[float]
) -> list[int]:
    """Take the whole part of each share, then as many more as fit, largest share first."""
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
        effort.spend(60 + table.size // 200)
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
    tries = [tuple(int(row == other) for other in range(len(stock))) for row in range(len(stock))]
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
