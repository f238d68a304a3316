"""Misses: the trees without candidates that fail the fewest checks, and what each of them lacks.

Whole columns tell how far every tree is from a candidate. Only the nearest trees get a careful
look.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import NamedTuple

import numpy as np

from roost.model.candidates import CandidateQuery
from roost.search.candidates.effort import Effort, no_pause
from roost.search.candidates.plan import make_plan
from roost.search.candidates.rules import Rules
from roost.search.candidates.sharing import SharingProviders
from roost.search.conditions.condition import WHOLE_GAP
from roost.search.explain.gaps import ForestGaps, TreeGaps
from roost.search.explain.nearest import Miss, TreeLook
from roost.search.forest.block import Block
from roost.search.forest.forest import Forest, TreeRef
from roost.search.forest.rows import BoolColumn, FloatColumn, IndexColumn

# The work in vain on trees in which every group has a provider: a third of a search's.
_UNITS_MAX = 1_000_000
# How many kinds of misses there are at most, and how many trees of each block represent one.
_KINDS_MAX = 8
# How many trees whose groups do not go together get a careful look, for each miss wanted.
_LOOKS_PER_MISS = 2


class FoundMisses(NamedTuple):
    """The nearest trees, and the nearest tree of each kind: of each set of failed requirements."""

    nearest: tuple[Miss, ...] = ()
    kinds: tuple[Miss, ...] = ()


@dataclass(frozen=True, slots=True)
class _NearTree:
    """A tree that comes near: it may be a miss, before the careful look."""

    gap: float
    uuid: bytes
    tree: TreeRef

    @property
    def order(self) -> tuple[float, bytes]:
        return self.gap, self.uuid


def find_misses(
    forest: Forest,
    query: CandidateQuery,
    count: int,
    served: Mapping[int, BoolColumn],
    *,
    only_tree: TreeRef | None = None,
    pause: Callable[[], None] = no_pause,
) -> FoundMisses:
    """The trees that fail the fewest checks, best first; only this tree, if one is given.

    All names of the query exist in the forest's vocabulary. `served` has the trees with a
    candidate, by block number: none of them is a miss.
    """
    plan = make_plan(forest, query)
    if plan is None or count < 1:
        return FoundMisses()
    effort = Effort(units=_UNITS_MAX, pause=pause)
    rules = Rules(plan, SharingProviders(forest, plan, pause), effort)
    gaps = ForestGaps(forest, plan, pause)
    look = TreeLook(forest, rules, gaps)
    if only_tree is not None:
        is_served = served[only_tree.block_number][only_tree.tree_number]
        misses = _looked_at(look, [] if is_served else [only_tree])
        return FoundMisses(misses, misses)
    nearest: list[_NearTree] = []
    kinds: dict[tuple[float, ...], _NearTree] = {}
    # Trees in which every group has a provider, but the groups do not go together.
    apart: list[_NearTree] = []
    looks = count * _LOOKS_PER_MISS
    for block_number, block in enumerate(forest.blocks):
        pause()
        found = gaps.of_block(block_number)
        is_far = found.total > 0
        far: BoolColumn = is_far & ~served[block_number]
        nearest = _first([*nearest, *_near_trees(block, block_number, far, found, count)], count)
        _add_kinds(kinds, block, block_number, far, found)
        tree_numbers = np.flatnonzero(~is_far & ~served[block_number]).astype(np.int32)
        gaps_apart = np.full(len(tree_numbers), WHOLE_GAP)
        apart += [
            _near(block, block_number, number, WHOLE_GAP)
            for number in _smallest(block, tree_numbers, gaps_apart, looks)
        ]
    misses = _looked_at(look, [near.tree for near in _first([*nearest, *apart], looks)])
    return FoundMisses(misses[:count], _kinds(look, misses, kinds.values()))


def _looked_at(look: TreeLook, trees: Iterable[TreeRef]) -> tuple[Miss, ...]:
    found = [miss for miss in map(look.miss, trees) if miss is not None]
    return tuple(sorted(found, key=attrgetter("order")))


def _first(found: list[_NearTree], count: int) -> list[_NearTree]:
    return sorted(found, key=lambda near: near.order)[:count]


def _near_trees(
    block: Block, block_number: int, far: BoolColumn, found: TreeGaps, count: int
) -> Iterator[_NearTree]:
    """The trees of a block that come nearest, among those in which a group has no provider."""
    tree_numbers = np.flatnonzero(far).astype(np.int32)
    for tree_number in _smallest(block, tree_numbers, found.total[tree_numbers], count):
        yield _near(block, block_number, tree_number, float(found.total[tree_number]))


def _near(block: Block, block_number: int, tree_number: int, gap: float) -> _NearTree:
    uuid = block.uuids[int(block.starts[tree_number])]
    return _NearTree(gap, uuid, TreeRef(block_number, tree_number))


def _smallest(block: Block, tree_numbers: IndexColumn, gaps: FloatColumn, count: int) -> list[int]:
    """The trees with the smallest gaps; of equal ones those whose root has the smallest uuid."""
    if len(tree_numbers) > count:
        edge = np.partition(gaps, count - 1)[count - 1]
        kept = np.flatnonzero(gaps <= edge)
        if len(kept) > count:
            # Many trees are alike. The beginnings of their uuids exclude almost all of them.
            tied = kept[gaps[kept] == edge]
            beginnings = block.uuids.beginnings(block.roots[tree_numbers[tied]])
            last = min(count, len(tied)) - 1
            first = tied[beginnings <= np.partition(beginnings, last)[last]]
            kept = np.concatenate((np.flatnonzero(gaps < edge), first))
        tree_numbers, gaps = tree_numbers[kept], gaps[kept]
    uuids = block.uuids.texts(block.roots[tree_numbers])
    smallest: list[int] = tree_numbers[np.lexsort((uuids, gaps))[:count]].tolist()
    return smallest


def _add_kinds(
    kinds: dict[tuple[float, ...], _NearTree],
    block: Block,
    block_number: int,
    far: BoolColumn,
    found: TreeGaps,
) -> None:
    """Add the nearest tree of each kind. A kind tells which parts fail, and whether by room."""
    tree_numbers = np.flatnonzero(far)
    if not len(tree_numbers):
        return
    fewest = np.floor(found.total[tree_numbers]).min()
    tree_numbers = tree_numbers[found.total[tree_numbers] < fewest + 1]
    whole = found.total[tree_numbers] % 1 >= fewest * (WHOLE_GAP - 1)
    facts = [*(np.floor(part[tree_numbers]) for part in found.parts), whole.astype(np.float64)]
    for position in _first_of_each(facts)[:_KINDS_MAX]:
        number = int(tree_numbers[position])
        near = _near(block, block_number, number, float(found.total[number]))
        key = tuple(float(fact[position]) for fact in facts)
        if key not in kinds or near.order < kinds[key].order:
            kinds[key] = near


def _first_of_each(facts: list[FloatColumn]) -> list[int]:
    """The position of the first of each different row of the columns, in the order of the rows."""
    # Most facts are the same in all trees, and those that differ are faster to compare alone.
    differing = [fact for fact in facts if (fact != fact[0]).any()]
    if not differing:
        return [0]
    rows = np.column_stack(differing)
    positions: list[int] = np.unique(rows, axis=0, return_index=True)[1].tolist()
    return positions


def _kinds(
    look: TreeLook, nearest: tuple[Miss, ...], kinds: Iterable[_NearTree]
) -> tuple[Miss, ...]:
    """The nearest tree of each kind, without those that are among the nearest anyway."""
    known = {miss.tree for miss in nearest}
    further = [near.tree for near in _first(list(kinds), _KINDS_MAX) if near.tree not in known]
    return nearest + _looked_at(look, further)
