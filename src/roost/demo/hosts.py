"""A hundred NUMA hosts with PCI devices, in four racks, each of which shares a storage pool."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from roost.demo.world import SHARES, ProviderSpec, read_data
from roost.model.inventory import Inventory

T = TypeVar("T")

# What hosts and tenants are built from.
CLOUD: Final = "cloud.toml"
HOST_COUNT: Final = 100
RACK_COUNT: Final = 4
NODE_COUNT: Final = 2

HUGE_PAGES: Final = "CUSTOM_HUGE_PAGES_1G"

_RESERVED_MEMORY_MB = 2048
_BUS_FIRST, _BUS_STEP, _BUS_NODE = 0x17, 0x08, 0x80
# Hosts under repair, as in every cloud.
_DISABLED = frozenset({17, 58, 91})
# Dedicated CPUs of a NUMA node that its host keeps for a packet switch, by host and node. Without
# them, the request `NEARLY_FITS` would fit.
_SWITCH_CPUS = {(42, 1): 6}
_SEED = 1789


@dataclass(frozen=True, slots=True)
class Device:
    """A PCI device of one function: all it gives is `amount` of one class."""

    resource_class: str
    amount: int
    traits: Sequence[str]


@dataclass(frozen=True, slots=True)
class Shape:
    """What a kind of host is built from; all but disk and traits is counted by NUMA node."""

    shared_cpus: int
    dedicated_cpus: int
    memory_mb: int
    huge_pages: int
    network_cards: int
    disk_gb: int
    traits: Sequence[str]
    devices: Sequence[Device] = ()


class Dice:
    """The same choices in every process.

    Only `random()` itself is promised to give the same numbers in every version of Python.
    """

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def fraction(self) -> float:
        """At least 0 and less than 1."""
        return self._random.random()

    def pick(self, values: Sequence[T]) -> T:
        """One of the values."""
        return values[int(self._random.random() * len(values))]


def host_name(number: int) -> str:
    """The root provider of a host.

    >>> host_name(7)
    'demo-host-007'
    """
    return f"demo-host-{number:03}"


def node_name(host: str, node: int) -> str:
    """A NUMA node of the host."""
    return f"{host}_NUMA{node}"


def rack_of(number: int) -> int:
    """The rack in which the host of this number is, counted from 1.

    >>> rack_of(0), rack_of(24), rack_of(25), rack_of(99)
    (1, 1, 2, 4)
    """
    return number * RACK_COUNT // HOST_COUNT + 1


def zone_of(rack: int) -> str:
    """The availability zone of the rack."""
    return "demo-zone-north" if rack <= RACK_COUNT // 2 else "demo-zone-south"


def rack_name(rack: int) -> str:
    """The aggregate of all that is in the rack."""
    return f"demo-rack-{rack}"


def pool_name(rack: int) -> str:
    """The storage pool that the rack's hosts share."""
    return f"demo-storage-{rack}"


def build_hosts() -> tuple[ProviderSpec, ...]:
    """All providers: the pools, then host by host."""
    dice = Dice(_SEED)
    racks = read_data(CLOUD)["racks"]
    pools = [
        ProviderSpec(
            pool_name(rack),
            inventories=(Inventory("DISK_GB", 200_000, reserved=2_000, max_unit=20_000),),
            traits=(SHARES, "STORAGE_DISK_HDD"),
            aggregates=(rack_name(rack),),
        )
        for rack in range(1, RACK_COUNT + 1)
    ]
    hosts = [
        provider
        for number in range(HOST_COUNT)
        for provider in _host(number, dice.pick(racks[rack_of(number) - 1]))
    ]
    return (*pools, *hosts)


def _shape(name: str) -> Shape:
    drawn = read_data(CLOUD)["shapes"][name]
    return Shape(**{**drawn, "devices": [Device(**device) for device in drawn.get("devices", ())]})


