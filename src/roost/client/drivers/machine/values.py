"""A machine as a reader finds it: CPUs, NUMA nodes, PCI functions and disks."""

from __future__ import annotations

from dataclasses import dataclass

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
class PciFunction:
    """A physical PCI function, with the number of its virtual functions.

    `vendor`, `product` and `virtual_product` are four hexadecimal digits in lower case.
    `class_code` is the whole code of 24 bits: base class, subclass, programming interface.
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


@dataclass(frozen=True, slots=True)
class Disk:
    """A whole disk that is fixed to the machine.

    `rotational` is `None` if the disk does not report whether it rotates.
    """

    name: str
    size_bytes: int
    rotational: bool | None = None


@dataclass(frozen=True, slots=True)
class Machine:
    """A whole machine. It has at least one NUMA node, and the numbers of its nodes are unique."""

    cpu: Cpu
    nodes: tuple[NumaNode, ...]
    pci_functions: tuple[PciFunction, ...] = ()
    disks: tuple[Disk, ...] = ()
