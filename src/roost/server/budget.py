"""A budget of bytes that several threads share."""

from __future__ import annotations

import threading


class Budget:
    """The bytes that all connections of a process may hold together."""

    def __init__(self, maximum: int) -> None:
        self._maximum = maximum
        self._lock = threading.Lock()
        self.taken = 0

    def take(self, amount: int) -> bool:
        """Take the amount if the budget has it; return whether it had."""
        with self._lock:
            if self.taken + amount > self._maximum:
                return False
            self.taken += amount
            return True

    def give_back(self, amount: int) -> None:
        """Return an amount to the budget."""
        with self._lock:
            self.taken -= amount
