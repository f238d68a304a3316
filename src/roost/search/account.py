"""The account of a search: what each stage of the search left of each request group."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from roost.search.block import Block

EXAMPLES_MAX = 3


@dataclass(slots=True)
class AccountEntry:
    """How many providers and trees one stage left, and the uuids of a few of them.

    A stage that looks at whole trees has no suffixes and no requirement.
    """

    suffixes: tuple[str, ...]
    # Which of the plan's requirements. The unsuffixed group has one for each class.
    requirement_index: int | None
    stage: str
    provider_count: int = 0
    tree_count: int = 0
    examples: list[str] = field(default_factory=list)

    def add_examples(self, block: Block, indexes: list[int]) -> None:
        """Add the uuids of these providers, up to `EXAMPLES_MAX` in all."""
        left = EXAMPLES_MAX - len(self.examples)
        self.examples += [block.uuids[index].decode() for index in indexes[:left]]


class Account:
    """Collects one entry for each stage, in the order in which the search passes them.

    A search with an account looks at every block and every tree, whatever its limit.
    A search without an account stops as soon as it has enough candidates.
    """

    def __init__(self) -> None:
        self._entries: dict[tuple[int | None, str], AccountEntry] = {}

    @property
    def entries(self) -> list[AccountEntry]:
        """All entries so far."""
        return list(self._entries.values())

    def providers_left(
        self,
        requirement_index: int,
        suffixes: tuple[str, ...],
        stage: str,
        block: Block,
        indexes: npt.NDArray[np.int32],
    ) -> None:
        """Note the providers of a block that passed all stages up to this one."""
        entry = self._entry(suffixes, requirement_index, stage)
        entry.provider_count += len(indexes)
        entry.tree_count += len(np.unique(block.tree_numbers[indexes]))
        entry.add_examples(block, indexes[:EXAMPLES_MAX].tolist())

    def trees_left(self, stage: str, block: Block, tree_numbers: npt.NDArray[np.integer]) -> None:
        """Note the trees of a block that passed all stages up to this one."""
        entry = self._entry((), None, stage)
        entry.tree_count += len(tree_numbers)
        entry.add_examples(block, block.starts[tree_numbers[:EXAMPLES_MAX]].tolist())

    def _entry(
        self, suffixes: tuple[str, ...], requirement_index: int | None, stage: str
    ) -> AccountEntry:
        return self._entries.setdefault(
            (requirement_index, stage), AccountEntry(suffixes, requirement_index, stage)
        )
