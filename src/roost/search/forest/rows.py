"""The rows of which a forest is built: the database's tables, as columns.

A column has one value for each row, in an array that numpy works on as a whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

IntColumn: TypeAlias = npt.NDArray[np.int64]
FloatColumn: TypeAlias = npt.NDArray[np.float64]
BoolColumn: TypeAlias = npt.NDArray[np.bool_]
# Indexes of providers in a block and the indexes at which trees start, offsets in a tree, tree
# numbers and set numbers.
IndexColumn: TypeAlias = npt.NDArray[np.int32]
# For each set of traits or aggregates, by set number, whether the set meets a condition.
# `None`: every set does.
SetMask: TypeAlias = BoolColumn | None

# The parent id of a root.
NO_PARENT = -1


def column(values: Any, dtype: Any = np.int64) -> Any:
    """A column of these values."""
    return np.asarray(values, dtype=dtype)


@dataclass(frozen=True, slots=True)
class ProviderRows:
    """One row for each provider, in any order; every tree is complete."""

    ids: IntColumn
    # In ASCII, as JSON shows them.
    uuids: Sequence[bytes]
    # In UTF-8.
    names: Sequence[bytes]
    # `NO_PARENT` for a root. A root is its own root.
    parent_ids: IntColumn
    root_ids: IntColumn


@dataclass(frozen=True, slots=True)
class InventoryRows:
    """One row for each inventory, in any order."""

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
    """The sum of all allocations of one resource class from one provider, where there is any."""

    provider_ids: IntColumn
    class_ids: IntColumn
    used: IntColumn


@dataclass(frozen=True, slots=True)
class AllocationRows:
    """One row for each allocation: what one consumer holds of one class from one provider."""

    provider_ids: IntColumn
    class_ids: IntColumn
    used: IntColumn
    # A number for each consumer: a uuid would take ten times as much memory.
    consumers: IntColumn


@dataclass(frozen=True, slots=True)
class MembershipRows:
    """The traits, or the aggregates, of each provider that has any: one row for each provider.

    A database function joins the ids of the traits, or the uuids of the aggregates, with commas.
    That makes far fewer rows than one for each member. The order of the members is any.
    Providers with equal sets usually, but not always, have equal texts.
    """

    provider_ids: IntColumn
    members: Sequence[str]


@dataclass(frozen=True, slots=True)
class ForestRows:
    """Whole trees with their inventories, usages, traits and aggregates."""

    providers: ProviderRows
    inventories: InventoryRows
    usages: UsageRows
    traits: MembershipRows
    aggregates: MembershipRows
