"""The capacity rule: how much of an inventory consumers can hold, and which amounts it allows.

Each function works on plain numbers and on columns of numbers alike. Columns are numpy arrays of
one length, and the answer is a column of that length.
"""

from __future__ import annotations

from typing import Any, Protocol, overload


class Column(Protocol):
    """An array of numbers; arithmetic and comparison go member by member."""

    def __add__(self, other: Any, /) -> Any: ...
    def __sub__(self, other: Any, /) -> Any: ...
    def __mul__(self, other: Any, /) -> Any: ...
    def __rmod__(self, other: Any, /) -> Any: ...
    def __le__(self, other: Any, /) -> Any: ...
    def __ge__(self, other: Any, /) -> Any: ...


@overload
def exact_capacity(total: int, reserved: int, allocation_ratio: float) -> float: ...
@overload
def exact_capacity(total: Column, reserved: Column, allocation_ratio: Column) -> Any: ...
def exact_capacity(total: Any, reserved: Any, allocation_ratio: Any) -> Any:
    """How much all consumers together can hold.

    The API shows this number cut to its integer part. Amounts are whole numbers, so they fit into
    both or into neither.

    >>> exact_capacity(total=10, reserved=1, allocation_ratio=1.5)
    13.5
    """
    return (total - reserved) * allocation_ratio


@overload
def remaining(capacity: float, used: int) -> float: ...
@overload
def remaining(capacity: Column, used: Column) -> Any: ...
def remaining(capacity: Any, used: Any) -> Any:
    """How much is left; below zero where consumers hold more than the capacity.

    >>> remaining(capacity=13.5, used=12)
    1.5
    """
    return capacity - used


@overload
def fits(amount: int, capacity: float, used: int) -> bool: ...
@overload
def fits(amount: int, capacity: Column, used: Column) -> Any: ...
def fits(amount: int, capacity: Any, used: Any) -> Any:
    """Whether one more allocation of this amount stays within the capacity.

    >>> fits(1, capacity=13.5, used=12), fits(2, capacity=13.5, used=12)
    (True, False)
    """
    return amount <= remaining(capacity, used)


@overload
def is_allowed(amount: int, min_unit: int, max_unit: int, step_size: int) -> bool: ...
@overload
def is_allowed(amount: int, min_unit: Column, max_unit: Column, step_size: Column) -> Any: ...
def is_allowed(amount: int, min_unit: Any, max_unit: Any, step_size: Any) -> Any:
    """Whether a single allocation may have this amount, whatever remains.

    >>> is_allowed(25, min_unit=10, max_unit=100, step_size=10)
    False
    """
    return (min_unit <= amount) & (max_unit >= amount) & (amount % step_size == 0)
