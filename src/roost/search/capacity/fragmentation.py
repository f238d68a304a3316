"""Fragmentation: what is free of each resource class, and what of it queries can use. Pure.

Sums of capacity, usage and reservation are taken over all trees or over some.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from roost.model.candidate_query.query import CandidateQuery
from roost.search.candidates.effort import Effort, no_pause
from roost.search.candidates.plan import make_plan
from roost.search.candidates.rules import Rules
from roost.search.candidates.scan import eligible_trees, may_fit
from roost.search.candidates.sharing import SharingProviders
from roost.search.candidates.variants import variants_of
from roost.search.capacity.parts import free_at
from roost.search.explain.account import SolvedTrees
from roost.search.forest.block import Block
from roost.search.forest.forest import Forest
from roost.search.forest.rows import BoolColumn, IntColumn

# A sum of so many numbers below this one stays within 64 bits.
_SMALL = 2**40
# JSON has no larger integers. Larger sums come from absurd allocation ratios.
_SUM_MAX = 2**63 - 1


@dataclass(frozen=True, slots=True)
class ClassFragmentation:
    """What is free of one resource class, and what of it each query can use."""

    free: int
    usable: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Fragmentation:
    """What is free in a forest."""

    # By the name of the resource class.
    classes: dict[str, ClassFragmentation]
    # The trees that have an inventory, and no usage of any.
    empty_trees: int


def find_fragmentation(
    forest: Forest, queries: Sequence[CandidateQuery], *, pause: Callable[[], None] = no_pause
) -> Fragmentation:
    """What is free, and what of it is in trees where each query has a candidate.

    A tree counts, too, if it has a sharing provider that meets a requirement in such a tree.
    """
    usable_trees = [_trees_with_candidates(forest, query, pause) for query in queries]
    free: dict[int, list[int]] = {}
    empty_trees = 0
    for block_number, block in enumerate(forest.blocks):
        pause()
        empty_trees += _empty_trees(block)
        for class_id, inventory in block.inventories.items():
            amounts = free_at(inventory, np.arange(len(inventory.indexes)))
            trees = block.tree_numbers[inventory.indexes]
            sums = free.setdefault(class_id, [0] * (1 + len(queries)))
            sums[0] += exact_sum(amounts)
            for position, usable in enumerate(usable_trees, 1):
                sums[position] += exact_sum(amounts[usable[block_number][trees]])
    names = forest.vocabulary.class_names
    classes = {
        names[class_id]: ClassFragmentation(
            min(sums[0], _SUM_MAX), tuple(min(each, _SUM_MAX) for each in sums[1:])
        )
        for class_id, sums in free.items()
        if class_id in names
    }
    return Fragmentation(dict(sorted(classes.items())), empty_trees)


def _trees_with_candidates(
    forest: Forest, query: CandidateQuery, pause: Callable[[], None]
) -> list[BoolColumn]:
    """For each block and tree, whether the query has a candidate that takes from the tree."""
    found = [_trees_of_variant(forest, variant.query, pause) for variant in variants_of(query)]
    return [np.logical_or.reduce(columns) for columns in zip(*found, strict=True)]


def _trees_of_variant(
    forest: Forest, query: CandidateQuery, pause: Callable[[], None]
) -> list[BoolColumn]:
    plan = make_plan(forest, query)
    if plan is None:
        return [np.zeros(block.tree_count, np.bool_) for block in forest.blocks]
    rules = Rules(plan, SharingProviders(forest, plan, pause), Effort(pause=pause))
    solved = SolvedTrees(rules)
    for block_number, block in enumerate(forest.blocks):
        pause()
        fits = may_fit(rules, block, block_number)
        found = eligible_trees(forest, block_number, rules) if fits else None
        solved.add_block(block, block_number, found)
    solved.finish()
    usable = list(solved.together.values())
    aggregates: set[str] = set()
    if rules.sharing_providers:
        for block, trees in zip(forest.blocks, usable, strict=True):
            set_numbers = np.unique(block.tree_aggregate_set_numbers[trees])
            aggregates.update(*(forest.aggregate_sets[number] for number in set_numbers.tolist()))
    for provider in rules.sharing_providers.providers:
        if not aggregates.isdisjoint(provider.aggregates):
            usable[provider.own_tree.block_number][provider.own_tree.tree_number] = True
    return usable


def _empty_trees(block: Block) -> int:
    """The number of trees that have an inventory, and no usage of any."""
    has_inventory = np.zeros(block.tree_count, np.bool_)
    is_used = np.zeros(block.tree_count, np.bool_)
    for inventory in block.inventories.values():
        trees = block.tree_numbers[inventory.indexes]
        has_inventory[trees] = True
        is_used[trees[inventory.used > 0]] = True
    return int((has_inventory & ~is_used).sum())


def exact_sum(column: IntColumn) -> int:
    """The sum of amounts, however large."""
    if column.max(initial=0) < _SMALL:
        return int(column.sum())
    return sum(column.tolist())


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
