"""The counter of one part of a plan: bounds for each tree, and what the part takes from pools."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from roost.search.candidates.effort import Effort
from roost.search.candidates.rules import Rules
from roost.search.candidates.sharing import SharingProviders
from roost.search.capacity.linked import Packer, sharing_stock
from roost.search.capacity.part_counts import SharedLinks, count_part, held
from roost.search.capacity.parts import UNITS_MAX, PlanPart, Units, units_of
from roost.search.capacity.pools import PoolSet
from roost.search.forest.block import Block
from roost.search.forest.forest import Forest, ProviderRef, TreeRef
from roost.search.forest.rows import BoolColumn, IndexColumn, IntColumn, SetMask


@dataclass(frozen=True, slots=True)
class CommodityCount:
    """One commodity in all trees of a block."""

    # How many consumers each tree serves by itself.
    own: IntColumn
    # For each tree the position of its pools in `pool_sets`.
    pool_set_numbers: IndexColumn
    pool_sets: list[PoolSet]


@dataclass(frozen=True, slots=True)
class PartTally:
    """The numbers of one part for all trees of a block."""

    # How many consumers each tree holds besides commodities: at least, and at most.
    least: IntColumn
    most: IntColumn
    # The same if the tree has its pools to itself.
    least_alone: IntColumn
    most_alone: IntColumn
    # Trees that reach pools.
    touched: BoolColumn
    # Trees in which the requirements depend on each other: if they reach pools, a flow does
    # not cover them.
    coupled: BoolColumn
    commodities: Mapping[int, CommodityCount]
    # For each commodity the units of each tree, whatever a consumer can use of them.
    own_units: Mapping[int, IntColumn]


class PartCounter:
    """Counts one part of a plan, block by block."""

    def __init__(self, forest: Forest, part: PlanPart, effort: Effort) -> None:
        self.forest = forest
        self.part = part
        plan = part.plan
        self.rules = Rules(plan, SharingProviders(forest, plan, effort.pause), effort)
        self.packer = Packer(forest, self.rules)
        # The requirements that pools can meet, and the units of each pool for each of them.
        self.commodities = tuple(self._commodities())
        self.pool_units = {index: self._pool_units(index) for index in self.commodities}
        in_subtrees = {
            plan.slots[slot].requirement_index for slots in plan.same_subtrees for slot in slots
        }
        # Whether every tree that reaches pools is coupled: its slots share pools in other ways.
        self.always_coupled = any(
            index in in_subtrees or part.slot_counts[index] > 1 for index in self.commodities
        )
        self._links = self._shared_links()

    def count(
        self, block_number: int, eligible: list[IndexColumn], tree_numbers: IndexColumn
    ) -> PartTally:
        """The numbers of these trees; `eligible` has the providers of each requirement."""
        block = self.forest.blocks[block_number]
        units = [
            units_of(
                block,
                requirement,
                eligible[position],
                self.part.slot_counts[position],
                isolated=self.part.isolated[position],
            )
            for position, requirement in enumerate(self.part.plan.requirements)
        ]
        counted = count_part(
            block,
            self.part,
            self.rules,
            units,
            links=self._links,
            commodities=frozenset(self.commodities),
        )
        touched = self._touched(block)
        commodities = {
            requirement_index: self._commodity(block, block_number, units, requirement_index)
            for requirement_index in self.commodities
        }
        least, most = counted.fits.copy(), counted.fits
        least_alone, most_alone = self._with_pools(block, counted.fits, units, commodities)
        is_tree = np.zeros(block.tree_count, np.bool_)
        is_tree[tree_numbers] = True
        coupled = touched & (counted.linked | self.always_coupled)
        linked = np.flatnonzero(is_tree & (counted.linked | coupled)).astype(np.int32)
        if len(linked):
            for trees in self.packer.trees(block_number, eligible, linked):
                numbers = trees.tree_numbers
                found_least, found_most = self.packer.bounds(trees)
                least_alone[numbers] = np.minimum(most_alone[numbers], found_least)
                most_alone[numbers] = np.minimum(most_alone[numbers], found_most)
            apart = linked[~touched[linked]]
            least[apart], most[apart] = least_alone[apart], most_alone[apart]
        return PartTally(
            least=least,
            most=most,
            least_alone=least_alone,
            most_alone=most_alone,
            touched=touched,
            coupled=is_tree & (coupled | (least < most)),
            commodities=commodities,
            own_units={
                requirement_index: tree_sums(block, units[requirement_index])
                for requirement_index in self.commodities
            },
        )

    def _commodities(self) -> Iterator[int]:
        masks = self.rules.sharing_providers.reach_masks
        for requirement_index, mask in enumerate(masks):
            slots = (
                slot
                for slot, its in enumerate(self.part.plan.slots)
                if its.requirement_index == requirement_index
            )
            if mask is not None and any(map(self._may_be_pooled, slots)):
                yield requirement_index

    def _may_be_pooled(self, slot: int) -> bool:
        """Whether pools can meet all slots that must be in one tree with this one."""
        plan, masks = self.part.plan, self.rules.sharing_providers.reach_masks
        return all(
            masks[plan.slots[near].requirement_index] is not None
            for slots in plan.same_subtrees
            if slot in slots
            for near in slots
        )

    def _pool_units(self, requirement_index: int) -> dict[int, int]:
        amounts = self.part.plan.requirements[requirement_index].amounts
        return {
            sharing_number: min(
                (
                    sharing_stock(self.forest, self.rules, sharing_number, class_id) // amount
                    for class_id, amount in amounts
                ),
                default=UNITS_MAX,
            )
            for sharing_number, provider in enumerate(self.rules.sharing_providers.providers)
            if requirement_index in provider.requirement_indexes
        }

    def _shared_links(self) -> SharedLinks:
        providers = self.rules.sharing_providers.providers
        rivals: set[str] = set()
        missing: dict[tuple[int, int], set[str]] = {}
        for provider in providers:
            met = provider.requirement_indexes
            if any({first, second} <= met for first, second in self.part.rivals):
                rivals |= provider.aggregates
            for position, choice in enumerate(self.part.plan.trait_choices):
                if not choice[provider.trait_set_number]:
                    for requirement_index in met:
                        missing.setdefault((position, requirement_index), set()).update(
                            provider.aggregates
                        )
        return SharedLinks(
            self._mask(rivals), {key: self._mask(found) for key, found in missing.items()}
        )

    def _mask(self, aggregates: set[str]) -> SetMask:
        return self.forest.aggregate_sets.with_any(aggregates) if aggregates else None

    def _touched(self, block: Block) -> BoolColumn:
        touched = np.zeros(block.tree_count, np.bool_)
        for requirement_index in self.commodities:
            mask = self.rules.sharing_providers.reach_masks[requirement_index]
            assert mask is not None
            touched |= mask[block.tree_aggregate_set_numbers]
        return touched

    def _commodity(
        self, block: Block, block_number: int, units: list[Units], requirement_index: int
    ) -> CommodityCount:
        sharing = self.rules.sharing_providers
        its = units[requirement_index]
        is_pool = np.zeros(len(block), np.bool_)
        for ref, sharing_number in sharing.sharing_numbers.items():
            if (
                ref.block_number == block_number
                and sharing_number in self.pool_units[requirement_index]
            ):
                is_pool[ref.provider_index] = True
        own = its.only(np.flatnonzero(~is_pool[its.indexes]).astype(np.int32))
        count = held(
            block.tree_numbers[own.indexes],
            block.tree_count,
            own,
            self.part.slot_counts[requirement_index],
        )
        pool_sets: dict[PoolSet, int] = {}
        set_numbers, places = np.unique(block.tree_aggregate_set_numbers, return_inverse=True)
        # No tree of the forest has this reference, so no sharing provider is left out.
        elsewhere = TreeRef(-1, -1)
        of_set = [
            pool_sets.setdefault(
                sharing.reach(elsewhere, set_number)[requirement_index], len(pool_sets)
            )
            for set_number in set_numbers.tolist()
        ]
        numbers: IndexColumn = np.array(of_set, np.int32)[places]
        for tree in sharing.own_trees:
            if tree.block_number == block_number:
                pools = self._pools_of_own_tree(block, tree, its, requirement_index)
                numbers[tree.tree_number] = pool_sets.setdefault(pools, len(pool_sets))
        return CommodityCount(count, numbers, list(pool_sets))

    def _pools_of_own_tree(
        self, block: Block, tree: TreeRef, units: Units, requirement_index: int
    ) -> PoolSet:
        """The pools of a tree that has pools itself, which are eligible as its own providers."""
        sharing = self.rules.sharing_providers
        set_number = int(block.tree_aggregate_set_numbers[tree.tree_number])
        pools = set(sharing.reach(tree, set_number)[requirement_index])
        here = units.indexes[block.tree_numbers[units.indexes] == tree.tree_number]
        for index in here.tolist():
            number = sharing.sharing_numbers.get(ProviderRef(tree.block_number, index))
            if number is not None and number in self.pool_units[requirement_index]:
                pools.add(number)
        return tuple(sorted(pools))

    def _with_pools(
        self,
        block: Block,
        fits: IntColumn,
        units: list[Units],
        commodities: Mapping[int, CommodityCount],
    ) -> tuple[IntColumn, IntColumn]:
        """How many consumers each tree holds if it has its pools to itself."""
        alone = fits.copy()
        for requirement_index, commodity in commodities.items():
            pool_units = self.pool_units[requirement_index]
            slots = self.part.slot_counts[requirement_index]
            from_pools = np.array(
                [
                    min(UNITS_MAX, sum(pool_units[pool] for pool in pools))
                    for pools in commodity.pool_sets
                ],
                np.int64,
            )
            by_pools = from_pools[commodity.pool_set_numbers]
            if slots == 1:
                holds = np.minimum(commodity.own + by_pools, UNITS_MAX)
            else:
                # Units for a part of the slots count, too, if pools give the rest.
                own_units = tree_sums(block, units[requirement_index])
                together = np.minimum(own_units + by_pools, UNITS_MAX) // slots
                holds = np.where(by_pools > 0, together, commodity.own)
            alone = np.minimum(alone, holds)
        return alone.copy(), alone


def tree_sums(block: Block, units: Units) -> IntColumn:
    """The units of all providers of each tree."""
    sums: IntColumn = np.zeros(block.tree_count, np.int64)
    np.add.at(sums, block.tree_numbers[units.indexes], units.units)
    return sums
