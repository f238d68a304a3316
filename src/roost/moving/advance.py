"""How a long work tells its progress."""

from __future__ import annotations

from collections.abc import Callable

# Hears of the number of things in all, and of how many were done since.
Advance = Callable[[int, int], None]


def silent(_total: int, _done: int) -> None:
    """Tell no progress."""
