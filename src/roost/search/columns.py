"""Columns: one value for each row, in arrays that numpy works on as a whole."""

from __future__ import annotations

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


def column(values: Any, dtype: Any = np.int64) -> Any:
    """A column of these values."""
    return np.asarray(values, dtype=dtype)
