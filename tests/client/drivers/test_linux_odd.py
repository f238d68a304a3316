"""The linux driver on machines with missing, unreadable or unexpected files."""

from __future__ import annotations

import logging
from collections.abc import Mapping

import pytest

from roost.client.declaration import Declaration
from roost.client.drivers.linux.captures import Capture, CapturedPath
from roost.client.drivers.linux.driver import read_machine
from roost.client.drivers.machine.options import MachineOptions
from roost.client.drivers.machine.tree import declare_machine
from roost.client.drivers.machine.values import MachineUnreadable
from support.client.captured_machines import captured, drawing

LINKS = ("/driver", "/physfn", "/iommu_group")

# The files that a container without sysfs sees.
CONTAINER = {
    "/proc/cpuinfo": "processor : 0\nprocessor : 1\nflags : fpu lm sse\nvendor_id : GenuineIntel",
    "/proc/meminfo": "MemTotal: 2097152 kB",
}


def machine_of(files: Mapping[str, str]) -> Capture:
    """A capture with these files by path; paths that are links in sysfs become links."""
    return Capture(
        {path: CapturedPath("->" if is_link(path) else "=", text) for path, text in files.items()}
    )


def is_link(path: str) -> bool:
    return path.endswith(LINKS) or (path.startswith("/sys/block/") and path.endswith("/device"))


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


def disk(name: str, **files: str) -> dict[str, str]:
    contents = {"device": "../../x", "removable": "0", "size": "2097152"} | files
    return {f"/sys/block/{name}/{file}": text for file, text in contents.items()}


def test_a_container_without_sysfs_is_one_node() -> None:
    assert drawing(declare(machine_of(CONTAINER))) == (
        "m1\n"
        ": HW_ARCH_X86_64 HW_CPU_X86_SSE\n"
        "    m1_numa0  VCPU 2, MEMORY_MB 2048 reserved 512\n"
        "    : HW_NUMA_ROOT\n"
    )


def test_the_host_has_the_flags_that_all_cores_have() -> None:
    cpuinfo = "processor : 0\nflags : fpu lm sse avx\nprocessor : 1\nflags : fpu lm sse"
    declaration = declare(machine_of(CONTAINER | {"/proc/cpuinfo": cpuinfo}))
    assert declaration.providers[0].traits == {"HW_ARCH_X86_64", "HW_CPU_X86_SSE"}


@pytest.mark.parametrize(("switch", "expected"), [("Y", True), ("1", True), ("N", False)])
def test_the_host_has_sev_only_if_kvm_has_switched_it_on(switch: str, expected: bool) -> None:
    cpuinfo = "processor : 0\nflags : fpu lm sev\nvendor_id : AuthenticAMD"
    files = CONTAINER | {
        "/proc/cpuinfo": cpuinfo,
        "/sys/module/kvm_amd/parameters/sev": switch,
    }
    traits = declare(machine_of(files)).providers[0].traits
    assert ("HW_CPU_X86_AMD_SEV" in traits) is expected


def test_the_driver_counts_online_cpus_only() -> None:
    files = CONTAINER | {
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


def test_an_error_names_the_files_that_could_list_the_cpus() -> None:
    with pytest.raises(
        MachineUnreadable, match=r"/sys/devices/system/cpu/online nor /proc/cpuinfo"
    ):
        declare(Capture())


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("class", "network"),
        ("vendor", "0x12345"),
        ("device", ""),
        ("numa_node", "-2"),
        ("sriov_numvfs", "many"),
    ],
)
def test_the_driver_leaves_out_an_unexpected_pci_function_with_a_warning(
    file: str, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    path = f"/sys/bus/pci/devices/0000:00:03.0/{file}"
    whole = names(declare(captured("virtual-machine")))
    assert names(declare(with_files(**{path: text}))) == whole - {"m1_0000:00:03.0"}
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert path in record.getMessage()


def test_the_driver_leaves_out_pci_functions_that_are_unreadable_or_vanish(
    caplog: pytest.LogCaptureFixture,
) -> None:
    capture = captured("virtual-machine")
    capture.entries["/sys/bus/pci/devices/0000:00:03.0/class"] = CapturedPath("!", "No such device")
    del capture.entries["/sys/bus/pci/devices/0000:00:04.0/vendor"]
    assert not names(declare(capture)) & {"m1_0000:00:03.0", "m1_0000:00:04.0"}
    unreadable, missing = (record.getMessage() for record in caplog.records)
    assert "/sys/bus/pci/devices/0000:00:03.0/class" in unreadable
    assert "No such device" in unreadable
    assert "/sys/bus/pci/devices/0000:00:04.0/vendor" in missing


def test_the_driver_leaves_out_an_unexpected_disk_with_a_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    files = CONTAINER | disk("sda") | disk("sdb", size="big")
    assert names(declare(machine_of(files))) == {"m1", "m1_numa0", "m1_sda"}
    assert "/sys/block/sdb/size" in caplog.text


def test_the_driver_leaves_out_a_disk_of_less_than_a_gigabyte() -> None:
    files = CONTAINER | disk("mmcblk0boot0", size="2097151") | disk("mmcblk0", size="2097152")
    assert names(declare(machine_of(files))) == {"m1", "m1_numa0", "m1_mmcblk0"}


def test_a_disk_that_does_not_report_whether_it_rotates_has_no_trait() -> None:
    (found,) = declare(machine_of(CONTAINER | disk("sda"))).providers[2:]
    assert found.traits == frozenset()


@pytest.mark.parametrize(
    ("device_mapper_id", "disks"),
    [
        ("mpath-3600508b400105e210000900000490000", {"m1_sda", "m1_sdc"}),
        ("LVM-Zr0yAfvNWLZ1qy5Dnd6KbVCp3IDxhqqb", {"m1_sda", "m1_sdb", "m1_sdc"}),
    ],
)
def test_a_disk_with_two_paths_counts_once(device_mapper_id: str, disks: set[str]) -> None:
    files = CONTAINER | disk("sda") | disk("sdb") | disk("sdc")
    capture = machine_of(files | {"/sys/block/dm-0/dm/uuid": device_mapper_id})
    for part in ("sda", "sdb"):
        capture.entries[f"/sys/block/{part}/holders/dm-0"] = CapturedPath("/")
    assert names(declare(capture)) == {"m1", "m1_numa0"} | disks


def test_a_physical_function_with_unknown_virtual_functions_has_no_inventory() -> None:
    files = CONTAINER | pci("0000:01:00.0", **{"class": "0x0b4000", "sriov_numvfs": "4"})
    (found,) = declare(machine_of(files)).providers[2:]
    assert found.name == "m1_0000:01:00.0"
    assert found.inventories == {}
