"""The linux driver on machines with missing, unreadable or unexpected files."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path

import pytest

from roost.client.drivers.linux import LinuxDriver
from roost.client.drivers.linux.captures import Capture, CapturedPath, LineMark, parse_capture
from roost.client.drivers.linux.driver import read_machine
from roost.client.drivers.machine.options import MachineOptions
from roost.client.drivers.machine.tree import declare_machine
from roost.client.drivers.machine.values import MachineUnreadable
from roost.client.drivers.registry import load_driver
from roost.client.errors import NotConfigured
from roost.model.trees.declaration import Declaration, UnreadProviders
from support.client.captured_machines import captured, drawing, unpack

LINKS = ("/driver", "/physfn", "/iommu_group", "/virtfn0")

# The files that a container without sysfs sees.
CONTAINER = {
    "/proc/cpuinfo": "processor : 0\nprocessor : 1\nflags : fpu lm sse\nvendor_id : GenuineIntel",
    "/proc/meminfo": "MemTotal: 2097152 kB",
}
# A small machine without devices, on which nothing is mounted.
SMALL = CONTAINER | {
    "/sys/devices/system/cpu/online": "0-1",
    "/sys/bus/pci/devices/": "",
    "/sys/block/": "",
    "/proc/self/mountinfo": "",
}


def machine_of(files: Mapping[str, str]) -> Capture:
    """A capture with these files by path; paths that are links in sysfs become links."""
    return Capture(
        {path.rstrip("/"): CapturedPath(mark(path), text) for path, text in files.items()}
    )


def mark(path: str) -> LineMark:
    if path.endswith("/"):
        return "/"
    is_disk = path.startswith("/sys/block/") and path.endswith("/device")
    return "->" if is_disk or path.endswith(LINKS) else "="


def with_files(**changes: str) -> Capture:
    """The small virtual machine, with some files changed."""
    capture = captured("virtual-machine")
    for path, text in changes.items():
        capture.entries[path] = CapturedPath("=", text)
    return capture


def declare(capture: Capture) -> Declaration:
    return declare_machine(read_machine(capture), "m1", MachineOptions())


def names(declaration: Declaration) -> set[str]:
    return {provider.name for provider in declaration.providers}


def pci(address: str, **files: str) -> dict[str, str]:
    contents = {"class": "0x020000", "vendor": "0x8086", "device": "0x1572"} | files
    return {f"/sys/bus/pci/devices/{address}/{name}": text for name, text in contents.items()}


def disk(name: str, wwid: str | None = None, **files: str) -> dict[str, str]:
    contents = {"device": "../../x", "removable": "0", "size": "2097152"} | files
    if wwid is not None:
        contents["device/wwid"] = wwid
    return {f"/sys/block/{name}/{file}": text for file, text in contents.items()}


def test_a_machine_without_sysfs_is_an_error_that_names_the_fix() -> None:
    with pytest.raises(MachineUnreadable, match=r"mount it at /sys.*option sysfs=absent"):
        declare(machine_of(CONTAINER))


def test_a_container_that_never_has_sysfs_is_one_node(tmp_path: Path) -> None:
    """All devices are unread, even if the container sees some of sysfs after all."""
    unpack(machine_of(CONTAINER), tmp_path)
    unpack(parse_capture("/sys/devices/system/cpu/online = 0-63\n"), tmp_path)
    declaration = LinuxDriver(root=tmp_path, sysfs="absent").declare("m1")
    assert drawing(declaration) == (
        "m1\n"
        ": HW_ARCH_X86_64 HW_CPU_X86_SSE\n"
        "    m1_numa0  VCPU 2, MEMORY_MB 2048 reserved 512\n"
        "    : HW_NUMA_ROOT\n"
    )
    for device in ("m1_disk_wwn-0x5", "m1_pci_0000:00:01.0", "m1_tpm_x", "m1_fpga_x"):
        assert declaration.unread.covers(device)
    assert not declaration.unread.covers("m1_numa1")


def test_an_error_names_a_wrong_value_of_sysfs() -> None:
    with pytest.raises(
        NotConfigured, match="option sysfs is 'no', but takes one of required, absent"
    ):
        load_driver("linux", {"sysfs": "no"})


def test_the_host_has_the_flags_that_all_cores_have() -> None:
    cpuinfo = "processor : 0\nflags : fpu lm sse avx\nprocessor : 1\nflags : fpu lm sse"
    declaration = declare(machine_of(SMALL | {"/proc/cpuinfo": cpuinfo}))
    assert declaration.providers[0].traits == {"HW_ARCH_X86_64", "HW_CPU_X86_SSE"}


@pytest.mark.parametrize(("switch", "expected"), [("Y", True), ("1", True), ("N", False)])
def test_the_host_has_sev_only_if_kvm_has_switched_it_on(switch: str, expected: bool) -> None:
    cpuinfo = "processor : 0\nflags : fpu lm sev\nvendor_id : AuthenticAMD"
    files = SMALL | {
        "/proc/cpuinfo": cpuinfo,
        "/sys/module/kvm_amd/parameters/sev": switch,
    }
    traits = declare(machine_of(files)).providers[0].traits
    assert ("HW_CPU_X86_AMD_SEV" in traits) is expected


def test_the_driver_counts_online_cpus_only() -> None:
    files = SMALL | {
        "/sys/devices/system/cpu/online": "0-2,8",
        "/sys/devices/system/cpu/isolated": "2-9",
        "/sys/devices/system/node/node0/cpulist": "0-3",
        "/sys/devices/system/node/node0/meminfo": "Node 0 MemTotal: 1048576 kB",
        "/sys/devices/system/node/node1/cpulist": "8-9",
        "/sys/devices/system/node/node1/meminfo": "Node 1 MemTotal: 1048576 kB",
    }
    first, second = declare(machine_of(files)).providers[1:]
    assert {name: each["total"] for name, each in first.inventories.items()} == {
        "VCPU": 2,
        "PCPU": 1,
        "MEMORY_MB": 1024,
    }
    assert {name: each["total"] for name, each in second.inventories.items()} == {
        "PCPU": 1,
        "MEMORY_MB": 1024,
    }


def test_the_only_node_has_all_memory_of_proc() -> None:
    capture = with_files(
        **{"/sys/devices/system/node/node0/meminfo": "Node 0 MemTotal: 1048576 kB"}
    )
    numa = declare(capture).providers[1]
    assert numa.inventories["MEMORY_MB"]["total"] == 24103


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("/sys/devices/system/cpu/online", "0-x"),
        ("/sys/devices/system/cpu/online", "7-0"),
        ("/sys/devices/system/cpu/online", "0-99999999999"),
        ("/sys/devices/system/cpu/isolated", "none"),
        ("/proc/meminfo", "MemTotal: lots kB"),
        ("/proc/meminfo", "MemFree: 5 kB"),
        ("/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "-1"),
        ("/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", ""),
    ],
)
def test_an_error_names_the_unexpected_file_of_cpus_or_memory(path: str, text: str) -> None:
    with pytest.raises(MachineUnreadable, match=path):
        declare(with_files(**{path: text}))


@pytest.mark.parametrize(
    ("files", "path"),
    [
        ({"/sys/devices/system/cpu/possible": "0-1"}, "/sys/devices/system/cpu/online"),
        (CONTAINER | {"/sys/devices/system/cpu/online": ""}, "/sys/devices/system/cpu/online"),
    ],
)
def test_an_error_names_the_file_that_should_list_the_cpus(
    files: dict[str, str], path: str
) -> None:
    with pytest.raises(MachineUnreadable, match=path):
        declare(machine_of(files))


def test_a_container_without_procfs_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(MachineUnreadable, match="/proc/cpuinfo"):
        LinuxDriver(root=tmp_path, sysfs="absent").declare("m1")


@pytest.mark.parametrize(
    "gone",
    [
        "/sys/devices/system/node/node1/",
        "/sys/devices/system/node/node1/cpulist",
        "/sys/devices/system/node/node1/meminfo",
    ],
)
@pytest.mark.parametrize("with_list", [True, False])
def test_a_node_that_is_missing_is_an_error(gone: str, with_list: bool) -> None:
    """Otherwise its CPUs would count as those of another node."""
    capture = captured("two-socket-server")
    if not with_list:
        del capture.entries["/sys/devices/system/node/online"]
    for path in [path for path in capture.entries if path.startswith(gone)]:
        del capture.entries[path]
    with pytest.raises(MachineUnreadable, match=r"node1|node 1|CPU 32"):
        declare(capture)


def test_all_nodes_missing_is_an_error_if_the_cpus_have_nodes() -> None:
    files = SMALL | {"/sys/devices/system/cpu/cpu0/node1/": ""}
    with pytest.raises(MachineUnreadable, match="has no node, although the CPUs have"):
        declare(machine_of(files))


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("class", "network"),
        ("vendor", "0x12345"),
        ("device", ""),
        ("numa_node", "-2"),
        ("sriov_totalvfs", "many"),
    ],
)
def test_an_unexpected_pci_function_is_unread_with_a_warning(
    file: str, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    path = f"/sys/bus/pci/devices/0000:00:03.0/{file}"
    whole = names(declare(captured("virtual-machine")))
    declaration = declare(with_files(**{path: text}))
    assert names(declaration) == whole - {"m1_pci_0000:00:03.0"}
    assert declaration.unread == UnreadProviders(names=frozenset({"m1_pci_0000:00:03.0"}))
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert path in record.getMessage()
    assert "its provider stays as it is" in record.getMessage()


def test_unreadable_and_incomplete_pci_functions_are_unread(
    caplog: pytest.LogCaptureFixture,
) -> None:
    capture = captured("virtual-machine")
    capture.entries["/sys/bus/pci/devices/0000:00:03.0/class"] = CapturedPath("!", "No such device")
    del capture.entries["/sys/bus/pci/devices/0000:00:04.0/vendor"]
    declaration = declare(capture)
    assert not names(declaration) & {"m1_pci_0000:00:03.0", "m1_pci_0000:00:04.0"}
    assert declaration.unread.names == {"m1_pci_0000:00:03.0", "m1_pci_0000:00:04.0"}
    unreadable, missing = (record.getMessage() for record in caplog.records)
    assert "/sys/bus/pci/devices/0000:00:03.0/class" in unreadable
    assert "No such device" in unreadable
    assert "/sys/bus/pci/devices/0000:00:04.0/vendor" in missing


def test_a_function_without_a_node_is_unread_on_a_machine_with_several_nodes() -> None:
    """Otherwise it would move to the root of the tree."""
    capture = captured("two-socket-server")
    del capture.entries["/sys/bus/pci/devices/0000:17:00.0/numa_node"]
    assert declare(capture).unread.names == {"m1_pci_0000:17:00.0"}


VIRTUAL = {"class": "0x0b4000", "sriov_numvfs": "4", "sriov_totalvfs": "16"}


def test_a_function_whose_virtual_functions_are_unknown_is_unread() -> None:
    files = SMALL | pci("0000:01:00.0", **VIRTUAL)
    declaration = declare(machine_of(files))
    assert names(declaration) == {"m1", "m1_numa0"}
    assert declaration.unread.names == {"m1_pci_0000:01:00.0"}


@pytest.mark.parametrize("file", ["size", "device/wwid", "serial", "holders", "device"])
def test_an_unreadable_disk_leaves_all_providers_of_disks_as_they_are(
    file: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The id of the disk may be what the driver cannot read."""
    capture = machine_of(
        SMALL | disk("sda", wwid="naa.5000c500a1b2c3d4") | disk("sdb", wwid="naa.51")
    )
    capture.entries[f"/sys/block/sdb/{file}"] = CapturedPath("!", "Input/output error")
    declaration = declare(capture)
    assert names(declaration) == {"m1", "m1_numa0", "m1_disk_wwn-0x5000c500a1b2c3d4"}
    assert declaration.unread == UnreadProviders(prefixes=frozenset({"m1_disk_"}))
    assert f"/sys/block/sdb/{file}" in caplog.text
    assert "cannot read disk sdb; its provider stays as it is" in caplog.text