def _host(number: int, cpu: str) -> Iterator[ProviderSpec]:
    data = read_data(CLOUD)
    name, rack = host_name(number), rack_of(number)
    shape = _shape(data["row"][number % len(data["row"])])
    traits = data["host-traits"]
    newer = () if cpu == "older-intel" else traits["newer"]
    disabled = ("COMPUTE_STATUS_DISABLED",) if number in _DISABLED else ()
    yield ProviderSpec(
        name,
        inventories=(_inventory("DISK_GB", shape.disk_gb, reserved=50),),
        traits=(*traits["all"], *newer, *shape.traits, *disabled),
        aggregates=(rack_name(rack), zone_of(rack)),
    )
    for node in range(NODE_COUNT):
        yield ProviderSpec(
            node_name(name, node),
            name,
            inventories=tuple(_node_inventories(shape, _SWITCH_CPUS.get((number, node), 0))),
            traits=("HW_NUMA_ROOT", *(f"HW_CPU_X86_{one}" for one in data["cpus"][cpu])),
        )
        yield from _network_functions(name, node, shape, zone_of(rack))
        yield from _devices(name, node, shape)


def _node_inventories(shape: Shape, switch_cpus: int) -> Iterator[Inventory]:
    yield _inventory("VCPU", shape.shared_cpus, allocation_ratio=4.0)
    if shape.dedicated_cpus:
        yield _inventory("PCPU", shape.dedicated_cpus, reserved=switch_cpus)
    yield _inventory("MEMORY_MB", shape.memory_mb, reserved=_RESERVED_MEMORY_MB)
    if shape.huge_pages:
        yield _inventory(HUGE_PAGES, shape.huge_pages)


def _network_functions(host: str, node: int, shape: Shape, zone: str) -> Iterator[ProviderSpec]:
    """Two physical functions for each card: the first card serves the inside, others the world."""
    outside = f"CUSTOM_PHYSNET_{zone.removeprefix('demo-zone-').upper()}"
    for card in range(shape.network_cards):
        networks = (
            ("CUSTOM_PHYSNET_TENANT", "CUSTOM_PHYSNET_STORAGE") if card == 0 else 2 * (outside,)
        )
        offloads = () if card == 0 else ("HW_NIC_SRIOV_TRUSTED", "HW_NIC_OFFLOAD_RDMA")
        kilobits = 25_000_000 if card == 0 else 100_000_000
        for function, network in enumerate(networks):
            yield ProviderSpec(
                _pci_name(host, node, card, function),
                node_name(host, node),
                inventories=(
                    _inventory("SRIOV_NET_VF", 16),
                    _inventory("NET_BW_EGR_KILOBIT_PER_SEC", kilobits, step_size=1000),
                    _inventory("NET_BW_IGR_KILOBIT_PER_SEC", kilobits, step_size=1000),
                ),
                traits=("HW_NIC_SRIOV", network, *offloads),
            )


def _devices(host: str, node: int, shape: Shape) -> Iterator[ProviderSpec]:
    for slot, device in enumerate(shape.devices, start=shape.network_cards):
        yield ProviderSpec(
            _pci_name(host, node, slot, 0),
            node_name(host, node),
            inventories=(_inventory(device.resource_class, device.amount),),
            traits=tuple(device.traits),
        )


def _pci_name(host: str, node: int, slot: int, function: int) -> str:
    bus = _BUS_FIRST + _BUS_NODE * node + _BUS_STEP * slot
    return f"{host}_0000:{bus:02x}:00.{function}"


def _inventory(
    resource_class: str,
    total: int,
    reserved: int = 0,
    step_size: int = 1,
    allocation_ratio: float = 1.0,
) -> Inventory:
    """As a compute host reports it: one allocation may take the total, without overcommit."""
    return Inventory(
        resource_class,
        total,
        reserved=reserved,
        max_unit=total,
        step_size=step_size,
        allocation_ratio=allocation_ratio,
    )
