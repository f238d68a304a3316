"""A machine as a reader finds it: CPUs, NUMA nodes, PCI functions, disks and other devices."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from roost.client.errors import PlacementError


class MachineUnreadable(PlacementError):
    """A file or an answer about the machine is missing, not readable or not as expected."""


@dataclass(frozen=True, slots=True)
class Cpu:
    """The properties that all CPUs of the machine share.

    `flags` are spelt as in `/proc/cpuinfo` of Linux. `vendor` is the name that the CPU reports;
    it is empty if the CPU reports none.
    """

    architecture: str
    vendor: str = ""
    flags: frozenset[str] = frozenset()
    hyperthreading: bool = False


@dataclass(frozen=True, slots=True)
class HugepagePool:
    """The huge pages of one size that a NUMA node sets aside."""

    size_kib: int
    pages: int

    @property
    def memory_kib(self) -> int:
        """The ordinary memory that the pool uses up."""
        return self.size_kib * self.pages


@dataclass(frozen=True, slots=True)
class NumaNode:
    """A NUMA node with its online logical CPUs; the kernel schedules nothing on isolated CPUs."""

    number: int
    cpus: frozenset[int] = frozenset()
    isolated_cpus: frozenset[int] = frozenset()
    memory_kib: int = 0
    hugepages: tuple[HugepagePool, ...] = ()


@dataclass(frozen=True, slots=True)
class MediatedType:
    """A type of mediated devices (mdev) that a function can be divided into, such as `nvidia-256`.

    `available` more devices fit beside the `existing` ones. The types of one function share it, so
    a device of one type takes room from all of them. `most` is the driver's own bound, if any.
    """

    id: str
    name: str = ""
    available: int = 0
    existing: int = 0
    most: int | None = None

    @property
    def total(self) -> int:
        """The number of devices of this type, if the function has no other type."""
        total = self.available + self.existing
        return total if self.most is None else min(total, self.most)


@dataclass(frozen=True, slots=True)
class PciFunction:
    """A physical PCI function, with the number of its virtual functions.

    `vendor`, `product` and `virtual_product` are four hexadecimal digits in lower case.
    `class_code` is the whole code of 24 bits: base class, subclass, programming interface.
    `rdma_links` are the link layers of its RDMA ports. `mig_instances` counts the compute
    instances of a GPU. `compute_partition` names the way in which a GPU is divided.
    """

    address: str
    class_code: int
    vendor: str
    product: str
    numa_node: int | None = None
    driver: str | None = None
    has_iommu_group: bool = False
    is_console: bool = False
    virtual_functions_possible: int = 0
    virtual_functions: int = 0
    virtual_product: str | None = None
    rdma_links: frozenset[str] = frozenset()
    has_fpga_region: bool = False
    has_tpm: bool = False
    mediated_types: tuple[MediatedType, ...] = ()
    mig_instances: int = 0
    compute_partition: str | None = None


@dataclass(frozen=True, slots=True)
class Disk:
    """A whole disk that is fixed to the machine.

    The kernel's `name` may be another one after a boot. `world_wide_id`, `serial` and `path` are
    `None` if the disk has none. `rotational` is `None` if the disk does not report whether it
    rotates. The host uses a disk if it has file systems, swap or volumes on it; `in_use` is `None`
    if the reader cannot know that.
    """

    name: str
    size_bytes: int
    rotational: bool | None = None
    world_wide_id: str | None = None
    serial: str | None = None
    path: str | None = None
    in_use: bool | None = None


@dataclass(frozen=True, slots=True)
class FpgaRegion:
    """A region of an FPGA that is no PCI device; `name` is that of its device."""

    name: str


@dataclass(frozen=True, slots=True)
class Tpm:
    """A TPM that is no PCI device; `name` is that of its device, and `version` 1 or 2."""

    name: str
    version: int | None = None


class DeviceKind(StrEnum):
    """The kinds of devices that have providers of their own."""

    PCI = "pci"
    DISK = "disk"
    FPGA = "fpga"
    TPM = "tpm"


@dataclass(frozen=True, slots=True)
class UnreadDevices:
    """Devices that may exist, but that the reader cannot read: whole kinds, or PCI functions."""

    kinds: frozenset[DeviceKind] = frozenset()
    pci_addresses: frozenset[str] = frozenset()

    def with_kinds(self, kinds: Iterable[DeviceKind]) -> UnreadDevices:
        """These devices, and all of some further kinds."""
        return UnreadDevices(self.kinds | frozenset(kinds), self.pci_addresses)


@dataclass(frozen=True, slots=True)
class Machine:
    """A whole machine. It has at least one NUMA node, and the numbers of its nodes are unique."""

    cpu: Cpu
    nodes: tuple[NumaNode, ...]
    pci_functions: tuple[PciFunction, ...] = ()
    disks: tuple[Disk, ...] = ()
    fpga_regions: tuple[FpgaRegion, ...] = ()
    tpms: tuple[Tpm, ...] = ()
    unread: UnreadDevices = UnreadDevices()