@pytest.mark.parametrize(
    ("machine", "missing"),
    [
        ("two-socket-server", "/sys/block/nvme0n1/wwid"),
        ("two-socket-server", "/sys/block/sda/device/wwid"),
        ("two-socket-server", "/sys/class/ata_port/ata7/port_no"),
        ("two-socket-server", "/sys/block/sda/removable"),
        ("storage-server", "/sys/block/nvme0n2/device/serial"),
        ("storage-server", "/sys/block/dm-4/dm/uuid"),
        ("virtual-machine", "/sys/block/vda/serial"),
        ("fpga-board", "/sys/block/mmcblk0/device/serial"),
    ],
)
def test_a_disk_without_a_file_that_all_of_its_kind_have_is_unread(
    machine: str, missing: str
) -> None:
    """Otherwise it would have another name until the file comes back."""
    capture = captured(machine)
    before = names(declare(capture))
    del capture.entries[missing]
    declaration = declare(capture)
    assert names(declaration) < before
    assert "m1_disk_" in declaration.unread.prefixes


@pytest.mark.parametrize(
    "missing",
    [
        "/sys/bus/pci/devices/0000:61:00.0/sriov_numvfs",
        "/sys/bus/pci/devices/0000:61:00.0/sriov_totalvfs",
        "/sys/bus/pci/devices/0000:61:00.0/virtfn0",
        "/sys/bus/pci/devices/0000:61:00.4/device",
        "/sys/bus/pci/devices/0000:61:00.5/mdev_supported_types/nvidia-474/available_instances",
    ],
)
def test_a_function_without_a_file_that_its_parts_need_is_unread(missing: str) -> None:
    capture = captured("gpu-server")
    del capture.entries[missing]
    assert declare(capture).unread.names == {"m1_pci_0000:61:00.0"}


