"""Misses: the trees without candidates that fail the fewest checks, and what each of them lacks.

Whole columns tell how far every tree is from a candidate (`gaps.py`). Only the nearest trees get a
careful look: the provider that comes nearest for each slot, and its lacks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from operator import attrgetter
from typing import NamedTuple

import numpy as np

from roost.model.candidate_query.query import CandidateQuery
from roost.search.candidates.effort import Effort, no_pause
from roost.search.candidates.plan import Slot, make_plan
from roost.search.candidates.rules import Rules
from roost.search.candidates.sharing import SharingProviders
from roost.search.conditions.aggregates import OutOfReach
from roost.search.conditions.condition import WHOLE_GAP, BlockView, NearProvider
from roost.search.conditions.lack import Lack, LackRule
from roost.search.explain.gaps import ForestGaps, TreeGaps, provider_gaps
from roost.search.explain.joint_conditions import TreeConflicts
from roost.search.forest.block import Block
from roost.search.forest.forest import Forest, ProviderRef, TreeRef
from roost.search.forest.rows import BoolColumn, FloatColumn, IndexColumn

# The work in vain on trees in which every group has a provider: a third of a search's.
_UNITS_MAX = 1_000_000
# How many kinds of misses there are at most, and how many trees of each block represent one.
_KINDS_MAX = 8
# How many trees whose groups do not go together get a careful look, for each miss wanted.
_LOOKS_PER_MISS = 2


@dataclass(frozen=True, slots=True)
class Miss:
    """A tree without candidates, and all that it lacks."""

    tree: TreeRef
    # The uuid of the root.
    root: str
    # How many checks fail. A provider without inventory fails three: class, unit and room.
    failed: int
    # The sum of what is missing of each amount, relative to the amount; 1 for any other check.
    shortage: float
    lacks: tuple[Lack, ...]
    # Which of its alternatives each group takes, by suffix, if the query has some.
    alternatives: Mapping[str, int] = field(default_factory=dict)

    @property
    def order(self) -> tuple[int, float, str]:
        """What comes first: the fewest failed checks."""
        return self.failed, self.shortage, self.root


class FoundMisses(NamedTuple):
    """The nearest trees, and the nearest tree of each kind: of each set of failed requirements."""

    nearest: tuple[Miss, ...] = ()
    kinds: tuple[Miss, ...] = ()


class _NearTree(NamedTuple):
    """A tree that comes near: it may be a miss, before the careful look."""

    gap: float
    # The uuid of the root: of trees that come equally near, the smallest is first.
    uuid: bytes
    tree: TreeRef


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
    look = _TreeLook(forest, rules, gaps)
    if only_tree is not None:
        is_served = served[only_tree.block_number][only_tree.tree_number]
        misses = look.misses([] if is_served else [only_tree])
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
        far, near = is_far & ~served[block_number], ~is_far & ~served[block_number]
        nearest += _near_trees(block, block_number, far, found.total, count)
        nearest = sorted(nearest)[:count]
        _add_kinds(kinds, block, block_number, far, found)
        apart += _near_trees(block, block_number, near, np.full(len(near), WHOLE_GAP), looks)
    misses = look.misses(near.tree for near in sorted([*nearest, *apart])[:looks])
    # The nearest tree of each kind, without those that are among the nearest anyway.
    known = {miss.tree for miss in misses}
    further = [near.tree for near in sorted(kinds.values())[:_KINDS_MAX] if near.tree not in known]
    return FoundMisses(misses[:count], misses + look.misses(further))


def _near_trees(
    block: Block, block_number: int, chosen: BoolColumn, gaps: FloatColumn, count: int
) -> Iterator[_NearTree]:
    """Those of the chosen trees of a block that have the smallest gaps."""
    tree_numbers = np.flatnonzero(chosen).astype(np.int32)
    for tree_number in _smallest(block, tree_numbers, gaps[tree_numbers], count):
        yield _near(block, block_number, tree_number, gaps)


def _near(block: Block, block_number: int, tree_number: int, gaps: FloatColumn) -> _NearTree:
    uuid = block.uuids[int(block.starts[tree_number])]
    return _NearTree(float(gaps[tree_number]), uuid, TreeRef(block_number, tree_number))


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
        near = _near(block, block_number, int(tree_numbers[position]), found.total)
        key = tuple(float(fact[position]) for fact in facts)
        kinds[key] = min(near, kinds.get(key, near))


def _first_of_each(facts: list[FloatColumn]) -> list[int]:
    """The position of the first of each different row of the columns, in the order of the rows."""
    # Most facts are the same in all trees, and those that differ are faster to compare alone.
    differing = [fact for fact in facts if (fact != fact[0]).any()]
    if not differing:
        return [0]
    rows = np.column_stack(differing)
    positions: list[int] = np.unique(rows, axis=0, return_index=True)[1].tolist()
    return positions


class _Option(NamedTuple):
    """A provider that could fill a slot."""

    gap: float
    ref: ProviderRef
    # Whether it is a sharing provider of another tree.
    as_sharing: bool = False
    # What it lacks, if it would serve the slot and does not reach the tree.
    reach: OutOfReach | None = None


# Of equal options the first: providers of the tree come before sharing providers.
_GAP = attrgetter("gap")


class _TreeLook:
    """The careful look at single trees of a forest, for one plan."""

    def __init__(self, forest: Forest, rules: Rules, gaps: ForestGaps) -> None:
        self._forest = forest
        self._rules = rules
        self._gaps = gaps
        self._conflicts = TreeConflicts(forest, rules)

    def misses(self, trees: Iterable[TreeRef]) -> tuple[Miss, ...]:
        """Those of the trees that have no candidate, best first."""
        found = [miss for miss in map(self._miss, trees) if miss is not None]
        return tuple(sorted(found, key=attrgetter("order")))

    def _miss(self, tree: TreeRef) -> Miss | None:
        """What the tree lacks; `None` if the tree has a candidate, or if that is not known."""
        plan = self._rules.plan
        block = self._forest.blocks[tree.block_number]
        # By requirement.
        options = [list(self._options(tree, index)) for index in range(len(plan.requirements))]
        by_slot = [
            list(self._slot_lacks(tree, slot, min(options[slot.requirement_index], key=_GAP)))
            for slot in plan.slots
        ]
        further = [lack for root in plan.root_conditions for lack in root.lacks(tree, block)]
        further += self._choice_lacks(tree, options)
        if not (any(by_slot) or further):
            further += self._conflicts.lacks(tree)
        lacks = [*further, *chain.from_iterable(by_slot)]
        if not lacks:
            return None
        told = [
            self._told(tree, slot, options[slot.requirement_index], its)
            for slot, its in zip(plan.slots, by_slot, strict=True)
        ]
        return Miss(
            tree,
            block.root_uuid(tree.tree_number),
            sum(3 if lack.rule is LackRule.INVENTORY else 1 for lack in lacks),
            sum(map(_shortage, lacks)),
            (*further, *chain.from_iterable(told)),
        )

    def _told(
        self, tree: TreeRef, slot: Slot, options: Sequence[_Option], lacks: list[Lack]
    ) -> Iterable[Lack]:
        """The lacks of a slot that tell the most.

        Where the nearest provider has no inventory of the only class, a provider that has some
        tells more, even if it fails more checks. Where no provider has any, nothing else matters.
        """
        absent = [lack for lack in lacks if lack.rule is LackRule.INVENTORY]
        if not absent or len(slot.resources) > 1:
            return lacks
        wanted = self._rules.plan.requirements[slot.requirement_index].wanted
        having = [
            option
            for option in options
            if wanted.has_inventory(self._forest.blocks[option.ref.block_number], option.ref)
        ]
        if having:
            return self._slot_lacks(tree, slot, min(having, key=_GAP))
        return [replace(lack, provider=None) for lack in absent]

    def _slot_lacks(self, tree: TreeRef, slot: Slot, nearest: _Option) -> Iterator[Lack]:
        """What a provider lacks for a slot of the tree."""
        if not nearest.gap:
            return
        block_number = nearest.ref.block_number
        first_class = next(iter(slot.resources), None)
        near = NearProvider(
            nearest.ref,
            BlockView(self._forest.blocks[block_number], block_number, nearest.as_sharing),
            slot.suffix,
            # The unsuffixed group has a slot for each of its classes.
            None if slot.suffix else first_class,
            self._forest.root_traits(tree),
        )
        if nearest.reach is not None:
            yield nearest.reach.lack(near, first_class)
            return
        for condition in self._rules.plan.requirements[slot.requirement_index].conditions:
            yield from condition.lacks(near)

    def _choice_lacks(self, tree: TreeRef, options: Sequence[list[_Option]]) -> Iterator[Lack]:
        """The trait choices that no nearest provider of the unsuffixed group meets."""
        nearest: list[_Option] = []
        for requirement_index in self._gaps.unsuffixed:
            its = options[requirement_index]
            fewest = int(min(its, key=_GAP).gap)
            nearest += [option for option in its if int(option.gap) == fewest]
        set_numbers = [self._trait_set_number(option.ref) for option in nearest]
        for choice in self._gaps.trait_choices:
            if not choice.met[set_numbers].any():
                yield choice.lack(self._forest.root_traits(tree))

    def _trait_set_number(self, ref: ProviderRef) -> int:
        return int(self._forest.blocks[ref.block_number].trait_set_numbers[ref.provider_index])

    def _options(self, tree: TreeRef, requirement_index: int) -> Iterator[_Option]:
        """The providers that could fill a slot."""
        block_number, tree_number = tree
        block = self._forest.blocks[block_number]
        begin, end = block.starts[tree_number : tree_number + 2].tolist()
        requirement = self._rules.plan.requirements[requirement_index]
        gaps = provider_gaps(requirement, BlockView(block, block_number))
        for index in range(begin, end):
            yield _Option(float(gaps[index]), ProviderRef(block_number, index))
        reached = self._forest.aggregate_sets[int(block.tree_aggregate_set_numbers[tree_number])]
        for member in self._gaps.sharing.members:
            gap = member.gaps[requirement_index]
            if not reached.isdisjoint(member.aggregates):
                yield _Option(gap, member.ref, as_sharing=True)
            elif not gap:
                out_of_reach = OutOfReach(member.aggregates)
                yield _Option(WHOLE_GAP, member.ref, as_sharing=True, reach=out_of_reach)


def _shortage(lack: Lack) -> float:
    if lack.rule is LackRule.ROOM and lack.wanted:
        return (lack.wanted - (lack.free or 0)) / lack.wanted
    return 1
