"""Scenario: claims, and reads of single resources, of Roost and of the reference."""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Callable
from functools import partial

import clouds
from clouds import Cloud
from meters import Meter, claim_body
from results import Column, Table, ratio
from stage import Stage
from targets import Target

HOSTS = 50
WARM_UP = 5

TABLE = Table(
    "Claims and reads: CPU of the server, ms a request",
    (Column("Roost", ".3f"), Column("reference", ".3f"), ratio("ratio")),
)


class Shop:
    """A server on a cloud, and the consumers that claimed there."""

    def __init__(self, target: Target, cloud: Cloud) -> None:
        self.target = target
        self._hosts = cloud.roots
        self._consumers: list[str] = []
        self._numbers = itertools.count()

    def claim(self) -> None:
        """Claim from two providers for a new consumer."""
        consumer, number = str(uuid.uuid4()), next(self._numbers)
        one, other = (self._hosts[(number + step) % len(self._hosts)] for step in (0, 1))
        wanted = {one: {"VCPU": 1, "MEMORY_MB": 512}, other: {"DISK_GB": 5}}
        self.target.request("PUT", f"/allocations/{consumer}", claim_body(wanted))
        self._consumers.append(consumer)

    def read_claim(self) -> None:
        """Read the allocations of one of the consumers."""
        consumer = self._consumers[next(self._numbers) % len(self._consumers)]
        self.target.get(f"/allocations/{consumer}")

    def read_provider(self, part: str = "") -> None:
        """Read one of the providers, or a part of it."""
        host = self._hosts[next(self._numbers) % len(self._hosts)]
        self.target.get(f"/resource_providers/{host}{part}")

    def list_providers(self) -> None:
        """List the providers with room for some resources."""
        amount = next(self._numbers) % 7 + 1
        self.target.get(f"/resource_providers?resources=VCPU:{amount},DISK_GB:10")


CLAIM = "claim (PUT /allocations, 2 providers)"
LIST = f"GET providers with room ({HOSTS} found)"
WORK: dict[str, Callable[[Shop], None]] = {
    CLAIM: Shop.claim,
    "GET /allocations of a consumer": Shop.read_claim,
    "GET one provider": Shop.read_provider,
    "GET inventories of a provider": lambda shop: shop.read_provider("/inventories"),
    "GET usages of a provider": lambda shop: shop.read_provider("/usages"),
    LIST: Shop.list_providers,
}


def run(stage: Stage) -> None:
    """Measure each kind of request."""
    fill = clouds.flat(HOSTS, amount=1_000)
    with stage.servers("claims", fill, workers=1) as servers:
        assert servers.reference is not None
        shops = [Shop(target, servers.cloud) for target in (servers.roost, servers.reference)]
        for name, work in WORK.items():
            ours, theirs = _measure(stage, shops, work)
            stage.results.add(TABLE, name, ours, theirs, theirs / ours)
            _set_goals(stage, name, ours, theirs)


def _set_goals(stage: Stage, name: str, ours: float, theirs: float) -> None:
    results, ratio_of = stage.results, f"{name}: reference / Roost"
    results.at_least(ratio_of, theirs / ours, 50 if name == CLAIM else 20)
    if name == CLAIM:
        results.at_most(f"{name}: CPU", ours, 0.75, " ms")
    elif name != LIST:
        results.at_most(f"{name}: CPU", ours, 0.3, " ms")


def _measure(stage: Stage, shops: list[Shop], work: Callable[[Shop], None]) -> list[float]:
    meters = [Meter(shop.target) for shop in shops]
    for shop in shops:
        for _ in range(WARM_UP):
            work(shop)
    for _ in range(stage.rounds):
        for shop, meter in zip(shops, meters, strict=True):
            meter.run(partial(_once, work, shop), stage.seconds)
    return [meter.milliseconds for meter in meters]


def _once(work: Callable[[Shop], None], shop: Shop, _number: int) -> None:
    work(shop)
