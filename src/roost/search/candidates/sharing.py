"""Sharing providers: which of them reach which trees, and what they can give there.

A sharing provider reaches every tree that has a provider in one of its aggregates. So the sharing
providers that reach a tree depend only on the set of all aggregates of the tree's providers. Few
trees differ in that set.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import compress
from typing import TypeAlias

import numpy as np

from roost.search.candidates.plan import Plan
from roost.search.conditions.condition import BlockView
from roost.search.conditions.requirement import eligible_indexes
from roost.search.forest.forest import Forest, ProviderRef, TreeRef
from roost.search.forest.rows import SetMask

# For each requirement of a plan, the sharing numbers of those that reach a tree and meet it.
Reach: TypeAlias = tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class SharingProvider:
    """A sharing provider that meets some requirements in other trees than its own."""

    ref: ProviderRef
    own_tree: TreeRef
    uuid: bytes
    trait_set_number: int
    aggregates: frozenset[str]
    requirement_indexes: frozenset[int]


class SharingProviders:
    """All sharing providers that a plan can use; a sharing number is a position among them."""

    def __init__(self, forest: Forest, plan: Plan, pause: Callable[[], None]) -> None:
        self._forest = forest
        self._requirement_count = len(plan.requirements)
        self.providers = tuple(_sharing_providers(forest, plan, pause))
        # For each requirement, by a tree's aggregate set: whether a sharing provider that meets
        # the requirement reaches the tree. `None`: no sharing provider meets it.
        self.reach_masks = tuple(map(self._reach_mask, range(self._requirement_count)))
        self.sharing_numbers = {
            provider.ref: sharing_number for sharing_number, provider in enumerate(self.providers)
        }
        self._reach: dict[int, Reach] = {}
        self._above: dict[int, list[int]] = {}
        self.own_trees = frozenset(provider.own_tree for provider in self.providers)

    def __bool__(self) -> bool:
        return bool(self.providers)

    def room(self, sharing_number: int, class_id: int) -> int:
        """The room that a sharing provider has of a class of which it has inventory."""
        ref = self.providers[sharing_number].ref
        inventory = self._forest.blocks[ref.block_number].inventories[class_id]
        row = int(np.searchsorted(inventory.indexes, ref.provider_index))
        return int(inventory.room[row])

    def above(self, sharing_number: int) -> list[int]:
        """The sharing numbers of this provider and of those above it in its own tree."""
        found = self._above.get(sharing_number)
        if found is None:
            found = self._above[sharing_number] = self._find_above(self.providers[sharing_number])
        return found

    def reach(self, tree: TreeRef, aggregate_set_number: int) -> Reach:
        """The sharing providers that reach a tree whose providers are in these aggregates."""
        found = self._reach.get(aggregate_set_number)
        if found is None:
            found = self._reach[aggregate_set_number] = self._find_reach(aggregate_set_number)
        if tree in self.own_trees:
            # In its own tree a sharing provider is a provider like any other.
            return tuple(
                tuple(
                    sharing_number
                    for sharing_number in sharing_numbers
                    if self.providers[sharing_number].own_tree != tree
                )
                for sharing_numbers in found
            )
        return found

    def _find_above(self, provider: SharingProvider) -> list[int]:
        block_number, index = provider.ref
        parents = self._forest.blocks[block_number].parents
        seen: set[int] = set()
        found: list[int] = []
        while index >= 0 and index not in seen:
            seen.add(index)
            sharing_number = self.sharing_numbers.get(ProviderRef(block_number, index))
            if sharing_number is not None:
                found.append(sharing_number)
            index = int(parents[index])
        return found

    def _reach_mask(self, requirement_index: int) -> SetMask:
        aggregates: set[str] = set()
        for provider in self.providers:
            if requirement_index in provider.requirement_indexes:
                aggregates |= provider.aggregates
        return self._forest.aggregate_sets.with_any(aggregates) if aggregates else None

    def _find_reach(self, aggregate_set_number: int) -> Reach:
        aggregates = self._forest.aggregate_sets[aggregate_set_number]
        reaching = [
            (sharing_number, provider)
            for sharing_number, provider in enumerate(self.providers)
            if not aggregates.isdisjoint(provider.aggregates)
        ]
        return tuple(
            tuple(
                sharing_number
                for sharing_number, provider in reaching
                if requirement_index in provider.requirement_indexes
            )
            for requirement_index in range(self._requirement_count)
        )


def _sharing_providers(
    forest: Forest, plan: Plan, pause: Callable[[], None]
) -> Iterator[SharingProvider]:
    for block_number, indexes in forest.sharing_indexes_by_block().items():
        pause()
        yield from _of_block(forest, plan, block_number, indexes)


def _of_block(
    forest: Forest, plan: Plan, block_number: int, indexes: list[int]
) -> Iterator[SharingProvider]:
    """The sharing providers at these indexes that meet a requirement and are in an aggregate."""
    block = forest.blocks[block_number]
    view = BlockView(block, block_number, as_sharing=True)
    eligible = [
        block.are_among(indexes, eligible_indexes(its, view)).tolist() for its in plan.requirements
    ]
    for index, *are_eligible in zip(indexes, *eligible, strict=True):
        requirement_indexes = frozenset(compress(range(len(eligible)), are_eligible))
        ref = ProviderRef(block_number, index)
        aggregates = forest.aggregates_of(ref)
        if requirement_indexes and aggregates:
            yield SharingProvider(
                ref,
                TreeRef(block_number, int(block.tree_numbers[index])),
                block.uuids[index],
                int(block.trait_set_numbers[index]),
                aggregates,
                requirement_indexes,
            )
