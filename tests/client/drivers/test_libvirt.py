"""The libvirt driver on XML that follows the documents of libvirt."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import pytest

from roost.client.drivers.libvirt import LibvirtDriver
from roost.client.drivers.machine.options import Selection
from roost.client.drivers.machine.values import MachineUnreadable
from roost.client.drivers.registry import load_driver
from roost.client.errors import NotConfigured
from support.client.captured_machines import drawing
from support.stubs.libvirt_stub import NO_NODE_DEVICE, Connection, LibvirtError, LibvirtStub

CAPABILITIES = """
<capabilities>
  <host>
    <cpu>
      <arch>x86_64</arch>
      <model>Skylake-Server-IBRS</model>
      <vendor>Intel</vendor>
      <feature name='vmx'/>
      <feature name='md-clear'/>
      <feature name='pdpe1gb'/>
    </cpu>
    <topology>
      <cells num='2'>
        <cell id='1'>
          <memory unit='GiB'>16</memory>
          <pages unit='KiB' size='4'>4194304</pages>
          <pages unit='KiB' size='2048'>0</pages>
          <cpus num='2'>
            <cpu id='2' socket_id='1' die_id='0' core_id='0' siblings='2-3'/>
            <cpu id='3' socket_id='1' die_id='0' core_id='0' siblings='2-3'/>
          </cpus>
        </cell>
        <cell id='0'>
          <memory unit='KiB'>16248832</memory>
          <pages unit='KiB' size='4'>3537920</pages>
          <pages unit='KiB' size='2048'>512</pages>
          <pages unit='KiB' size='1048576'>1</pages>
          <cpus num='2'>
            <cpu id='0' socket_id='0' die_id='0' core_id='0' siblings='0-1'/>
            <cpu id='1' socket_id='0' die_id='0' core_id='0' siblings='0-1'/>
          </cpus>
        </cell>
      </cells>
    </topology>
  </host>
</capabilities>
"""

NO_CELLS = "<capabilities><host><cpu><arch>aarch64</arch></cpu></host></capabilities>"

# What the model stands for comes only with this.
EXPANDED_CPU = """
<cpu mode='custom' match='exact'>
  <model fallback='forbid'>Skylake-Server-IBRS</model>
  <feature policy='require' name='sse4.1'/>
  <feature policy='require' name='avx512f'/>
  <feature policy='require' name='avx512vbmi2'/>
  <feature policy='require' name='avx512-vpopcntdq'/>
  <feature policy='require' name='pclmuldq'/>
  <feature policy='require' name='spec-ctrl'/>
