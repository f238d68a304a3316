"""The inventory and the traits of a PCI function."""

from __future__ import annotations

from dataclasses import dataclass

from roost.client.drivers.machine.values import PciFunction

# Base classes and subclasses of the PCI Code and ID Assignment Specification.
_NETWORK = 0x02
_ACCELERATOR = 0x12
_GPUS = frozenset({0x0300, 0x0302, 0x0380})
_PARTS_OF_THE_BOARD = frozenset({0x05, 0x06, 0x08})  # memory, bridges, timers
_FURTHER_PARTS = frozenset({0x0C05, 0x1101})  # SMBus, performance counters

# Drivers that reserve a function for a guest.
_HOLDING_DRIVERS = frozenset({"pci-stub", "pciback", "xen-pciback"})
# Drivers through which workloads use a GPU or an accelerator that the host itself does not need.
_WORKLOAD_DRIVERS = frozenset({"amdgpu", "habanalabs", "i915", "nvidia", "xe"})


@dataclass(frozen=True, slots=True)
class PciOffer:
    """An inventory: a resource class, its total, and how many of it the host reserves."""

    resource_class: str
    total: int
    reserved: int = 0


def is_endpoint(function: PciFunction) -> bool:
    """Whether the function is a device for workloads, not a part of the board."""
    subclass = function.class_code >> 8
    return subclass >> 8 not in _PARTS_OF_THE_BOARD and subclass not in _FURTHER_PARTS


def pci_offer(function: PciFunction) -> PciOffer | None:
    """What a function offers: its virtual functions if it has any, otherwise itself.

    `None` if the product of the virtual functions is not known.
    """
    if not function.virtual_functions:
        reserved = 0 if _is_available(function) else 1
        return PciOffer(_own_class(function), total=1, reserved=reserved)
    if _is_network(function):
        return PciOffer("SRIOV_NET_VF", function.virtual_functions)
    if function.virtual_product is None:
        return None
    name = _product_name(function.vendor, function.virtual_product)
    return PciOffer(name, function.virtual_functions)


def pci_traits(function: PciFunction) -> frozenset[str]:
    """The vendor, the product if the resource class does not name it, and SR-IOV."""
    traits = {f"CUSTOM_PCI_VENDOR_{function.vendor.upper()}"}
    offer = pci_offer(function)
    if offer is None or not offer.resource_class.startswith("CUSTOM_"):
        traits.add(_product_name(function.vendor, function.product))
    if _is_network(function) and function.virtual_functions_possible:
        traits.add("HW_NIC_SRIOV")
    return frozenset(traits)


def _own_class(function: PciFunction) -> str:
    return "PGPU" if _is_gpu(function) else _product_name(function.vendor, function.product)


def _product_name(vendor: str, product: str) -> str:
    return f"CUSTOM_PCI_{vendor}_{product}".upper()


def _is_gpu(function: PciFunction) -> bool:
    return function.class_code >> 8 in _GPUS


def _is_network(function: PciFunction) -> bool:
    return function.class_code >> 16 == _NETWORK


def _is_available(function: PciFunction) -> bool:
    """Whether a guest or a workload can have the function, and the host does not use it."""
    driver = function.driver
    if driver is None:
        # A guest gets the function through vfio-pci, which needs an IOMMU.
        return function.has_iommu_group
    # Some devices have their own variant of vfio-pci, such as mlx5_vfio_pci.
    if driver in _HOLDING_DRIVERS or driver.replace("_", "-").endswith("vfio-pci"):
        return True
    is_for_workloads = _is_gpu(function) or function.class_code >> 16 == _ACCELERATOR
    return is_for_workloads and driver in _WORKLOAD_DRIVERS and not function.is_console
