"""Whole trees: what each provider has, and the sharing providers that reach the tree. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np

from roost.search.forest.block import InventoryColumns
from roost.search.forest.forest import Forest, ProviderRef, TreeRef
from roost.search.forest.rows import IntColumn, column
from roost.search.roots import MatchingRoots


class WholeProvider(NamedTuple):
    """A provider with all that it has. A tuple, because an answer has thousands."""

    id: int
    uuid: str
    name: str
    # The name of the parent; `None` for a root.
    parent: str | None
    traits: Sequence[str]
    aggregates: Sequence[str]
    # By resource class: the fields of the inventory, and what consumers hold of it.
    inventories: Mapping[str, Mapping[str, float]]
    used: Mapping[str, int]


class WholeTree(NamedTuple):
    """The providers of a tree, the root first, and the sharing providers of other trees."""

    providers: Sequence[WholeProvider]
    sharing_providers: Sequence[WholeProvider]


class ReachingProviders:
    """The sharing providers of a forest, by the trees that they reach."""

    def __init__(self, forest: Forest) -> None:
        self._forest = forest
        self._by_aggregate: dict[str, list[ProviderRef]] = {}
        for provider in forest.sharing_refs:
            for aggregate in forest.aggregates_of(provider):
                self._by_aggregate.setdefault(aggregate, []).append(provider)
        # By the number of a tree's aggregate set: many trees have equal sets.
        self._by_set: dict[int, frozenset[ProviderRef]] = {}

    def of_tree(self, tree: TreeRef) -> list[ProviderRef]:
        """The sharing providers of other trees that have an aggregate of a provider in this one."""
        block = self._forest.blocks[tree.block_number]
        found = self._of_set(int(block.tree_aggregate_set_numbers[tree.tree_number]))
        return [provider for provider in sorted(found) if self._forest.tree_of(provider) != tree]

    def most_by_set(self) -> IntColumn:
        """For each aggregate set, how many sharing providers reach a tree with it at most."""
        counts: IntColumn = np.zeros(len(self._forest.aggregate_sets), np.int64)
        if self._by_aggregate:
            counts[:] = [len(self._of_set(number)) for number in range(len(counts))]
        return counts

    def _of_set(self, set_number: int) -> frozenset[ProviderRef]:
        found = self._by_set.get(set_number)
        if found is None:
            lists = (
                self._by_aggregate.get(aggregate, ())
                for aggregate in self._forest.aggregate_sets[set_number]
            )
            found = self._by_set[set_number] = frozenset(chain.from_iterable(lists))
        return found


def tree_sizes(forest: Forest, roots: MatchingRoots) -> IntColumn:
    """For each root, how many providers its whole tree shows at most, with those that reach it."""
    reaching = ReachingProviders(forest).most_by_set()
    return roots.column(
        np.diff(block.starts) + reaching[block.tree_aggregate_set_numbers]
        for block in forest.blocks
    )


def root_ids(forest: Forest, roots: MatchingRoots) -> IntColumn:
    """The id of each root."""
    return roots.column(block.ids[block.roots] for block in forest.blocks)


class PlacedTrees:
    """Some trees of a forest, and the sharing providers that reach them, by their places."""

    def __init__(self, forest: Forest, provider_ids: Iterable[int]) -> None:
        """The trees of the providers with these ids, as far as the forest has them."""
        self._forest = forest
        # By the id of a provider that was asked for.
        self._trees = forest.trees_of(provider_ids)
        reaching = ReachingProviders(forest)
        self._reaching = {tree: reaching.of_tree(tree) for tree in self._trees.values()}

    def ids(self) -> list[int]:
        """The ids of all providers of the trees, and of those that reach them."""
        return list(
            chain.from_iterable(
                self._forest.blocks[number].ids[indexes].tolist()
                for number, indexes in self._indexes_by_block()
            )
        )

    def read(self) -> dict[int, WholeTree]:
        """The whole trees, by the id of a provider that was asked for."""
        providers: dict[ProviderRef, WholeProvider] = {}
        shown = _ShownSets(self._forest)
        for number, indexes in self._indexes_by_block():
            for index, provider in _providers_at(self._forest, number, indexes, shown):
                providers[ProviderRef(number, index)] = provider
        return {
            id_: WholeTree(
                [providers[ProviderRef(tree.block_number, at)] for at in self._range(tree)],
                # A sharing provider has its parent in another tree.
                [providers[each]._replace(parent=None) for each in self._reaching[tree]],
            )
            for id_, tree in self._trees.items()
        }

    def _range(self, tree: TreeRef) -> range:
        starts = self._forest.blocks[tree.block_number].starts
        return range(int(starts[tree.tree_number]), int(starts[tree.tree_number + 1]))

    def _indexes_by_block(self) -> Iterator[tuple[int, IntColumn]]:
        """The sorted indexes of all providers, with the number of their block."""
        found: dict[int, set[int]] = {}
        for tree, reaching in self._reaching.items():
            found.setdefault(tree.block_number, set()).update(self._range(tree))
            for block_number, index in reaching:
                found.setdefault(block_number, set()).add(index)
        for block_number, indexes in found.items():
            yield block_number, column(sorted(indexes))


class _ShownSets:
    """The sorted names of trait sets, and the sorted aggregates of aggregate sets, each once."""

    def __init__(self, forest: Forest) -> None:
        self._forest = forest
        self._traits: dict[int, list[str]] = {}
        self._aggregates: dict[int, list[str]] = {}

    def traits(self, set_number: int) -> list[str]:
        found = self._traits.get(set_number)
        if found is None:
            names = self._forest.vocabulary.trait_names
            found = sorted(names[trait_id] for trait_id in self._forest.trait_sets[set_number])
            self._traits[set_number] = found
        return found

    def aggregates(self, set_number: int) -> list[str]:
        found = self._aggregates.get(set_number)
        if found is None:
            found = sorted(self._forest.aggregate_sets[set_number])
            self._aggregates[set_number] = found
        return found


def _providers_at(
    forest: Forest, block_number: int, indexes: IntColumn, shown: _ShownSets
) -> Iterator[tuple[int, WholeProvider]]:
    """The providers of a block at these sorted indexes."""
    block = forest.blocks[block_number]
    at = indexes.tolist()
    parents = block.parents[indexes]
    # A root looks at itself instead of a parent.
    parent_names = block.names.texts(np.where(parents < 0, indexes, parents))
    inventories: dict[int, dict[str, dict[str, float]]] = {index: {} for index in at}
    used: dict[int, dict[str, int]] = {index: {} for index in at}
    names = forest.vocabulary.class_names
    classes = {names[id_]: each for id_, each in block.inventories.items() if id_ in names}
    for class_name in sorted(classes):
        for index, in_use, fields in _inventories_at(classes[class_name], indexes):
            inventories[index][class_name] = fields
            used[index][class_name] = in_use
    for place, (index, id_, name, trait_set, aggregate_set, is_root) in enumerate(
        zip(
            at,
            block.ids[indexes].tolist(),
            block.names.texts(indexes),
            block.trait_set_numbers[indexes].tolist(),
            block.aggregate_set_numbers[indexes].tolist(),
            (parents < 0).tolist(),
            strict=True,
        )
    ):
        yield (
            index,
            WholeProvider(
                id_,
                block.uuids[index].decode(),
                name,
                None if is_root else parent_names[place],
                shown.traits(trait_set),
                shown.aggregates(aggregate_set),
                inventories[index],
                used[index],
            ),
        )


def _inventories_at(
    inventory: InventoryColumns, indexes: IntColumn
) -> Iterator[tuple[int, int, dict[str, float]]]:
    """Index, used amount and fields of the inventories of one class at these indexes."""
    if not len(inventory.indexes):
        return
    rows = inventory.at(indexes)
    for index, used, total, reserved, min_unit, max_unit, step_size, allocation_ratio in zip(
        rows.indexes.tolist(),
        rows.used.tolist(),
        rows.total.tolist(),
        rows.reserved.tolist(),
        rows.min_unit.tolist(),
        rows.max_unit.tolist(),
        rows.step_size.tolist(),
        rows.allocation_ratio.tolist(),
        strict=True,
    ):
        fields = {
            "total": total,
            "reserved": reserved,
            "min_unit": min_unit,
            "max_unit": max_unit,
            "step_size": step_size,
            "allocation_ratio": allocation_ratio,
        }
        yield index, used, fields
