"""The forest: a snapshot of all trees. A change makes a new forest."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from roost.search.forest.block import BLOCK_PROVIDERS, Block, new_versions
from roost.search.forest.block_building import build_blocks
from roost.search.forest.rows import ForestRows, IndexColumn, UsageRows
from roost.search.forest.set_table import SetTable
from roost.search.forest.vocabulary import Vocabulary

# The trait that makes a provider a sharing provider.
SHARING_TRAIT = "MISC_SHARES_VIA_AGGREGATE"

# The forest looks for this number of providers one by one, and for more of them by a mask over all
# ids. To look for each of many ids in each block takes longer the more ids there are.
_FEW_IDS = 16


class TreeRef(NamedTuple):
    """A tree: the number of its block, and its number there."""

    block_number: int
    tree_number: int


class ProviderRef(NamedTuple):
    """A provider: the number of its block, and its index there."""

    block_number: int
    provider_index: int


@dataclass(frozen=True, slots=True)
class Forest:
    """All providers at one moment. It never changes: its `with_` methods make another forest."""

    vocabulary: Vocabulary
    blocks: tuple[Block, ...]
    # The sets that providers have, and some that providers had. Later forests may have more.
    trait_sets: SetTable[int]
    aggregate_sets: SetTable[str]
    # The sharing providers of all trees.
    sharing_refs: tuple[ProviderRef, ...]
    # Every forest has its own token. A cache compares tokens to learn whether its answers are of
    # this forest, and so does not keep an earlier forest alive.
    token: object = field(default_factory=object, init=False, compare=False)

    @classmethod
    def of(cls, rows: ForestRows, vocabulary: Vocabulary) -> Forest:
        """The forest of these trees."""
        trait_sets, aggregate_sets = SetTable[int]().growth(), SetTable[str]().growth()
        sharing_trait = vocabulary.trait_ids.get(SHARING_TRAIT)
        blocks = build_blocks(rows, trait_sets, aggregate_sets, sharing_trait)
        return cls(
            vocabulary,
            tuple(blocks),
            trait_sets.table,
            aggregate_sets.table,
            _sharing_refs(blocks),
        )

    @property
    def provider_count(self) -> int:
        """How many providers there are."""
        return sum(map(len, self.blocks))

    def find_provider(self, uuid: str) -> ProviderRef | None:
        """The provider with this uuid; `None` if the forest has no such provider."""
        spelling = uuid.encode(errors="replace")
        for block_number, block in enumerate(self.blocks):
            index = block.uuids.find(spelling)
            if index is not None:
                return ProviderRef(block_number, index)
        return None

    def find_tree(self, uuid: str) -> TreeRef | None:
        """The tree of the provider with this uuid; `None` if the forest has no such provider."""
        found = self.find_provider(uuid)
        return None if found is None else self.tree_of(found)

    def tree_of(self, provider: ProviderRef) -> TreeRef:
        """The tree of a provider."""
        block_number, index = provider
        return TreeRef(block_number, int(self.blocks[block_number].tree_numbers[index]))

    def trees_of(self, provider_ids: Iterable[int]) -> dict[int, TreeRef]:
        """The tree of each of these providers that the forest has, by the id of the provider."""
        return {
            id_: TreeRef(block_number, tree_number)
            for block_number, (block, indexes) in enumerate(self._located(provider_ids))
            for id_, tree_number in zip(
                block.ids[indexes].tolist(), block.tree_numbers[indexes].tolist(), strict=True
            )
        }

    def refs_of(self, provider_ids: Iterable[int]) -> dict[int, ProviderRef]:
        """The place of each of these providers that the forest has, by the id of the provider."""
        return {
            id_: ProviderRef(block_number, index)
            for block_number, (block, indexes) in enumerate(self._located(provider_ids))
            for id_, index in zip(block.ids[indexes].tolist(), indexes.tolist(), strict=True)
        }

    def sharing_indexes_by_block(self) -> dict[int, list[int]]:
        """The indexes of sharing providers, by block number."""
        found: dict[int, list[int]] = {}
        for block_number, index in self.sharing_refs:
            found.setdefault(block_number, []).append(index)
        return found

    def with_sharing_alone(self) -> Forest:
        """The same trees; of blocks with sharing providers, these alone have inventories."""
        blocks = list(self.blocks)
        for block_number, indexes in self.sharing_indexes_by_block().items():
            blocks[block_number] = blocks[block_number].only_at(np.asarray(indexes))
        return replace(self, blocks=tuple(blocks))

    def aggregates_of(self, provider: ProviderRef) -> frozenset[str]:
        """The aggregates in which a provider is."""
        block_number, index = provider
        return self.aggregate_sets[int(self.blocks[block_number].aggregate_set_numbers[index])]

    def root_traits(self, tree: TreeRef) -> frozenset[str]:
        """The traits of the root of a tree."""
        block, names = self.blocks[tree.block_number], self.vocabulary.trait_names
        held = self.trait_sets[int(block.trait_set_numbers[block.starts[tree.tree_number]])]
        return frozenset(names[trait_id] for trait_id in held)

    def root_ids_of(self, provider_ids: Iterable[int]) -> list[int]:
        """The ids of the roots of the trees in which the forest has these providers."""
        roots: list[int] = []
        for block, indexes in self._located(provider_ids):
            tree_numbers = np.unique(block.tree_numbers[indexes])
            roots += block.ids[block.starts[tree_numbers]].tolist()
        return roots

    def with_vocabulary(self, vocabulary: Vocabulary) -> Forest:
        """The same trees with another vocabulary."""
        blocks = self.blocks
        before, after = self.vocabulary.class_names, vocabulary.class_names
        if any(after.get(id_) != name for id_, name in before.items()):
            blocks = tuple(
                replace(block, tree_versions=new_versions(block.tree_count)) for block in blocks
            )
        return replace(self, vocabulary=vocabulary, blocks=blocks)

    def with_trees(self, rows: ForestRows, gone_root_ids: Iterable[int]) -> Forest:
        """The forest with these trees, without the trees of the gone roots.

        A new tree replaces the old tree whose root has the same id.
        """
        replaced = {*gone_root_ids, *rows.providers.root_ids.tolist()}
        blocks: list[Block] = []
        for block, indexes in self._located(replaced):
            dropped = block.trees_with_roots_at(indexes)
            if not dropped.any():
                blocks.append(block)
            elif not dropped.all():
                blocks.append(block.without(dropped))
        sharing_trait = self.vocabulary.trait_ids.get(SHARING_TRAIT)
        trait_sets, aggregate_sets = self.trait_sets.growth(), self.aggregate_sets.growth()
        blocks += build_blocks(rows, trait_sets, aggregate_sets, sharing_trait)
        blocks = _tidied(blocks)
        return replace(
            self,
            blocks=tuple(blocks),
            trait_sets=trait_sets.table,
            aggregate_sets=aggregate_sets.table,
            sharing_refs=_sharing_refs(blocks),
        )

    def with_all_usages(self, usages: UsageRows, provider_ids: Iterable[int]) -> Forest:
        """The same trees; `usages` has all usages of these providers."""
        used: dict[int, dict[int, int]] = {}
        for provider_id, class_id, amount in zip(
            usages.provider_ids.tolist(),
            usages.class_ids.tolist(),
            usages.used.tolist(),
            strict=True,
        ):
            used.setdefault(class_id, {})[provider_id] = amount
        blocks = (
            block.with_all_usages(indexes, used) if len(indexes) else block
            for block, indexes in self._located(provider_ids)
        )
        return replace(self, blocks=tuple(blocks))

    def with_some_usages(self, changed: Mapping[int, Mapping[int, int]]) -> Forest:
        """The same trees with some new usages: provider id -> resource class -> used.

        Classes and providers that the forest does not have are ignored.
        """
        blocks = (
            block.with_some_usages(indexes, changed) if len(indexes) else block
            for block, indexes in self._located(changed)
        )
        return replace(self, blocks=tuple(blocks))

    def _located(self, provider_ids: Iterable[int]) -> list[tuple[Block, IndexColumn]]:
        """Every block, and the indexes of those of these providers that it has."""
        ids = sorted(provider_ids)
        if len(ids) <= _FEW_IDS:
            return [(block, block.indexes_of(ids)) for block in self.blocks]
        wanted = np.zeros(ids[-1] + 2, np.bool_)
        wanted[ids] = True
        return [(block, block.indexes_in(wanted)) for block in self.blocks]


def _sharing_refs(blocks: Sequence[Block]) -> tuple[ProviderRef, ...]:
    return tuple(
        ProviderRef(block_number, index)
        for block_number, block in enumerate(blocks)
        for index in block.sharing_indexes
    )


def _tidied(blocks: Iterable[Block]) -> list[Block]:
    """The blocks, after joining neighbours that fit into one block, so that blocks stay few."""
    tidied: list[Block] = []
    for block in blocks:
        if tidied and len(tidied[-1]) + len(block) <= BLOCK_PROVIDERS:
            tidied[-1] = tidied[-1].followed_by(block)
        else:
            tidied.append(block)
    return tidied
