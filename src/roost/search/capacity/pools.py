"""Pools: sharing providers from which several trees take.

A commodity is a requirement that pools can meet. A tree meets it with units of its own or with
units of the pools that it reaches. With one or two commodities the best division is a flow: units
of the first commodity flow through the trees to units of the second one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import combinations
from typing import NamedTuple, TypeAlias

from roost.search.candidates.effort import Effort
from roost.search.candidates.solving.flow import Network

# The sharing numbers of the pools of a tree for one commodity.
PoolSet: TypeAlias = tuple[int, ...]
# For each pool its units, for one commodity.
PoolUnits: TypeAlias = Mapping[int, int]


class PooledTree(NamedTuple):
    """What a tree can do besides its pools; equal trees count together."""

    # The most consumers that it holds, as far as all else goes.
    fits: int
    # For each commodity: the pools, and how many consumers the tree serves by itself.
    pools: tuple[PoolSet, ...]
    own: tuple[int, ...]


class Shared(NamedTuple):
    """How many consumers all trees hold together: at least, and at most."""

    fits: int
    at_most: int


def share(trees: Counter[PooledTree], units: Sequence[PoolUnits], effort: Effort) -> Shared:
    """Divide the pools among the trees. `units` has the units of the pools of each commodity."""
    at_most = sum(tree.fits * count for tree, count in trees.items())
    numbers = range(len(units))
    for chosen in [*combinations(numbers, 1), *combinations(numbers, 2)]:
        found = _flow(_only(trees, chosen), [units[commodity] for commodity in chosen], effort)
        at_most = at_most if found is None else min(at_most, found)
    exact = len(units) <= 2 and not effort.exhausted
    return Shared(at_most if exact else _taken_in_turn(trees, units), at_most)


def _only(trees: Counter[PooledTree], commodities: Iterable[int]) -> Counter[PooledTree]:
    """The trees as far as these commodities go."""
    chosen = list(commodities)
    found: Counter[PooledTree] = Counter()
    for tree, count in trees.items():
        found[
            PooledTree(
                tree.fits,
                tuple(tree.pools[commodity] for commodity in chosen),
                tuple(tree.own[commodity] for commodity in chosen),
            )
        ] += count
    return found


def _flow(trees: Counter[PooledTree], units: Sequence[PoolUnits], effort: Effort) -> int | None:
    """The most consumers with one or two commodities; `None` if the effort does not suffice.

    Equal trees are one node: what flows through it can be divided evenly among them.
    """
    network = Network()
    pooled: Counter[tuple[PoolSet, ...]] = Counter()
    alone = 0
    for tree, count in trees.items():
        if len(units) == 1:
            # What a tree serves by itself takes nothing from a pool.
            own = min(tree.own[0], tree.fits)
            alone += own * count
            pooled[tree.pools] += (tree.fits - own) * count
        elif not any(tree.own):
            pooled[tree.pools] += tree.fits * count
        else:
            name = ("tree", tree)
            _link_tree(network, name, tree.pools, tree.fits * count)
            network.link("source", ("in", name), tree.own[0] * count)
            network.link(("out", name), "sink", tree.own[1] * count)
    for pools, fits in pooled.items():
        group = ("trees", pools)
        _link_tree(network, group, pools, fits)
        if len(units) == 1:
            network.link(("out", group), "sink", fits)
    for side, each in enumerate(units):
        for pool, count in each.items():
            start, end = ("source", (side, pool)) if side == 0 else ((side, pool), "sink")
            network.link(start, end, count)
    flow = network.largest_flow("source", "sink", effort)
    return None if flow is None else alone + flow


def _link_tree(network: Network, name: Hashable, pools: tuple[PoolSet, ...], fits: int) -> None:
    network.link(("in", name), ("out", name), fits)
    for side, several in enumerate(pools):
        for pool in several:
            if side == 0:
                network.link((side, pool), ("in", name), fits)
            else:
                network.link(("out", name), (side, pool), fits)


def _taken_in_turn(trees: Counter[PooledTree], units: Sequence[PoolUnits]) -> int:
    """A number that the trees reach if one takes after another: those with few pools first."""
    left = [dict(each) for each in units]
    total = 0
    for tree, count in sorted(trees.items(), key=lambda item: sum(map(len, item[0].pools))):
        fits = tree.fits * count
        for commodity, pools in enumerate(tree.pools):
            own = min(tree.own[commodity], tree.fits) * count
            fits = min(fits, own + sum(left[commodity].get(pool, 0) for pool in pools))
        total += fits
        for commodity, pools in enumerate(tree.pools):
            rest = fits - min(tree.own[commodity], tree.fits) * count
            for pool in pools:
                taken = max(0, min(rest, left[commodity].get(pool, 0)))
                left[commodity][pool] = left[commodity].get(pool, 0) - taken
                rest -= taken
    return total
