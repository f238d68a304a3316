"""The inventories and traits of PCI functions."""

from __future__ import annotations

from dataclasses import replace

import pytest

from roost.client.drivers.machine.options import Selection
from roost.client.drivers.machine.pci_offers import PciOffer, is_endpoint, pci_offer, pci_traits
from roost.client.drivers.machine.values import MediatedType, PciFunction

GPU, VGA, ACCELERATOR, NIC = 0x030200, 0x030000, 0x120000, 0x020000


def function(
    class_code: int = NIC,
    driver: str | None = None,
    *,
    iommu: bool = True,
    console: bool = False,
) -> PciFunction:
    return PciFunction(
        "0000:01:00.0",
        class_code,
        vendor="10de",
        product="20b5",
        driver=driver,
        has_iommu_group=iommu,
        is_console=console,
    )


def is_offered(candidate: PciFunction) -> bool:
    offer = pci_offer(candidate)
    assert offer is not None
    return offer.reserved == 0


@pytest.mark.parametrize(
    "driver",
    ["vfio-pci", "mlx5_vfio_pci", "nvgrace_gpu_vfio_pci", "pci-stub", "pciback", "xen-pciback"],
)
def test_a_function_that_is_bound_for_guests_is_offered(driver: str) -> None:
    assert is_offered(function(NIC, driver))
    assert is_offered(function(NIC, driver, iommu=False))


@pytest.mark.parametrize("driver", ["mlx5_core", "nvme", "virtio-pci", "nvidia"])
def test_a_function_that_the_host_uses_is_reserved(driver: str) -> None:
    assert not is_offered(function(NIC, driver))


def test_a_function_without_driver_is_offered_only_with_an_iommu() -> None:
    assert is_offered(function(NIC))
    assert not is_offered(function(NIC, iommu=False))


@pytest.mark.parametrize("class_code", [GPU, VGA, 0x038000, ACCELERATOR])
@pytest.mark.parametrize("driver", ["nvidia", "amdgpu", "i915", "xe", "habanalabs"])
def test_a_gpu_with_a_driver_for_workloads_is_offered(class_code: int, driver: str) -> None:
    assert is_offered(function(class_code, driver))
    assert is_offered(function(class_code, driver, iommu=False))


@pytest.mark.parametrize("driver", ["nouveau", "ast", "mgag200"])
def test_a_gpu_with_a_driver_of_the_host_is_reserved(driver: str) -> None:
    assert not is_offered(function(VGA, driver))


def test_the_console_is_reserved_unless_it_is_bound_for_guests() -> None:
    assert not is_offered(function(VGA, "amdgpu", console=True))
    assert is_offered(function(VGA, "vfio-pci", console=True))


@pytest.mark.parametrize(
    ("class_code", "expected"),
    [(GPU, True), (NIC, True), (0x010802, True), (0xFFFF00, True), (0x0C0330, True)]
    + [(code, False) for code in (0x050000, 0x060000, 0x060400, 0x088000, 0x0C0500, 0x110100)],
)
def test_parts_of_the_board_are_not_endpoints(class_code: int, expected: bool) -> None:
    assert is_endpoint(function(class_code)) is expected


def test_a_function_with_virtual_functions_offers_these() -> None:
    nic = PciFunction(
        "0000:01:00.0", NIC, "15b3", "101d", virtual_functions_possible=16, virtual_functions=8
    )
    assert pci_offer(nic) == PciOffer("SRIOV_NET_VF", 8)
    crypto = PciFunction(
        "0000:01:00.0", 0x0B4000, "8086", "4940", virtual_functions=3, virtual_product="4941"
    )
    assert pci_offer(crypto) == PciOffer("CUSTOM_PCI_8086_4941", 3)
    assert pci_traits(crypto) == {"CUSTOM_PCI_VENDOR_8086", "CUSTOM_QAT"}


def test_a_trait_names_the_product_if_the_resource_class_does_not() -> None:
    assert pci_traits(function(GPU)) == {"CUSTOM_PCI_VENDOR_10DE", "CUSTOM_PCI_10DE_20B5"}
    assert pci_traits(function(NIC)) == {"CUSTOM_PCI_VENDOR_10DE"}


def test_an_fpga_keeps_its_class_when_it_is_bound_for_guests() -> None:
    by_host = PciFunction(
        "0000:3b:00.0", ACCELERATOR, "8086", "bcce", driver="dfl-pci", has_fpga_region=True
    )
    by_guest = replace(by_host, driver="vfio-pci", has_fpga_region=False)
    assert pci_offer(by_host) == pci_offer(by_guest) == PciOffer("FPGA", 1)


def test_parts_of_a_gpu_replace_the_gpu() -> None:
    gpu = function(GPU, "nvidia")
    types = (MediatedType("nvidia-1", available=3, existing=1), MediatedType("nvidia-2"))
    assert pci_offer(gpu) == PciOffer("PGPU", 1)
    assert pci_offer(replace(gpu, mig_instances=7)) == PciOffer("CUSTOM_NVIDIA_MIG", 7)
    divided = replace(gpu, mig_instances=7, mediated_types=types)
    assert pci_offer(divided) == PciOffer("VGPU", 4)
    accelerator = replace(function(ACCELERATOR, "idxd"), mediated_types=types)
    assert pci_offer(accelerator) == PciOffer("CUSTOM_MDEV_NVIDIA_1", 4)


def test_a_gpu_with_devices_of_two_types_is_not_divided_without_a_choice() -> None:
    types = (MediatedType("nvidia-1", existing=1), MediatedType("nvidia-2", existing=1))
    gpu = replace(function(GPU, "nvidia"), mediated_types=types)
    assert pci_offer(gpu) == PciOffer("PGPU", 1)
    assert pci_offer(gpu, Selection(("nvidia-2",))) == PciOffer("VGPU", 1)
