"""Inventories: what a machine knows of itself, and no field more.

What is not said here, an operator may set on the server, and it stays.
"""

from __future__ import annotations

from roost.client.declaration import InventoryFields


def inventory(total: int, *, reserved: int = 0, ratio: float | None = 1.0) -> InventoryFields:
    """So many of something, of which nobody may have more than there really are.

    Without `ratio` it is left to the operator how often each may be promised.

    >>> inventory(8, reserved=9, ratio=None)
    {'total': 8, 'reserved': 8, 'max_unit': 8}
    """
    said: dict[str, int | float] = {
        "total": total,
        "reserved": min(total, reserved),
        "max_unit": total,
    }
    return said if ratio is None else said | {"allocation_ratio": ratio}
