"""Rankings: which trees, and which candidates of a tree, a client wants first.

A ranking looks at amounts and uuids only. So it is the same in every process, whatever the order in
which the blocks of the process have the trees. `CandidateOrder` has the ranking, as the operator
configures it or a client asks for it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from dataclasses import dataclass
from enum import StrEnum
from hashlib import blake2b

import numpy as np

from roost.search.candidates.rules import Rules
from roost.search.candidates.solving.problem import LocalProvider, Solution
from roost.search.forest.forest import Forest, ProviderRef
from roost.search.forest.rows import FloatColumn, IndexColumn

# Sums of fractions that are equal on paper differ by less than this.
_DECIMALS = 9


class RankingKind(StrEnum):
    """The names of rankings."""

    RANDOM = "random"
    PACK = "pack"
    SPREAD = "spread"


@dataclass(frozen=True, slots=True)
class Ranking:
    """The ranking that a client asks for."""

    kind: RankingKind
    # Of a random ranking: equal seeds rank equal forests alike.
    seed: int = 0

    @property
    def in_rounds(self) -> bool:
        """Whether a walk takes one candidate of each tree in every round.

        Packing and spreading rank trees, so all candidates of a tree come together there.
        """
        return self.kind is RankingKind.RANDOM


class Merits(ABC):
    """The merits of trees and of their solutions, as numbers: the lowest comes first."""

    def __init__(self, forest: Forest, rules: Rules) -> None:
        self._forest = forest
        self._sharing_providers = rules.sharing_providers.providers

    @abstractmethod
    def of_trees(self, block_number: int, tree_numbers: IndexColumn) -> FloatColumn:
        """The merit of each of these trees."""

    @abstractmethod
    def of_solution(self, block_number: int, tree_number: int, solution: Solution) -> float:
        """The merit of a solution among those of its tree."""

    def uuids(self, block_number: int, tree_number: int, solution: Solution) -> tuple[bytes, ...]:
        """The uuid of each provider of a solution: they decide between equal merits."""
        block = self._forest.blocks[block_number]
        start = block.starts.item(tree_number)
        return tuple(
            [
                block.uuids[start + provider]
                if provider >= 0
                else self._sharing_providers[~provider].uuid
                for provider in solution
            ]
        )


def merits_of(ranking: Ranking, forest: Forest, rules: Rules) -> Merits:
    """The merits by which a ranking decides."""
    if ranking.kind is RankingKind.RANDOM:
        return _Chance(forest, rules, ranking.seed)
    return _LeftOver(forest, rules, sign=-1 if ranking.kind is RankingKind.SPREAD else 1)


class _Chance(Merits):
    """Numbers that look random, and depend on nothing but the seed and the uuids."""

    def __init__(self, forest: Forest, rules: Rules, seed: int) -> None:
        super().__init__(forest, rules)
        self._key = str(seed).encode()[:64]

    def of_trees(self, block_number: int, tree_numbers: IndexColumn) -> FloatColumn:
        block = self._forest.blocks[block_number]
        starts = block.starts[tree_numbers].tolist()
        return np.asarray([self._number(block.uuids[start]) for start in starts], np.float64)

    def of_solution(self, block_number: int, tree_number: int, solution: Solution) -> float:
        return self._number(b"".join(self.uuids(block_number, tree_number, solution)))

    def _number(self, text: bytes) -> float:
        # A float has 53 bits, so it holds six bytes exactly.
        return float(int.from_bytes(blake2b(text, digest_size=6, key=self._key).digest()))


class _LeftOver(Merits):
    """What a claim leaves over, as a share, averaged over the requested resource classes.

    The share is relative to the largest capacity of the class in any tree. A tree is judged by what
    all its providers have left, as if it gave everything that the query asks for. A solution is
    judged by what the providers have left that give something in it.
    """

    def __init__(self, forest: Forest, rules: Rules, sign: int) -> None:
        super().__init__(forest, rules)
        self._sign = sign
        self._amounts_by_slot = [
            rules.plan.requirements[requirement_index].amounts
            for requirement_index in rules.requirement_index_by_slot
        ]
        self._amounts: Counter[int] = Counter()
        for amounts in self._amounts_by_slot:
            for class_id, amount in amounts:
                self._amounts[class_id] += amount
        self._largest = {class_id: self._largest_capacity(class_id) for class_id in self._amounts}
        # By block number and class: what each provider has free.
        self._free: dict[tuple[int, int], FloatColumn] = {}
        # By block number: the merit of each tree.
        self._of_trees: dict[int, FloatColumn] = {}

    def of_trees(self, block_number: int, tree_numbers: IndexColumn) -> FloatColumn:
        merits = self._of_trees.get(block_number)
        if merits is None:
            merits = self._of_trees[block_number] = self._of_block(block_number)
        return merits[tree_numbers]

    def of_solution(self, block_number: int, tree_number: int, solution: Solution) -> float:
        taken: Counter[tuple[LocalProvider, int]] = Counter()
        for provider, amounts in zip(solution, self._amounts_by_slot, strict=True):
            for class_id, amount in amounts:
                taken[provider, class_id] += amount
        start = self._forest.blocks[block_number].starts.item(tree_number)
        left = 0.0
        for (provider, class_id), amount in sorted(taken.items()):
            ref = (
                ProviderRef(block_number, start + provider)
                if provider >= 0
                else self._sharing_providers[~provider].ref
            )
            free = self._free_in(ref.block_number, class_id).item(ref.provider_index)
            left += (free - amount) / self._largest[class_id]
        return self._sign * round(left / len(self._amounts), _DECIMALS)

    def _of_block(self, block_number: int) -> FloatColumn:
        """The merit of each tree of a block."""
        block = self._forest.blocks[block_number]
        left = np.zeros(block.tree_count)
        for class_id, amount in self._amounts.items():
            free = np.add.reduceat(self._free_in(block_number, class_id), block.roots)
            left += np.maximum(free - amount, 0) / self._largest[class_id]
        return self._sign * np.round(left / len(self._amounts), _DECIMALS)

    def _largest_capacity(self, class_id: int) -> float:
        """The largest capacity of a class that all providers of one tree have together."""
        largest = 0.0
        for block in self._forest.blocks:
            inventory = block.inventories.get(class_id)
            if inventory is not None:
                capacity = np.bincount(block.tree_numbers[inventory.indexes], inventory.capacity)
                largest = max(largest, float(capacity.max(initial=0)))
        return largest or 1.0

    def _free_in(self, block_number: int, class_id: int) -> FloatColumn:
        """What each provider of a block has free of a class; zero without inventory."""
        found = self._free.get((block_number, class_id))
        if found is None:
            block = self._forest.blocks[block_number]
            found = self._free[block_number, class_id] = np.zeros(len(block))
            inventory = block.inventories.get(class_id)
            if inventory is not None:
                found[inventory.indexes] = np.maximum(inventory.capacity - inventory.used, 0)
        return found


@dataclass(frozen=True, slots=True)
class CandidateOrder:
    """In which order candidates come, and how many at most."""

    # The search looks for no more than these. `None`: for all of them.
    maximum: int | None = None
    # All candidates of one tree before the next tree, instead of one of each tree in every round.
    depth_first: bool = False
    shuffled: bool = False
    # The trees that a client prefers come first, and of each tree the candidates that it prefers.
    ranking: Ranking | None = None

    @property
    def is_unbounded(self) -> bool:
        """Whether a search without a limit can hand candidates out while it finds them."""
        return self.maximum is None and not self.shuffled and self.ranking is None
