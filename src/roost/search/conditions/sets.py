"""A filter of sets: of the traits or of the aggregates that providers have."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Generic

import numpy as np

from roost.search.forest.rows import BoolColumn, IntColumn, SetMask
from roost.search.forest.set_table import Member, SetTable


@dataclass(frozen=True)
class SetFilter(Generic[Member]):
    """Which sets of a forest have one name of each choice, and no forbidden one."""

    choices: tuple[tuple[str, ...], ...]
    forbidden: tuple[str, ...]
    sets: SetTable[Member] = field(compare=False, repr=False)
    # The member of a set that has a name.
    member: Callable[[str], Member] = field(compare=False, repr=False)

    # By set number.

    @cached_property
    def choices_mask(self) -> SetMask:
        """Whether the set has one of each choice."""
        # One mask of a choice is held at a time.
        mask: SetMask = None
        for names in self.choices:
            found = self._with_any(names)
            mask = found if mask is None else mask & found
        return mask

    @cached_property
    def allowed_mask(self) -> SetMask:
        """Whether the set has nothing forbidden."""
        return ~self._with_any(self.forbidden) if self.forbidden else None

    @cached_property
    def mask(self) -> BoolColumn:
        """Whether the set passes a filter that asks for something."""
        first, second = self.choices_mask, self.allowed_mask
        if first is None or second is None:
            mask = second if first is None else first
            assert mask is not None
            return mask
        return first & second

    @cached_property
    def missing_counts(self) -> IntColumn:
        """How many choices the set does not meet."""
        counts = np.zeros(len(self.sets), np.int64)
        for names in self.choices:
            counts += ~self._with_any(names)
        return counts

    @cached_property
    def forbidden_counts(self) -> IntColumn:
        """How many forbidden names the set has."""
        counts = np.zeros(len(self.sets), np.int64)
        for name in self.forbidden:
            counts += self._with_any((name,))
        return counts

    # Of one set.

    def missing(self, set_number: int) -> list[tuple[str, ...]]:
        """The choices that a set does not meet."""
        held = self.sets[set_number]
        return [names for names in self.choices if held.isdisjoint(map(self.member, names))]

    def forbidden_in(self, set_number: int) -> list[tuple[str, ...]]:
        """The forbidden names that a set has, each by itself."""
        held = self.sets[set_number]
        return [(name,) for name in self.forbidden if self.member(name) in held]

    def _with_any(self, names: Iterable[str]) -> BoolColumn:
        return self.sets.with_any(map(self.member, names))
