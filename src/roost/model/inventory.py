"""Inventory: the amount of one resource class that a provider offers."""

from __future__ import annotations

from dataclasses import dataclass, fields
from datetime import datetime

from roost.model.capacity import exact_capacity, fits, is_allowed

INTEGER_MAX = 2_147_483_647
# MySQL stores an allocation ratio in single precision. The bounds of a ratio are those of the type.
RATIO_MAX = 3.40282e38


@dataclass(frozen=True, slots=True)
class Inventory:
    """One resource class on one provider."""

    resource_class: str
    total: int
    reserved: int = 0
    min_unit: int = 1
    max_unit: int = INTEGER_MAX
    step_size: int = 1
    allocation_ratio: float = 1.0
    modified_at: datetime | None = None

    @property
    def capacity(self) -> float:
        """How much all consumers together can hold; not cut to its integer part.

        >>> Inventory("VCPU", total=10, reserved=1, allocation_ratio=1.5).capacity
        13.5
        """
        capacity: float = exact_capacity(self.total, self.reserved, self.allocation_ratio)
        return capacity

    def allows(self, amount: int) -> bool:
        """Whether a single allocation may have this amount, whatever is free.

        >>> Inventory("DISK_GB", total=100, min_unit=10, step_size=10).allows(25)
        False
        """
        return is_allowed(amount, self.min_unit, self.max_unit, self.step_size)

    def fits(self, amount: int, used: int) -> bool:
        """Whether the amount stays within the capacity, of which so much is used.

        >>> Inventory("DISK_GB", total=100).fits(25, used=80)
        False
        """
        return bool(fits(amount, self.capacity, used))


DEFAULTS = {
    field.name: field.default
    for field in fields(Inventory)
    if field.name in ("reserved", "min_unit", "max_unit", "step_size", "allocation_ratio")
}
"""The values of fields that a request leaves out."""