def test_a_gpu_whose_number_is_unknown_is_unread() -> None:
    """The driver then does not find its instances."""
    capture = captured("gpu-server")
    path = "/proc/driver/nvidia/gpus/0000:21:00.0/information"
    capture.entries[path] = CapturedPath("=", "Device Minor: ?")
    assert declare(capture).unread.names == {"m1_pci_0000:21:00.0"}


def test_a_weak_id_is_certain_only_if_all_disks_are_readable() -> None:
    """The unread disk may be a copy with the same serial number, and then both have others."""
    capture = machine_of(SMALL | disk("vda", serial="copied") | disk("vdb", serial="copied"))
    capture.entries["/sys/block/vdb/serial"] = CapturedPath("!", "Input/output error")
    assert names(declare(capture)) == {"m1", "m1_numa0"}


@pytest.mark.parametrize(
    ("directory", "prefix"),
    [
        ("/sys/bus/pci/devices", "m1_pci_"),
        ("/sys/block", "m1_disk_"),
        ("/sys/class/tpm", "m1_tpm_"),
        ("/sys/class/fpga_region", "m1_fpga_"),
        ("/proc/self/mountinfo", "m1_disk_"),
        ("/proc/swaps", "m1_disk_"),
        ("/sys/fs/btrfs", "m1_disk_"),
    ],
)
def test_a_directory_that_cannot_be_listed_leaves_all_providers_of_its_kind(
    directory: str, prefix: str, caplog: pytest.LogCaptureFixture
) -> None:
    capture = captured("virtual-machine")
    for path in ("/proc/1/mountinfo", "/proc/self/mountinfo"):
        capture.entries[path] = CapturedPath("!", "Permission denied")
    capture.entries["/proc/self/mountinfo"] = CapturedPath("=")
    capture.entries[directory] = CapturedPath("!", "Input/output error")
    declaration = declare(capture)
    assert declaration.unread == UnreadProviders(prefixes=frozenset({prefix}))
    assert not [name for name in names(declaration) if name.startswith(prefix)]
    assert {record.levelname for record in caplog.records} == {"WARNING"}


