"""The capacity rule: how much of an inventory consumers can hold, and which amounts it allows.

Claims use the rule with plain numbers, the search with whole columns. Columns are numpy arrays of
one length, and the answer is a column of that length.

The room of an inventory joins what is free with max_unit, so the search keeps one column for both.
An amount fits if it is within the room and keeps the units.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

# A number, or a column of numbers: arithmetic and comparison go value by value.
Numbers: TypeAlias = Any


def exact_capacity(total: Numbers, reserved: Numbers, allocation_ratio: Numbers) -> Numbers:
    """How much all consumers together can hold.

    The API shows this number cut to its integer part. Amounts are whole numbers, so they fit into
    both or into neither.

    >>> exact_capacity(total=10, reserved=1, allocation_ratio=1.5)
    13.5
    """
    return (total - reserved) * allocation_ratio


def free_amount(capacity: Numbers, used: Numbers) -> Numbers:
    """How much is free; below zero where consumers hold more than the capacity.

    >>> free_amount(capacity=13.5, used=12)
    1.5
    """
    return capacity - used


def fits(amount: int, capacity: Numbers, used: Numbers) -> Numbers:
    """Whether one more allocation of this amount stays within the capacity.

    >>> fits(1, capacity=13.5, used=12), fits(2, capacity=13.5, used=12)
    (True, False)
    """
    return is_within(amount, free_amount(capacity, used))


def keeps_units(amount: int, min_unit: Numbers, step_size: Numbers) -> Numbers:
    """Whether the amount is at least the min_unit, and a multiple of the step_size.

    >>> keeps_units(25, min_unit=10, step_size=10), keeps_units(30, min_unit=10, step_size=10)
    (False, True)
    """
    return (min_unit <= amount) & (amount % step_size == 0)


def takes_any_unit(min_unit: Numbers, step_size: Numbers) -> Numbers:
    """Whether every amount keeps the units, as usual: then only room decides.

    >>> takes_any_unit(min_unit=1, step_size=1), takes_any_unit(min_unit=1, step_size=2)
    (True, False)
    """
    return (min_unit == 1) & (step_size == 1)


def is_allowed(amount: int, min_unit: int, max_unit: int, step_size: int) -> bool:
    """Whether a single allocation may have this amount, whatever is free.

    >>> is_allowed(25, min_unit=10, max_unit=100, step_size=10)
    False
    """
    return amount <= max_unit and keeps_units(amount, min_unit, step_size)


def room_of(
    capacity: Numbers,
    used: Numbers,
    max_unit: Numbers,
    smaller: Callable[[Numbers, Numbers], Numbers] = min,
) -> Numbers:
    """The largest amount of one more allocation; below zero where more than the capacity is used.

    `smaller` chooses between two numbers, or value by value between two columns.

    >>> room_of(capacity=16, used=4, max_unit=100), room_of(capacity=16, used=4, max_unit=8)
    (12, 8)
    """
    return smaller(free_amount(capacity, used), max_unit)


def is_within(amount: int, room: Numbers) -> Numbers:
    """Whether one more allocation of this amount stays within the room.

    >>> is_within(8, room=8), is_within(9, room=8)
    (True, False)
    """
    return amount <= room
