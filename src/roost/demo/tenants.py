"""The consumers on the demo hosts: instances of three projects, and a few migrations."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from roost.demo.hosts import (
    CLOUD,
    HOST_COUNT,
    NODE_COUNT,
    Dice,
    host_name,
    node_name,
    pool_name,
    rack_of,
)
from roost.demo.world import ConsumerSpec, ProviderSpec, read_data
from roost.model.inventory import Inventory

INSTANCE_COUNT: Final = 140
MIGRATION_COUNT: Final = 10

_SEED = 1791

AmountsByProvider = dict[str, dict[str, int]]
"""Provider name -> resource class -> amount."""


@dataclass(frozen=True, slots=True)
class Flavor:
    """What one instance takes: from a NUMA node, from a device below it, and disk."""

    node: Mapping[str, int]
    disk_gb: int
    device: Mapping[str, int] = field(default_factory=dict)
    shared_disk: bool = False


class HostUsage:
    """The inventories of the hosts and their usage, while instances are placed."""

    def __init__(self, providers: Iterable[ProviderSpec]) -> None:
        self._inventories: dict[tuple[str, str], Inventory] = {}
        self._used: dict[tuple[str, str], int] = defaultdict(int)
        self._below: dict[str, list[str]] = {}
        for provider in providers:
            if provider.parent is not None:
                self._below.setdefault(provider.parent, []).append(provider.name)
            for inventory in provider.inventories:
                self._inventories[provider.name, inventory.resource_class] = inventory

    def fits(self, provider: str, resources: Mapping[str, int]) -> bool:
        """Whether the provider can give all of this."""
        for name, amount in resources.items():
            inventory = self._inventories.get((provider, name))
            if inventory is None or not inventory.allows(amount):
                return False
            if not inventory.fits(amount, self._used[provider, name]):
                return False
        return True

    def find(self, flavor: Flavor, host: int) -> AmountsByProvider | None:
        """Where on the host the flavor fits: all of it in one NUMA node, but for the disk."""
        root = host_name(host)
        storage = pool_name(rack_of(host)) if flavor.shared_disk else root
        disk = {"DISK_GB": flavor.disk_gb}
        if not self.fits(storage, disk):
            return None
        for number in range(NODE_COUNT):
            node = node_name(root, number)
            if not self.fits(node, flavor.node):
                continue
            found = {storage: disk, node: dict(flavor.node)}
            if not flavor.device:
                return found
            for device in self._below[node]:
                if self.fits(device, flavor.device):
                    return found | {device: dict(flavor.device)}
        return None

    def take(self, allocations: AmountsByProvider) -> None:
        """Let an instance have what was found for it."""
        for provider, resources in allocations.items():
            for name, amount in resources.items():
                self._used[provider, name] += amount


def build_tenants(providers: Iterable[ProviderSpec]) -> tuple[ConsumerSpec, ...]:
    """All consumers of these hosts; together they never hold more than there is."""
    dice = Dice(_SEED)
    data = read_data(CLOUD)
    projects = data["projects"]
    usage = HostUsage(providers)
    instances, migrations = [], []
    for number in range(INSTANCE_COUNT):
        project = projects[number % len(projects)]
        flavor = Flavor(**data["flavors"][dice.pick(project["flavors"])])
        user = dice.pick(project["users"])
        host, allocations = _find_host(flavor, usage, dice)
        instance = ConsumerSpec(
            f"demo-instance-{number:03}", "INSTANCE", project["name"], user, allocations
        )
        instances.append(instance)
        if number % (INSTANCE_COUNT // MIGRATION_COUNT) == 0:
            # While an instance moves, its migration holds the same on the host that it leaves.
            _, allocations = _find_host(flavor, usage, dice, but_not=host)
            migrations.append(
                replace(
                    instance,
                    name=f"demo-migration-{number:03}",
                    consumer_type="MIGRATION",
                    allocations=allocations,
                )
            )
    return (*instances, *migrations)


def _find_host(
    flavor: Flavor, usage: HostUsage, dice: Dice, but_not: int | None = None
) -> tuple[int, AmountsByProvider]:
    """The host that takes the flavor, and what it gives."""
    # Squared: hosts with small numbers fill up first, those at the end stay rather empty.
    first = int(HOST_COUNT * dice.fraction() ** 2)
    for host in (*range(first, HOST_COUNT), *range(first)):
        found = None if host == but_not else usage.find(flavor, host)
        if found is not None:
            usage.take(found)
            return host, found
    raise AssertionError(f"the demo hosts have no room for {flavor}")
