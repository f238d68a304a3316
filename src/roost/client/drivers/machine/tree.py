"""The tree of providers of a machine: one pure function for every reader."""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil

from roost.client.drivers.machine.cpu_traits import cpu_traits
from roost.client.drivers.machine.device_names import (
    device_name,
    disk_ids,
    every_id,
    readable_id,
    unread_providers,
)
from roost.client.drivers.machine.options import MachineOptions
from roost.client.drivers.machine.pci_offers import is_endpoint, pci_offer, pci_traits
from roost.client.drivers.machine.values import DeviceKind, Machine, NumaNode, PciFunction
from roost.model.trees.declaration import Declaration, DeclaredProvider, InventoryFields

_KIB_OF_MB = 1024
_BYTES_OF_GB = 1024**3


def declare_machine(machine: Machine, nodename: str, options: MachineOptions) -> Declaration:
    """The root, below it NUMA nodes and devices, below the nodes the PCI functions near them.

    The tree leaves out a node without CPUs and memory, and a disk of less than a gigabyte: such
    a provider would have no inventory.
    """
    root = DeclaredProvider(nodename, traits=cpu_traits(machine.cpu))
    nodes = [node for node in machine.nodes if node.cpus or node.memory_kib]
    return Declaration(
        (
            root,
            *_numa_providers(nodes, nodename, options),
            *_disk_providers(machine, nodename, options),
            *_pci_providers(machine.pci_functions, nodes, nodename, options),
            *_class_providers(machine, nodename, options),
        ),
        unread_providers(nodename, machine.unread),
    )


def _numa_providers(
    nodes: list[NumaNode], nodename: str, options: MachineOptions
) -> Iterator[DeclaredProvider]:
    """The NUMA nodes. The host's reserve comes out of the first node that has the resource."""
    with_vcpus = [node.number for node in nodes if node.cpus - node.isolated_cpus]
    with_memory = [node.number for node in nodes if node.memory_kib]
    for node in nodes:
        keeps_cpus = with_vcpus[:1] == [node.number]
        keeps_memory = with_memory[:1] == [node.number]
        inventories = _cpu_inventories(
            node, options.reserved_cpus if keeps_cpus else 0, options.cpu_allocation_ratio
        ) | _memory_inventories(
            node, options.reserved_memory_mb if keeps_memory else 0, options.ram_allocation_ratio
        )
        yield DeclaredProvider(
            _numa_name(nodename, node),
            parent=nodename,
            inventories=inventories,
            traits=frozenset({"HW_NUMA_ROOT"}),
        )


def _numa_name(nodename: str, node: NumaNode) -> str:
    return f"{nodename}_numa{node.number}"


def _cpu_inventories(
    node: NumaNode, reserved: int, ratio: float | None
) -> dict[str, InventoryFields]:
    inventories = {}
    if shared := len(node.cpus - node.isolated_cpus):
        inventories["VCPU"] = _inventory(shared, reserved=reserved, ratio=ratio)
    if dedicated := len(node.cpus & node.isolated_cpus):
        inventories["PCPU"] = _inventory(dedicated)
    return inventories


def _memory_inventories(
    node: NumaNode, reserved: int, ratio: float | None
) -> dict[str, InventoryFields]:
    """Ordinary memory and huge pages. Ordinary memory reserves what the huge pages offer."""
    in_hugepages = ceil(sum(pool.memory_kib for pool in node.hugepages) / _KIB_OF_MB)
    inventories = {}
    if total := node.memory_kib // _KIB_OF_MB:
        inventories["MEMORY_MB"] = _inventory(total, reserved=in_hugepages + reserved, ratio=ratio)
    for pool in node.hugepages:
        if pool.pages:
            inventories[f"CUSTOM_HUGEPAGES_{pool.size_kib}KB"] = _inventory(pool.pages)
    return inventories


def _inventory(total: int, *, reserved: int = 0, ratio: float | None = 1.0) -> InventoryFields:
    """The fields that the machine determines; the operator sets the remaining ones on the server.

    A `ratio` of `None` leaves the allocation ratio to the operator.

    >>> _inventory(8, reserved=9, ratio=None)
    {'total': 8, 'reserved': 8, 'max_unit': 8}
    """
    fields: dict[str, int | float] = {
        "total": total,
        "reserved": min(total, reserved),
        "max_unit": total,
    }
    return fields if ratio is None else fields | {"allocation_ratio": ratio}


def _disk_providers(
    machine: Machine, nodename: str, options: MachineOptions
) -> Iterator[DeclaredProvider]:
    kinds = {True: {"STORAGE_DISK_HDD"}, False: {"STORAGE_DISK_SSD"}, None: set[str]()}
    disks = [disk for disk in machine.disks if options.disks.includes(*every_id(disk))]
    ids = disk_ids(disks)
    has_unread = DeviceKind.DISK in machine.unread.kinds
    for disk in disks:
        total = disk.size_bytes // _BYTES_OF_GB
        found = ids[disk.name]
        # An unread disk may have the same id, and then both have other names.
        is_named = found.is_certain or not has_unread
        if total and is_named:
            # A disk of which it is not known may be the one that the host runs on.
            may_be_used = disk.in_use is not False
            is_kept = may_be_used and not options.offer.includes(*every_id(disk))
            yield DeclaredProvider(
                device_name(nodename, DeviceKind.DISK, found.text),
                parent=nodename,
                inventories={"DISK_GB": _inventory(total, reserved=total if is_kept else 0)},
                traits=frozenset(kinds[disk.rotational]),
            )


def _pci_providers(
    functions: tuple[PciFunction, ...],
    nodes: list[NumaNode],
    nodename: str,
    options: MachineOptions,
) -> Iterator[DeclaredProvider]:
    by_number = {node.number: _numa_name(nodename, node) for node in nodes}
    # On a machine with one node every function is near it, even if the firmware names no node.
    elsewhere = by_number[nodes[0].number] if len(nodes) == 1 else nodename
    for function in functions:
        kind = f"{function.vendor}:{function.product}"
        if not (is_endpoint(function) and options.pci.includes(function.address, kind)):
            continue
        near = by_number.get(function.numa_node) if function.numa_node is not None else None
        offer = pci_offer(function, options.mdev_types)
        is_offered = options.offer.includes(function.address, kind)
        reserved = 0 if is_offered else offer.reserved
        yield DeclaredProvider(
            device_name(nodename, DeviceKind.PCI, function.address),
            parent=near or elsewhere,
            # The host may have no room for any device of the type that the operator chose.
            inventories={offer.resource_class: _inventory(offer.total, reserved=reserved)}
            if offer.total
            else {},
            traits=pci_traits(function, options.mdev_types),
        )


def _class_providers(
    machine: Machine, nodename: str, options: MachineOptions
) -> Iterator[DeclaredProvider]:
    """The FPGA regions and TPMs that are no PCI devices. The host itself uses its TPMs."""
    for region in machine.fpga_regions:
        yield DeclaredProvider(
            device_name(nodename, DeviceKind.FPGA, readable_id(region.name)),
            parent=nodename,
            inventories={"FPGA": _inventory(1)},
        )
    for tpm in machine.tpms:
        version = {1: {"CUSTOM_TPM_1_2"}, 2: {"CUSTOM_TPM_2_0"}}.get(tpm.version or 0, set[str]())
        reserved = 0 if options.offer.includes(tpm.name) else 1
        yield DeclaredProvider(
            device_name(nodename, DeviceKind.TPM, readable_id(tpm.name)),
            parent=nodename,
            inventories={"CUSTOM_TPM": _inventory(1, reserved=reserved)},
            traits=frozenset(version),
        )
