"""A machine as its readers see it: CPUs, NUMA nodes, PCI functions and disks, without judgement."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Cpu:
    """What all CPUs of the machine have in common.

    `flags` are spelt as Linux spells them in `/proc/cpuinfo`; `vendor` is what the CPU calls its
    maker, and empty where CPUs do not say.
    """

    architecture: str
    vendor: str = ""
    flags: frozenset[str] = frozenset()
    hyperthreading: bool = False


@dataclass(frozen=True, slots=True)
class HugepagePool:
    """Huge pages of one size that were set aside on a NUMA node."""

    size_kib: int
    pages: int

    @property
    def memory_kib(self) -> int:
        """What the pool takes away from ordinary memory."""
        return self.size_kib * self.pages


@dataclass(frozen=True, slots=True)
class NumaNode:
    """A NUMA node with its online logical CPUs; isolated are those the kernel leaves alone."""

    number: int
    cpus: frozenset[int] = frozenset()
    isolated_cpus: frozenset[int] = frozenset()
    memory_kib: int = 0
    hugepages: tuple[HugepagePool, ...] = ()


@dataclass(frozen=True, slots=True)
class PciFunction:
    """A PCI function that is no virtual function; the virtual ones are counted by theirs.

    `vendor`, `product` and `virtual_product` are four hexadecimal digits in lower case,
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
    """A whole disk that is fixed to the machine; nobody knows of some whether they rotate."""

    name: str
    size_bytes: int
    rotational: bool | None = None


@dataclass(frozen=True, slots=True)
class Machine:
    """All of it. There is at least one NUMA node, and numbers of nodes do not repeat."""

    cpu: Cpu
    nodes: tuple[NumaNode, ...]
    pci_functions: tuple[PciFunction, ...] = ()
    disks: tuple[Disk, ...] = ()
