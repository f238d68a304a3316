"""The overview: what each tree has, as columns with one value for each root. Pure.

Sums of a resource class are taken over whole trees. A sharing provider is a tree of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from roost.search.candidates.effort import no_pause
from roost.search.capacity.capacity import BlockCapacity
from roost.search.capacity.fragmentation import exact_sum
from roost.search.capacity.parts import free_at
from roost.search.forest.block import Block, InventoryColumns
from roost.search.forest.forest import Forest
from roost.search.forest.rows import BoolColumn, IntColumn, column
from roost.search.roots import MatchingRoots, RootFilter

# JSON has no larger integers. Larger sums come from absurd allocation ratios.
_SUM_MAX = 2**63 - 1
# A sum of so many numbers below this one stays within 64 bits.
_SMALL = 2**40

# The group of roots that have no value to group by.
NO_GROUP = -1


@dataclass(frozen=True, slots=True)
class TraitPrefix:
    """Roots are grouped by the trait that begins with this text."""

    text: str


class ByAggregate:
    """Roots are grouped by aggregate."""


class ClassAmounts(NamedTuple):
    """Amounts of one resource class."""

    total: int
    reserved: int
    used: int
    # What could still be claimed.
    free: int


class ClassTotal(NamedTuple):
    """One resource class of all trees in an overview."""

    total: int
    reserved: int
    used: int
    free: int
    capacity: int
    # How many providers have an inventory of it.
    providers: int


@dataclass(frozen=True, slots=True)
class RootGroup:
    """The roots with one value: an aggregate or a trait; `None` for roots without any."""

    value: str | None
    roots: int
    # `None` where the overview has no such column.
    amounts: ClassAmounts | None
    fits: int | None


@dataclass(frozen=True, slots=True)
class RootOverview:
    """All roots that pass a filter, by uuid, and sums of what their trees have."""

    forest: Forest
    uuids: npt.NDArray[np.bytes_]
    # Where each root is: the number of its block, and its index there.
    block_numbers: IntColumn
    indexes: IntColumn
    # Total, reserved, used and free; `None` without a resource class.
    amounts: tuple[IntColumn, ...] | None
    # How many consumers each root alone holds, and whether no root holds more; `None` without
    # a query.
    fits: IntColumn | None
    exact: bool | None
    # For each root the place of its value in `values`, or `NO_GROUP`; `None` without groups.
    group_numbers: IntColumn | None
    values: list[str]
    # By the name of the resource class.
    totals: Mapping[str, ClassTotal]

    def __len__(self) -> int:
        return len(self.uuids)

    def names(self, begin: int, end: int) -> list[str]:
        """The names of the roots from one place to another."""
        block_numbers, indexes = self.block_numbers[begin:end], self.indexes[begin:end]
        names = [""] * len(indexes)
        for block_number in np.unique(block_numbers).tolist():
            places = np.flatnonzero(block_numbers == block_number)
            found = self.forest.blocks[block_number].names.texts(indexes[places])
            for place, name in zip(places.tolist(), found, strict=True):
                names[place] = name
        return names

    def group_values(self, begin: int, end: int) -> list[str | None]:
        """The value of each root from one place to another."""
        if self.group_numbers is None:
            return [None] * len(self.uuids[begin:end])
        # The last value is that of `NO_GROUP`.
        values = [*self.values, None]
        return [values[number] for number in self.group_numbers[begin:end].tolist()]

    def groups(self) -> list[RootGroup]:
        """The sums of each group, by value; the roots without any come last."""
        if self.group_numbers is None:
            return []
        count = len(self.values) + 1
        # The last group has the roots without a value.
        numbers = np.where(self.group_numbers == NO_GROUP, count - 1, self.group_numbers)
        roots = np.bincount(numbers, minlength=count).tolist()
        amounts: list[ClassAmounts | None] = [None] * count
        if self.amounts is not None:
            sums = (_sums(numbers, count, each).tolist() for each in self.amounts)
            amounts = list(map(ClassAmounts._make, zip(*sums, strict=True)))
        fits: list[int | None] = [None] * count
        if self.fits is not None:
            fits = _sums(numbers, count, self.fits).tolist()
        return [
            RootGroup(value, roots[at], amounts[at], fits[at])
            for at, value in enumerate([*self.values, None])
            if roots[at]
        ]


def find_overview(
    forest: Forest,
    wanted: RootFilter,
    class_id: int | None,
    capacities: Iterable[BlockCapacity] | None,
    grouping: TraitPrefix | ByAggregate | None,
    *,
    pause: Callable[[], None] = no_pause,
) -> RootOverview:
    """The overview of the roots that pass a filter. `capacities` are those of single trees."""
    roots = MatchingRoots(forest, wanted, pause)
    amounts, fits, exact = None, None, None
    if class_id is not None:
        by_block = [_tree_amounts(block, class_id) for block in forest.blocks]
        amounts = tuple(roots.column([each[at] for each in by_block]) for at in range(4))
        pause()
    if capacities is not None:
        found = {one.block_number: one for one in capacities}
        bounds = [_bounds(block, found.get(at)) for at, block in enumerate(forest.blocks)]
        fits = roots.column([least for least, _ in bounds])
        exact = bool((fits == roots.column([most for _, most in bounds])).all())
        pause()
    group_numbers, values = _groups(forest, roots, grouping)
    return RootOverview(
        forest=forest,
        uuids=roots.uuids,
        block_numbers=roots.column(
            [np.full(block.tree_count, at) for at, block in enumerate(forest.blocks)]
        ),
        indexes=roots.column([block.roots for block in forest.blocks]),
        amounts=amounts,
        fits=fits,
        exact=exact,
        group_numbers=group_numbers,
        values=values,
        totals=_totals(forest, roots, pause),
    )


def _columns(inventory: InventoryColumns) -> tuple[IntColumn, ...]:
    """Total, reserved, used, free and capacity."""
    free = free_at(inventory, np.arange(len(inventory.indexes)))
    return inventory.total, inventory.reserved, inventory.used, free, inventory.capacity


def _totals(
    forest: Forest, roots: MatchingRoots, pause: Callable[[], None]
) -> dict[str, ClassTotal]:
    """What the trees of the roots have of each class."""
    sums: dict[int, list[int]] = {}
    for block, chosen in zip(forest.blocks, roots.chosen, strict=True):
        _add_totals(sums, block, chosen)
        pause()
    names = forest.vocabulary.class_names
    found = {names[id_]: amounts for id_, amounts in sums.items() if id_ in names}
    return {
        name: ClassTotal._make(min(amount, _SUM_MAX) for amount in amounts)
        for name, amounts in sorted(found.items())
    }


def _add_totals(totals: dict[int, list[int]], block: Block, chosen: BoolColumn | None) -> None:
    """Add what the chosen trees of a block have of each class."""
    for class_id, inventory in block.inventories.items():
        columns, count = _columns(inventory), len(inventory.indexes)
        if chosen is not None:
            rows = chosen[block.tree_numbers[inventory.indexes]]
            columns, count = tuple(each[rows] for each in columns), int(rows.sum())
        # A class without a row has no sum.
        if count:
            known = totals.setdefault(class_id, [0] * 6)
            for place, amount in enumerate((*map(exact_sum, columns), count)):
                known[place] += amount


def _tree_amounts(block: Block, class_id: int) -> list[IntColumn]:
    """Total, reserved, used and free of each tree."""
    inventory = block.inventories.get(class_id)
    if inventory is None:
        return [np.zeros(block.tree_count, np.int64)] * 4
    trees = block.tree_numbers[inventory.indexes]
    return [_sums(trees, block.tree_count, each) for each in _columns(inventory)[:4]]


def _bounds(block: Block, found: BlockCapacity | None) -> tuple[IntColumn, IntColumn]:
    """For each tree, how many consumers it holds at least and at most."""
    least, most = np.zeros((2, block.tree_count), np.int64)
    if found is not None:
        least[found.tree_numbers], most[found.tree_numbers] = found.least, found.most
    return least, most


def _sums(groups: npt.NDArray[np.integer], group_count: int, values: IntColumn) -> IntColumn:
    """For each group the sum of its values, at most `_SUM_MAX`."""
    if values.max(initial=0) < _SMALL:
        sums: IntColumn = np.zeros(group_count, np.int64)
        np.add.at(sums, groups, values)
        return sums
    exact = [0] * group_count
    for group, value in zip(groups.tolist(), values.tolist(), strict=True):
        exact[group] += value
    return np.asarray([min(each, _SUM_MAX) for each in exact], np.int64)


def _groups(
    forest: Forest, roots: MatchingRoots, grouping: TraitPrefix | ByAggregate | None
) -> tuple[IntColumn | None, list[str]]:
    """For each root the place of its value, and the values in order.

    A root with several values belongs to the first of them in order.
    """
    if grouping is None:
        return None, []
    if isinstance(grouping, TraitPrefix):
        members = [block.trait_set_numbers[block.roots] for block in forest.blocks]
    else:
        members = [block.aggregate_set_numbers[block.roots] for block in forest.blocks]
    set_numbers, places = np.unique(roots.column(members), return_inverse=True)
    # Many roots have equal sets, so each set is looked at once.
    by_set = [_value(forest, grouping, number) for number in set_numbers.tolist()]
    values = sorted({value for value in by_set if value is not None})
    numbers = {value: number for number, value in enumerate(values)}
    group_of_set = [NO_GROUP if value is None else numbers[value] for value in by_set]
    return column(group_of_set)[places], values


def _value(forest: Forest, grouping: TraitPrefix | ByAggregate, set_number: int) -> str | None:
    """The value that a root with this set is grouped by."""
    if isinstance(grouping, ByAggregate):
        return min(forest.aggregate_sets[set_number], default=None)
    names = forest.vocabulary.trait_names
    held = (names[trait_id] for trait_id in forest.trait_sets[set_number])
    return min((name for name in held if name.startswith(grouping.text)), default=None)
