"""The raw material of a forest: what the tables say, column by column."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

IntColumn: TypeAlias = npt.NDArray[np.int64]
FloatColumn: TypeAlias = npt.NDArray[np.float64]
BoolColumn: TypeAlias = npt.NDArray[np.bool_]

NO_PARENT = -1


@dataclass(frozen=True, slots=True)
class ProviderRows:
    """One row for each provider, in any order; trees are complete."""

    ids: IntColumn
    # In ASCII, as they stand in JSON.
    uuids: Sequence[bytes]
    # `NO_PARENT` for a root, whose root is itself.
    parent_ids: IntColumn
    root_ids: IntColumn


@dataclass(frozen=True, slots=True)
class InventoryRows:
    """One row for each provider and resource class of which it has inventory, in any order."""

    provider_ids: IntColumn
    class_ids: IntColumn
    total: IntColumn
    reserved: IntColumn
    min_unit: IntColumn
    max_unit: IntColumn
    step_size: IntColumn
    allocation_ratio: FloatColumn


@dataclass(frozen=True, slots=True)
class UsageRows:
    """What all consumers together hold, for each provider and class of which somebody does."""

    provider_ids: IntColumn
    class_ids: IntColumn
    used: IntColumn


@dataclass(frozen=True, slots=True)
class MembershipRows:
    """The traits, or the aggregates, of each provider that has any: one row a provider.

    `members` are written with commas, ids of traits or uuids of aggregates, as one database
    function puts them together: far fewer rows than one for each member. Their order means
    nothing, and equal sets are usually, but not always, spelt alike.
    """

    provider_ids: IntColumn
    members: Sequence[str]


@dataclass(frozen=True, slots=True)
class ForestRows:
    """Whole trees with all that belongs to them."""

    providers: ProviderRows
    inventories: InventoryRows
    usages: UsageRows
    traits: MembershipRows
    aggregates: MembershipRows


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The names of resource classes and traits, both ways."""

    class_ids: Mapping[str, int]
    class_names: Mapping[int, str]
    trait_ids: Mapping[str, int]
    trait_names: Mapping[int, str]

    @classmethod
    def of(cls, classes: Mapping[str, int], traits: Mapping[str, int]) -> Vocabulary:
        """The vocabulary in which names have these ids."""
        return cls(
            class_ids=classes,
            class_names={id_: name for name, id_ in classes.items()},
            trait_ids=traits,
            trait_names={id_: name for name, id_ in traits.items()},
        )


def column(values: Any, dtype: Any = np.int64) -> Any:
    """A column of these numbers."""
    return np.asarray(values, dtype=dtype)
