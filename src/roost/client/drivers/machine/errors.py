"""What can go wrong while a machine is looked at."""

from __future__ import annotations

from roost.client.errors import PlacementError


class MachineUnreadable(PlacementError):
    """Something that a driver reads is missing, not readable or not what it should be."""
