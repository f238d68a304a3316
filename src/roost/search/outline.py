"""The outline of a block: which sets its providers have. By it, a search skips blocks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from roost.search.columns import IndexColumn


@dataclass(frozen=True, slots=True)
class Outline:
    """The numbers of the trait sets and aggregate sets that providers of a block have, each once.

    What the block has of a resource class at most stands in `InventoryColumns.room_max`.
    """

    trait_set_numbers: IndexColumn
    aggregate_set_numbers: IndexColumn

    @classmethod
    def of(cls, trait_set_numbers: IndexColumn, aggregate_set_numbers: IndexColumn) -> Outline:
        """The outline of providers with these trait sets and aggregate sets."""
        return cls(np.unique(trait_set_numbers), np.unique(aggregate_set_numbers))
