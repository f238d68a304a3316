"""Captured machines; `drawing` shows the trees that a driver declares for them."""

from __future__ import annotations

from pathlib import Path

from roost.client.drivers.linux.captures import Capture, parse_capture
from roost.client.testing import drawing

__all__ = ["CAPTURES", "captured", "drawing"]

CAPTURES = Path(__file__).parents[2] / "client" / "captures"


def captured(name: str) -> Capture:
    """One of the machines in `tests/client/captures`."""
    return parse_capture((CAPTURES / f"{name}.txt").read_text(), origin=name)
