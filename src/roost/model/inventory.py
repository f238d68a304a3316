"""Inventory: how much of one resource class a provider has to give."""

from __future__ import annotations

from dataclasses import dataclass, fields
from datetime import datetime

INTEGER_MAX = 2_147_483_647


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
        """How much can be handed out in all. Not rounded: the reference compares real numbers.

        >>> Inventory("VCPU", total=10, reserved=1, allocation_ratio=1.5).capacity
        13.5
        """
        return (self.total - self.reserved) * self.allocation_ratio

    def allows(self, amount: int) -> bool:
        """Whether a single allocation may have this size, whatever is free.

        >>> Inventory("DISK_GB", total=100, min_unit=10, step_size=10).allows(25)
        False
        """
        return self.min_unit <= amount <= self.max_unit and amount % self.step_size == 0


DEFAULTS = {
    field.name: field.default
    for field in fields(Inventory)
    if field.name in ("reserved", "min_unit", "max_unit", "step_size", "allocation_ratio")
}
"""What is taken for the fields of an inventory that are left out."""
