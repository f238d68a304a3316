"""The forest: a snapshot of all trees, and what it becomes when something changes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from roost.search.block import BLOCK_PROVIDERS, Block, IndexColumn
from roost.search.building import build_blocks
from roost.search.rows import ForestRows, UsageRows, Vocabulary
from roost.search.set_table import SetTable

# The trait that makes a provider a sharing one.
SHARING_TRAIT = "MISC_SHARES_VIA_AGGREGATE"

# So many providers are looked for one by one, more of them by a table of all ids: to put them into
# each block's order would take longer the more there are, for each block again.
_FEW_IDS = 16


class TreeRef(NamedTuple):
    """Where a tree stands: the number of its block, and its number within."""

    block: int
    tree: int


class ProviderRef(NamedTuple):
    """Where a provider stands: the number of its block, and its place within."""

    block: int
    place: int


@dataclass(slots=True)
class Kept:
    """How many bytes of rendered trees are kept, at most; all forests of a replica share it."""

    bytes: int = 0


@dataclass(frozen=True, slots=True)
class Forest:
    """All providers at one moment. Never changes: what changes it returns another forest."""

    vocabulary: Vocabulary
    blocks: tuple[Block, ...]
    trait_sets: SetTable[int]
    aggregate_sets: SetTable[str]
    # The sharing providers of all trees.
    sharing: tuple[ProviderRef, ...]
    # What renderers made of each set of traits, to be used again.
    trait_fragments: dict[int, bytes] = field(default_factory=dict)
    kept: Kept = field(default_factory=Kept)
    # Every forest has another one, so that what is true of a forest can be told from what was
    # true of an earlier one without keeping that alive.
    token: object = field(default_factory=object, init=False, compare=False)

    @classmethod
    def of(cls, rows: ForestRows, vocabulary: Vocabulary) -> Forest:
        """The forest of these trees."""
        trait_sets: SetTable[int] = SetTable()
        aggregate_sets: SetTable[str] = SetTable()
        sharing_trait = vocabulary.trait_ids.get(SHARING_TRAIT)
        blocks = build_blocks(rows, trait_sets, aggregate_sets, sharing_trait)
        return cls(vocabulary, tuple(blocks), trait_sets, aggregate_sets, _sharing(blocks))

    @property
    def provider_count(self) -> int:
        """How many providers there are."""
        return sum(map(len, self.blocks))

    def find_tree(self, uuid: str) -> TreeRef | None:
        """The tree of the provider with this uuid."""
        spelling = uuid.encode(errors="replace")
        for number, block in enumerate(self.blocks):
            place = block.uuids.find(spelling)
            if place is not None:
                return TreeRef(number, int(block.trees[place]))
        return None

    def root_ids_of(self, provider_ids: Iterable[int]) -> list[int]:
        """The ids of the roots under which these providers stand here."""
        roots: list[int] = []
        for block, places in self._located(provider_ids):
            trees = np.unique(block.trees[places])
            roots += block.ids[block.starts[trees]].tolist()
        return roots

    def with_vocabulary(self, vocabulary: Vocabulary) -> Forest:
        """The same trees, with other names."""
        blocks = self.blocks
        before, after = self.vocabulary.class_names, vocabulary.class_names
        if any(after.get(id_) != name for id_, name in before.items()):
            # What was rendered with the old names must not be used again.
            blocks = tuple(replace(block, fragments=[None] * block.tree_count) for block in blocks)
        return replace(self, vocabulary=vocabulary, blocks=blocks, trait_fragments={})

    def with_trees(self, rows: ForestRows, gone_root_ids: Iterable[int]) -> Forest:
        """The forest with these trees, new or instead of the old ones, and without the gone.

        The old ones are those with a root of the same id.
        """
        replaced = {*gone_root_ids, *rows.providers.root_ids.tolist()}
        blocks: list[Block] = []
        for block, places in self._located(replaced):
            dropped = block.trees_with_roots_at(places)
            if not dropped.any():
                blocks.append(block)
            elif not dropped.all():
                blocks.append(block.without(dropped))
        sharing_trait = self.vocabulary.trait_ids.get(SHARING_TRAIT)
        blocks += build_blocks(rows, self.trait_sets, self.aggregate_sets, sharing_trait)
        blocks = _tidied(blocks)
        return replace(self, blocks=tuple(blocks), sharing=_sharing(blocks))

    def with_usages(self, usages: UsageRows, provider_ids: Iterable[int]) -> Forest:
        """The same trees, of which these providers are used as `usages` says and not otherwise."""
        used: dict[int, dict[int, int]] = {}
        for provider_id, class_id, amount in zip(
            usages.provider_ids.tolist(),
            usages.class_ids.tolist(),
            usages.used.tolist(),
            strict=True,
        ):
            used.setdefault(class_id, {})[provider_id] = amount
        blocks = (
            block.with_usages(places, used) if len(places) else block
            for block, places in self._located(provider_ids)
        )
        return replace(self, blocks=tuple(blocks))

    def _located(self, provider_ids: Iterable[int]) -> list[tuple[Block, IndexColumn]]:
        """Every block, and where those of these providers stand in it that it has."""
        ids = sorted(provider_ids)
        if len(ids) <= _FEW_IDS:
            return [(block, block.places_of(ids)) for block in self.blocks]
        wanted = np.zeros(ids[-1] + 2, np.bool_)
        wanted[ids] = True
        return [(block, block.places_in(wanted)) for block in self.blocks]


def _sharing(blocks: Sequence[Block]) -> tuple[ProviderRef, ...]:
    return tuple(
        ProviderRef(number, place) for number, block in enumerate(blocks) for place in block.sharing
    )


def _tidied(blocks: Iterable[Block]) -> list[Block]:
    """Neighbours that fit into one block are put together, so that blocks stay few."""
    tidied: list[Block] = []
    for block in blocks:
        if tidied and len(tidied[-1]) + len(block) <= BLOCK_PROVIDERS:
            tidied[-1] = tidied[-1].followed_by(block)
        else:
            tidied.append(block)
    return tidied
