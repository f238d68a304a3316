"""What clients were told, and whether the servers still say so at the end."""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from http_client import HttpClient

# What a consumer holds: provider -> resource class -> amount.
Holding: TypeAlias = dict[str, dict[str, int]]
_MANY = 10


@dataclass
class Ledger:
    """The acknowledged state of every consumer, the writes in doubt, and what was wrong."""

    held: dict[str, Holding] = field(default_factory=dict)
    # Consumers whose last write got no answer: both states are right, and no third one.
    doubted: dict[str, tuple[Holding, Holding]] = field(default_factory=dict)
    providers: set[str] = field(default_factory=set)
    wrongs: list[str] = field(default_factory=list)
    reads_after_writes: int = 0
    # How many of these came from another server than the write.
    crossed: int = 0
    readings_of_the_beacon: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def wrong(self, text: str) -> None:
        """Note something that must not be."""
        with self._lock:
            self.wrongs.append(text)

    def count_read(self, *, crossed: bool) -> None:
        """Count a read of a client's own write."""
        with self._lock:
            self.reads_after_writes += 1
            self.crossed += crossed

    def count_beacon(self) -> None:
        """Count a reading of the beacon."""
        with self._lock:
            self.readings_of_the_beacon += 1

    def settle(self, client: HttpClient, server: str) -> Counter[str]:
        """Compare every consumer and every provider with what a server says now."""
        found: dict[str, Holding] = {}
        outcomes: Counter[str] = Counter()
        for consumer, expected in self.held.items():
            found[consumer] = read_holding(client, consumer)
            if found[consumer] != expected:
                self.wrong(f"{server}: {consumer} holds {found[consumer]}, not {expected}")
        for consumer, (before, after) in self.doubted.items():
            found[consumer] = read_holding(client, consumer)
            if found[consumer] == after:
                outcomes["carried out"] += 1
            elif found[consumer] == before:
                outcomes["not carried out"] += 1
            else:
                self.wrong(f"{server}: {consumer} is half written: {found[consumer]}")
        self._compare_usages(client, server, found)
        return outcomes

    def _compare_usages(self, client: HttpClient, server: str, found: dict[str, Holding]) -> None:
        sums: dict[str, Counter[str]] = {provider: Counter() for provider in self.providers}
        for holding in found.values():
            for provider, amounts in holding.items():
                sums[provider].update(amounts)
        for provider, expected in sums.items():
            used = client.get(f"/resource_providers/{provider}/usages").json["usages"]
            inventories = client.get(f"/resource_providers/{provider}/inventories").json
            if {name: amount for name, amount in used.items() if amount} != dict(expected):
                self.wrong(f"{server}: usage of {provider} is {used}, not {dict(expected)}")
            for name, inventory in inventories["inventories"].items():
                if used.get(name, 0) > capacity(inventory):
                    self.wrong(f"{server}: {provider} is over-allocated: {name} {used}")

    def summary(self) -> str:
        """The first things that were wrong."""
        more = len(self.wrongs) - _MANY
        return "\n".join([*self.wrongs[:_MANY], *([f"... and {more} more"] if more > 0 else [])])


def capacity(inventory: dict[str, Any]) -> int:
    """How much of an inventory consumers may hold."""
    return int((inventory["total"] - inventory["reserved"]) * inventory["allocation_ratio"])


def read_holding(client: HttpClient, consumer: str) -> Holding:
    """What a consumer holds."""
    allocations = client.get(f"/allocations/{consumer}").json["allocations"]
    return {provider: record["resources"] for provider, record in allocations.items()}
