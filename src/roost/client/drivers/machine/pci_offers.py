"""The inventory and the traits of a PCI function."""

from __future__ import annotations

from dataclasses import dataclass

from roost.client.drivers.machine.device_names import custom_name
from roost.client.drivers.machine.options import Selection
from roost.client.drivers.machine.values import MediatedType, PciFunction

# Base classes and subclasses of the PCI Code and ID Assignment Specification.
_NETWORK = 0x02
_ACCELERATOR = 0x12
_GPUS = frozenset({0x0300, 0x0302, 0x0380})
_PARTS_OF_THE_BOARD = frozenset({0x05, 0x06, 0x08})  # memory, bridges, timers
_FURTHER_PARTS = frozenset({0x0C05, 0x1101})  # SMBus, performance counters

_INTEL = "8086"
_AMD = "1002"  # GPUs for computing only are accelerators by their class
_FPGA_VENDORS = frozenset({"10ee", "1172"})  # Xilinx, Altera
# Cards of Intel; a function that is bound for guests shows no region.
_FPGA_PRODUCTS = frozenset({"09c4", "0b2b", "0b2c", "0b30", "0b31", "bcbd", "bcce", "bccf"})
# QuickAssist, by vendor and product: the functions, and their virtual functions.
_QAT = frozenset(
    f"{_INTEL}:{product}"
    for product in (
        *("0435", "0443", "18a0", "18a1", "19e2", "19e3", "37c8", "37c9", "6f54", "6f55"),
        *("4940", "4941", "4942", "4943", "4944", "4945", "4946", "4947", "4948", "4949"),
    )
)

# Drivers that reserve a function for a guest.
_HOLDING_DRIVERS = frozenset({"pci-stub", "pciback", "xen-pciback"})
# Drivers through which workloads use a GPU or an accelerator that the host itself does not need.
_WORKLOAD_DRIVERS = frozenset(
    {"amdgpu", "dfl-pci", "habanalabs", "i915", "nvidia", "xe", "xocl"},
)


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


def pci_offer(function: PciFunction, mdev_types: Selection | None = None) -> PciOffer:
    """What a function offers: its parts if it is divided into some, otherwise itself.

    The parts are mediated devices, instances of a GPU, or virtual functions.
    """
    if mediated := _mediated_type(function, mdev_types):
        name = "VGPU" if _is_gpu(function) else custom_name("MDEV", mediated.id)
        return PciOffer(name, mediated.total)
    if function.mig_instances:
        return PciOffer("CUSTOM_NVIDIA_MIG", function.mig_instances)
    if not function.virtual_functions:
        reserved = 0 if _is_available(function) else 1
        return PciOffer(_own_class(function), total=1, reserved=reserved)
    return PciOffer(_virtual_class(function), function.virtual_functions)


def pci_traits(function: PciFunction, mdev_types: Selection | None = None) -> frozenset[str]:
    """The vendor, the product if the resource class does not name it, and what it is capable of."""
    traits = {f"CUSTOM_PCI_VENDOR_{function.vendor.upper()}"}
    if not pci_offer(function, mdev_types).resource_class.startswith("CUSTOM_PCI_"):
        traits.add(_product_name(function.vendor, function.product))
    if mediated := _mediated_type(function, mdev_types):
        traits.add(custom_name("MDEV_TYPE", mediated.id))
    if _is_network(function) and function.virtual_functions_possible:
        traits.add("HW_NIC_SRIOV")
    if function.rdma_links:
        traits.add("HW_NIC_OFFLOAD_RDMA")
    traits |= {custom_name("RDMA_LINK", link) for link in function.rdma_links}
    if f"{function.vendor}:{function.product}" in _QAT:
        traits.add("CUSTOM_QAT")
    if function.has_tpm:
        traits.add("CUSTOM_TPM")
    if function.compute_partition:
        traits.add(custom_name("GPU_COMPUTE_PARTITION", function.compute_partition))
    return frozenset(traits)


def _mediated_type(function: PciFunction, wanted: Selection | None) -> MediatedType | None:
    """The type of mediated devices that the function offers: all its types share the function.

    Without a choice of the operator it is the only type that has devices.
    """
    if wanted is not None:
        chosen = [each for each in function.mediated_types if wanted.includes(each.id, each.name)]
        return chosen[0] if chosen else None
    existing = [each for each in function.mediated_types if each.existing]
    return existing[0] if len(existing) == 1 else None


def _own_class(function: PciFunction) -> str:
    if _is_gpu(function):
        return "PGPU"
    if _is_fpga(function):
        return "FPGA"
    return _product_name(function.vendor, function.product)


def _virtual_class(function: PciFunction) -> str:
    if _is_network(function):
        return "SRIOV_NET_VF"
    if _is_fpga(function):
        return "FPGA"
    return _product_name(function.vendor, function.virtual_product or function.product)


def _product_name(vendor: str, product: str) -> str:
    return f"CUSTOM_PCI_{vendor}_{product}".upper()


def _is_gpu(function: PciFunction) -> bool:
    return function.class_code >> 8 in _GPUS or (
        _is_accelerator(function) and function.vendor == _AMD
    )


def _is_fpga(function: PciFunction) -> bool:
    is_known = function.vendor in _FPGA_VENDORS or (
        function.vendor == _INTEL and function.product in _FPGA_PRODUCTS
    )
    return function.has_fpga_region or (_is_accelerator(function) and is_known)


def _is_accelerator(function: PciFunction) -> bool:
    return function.class_code >> 16 == _ACCELERATOR


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
    is_for_workloads = _is_gpu(function) or _is_fpga(function) or _is_accelerator(function)
    return is_for_workloads and driver in _WORKLOAD_DRIVERS and not function.is_console
