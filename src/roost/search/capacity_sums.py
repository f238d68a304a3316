"""Sums of capacity, usage and reservation, over all trees or over some. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from roost.search.block import Block
from roost.search.columns import BoolColumn, IntColumn
from roost.search.forest import Forest


class ClassSums(NamedTuple):
    """The sums of one resource class."""

    capacity: int
    used: int
    reserved: int


def all_sums(forest: Forest) -> dict[str, ClassSums]:
    """The sums of each resource class over all providers."""
    return _sums(forest, ((block, None) for block in forest.blocks))


def sums_with_trait(forest: Forest, name: str) -> dict[str, ClassSums]:
    """The sums over all trees in which a provider has the trait."""
    trait_id = forest.vocabulary.trait_ids.get(name)
    if trait_id is None:
        return {}
    have = forest.trait_sets.with_any([trait_id])
    return _sums(
        forest,
        ((block, _whole_trees(block, have[block.trait_set_numbers])) for block in forest.blocks),
    )


def sums_in_aggregate(forest: Forest, uuid: str) -> dict[str, ClassSums]:
    """The sums over all trees in which a provider belongs to the aggregate."""
    have = forest.aggregate_sets.with_any([uuid])
    return _sums(
        forest,
        (
            (block, have[block.tree_aggregate_set_numbers][block.tree_numbers])
            for block in forest.blocks
        ),
    )


def _whole_trees(block: Block, chosen: BoolColumn) -> BoolColumn:
    """For each provider, whether its tree has a chosen provider."""
    trees = np.zeros(block.tree_count, np.bool_)
    trees[block.tree_numbers[chosen]] = True
    return trees[block.tree_numbers]


def _sums(forest: Forest, parts: Iterable[tuple[Block, BoolColumn | None]]) -> dict[str, ClassSums]:
    """The sums over the chosen providers of each block; without a choice, over all."""
    sums: dict[int, list[int]] = {}
    for block, chosen in parts:
        if chosen is not None and not chosen.any():
            continue
        for class_id, inventory in block.inventories.items():
            columns: tuple[IntColumn, ...] = inventory.capacity, inventory.used, inventory.reserved
            if chosen is not None:
                rows = chosen[inventory.indexes]
                columns = tuple(column[rows] for column in columns)
            # A class without a row has no sum.
            if not len(columns[0]):
                continue
            known = sums.setdefault(class_id, [0, 0, 0])
            for index, column in enumerate(columns):
                # Numbers with a fraction cannot overflow; inventories may be close to 2**61.
                known[index] += int(column.sum(dtype=np.float64))
    names = forest.vocabulary.class_names
    return {names[id_]: ClassSums(*known) for id_, known in sums.items() if id_ in names}