</cpu>
"""


def pci(
    bus: int, function: int, class_code: str, ids: str, *more: str, driver: str | None = None
) -> str:
    """A PCI function with ids as `vendor:product`, and further elements of its capability."""
    vendor, product = ids.split(":")
    bound = "" if driver is None else f"<driver><name>{driver}</name></driver>"
    return f"""
        <device>
          <name>pci_0000_{bus:02x}_00_{function}</name>
          <path>/sys/devices/pci0000:00/0000:{bus:02x}:00.{function}</path>
          <parent>computer</parent>
          {bound}
          <capability type='pci'>
            <class>{class_code}</class>
            <domain>0</domain><bus>{bus}</bus><slot>0</slot><function>{function}</function>
            <product id='0x{product}'>Product</product>
            <vendor id='0x{vendor}'>Vendor</vendor>
            {"".join(more)}
          </capability>
        </device>"""


def address(bus: int, function: int) -> str:
    return f"<address domain='0x0000' bus='0x{bus:02x}' slot='0x00' function='0x{function}'/>"


def virtual_functions(bus: int, *functions: int) -> str:
    listed = "".join(address(bus, function) for function in functions)
    return f"<capability type='virt_functions' maxCount='8'>{listed}</capability>"


def physical_function(bus: int) -> str:
    return f"<capability type='phys_function'>{address(bus, 0)}</capability>"


IOMMU = "<iommuGroup number='15'/>"


WWN = "/dev/disk/by-id/wwn-0x5000c500a1b2c3d4"


def storage(
    block: str, *more: str, drive_type: str = "disk", path: str = "", links: Sequence[str] = ()
) -> str:
    devnodes = "".join(f"<devnode type='link'>{link}</devnode>" for link in links)
    return f"""
        <device>
          <name>block_{block}</name>
          <path>{path}</path>
          {devnodes}
          <capability type='storage'>
            <block>/dev/{block}</block><bus>scsi</bus><drive_type>{drive_type}</drive_type>
            {"".join(more)}
          </capability>
        </device>"""


DEVICES = [
    pci(0x00, 0, "0x060000", "8086:2020"),
    pci(0x9B, 0, "0x020000", "15b3:101d", virtual_functions(0x9B, 2, 3), "<numa node='1'/>"),
    pci(0x9B, 2, "0x020000", "15b3:101e", physical_function(0x9B), driver="mlx5_core"),
    pci(0x9B, 3, "0x020000", "15b3:101e", physical_function(0x9B), driver="mlx5_core"),
    pci(0x6B, 0, "0x0b4000", "8086:4940", virtual_functions(0x6B, 1), "<numa node='0'/>"),
    pci(0x6B, 1, "0x0b4000", "8086:4941", physical_function(0x6B)),
    pci(0x17, 0, "0x030200", "10de:2330", IOMMU, "<numa node='0'/>", driver="vfio-pci"),
    pci(0x18, 0, "0x020000", "15b3:101d", virtual_functions(0x18), IOMMU, driver="mlx5_core"),
    pci(0x19, 0, "0x120000", "10ee:5000", IOMMU),
    pci(0x1A, 0, "0x030000", "1a03:2000", IOMMU, driver="ast"),
    pci(0x1B, 0, "0x030000", "10de:1eb8", IOMMU, driver="nvidia"),
    storage("sda", "<size>960197124096</size>", links=[WWN]),
    storage("sr0", drive_type="cdrom"),
    storage("sdb", "<capability type='removable'><media_size>1</media_size></capability>"),
]


@pytest.fixture
def libvirt(monkeypatch: pytest.MonkeyPatch) -> LibvirtStub:
    stub = LibvirtStub([Connection(CAPABILITIES, DEVICES, EXPANDED_CPU)])
    monkeypatch.setitem(sys.modules, "libvirt", stub)
    return stub


def test_the_driver_declares_the_whole_tree_of_a_host(libvirt: LibvirtStub) -> None:
    assert drawing(LibvirtDriver().declare("m1")) == "\n".join(
        [
            "m1",
            ": HW_ARCH_X86_64 HW_CPU_HYPERTHREADING HW_CPU_X86_AVX512F HW_CPU_X86_AVX512VBMI2",
            ": HW_CPU_X86_AVX512VPOPCNTDQ HW_CPU_X86_CLMUL HW_CPU_X86_INTEL_MD_CLEAR "
            "HW_CPU_X86_INTEL_SPEC_CTRL",
            ": HW_CPU_X86_INTEL_VMX HW_CPU_X86_PDPE1GB HW_CPU_X86_SSE41 HW_CPU_X86_VMX",
            "    m1_numa0  VCPU 2, MEMORY_MB 15868 reserved 2560, "
            "CUSTOM_HUGEPAGES_2048KB 512, CUSTOM_HUGEPAGES_1048576KB 1",
            "    : HW_NUMA_ROOT",
            "        m1_pci_0000:17:00.0  PGPU 1",
            "        : CUSTOM_PCI_10DE_2330 CUSTOM_PCI_VENDOR_10DE",
            "        m1_pci_0000:6b:00.0  CUSTOM_PCI_8086_4941 1",
            "        : CUSTOM_PCI_VENDOR_8086 CUSTOM_QAT",
            "    m1_numa1  VCPU 2, MEMORY_MB 16384",
            "    : HW_NUMA_ROOT",
            "        m1_pci_0000:9b:00.0  SRIOV_NET_VF 2",
            "        : CUSTOM_PCI_15B3_101D CUSTOM_PCI_VENDOR_15B3 HW_NIC_SRIOV",
            # libvirt does not report whether the host runs on it.
            "    m1_disk_wwn-0x5000c500a1b2c3d4  DISK_GB 894 reserved 894",
            "    m1_pci_0000:18:00.0  CUSTOM_PCI_15B3_101D 1 reserved 1",
            "    : CUSTOM_PCI_VENDOR_15B3 HW_NIC_SRIOV",
            "    m1_pci_0000:19:00.0  FPGA 1",
            "    : CUSTOM_PCI_10EE_5000 CUSTOM_PCI_VENDOR_10EE",
            "    m1_pci_0000:1a:00.0  PGPU 1 reserved 1",
            "    : CUSTOM_PCI_1A03_2000 CUSTOM_PCI_VENDOR_1A03",
            # libvirt does not report whether this one shows the console.
            "    m1_pci_0000:1b:00.0  PGPU 1 reserved 1",
            "    : CUSTOM_PCI_10DE_1EB8 CUSTOM_PCI_VENDOR_10DE",
            "",
        ]
    )
    assert libvirt.opened == ["qemu:///system"]


def test_the_driver_takes_a_uri_and_the_options_of_a_machine(libvirt: LibvirtStub) -> None:
    given = {"uri": "qemu+ssh://host/system", "reserved_memory_mb": "0", "pci": "!*"}
    driver: Any = load_driver("libvirt", given)
    (_, numa, *_) = driver.declare("m1").providers
    assert numa.inventories["MEMORY_MB"]["reserved"] == 2048
    assert libvirt.opened == ["qemu+ssh://host/system"]
    with pytest.raises(NotConfigured, match="Driver libvirt has no option 'root'; it takes cpu_"):
        load_driver("libvirt", {"root": "/"})


@pytest.mark.usefixtures("libvirt")
@pytest.mark.parametrize(("offered", "reserved"), [("sda", 0), ("wwn-*", 0), ("sdx", 894)])
def test_the_operator_names_the_disks_that_the_host_does_not_use(
    offered: str, reserved: int
) -> None:
    providers = LibvirtDriver(offer=Selection((offered,))).declare("m1").providers
    (disk,) = (provider for provider in providers if "DISK_GB" in provider.inventories)
    assert disk.inventories["DISK_GB"]["reserved"] == reserved


def test_a_host_without_cells_is_one_node(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "libvirt", LibvirtStub([Connection(NO_CELLS)]))
    assert drawing(LibvirtDriver().declare("m1")) == (
        "m1\n"
        ": HW_ARCH_AARCH64\n"
        "    m1_numa0  VCPU 4, MEMORY_MB 4096 reserved 512\n"
        "    : HW_NUMA_ROOT\n"
    )


def test_each_declaration_opens_and_closes_a_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    first, last = Connection(NO_CELLS), Connection(NO_CELLS)
    stub = LibvirtStub([first, LibvirtError("Broken pipe"), last])
    monkeypatch.setitem(sys.modules, "libvirt", stub)
    driver = LibvirtDriver()
    driver.declare("m1")
    with pytest.raises(MachineUnreadable, match="qemu:///system does not answer: Broken pipe"):
        driver.declare("m1")
    driver.declare("m1")
    assert first.closed
    assert last.closed


@pytest.mark.parametrize(
    "unexpected",
    [
        pci(0x20, 0, "GPU", "10de:2330"),
        pci(0x20, 0, "0x030200", "10de:zzzz"),
        pci(0x20, 0, "0x030200", "10de:2330").replace("<slot>0</slot>", ""),
        pci(0x20, 0, "0x030200", "10de:2330").replace("<vendor ", "<maker ").replace("</v", "</m"),
        pci(0x20, 0, "0x030200", "10de:2330", "<numa/>"),
        pci(0x20, 0, "0x030200", "10de:2330").replace("</device>", ""),
        storage("sdx"),
        "<device/",
    ],
)
def test_an_unexpected_device_is_unread_with_a_warning(
    unexpected: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    good = pci(0x17, 0, "0x030200", "10de:2330", driver="vfio-pci")
    stub = LibvirtStub([Connection(NO_CELLS, [unexpected, good])])
    monkeypatch.setitem(sys.modules, "libvirt", stub)
    declaration = LibvirtDriver().declare("m1")
    names = [provider.name for provider in declaration.providers]
    assert names == ["m1", "m1_numa0", "m1_pci_0000:17:00.0"]
    assert {record.levelname for record in caplog.records} == {"WARNING"}
    is_disk = "block_sdx" in unexpected
    is_nameless = unexpected == "<device/"
    assert declaration.unread.covers("m1_disk_wwn-0x5") is (is_disk or is_nameless)
    assert declaration.unread.covers("m1_pci_0000:20:00.0") is not is_disk
    assert declaration.unread.covers("m1_pci_0000:21:00.0") is is_nameless


def test_a_function_whose_virtual_functions_libvirt_does_not_describe_is_unread(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    nic = pci(0x9B, 0, "0x020000", "15b3:101d", virtual_functions(0x9B, 2))
    monkeypatch.setitem(sys.modules, "libvirt", LibvirtStub([Connection(NO_CELLS, [nic])]))
    declaration = LibvirtDriver().declare("m1")
    assert [provider.name for provider in declaration.providers] == ["m1", "m1_numa0"]
    assert declaration.unread.names == {"m1_pci_0000:9b:00.0"}


SIZE = "<size>960197124096</size>"


@pytest.mark.parametrize(
    ("device", "disk_id"),
    [
        (storage("sda", SIZE, "<serial>S1</serial>", links=[WWN]), "wwn-0x5000c500a1b2c3d4"),
        (
            storage("nvme0n1", SIZE, links=["/dev/disk/by-id/nvme-eui.0025385b81b0a3f7"]),
            "nvme-eui.0025385b81b0a3f7",
        ),
        (storage("vda", SIZE, "<serial>my disk</serial>"), "serial-my_disk"),
        (
            storage("sda", SIZE, links=["/dev/disk/by-path/pci-0000:00:17.0-ata-3"]),
            "path-pci-0000:00:17.0-ata-3",
        ),
        (
            storage("vda", SIZE, path="/sys/devices/pci0000:00/0000:00:02.0/virtio1/block/vda"),
            "path-pci-0000:00:02.0",
        ),
        (
            storage(
                "nvme1n2", SIZE, path="/sys/devices/pci0000:00/0000:02:00.0/nvme/nvme1/nvme1n2"
            ),
            "path-pci-0000:02:00.0-nvme-2",
        ),
        (storage("sda", SIZE), "kernel-sda"),
    ],
)
def test_disks_have_the_names_that_the_linux_driver_gives_them(
    device: str, disk_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "libvirt", LibvirtStub([Connection(NO_CELLS, [device])]))
    assert LibvirtDriver().declare("m1").providers[2].name == f"m1_disk_{disk_id}"


def test_the_driver_leaves_out_a_device_that_vanishes_meanwhile(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    good = pci(0x17, 0, "0x030200", "10de:2330", driver="vfio-pci")
    gone = LibvirtError("Node device not found", NO_NODE_DEVICE)
    monkeypatch.setitem(sys.modules, "libvirt", LibvirtStub([Connection(NO_CELLS, [gone, good])]))
    providers = LibvirtDriver().declare("m1").providers
    assert [provider.name for provider in providers] == ["m1", "m1_numa0", "m1_pci_0000:17:00.0"]
    assert "the_device" in caplog.text


def test_a_broken_connection_does_not_pass_for_a_host_without_devices(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    connection = Connection(NO_CELLS, [LibvirtError("Broken pipe")])
    monkeypatch.setitem(sys.modules, "libvirt", LibvirtStub([connection]))
    with pytest.raises(MachineUnreadable, match="Broken pipe"):
        LibvirtDriver().declare("m1")
    assert connection.closed


@pytest.mark.parametrize(
    "capabilities",
    [
        "no xml",
        "<capabilities/>",
        "<capabilities><host/></capabilities>",
        CAPABILITIES.replace("<cell id='0'>", "<cell>"),
        CAPABILITIES.replace("'GiB'", "'parsec'"),
        CAPABILITIES.replace("16248832", "much"),
    ],
)
def test_unexpected_capabilities_are_an_error(
    capabilities: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "libvirt", LibvirtStub([Connection(capabilities)]))
    with pytest.raises(MachineUnreadable, match="libvirt"):
        LibvirtDriver().declare("m1")


def test_an_error_names_the_package_with_the_missing_binding(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "libvirt", None)
    with pytest.raises(NotConfigured, match=r"install roost\[libvirt\].*python3-libvirt"):
        LibvirtDriver()
