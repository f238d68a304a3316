"""Faults in a forest: what an operator should look at. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

import numpy as np

from roost.search.forest.block import Block
from roost.search.forest.forest import Forest, ProviderRef
from roost.search.forest.rows import BoolColumn


@dataclass(frozen=True, slots=True)
class OverCapacity:
    """An inventory of which consumers hold more than its capacity."""

    provider_uuid: str
    class_id: int
    used: int
    capacity: int


def find_over_capacity(forest: Forest) -> Iterator[OverCapacity]:
    """The inventories whose usage exceeds their capacity."""
    for block in forest.blocks:
        for class_id, inventory in block.inventories.items():
            for row in np.flatnonzero(inventory.used > inventory.capacity.clip(0)).tolist():
                yield OverCapacity(
                    _uuid(block, int(inventory.indexes[row])),
                    class_id,
                    int(inventory.used[row]),
                    max(0, int(inventory.capacity[row])),
                )


def find_uncleaned(forest: Forest, trait_names: Collection[str]) -> Iterator[str]:
    """The providers with one of these traits of which all is reserved, and nothing is used."""
    known = forest.vocabulary.trait_ids
    marked = forest.trait_sets.with_any([known[name] for name in trait_names if name in known])
    for block in forest.blocks:
        waits = marked[block.trait_set_numbers]
        if not waits.any():
            continue
        has_inventory = np.zeros(len(block), np.bool_)
        for inventory in block.inventories.values():
            has_inventory[inventory.indexes] = True
            is_held = (inventory.reserved > 0) & (inventory.capacity <= 0) & (inventory.used == 0)
            waits[inventory.indexes[~is_held]] = False
        for index in np.flatnonzero(waits & has_inventory).tolist():
            yield _uuid(block, index)


def find_unreachable_sharing(forest: Forest) -> Iterator[str]:
    """The sharing providers that have no aggregate in common with another tree."""
    trees_by_set: dict[int, BoolColumn] = {}
    for ref in forest.sharing_refs:
        block = forest.blocks[ref.block_number]
        set_number = int(block.aggregate_set_numbers[ref.provider_index])
        if set_number not in trees_by_set:
            trees_by_set[set_number] = forest.aggregate_sets.with_any(
                forest.aggregate_sets[set_number]
            )
        if not _reaches_another_tree(forest, ref, trees_by_set[set_number]):
            yield _uuid(block, ref.provider_index)


def _reaches_another_tree(forest: Forest, ref: ProviderRef, common: BoolColumn) -> bool:
    """Whether a tree, apart from that of the provider, has one of these aggregate sets."""
    own = forest.tree_of(ref)
    for block_number, block in enumerate(forest.blocks):
        reached = common[block.tree_aggregate_set_numbers]
        if block_number == own.block_number:
            reached[own.tree_number] = False
        if reached.any():
            return True
    return False


def _uuid(block: Block, index: int) -> str:
    return block.uuids[index].decode()
