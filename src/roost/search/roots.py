"""The roots that pass a filter, in the order of their uuids. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from fnmatch import translate
from re import compile as compiled
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from roost.search.forest.block import Block
from roost.search.forest.forest import Forest
from roost.search.forest.rows import BoolColumn, IntColumn, column

_Scalar = TypeVar("_Scalar", bound=np.generic)


@dataclass(frozen=True, slots=True)
class RootFilter:
    """Which roots a list has. `None` leaves no root out."""

    # The name of the root; `*` stands for any characters.
    name: str | None = None
    # Trees in which a provider has the trait, or belongs to the aggregate.
    trait_id: int | None = None
    aggregate: str | None = None


class MatchingRoots:
    """The roots that pass a filter, by uuid."""

    def __init__(self, forest: Forest, wanted: RootFilter, pause: Callable[[], None]) -> None:
        matches = _matcher(wanted.name)
        # For each block which of its trees pass; `None` if all of them do.
        self.chosen: list[BoolColumn | None] = []
        for block in forest.blocks:
            self.chosen.append(_chosen_trees(forest, block, wanted, matches))
            pause()
        uuids = (block.uuids.texts(block.roots) for block in forest.blocks)
        found = np.concatenate([np.zeros(0, "S1"), *self._only_chosen(uuids)])
        self._order = np.argsort(found)
        self.uuids: npt.NDArray[np.bytes_] = found[self._order]

    def column(self, by_block: Iterable[npt.NDArray[np.integer]]) -> IntColumn:
        """A value for each root, of values for all trees of each block."""
        joined: IntColumn = np.concatenate([column(()), *self._only_chosen(by_block)])
        return joined[self._order]

    def _only_chosen(
        self, by_block: Iterable[npt.NDArray[_Scalar]]
    ) -> Iterator[npt.NDArray[_Scalar]]:
        for values, chosen in zip(by_block, self.chosen, strict=True):
            yield values if chosen is None else values[chosen]


def _matcher(name: str | None) -> Callable[[str], object] | None:
    """Whether a name is meant. Only `*` has a meaning in the pattern."""
    if name is None:
        return None
    if "*" not in name:
        return name.__eq__
    pattern = "".join(f"[{each}]" if each in "[?" else each for each in name)
    return compiled(translate(pattern)).fullmatch


def _chosen_trees(
    forest: Forest, block: Block, wanted: RootFilter, matches: Callable[[str], object] | None
) -> BoolColumn | None:
    """For each tree, whether it passes the filter; `None` if all trees do."""
    masks: list[BoolColumn] = []
    if wanted.aggregate is not None:
        have = forest.aggregate_sets.with_any([wanted.aggregate])
        masks.append(have[block.tree_aggregate_set_numbers])
    if wanted.trait_id is not None:
        have = forest.trait_sets.with_any([wanted.trait_id])[block.trait_set_numbers]
        trees = np.zeros(block.tree_count, np.bool_)
        trees[block.tree_numbers[have]] = True
        masks.append(trees)
    if matches is not None:
        names = block.names.texts(block.roots)
        masks.append(np.fromiter((bool(matches(name)) for name in names), np.bool_, len(names)))
    return np.logical_and.reduce(masks) if masks else None
