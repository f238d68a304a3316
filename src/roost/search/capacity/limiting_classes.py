"""What limits a capacity: the resource classes of which more would let more consumers in.

A class is named only after a count with plenty of it: the trees that hold a consumer, and the pools
that they reach, then hold more.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np

from roost.model.capacity import free_amount
from roost.search.candidates.plan import Plan
from roost.search.forest.block import Block
from roost.search.forest.block_building import CAPACITY_MAX
from roost.search.forest.forest import Forest
from roost.search.forest.rows import BoolColumn, IndexColumn, IntColumn

# Plenty of a class: more than usual clouds have. What follows from it stays within 64 bits.
_PLENTY = 2**45
# How many blocks, and how many trees of each, are counted again for one class, if another class is
# known to limit.
_FEW_BLOCKS = 2
_FEW_TREES = 64
# Trees that are alike get one number by these factors, and others almost never the same one.
_PRIMES = (1_000_003, 2_147_483_647, 998_244_353)


@dataclass(frozen=True, slots=True)
class Limit:
    """The resource classes that limit a capacity."""

    resource_classes: tuple[str, ...]
    # True: more of all these classes at once lets more consumers in, and more of one class is not
    # known to. False: more of any one of them does.
    together: bool

    @property
    def text(self) -> str:
        """The sentence that tells people what limits a capacity.

        >>> Limit(("VCPU", "DISK_GB"), together=False).text
        'More VCPU or more DISK_GB lets more in, each by itself.'
        >>> Limit(("VCPU", "DISK_GB"), together=True).text
        'More VCPU and DISK_GB together let more in.'
        """
        *first, last = self.resource_classes
        if not first:
            return f"More {last} lets more in."
        if self.together:
            return f"More {', '.join(first)} and {last} together let more in."
        return f"More {', more '.join(first)} or more {last} lets more in, each by itself."


@dataclass(frozen=True, slots=True)
class HoldingTrees:
    """The trees of one block that hold a consumer and reach no pool."""

    block_number: int
    tree_numbers: IndexColumn
    # For each class, which of these trees hold no more consumers as far as the class goes.
    tight: dict[int, BoolColumn]


@dataclass(frozen=True, slots=True)
class PooledTrees:
    """The trees that hold a consumer and reach a pool, and what can let more into them."""

    # The numbers of the trees, by block.
    tree_numbers: tuple[tuple[int, IndexColumn], ...]
    # Pools that are used up need more of these classes, whatever else there is.
    needed: tuple[frozenset[int], ...]

    def __bool__(self) -> bool:
        return any(len(numbers) for _, numbers in self.tree_numbers)

    def may_take_more(self, class_ids: Collection[int]) -> bool:
        """Whether more of these classes may let more in."""
        return all(not needed.isdisjoint(class_ids) for needed in self.needed)


@dataclass(frozen=True, slots=True)
class Recounts:
    """How to count again in another forest."""

    # Whether one of these trees holds more than before.
    more_in_trees: Callable[[Forest, HoldingTrees], bool]
    # Whether all trees together hold more than before.
    more_in_all: Callable[[Forest], bool]


class LimitSearch:
    """Finds the classes that limit a capacity."""

    def __init__(
        self,
        forest: Forest,
        plan: Plan,
        holding: Sequence[HoldingTrees],
        pooled: PooledTrees,
        recounts: Recounts,
    ) -> None:
        self._forest = forest
        self._holding = holding
        self._pooled = pooled
        self._recounts = recounts
        self._kinds_by_block: dict[int, IntColumn] = {}
        self._amounts: dict[int, int] = {}
        for slot in plan.slots:
            for class_id, amount in plan.requirements[slot.requirement_index].amounts:
                self._amounts[class_id] = self._amounts.get(class_id, 0) + amount

    def find(self) -> Limit | None:
        """The limit; `None` if the query asks for no resources."""
        found = [class_id for class_id in self._amounts if self._limits_few([class_id])]
        rest = [class_id for class_id in self._amounts if class_id not in found]
        found += [class_id for class_id in rest if self._limits_all([class_id])]
        if not found:
            found = [class_id for class_id in self._amounts if self._limits_any([class_id])]
        if found:
            return self._limit(sorted(found, key=self._trees_at_ease), together=False)
        return self._limit(self._needed_together(), together=True)

    def _trees_at_ease(self, class_id: int) -> int:
        """The number of trees in which other classes bind, and this one does not."""
        return sum(int((~trees.tight[class_id]).sum()) for trees in self._holding)

    def _limit(self, class_ids: Iterable[int], *, together: bool) -> Limit | None:
        names = tuple(self._forest.vocabulary.class_names[class_id] for class_id in class_ids)
        return Limit(names, together and len(names) > 1) if names else None

    def _needed_together(self) -> list[int]:
        """The classes of which more is needed at once: more of one class lets no more in."""
        needed = list(self._amounts)
        for class_id in self._amounts:
            fewer = [one for one in needed if one != class_id]
            if fewer and (self._limits_any(fewer) or self._limits_all(fewer)):
                needed = fewer
        return needed

    def _limits_few(self, class_ids: Collection[int]) -> bool:
        """Whether plenty of these classes lets more into trees of the first blocks."""
        tight = (self._tight(trees, class_ids) for trees in self._holding)
        first = islice((trees for trees in tight if len(trees.tree_numbers)), _FEW_BLOCKS)
        return any(
            self._takes_more(
                replace(trees, tree_numbers=trees.tree_numbers[:_FEW_TREES]), class_ids
            )
            for trees in first
        )

    def _limits_any(self, class_ids: Collection[int]) -> bool:
        """Whether plenty of these classes lets more into a tree, one of each kind."""
        seen: set[int] = set()
        for trees in self._holding:
            tight = self._tight(trees, class_ids)
            kinds, places = np.unique(self._kinds(tight), return_index=True)
            new = [
                place
                for kind, place in zip(kinds.tolist(), places, strict=True)
                if kind not in seen
            ]
            seen.update(kinds.tolist())
            chosen = replace(tight, tree_numbers=tight.tree_numbers[new])
            if new and self._takes_more(chosen, class_ids):
                return True
        return False

    def _tight(self, trees: HoldingTrees, class_ids: Collection[int]) -> HoldingTrees:
        """Those of the trees that hold no more as far as one of these classes goes."""
        tight = np.logical_or.reduce([trees.tight[class_id] for class_id in class_ids])
        return replace(trees, tree_numbers=trees.tree_numbers[tight])

    def _takes_more(self, trees: HoldingTrees, class_ids: Collection[int]) -> bool:
        """Whether these trees hold more with plenty of the classes, counted by themselves."""
        forest = self._with_plenty(class_ids, [(trees.block_number, trees.tree_numbers)])
        return self._recounts.more_in_trees(_only(forest, trees), trees)

    def _kinds(self, trees: HoldingTrees) -> IntColumn:
        """A number for each tree, which is the same for trees that are alike."""
        kinds = self._kinds_by_block.get(trees.block_number)
        if kinds is None:
            kinds = self._kinds_in(self._forest.blocks[trees.block_number])
            self._kinds_by_block[trees.block_number] = kinds
        chosen: IntColumn = kinds[trees.tree_numbers]
        return chosen

    def _kinds_in(self, block: Block) -> IntColumn:
        places = np.arange(len(block)) - block.starts[block.tree_numbers]
        facts = block.trait_set_numbers * 31 + block.aggregate_set_numbers * 17
        kinds: IntColumn = np.zeros(block.tree_count, np.int64)
        np.add.at(kinds, block.tree_numbers, _mixed(places, facts))
        for class_id in self._amounts:
            inventory = block.inventories.get(class_id)
            if inventory is not None:
                its, numbers = places[inventory.indexes], block.tree_numbers[inventory.indexes]
                for column in (free_amount(inventory.capacity, inventory.used), inventory.max_unit):
                    np.add.at(kinds, numbers, _mixed(its + class_id, column))
        return kinds

    def _limits_all(self, class_ids: Collection[int]) -> bool:
        """Whether plenty of these classes lets more in, where trees share pools."""
        if not (self._pooled or any(map(self._is_shared, class_ids))):
            return False
        if not self._pooled.may_take_more(class_ids):
            return False
        apart = ((trees.block_number, trees.tree_numbers) for trees in self._holding)
        every_tree = (*self._pooled.tree_numbers, *apart)
        forest = self._with_plenty(class_ids, every_tree, with_pools=True)
        return self._recounts.more_in_all(forest)

    def _is_shared(self, class_id: int) -> bool:
        """Whether a sharing provider has inventory of a class."""
        for block_number, index in self._forest.sharing_refs:
            inventory = self._forest.blocks[block_number].inventories.get(class_id)
            if inventory is not None and inventory.row_of(index) >= 0:
                return True
        return False

    def _with_plenty(
        self,
        class_ids: Collection[int],
        trees: Iterable[tuple[int, IndexColumn]],
        *,
        with_pools: bool = False,
    ) -> Forest:
        """The forest with plenty of some classes in these trees, and on sharing providers."""
        chosen: dict[int, BoolColumn] = {}
        for block_number, tree_numbers in trees:
            block = self._forest.blocks[block_number]
            in_tree = np.zeros(block.tree_count, np.bool_)
            in_tree[tree_numbers] = True
            here = in_tree[block.tree_numbers]
            chosen[block_number] = chosen.get(block_number, False) | here
        if with_pools:
            for block_number, index in self._forest.sharing_refs:
                block = self._forest.blocks[block_number]
                chosen.setdefault(block_number, np.zeros(len(block), np.bool_))[index] = True
        blocks = list(self._forest.blocks)
        for block_number, is_chosen in chosen.items():
            blocks[block_number] = self._plenty_at(blocks[block_number], is_chosen, class_ids)
        return replace(self._forest, blocks=tuple(blocks))

    def _plenty_at(self, block: Block, is_chosen: BoolColumn, class_ids: Collection[int]) -> Block:
        inventories = dict(block.inventories)
        for class_id in class_ids:
            inventory = inventories.get(class_id)
            if inventory is None:
                continue
            more = min(max(_PLENTY, 2 * self._amounts[class_id]), CAPACITY_MAX)
            raised = np.minimum(inventory.capacity, CAPACITY_MAX) + np.where(
                is_chosen[inventory.indexes], more, 0
            )
            inventories[class_id] = inventory.with_capacity(raised)
        return replace(block, inventories=inventories)


def _only(forest: Forest, trees: HoldingTrees) -> Forest:
    """The forest in which one block has the inventories of these trees only."""
    block = forest.blocks[trees.block_number]
    is_chosen = np.zeros(block.tree_count, np.bool_)
    is_chosen[trees.tree_numbers] = True
    kept = np.flatnonzero(is_chosen[block.tree_numbers])
    blocks = list(forest.blocks)
    blocks[trees.block_number] = block.only_at(kept)
    return replace(forest, blocks=tuple(blocks))


def _mixed(places: IntColumn, values: IntColumn) -> IntColumn:
    """Numbers that differ if places or values do. They wrap around."""
    mixed: IntColumn = (places.astype(np.int64) + 1) * _PRIMES[0] + values * _PRIMES[1]
    return mixed * mixed * _PRIMES[2] + mixed
