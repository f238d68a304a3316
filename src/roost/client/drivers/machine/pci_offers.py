"""What a PCI function is to others: nothing, a GPU, a device, or the virtual functions of one."""

from __future__ import annotations

from dataclasses import dataclass

from roost.client.drivers.machine.values import PciFunction

# Base classes and subclasses of the PCI Code and ID Assignment Specification.
_NETWORK = 0x02
_ACCELERATOR = 0x12
_GPUS = frozenset({0x0300, 0x0302, 0x0380})
_PARTS_OF_THE_BOARD = frozenset({0x05, 0x06, 0x08})  # memory, bridges, timers and the like
_FURTHER_PARTS = frozenset({0x0C05, 0x1101})  # SMBus, performance counters

# Drivers that only hold a function for a guest.
_HOLDING_DRIVERS = frozenset({"pci-stub", "pciback", "xen-pciback"})
# Drivers through which workloads use a GPU or an accelerator; the host itself has no need of it.
_WORKLOAD_DRIVERS = frozenset({"amdgpu", "habanalabs", "i915", "nvidia", "xe"})


@dataclass(frozen=True, slots=True)
class PciOffer:
    """So many of a class, of which some or all are not to be had."""

    resource_class: str
    total: int
    reserved: int = 0


def is_endpoint(function: PciFunction) -> bool:
    """Whether it does something for somebody, other than holding the machine together."""
    subclass = function.class_code >> 8
    return subclass >> 8 not in _PARTS_OF_THE_BOARD and subclass not in _FURTHER_PARTS


def pci_offer(function: PciFunction) -> PciOffer | None:
    """What a function offers: its virtual functions if it has any, otherwise itself."""
    if not function.virtual_functions:
        reserved = 0 if _can_be_given_away(function) else 1
        return PciOffer(_own_class(function), total=1, reserved=reserved)
    if _is_network(function):
        return PciOffer("SRIOV_NET_VF", function.virtual_functions)
    if function.virtual_product is None:
        return None
    name = _product_name(function.vendor, function.virtual_product)
    return PciOffer(name, function.virtual_functions)


def pci_traits(function: PciFunction) -> frozenset[str]:
    """Whose it is, which one if the class of its inventory does not say it, and what it can do."""
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


def _can_be_given_away(function: PciFunction) -> bool:
    """Whether the host has no use of its own for a function, and somebody else can have one."""
    driver = function.driver
    if driver is None:
        # Whoever wants it must bind it to vfio-pci first, which needs an IOMMU.
        return function.has_iommu_group
    # Besides vfio-pci there are variants for some devices, such as mlx5_vfio_pci.
    if driver in _HOLDING_DRIVERS or driver.replace("_", "-").endswith("vfio-pci"):
        return True
    is_for_workloads = _is_gpu(function) or function.class_code >> 16 == _ACCELERATOR
    return is_for_workloads and driver in _WORKLOAD_DRIVERS and not function.is_console