@pytest.mark.parametrize(
    ("directory", "prefix"), [("/sys/bus/pci/devices", "m1_pci_"), ("/sys/block", "m1_disk_")]
)
def test_a_missing_directory_leaves_all_providers_of_its_kind(directory: str, prefix: str) -> None:
    capture = captured("virtual-machine")
    for path in [path for path in capture.entries if path.startswith(f"{directory}/")]:
        del capture.entries[path]
    assert declare(capture).unread == UnreadProviders(prefixes=frozenset({prefix}))


def test_files_of_a_directory_that_cannot_be_read_are_unread(tmp_path: Path) -> None:
    """Even root cannot read a directory as a file."""
    unpack(captured("storage-server"), tmp_path)
    for path in (
        tmp_path / "sys/block/sdc/size",
        tmp_path / "sys/bus/pci/devices/0000:5e:00.0/vendor",
    ):
        path.unlink()
        path.mkdir()
    declaration = LinuxDriver(root=tmp_path).declare("m1")
    assert declaration.unread == UnreadProviders(
        names=frozenset({"m1_pci_0000:5e:00.0"}), prefixes=frozenset({"m1_disk_"})
    )
    assert "m1_disk_wwn-0x5000c500c1a2b3c5" in names(declaration)


def test_an_empty_directory_is_a_machine_without_devices() -> None:
    assert declare(machine_of(SMALL)).unread == UnreadProviders()


def test_the_driver_leaves_out_a_disk_of_less_than_a_gigabyte() -> None:
    files = SMALL | disk("xvda", size="2097151") | disk("xvdb", size="2097152")
    assert names(declare(machine_of(files))) == {"m1", "m1_numa0", "m1_disk_kernel-xvdb"}


def test_a_disk_that_does_not_report_whether_it_rotates_has_no_trait() -> None:
    (found,) = declare(machine_of(SMALL | disk("xvda"))).providers[2:]
    assert found.traits == frozenset()
