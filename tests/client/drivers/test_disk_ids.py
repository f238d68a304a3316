"""The names of disks stay the same over boots, and no two disks have the same name."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost.client.drivers.linux.captures import Capture, CapturedPath
from roost.client.drivers.linux.driver import read_machine
from roost.client.drivers.machine.device_names import disk_ids, disk_path, world_wide_id
from roost.client.drivers.machine.options import MachineOptions
from roost.client.drivers.machine.tree import declare_machine
from roost.client.drivers.machine.values import Disk
from support.client.captured_machines import captured


def ids(*disks: Disk) -> dict[str, str]:
    return {name: found.text for name, found in disk_ids(disks).items()}


def test_the_best_id_of_a_disk_names_it() -> None:
    assert ids(
        Disk("sda", 1, world_wide_id="wwn-0x5", serial="S", path="pci-0"),
        Disk("sdb", 1, serial="S", path="pci-1"),
        Disk("sdc", 1, path="pci-2"),
    ) == {"sda": "wwn-0x5", "sdb": "serial-S", "sdc": "path-pci-2"}


def test_the_name_of_the_kernel_is_the_last_resort_and_a_warning_says_so(
    caplog: pytest.LogCaptureFixture,
) -> None:
    assert ids(Disk("sda", 1, serial=" ")) == {"sda": "kernel-sda"}
    assert "Disk sda has no id of its own" in caplog.text


def test_disks_with_the_same_id_get_their_paths_and_a_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    copies = [Disk(name, 1, serial="copied", path=f"pci-{name}") for name in ("vda", "vdb")]
    other = Disk("vdc", 1, serial="own")
    assert ids(*copies, other) == {
        "vda": "path-pci-vda",
        "vdb": "path-pci-vdb",
        "vdc": "serial-own",
    }
    assert "Disks vda, vdb all report the id serial-copied" in caplog.text


def test_disks_with_the_same_path_get_the_names_of_the_kernel() -> None:
    copies = [Disk(name, 1, serial="copied", path="pci-0") for name in ("vda", "vdb")]
    assert ids(*copies) == {"vda": "kernel-vda", "vdb": "kernel-vdb"}


_texts = st.none() | st.sampled_from(["", " ", "A", "B", "a b", "ü", "x" * 300, "x" * 299 + "y"])


@given(st.lists(st.tuples(_texts, _texts, _texts), max_size=6))
def test_ids_are_unique_short_and_printable(found: list[tuple[str | None, ...]]) -> None:
    disks = [
        Disk(
            f"sd{number}",
            1,
            world_wide_id=world_wide_id(wwid) if wwid else None,
            serial=serial,
            path=path,
        )
        for number, (wwid, serial, path) in enumerate(found)
    ]
    texts = list(ids(*disks).values())
    assert len(set(texts)) == len(disks)
    assert all(len(text) <= 120 and text.isascii() and " " not in text for text in texts)


@pytest.mark.parametrize(
    ("text", "is_nvme", "expected"),
    [
        ("naa.5000C500A1B2C3D4", False, "wwn-0x5000c500a1b2c3d4"),
        ("eui.0025388b91", False, "wwn-0x0025388b91"),
        ("t10.ATA     QEMU HARDDISK    QM00005   ", False, "scsi-t10.ATA_QEMU_HARDDISK_QM00005"),
        ("eui.0025388b91", True, "nvme-eui.0025388b91"),
        ("uuid.1b2c-3d", True, "nvme-uuid.1b2c-3d"),
        ("nvme.144d-5334-00000001", True, "nvme-nvme.144d-5334-00000001"),
        ("eui.0000000000000000", True, None),
        ("naa.ffffffffffffffff", False, None),
        ("uuid.00000000-0000-0000-0000-000000000000", True, None),
        ("", False, None),
    ],
)
def test_world_wide_ids_are_spelt_as_udev_spells_them(
    text: str, is_nvme: bool, expected: str | None
) -> None:
    assert world_wide_id(text, is_nvme=is_nvme) == expected


PCI = "../devices/pci0000:00/0000:00:1c.0/0000:03:00.0"


@pytest.mark.parametrize(
    ("device", "expected"),
    [
        (f"{PCI}/virtio3/block/vda", "pci-0000:03:00.0"),
        (f"{PCI}/host4/target4:0:7/4:0:7:1/block/sda", "pci-0000:03:00.0-scsi-0:0:7:1"),
        (f"{PCI}/ata9/host8/target8:0:0/8:0:0:0/block/sda", "pci-0000:03:00.0-ata-2"),
        (f"{PCI}/nvme/nvme5/nvme5n1", "pci-0000:03:00.0-nvme-6"),
        (
            f"{PCI}/usb2/2-1/2-1.4/2-1.4:1.0/host9/target9:0:0/9:0:0:0/block/sdb",
            "pci-0000:03:00.0-usb-0:1.4:1.0-scsi-0:0:0:0",
        ),
        (
            "../devices/platform/a003e00.virtio_mmio/virtio0/block/vda",
            "platform-a003e00.virtio_mmio",
        ),
        ("../devices/vbd-51712/block/xvda", "vbd-51712"),
        ("../devices/css0/0.0.0002/0.0.1234/block/dasda", "0.0.1234"),
        ("../devices/virtual/nvme-subsystem/nvme-subsys0/nvme0n1", None),
        ("../devices/platform/host3/session1/target3:0:0/3:0:0:1/block/sdb", None),
        (f"{PCI}/host4/rport-4:0-1/target4:0:0/4:0:0:1/block/sdc", None),
        ("", None),
    ],
)
def test_a_path_has_only_what_stays_the_same_over_boots(device: str, expected: str | None) -> None:
    assert disk_path(device, ata_port=2, namespace=6) == expected


def test_a_path_without_its_port_or_namespace_is_none() -> None:
    assert disk_path(f"{PCI}/ata9/host8/target8:0:0/8:0:0:0/block/sda") is None
    assert disk_path(f"{PCI}/nvme/nvme5/nvme5n1") is None


def declared(capture: Capture) -> dict[str, object]:
    declaration = declare_machine(read_machine(capture), "m1", MachineOptions())
    return {provider.name: provider for provider in declaration.providers}


def test_a_boot_that_finds_the_disks_in_another_order_changes_nothing() -> None:
    """sda and sdc swap their names, and so do further pairs."""
    before = captured("storage-server")
    swaps = {"sda": "sdc", "sdc": "sda", "vda": "vdb", "vdb": "vda", "sdi": "sdg", "sdg": "sdi"}
    after = Capture()
    for path, entry in before.entries.items():
        parts = path.split("/")
        if parts[1:3] == ["sys", "block"]:
            name = parts[3]
            renamed = swaps.get(name, name)
            parts[3:] = [part.replace(name, renamed) for part in parts[3:]]
        after.entries["/".join(parts)] = CapturedPath(entry.kind, entry.text)
    assert after.entries != before.entries
    assert declared(after) == declared(before)


def test_a_device_keeps_its_name_when_its_node_changes() -> None:
    capture = captured("two-socket-server")
    before = set(declared(capture))
    capture.entries["/sys/bus/pci/devices/0000:17:00.0/numa_node"] = CapturedPath("=", "1")
    assert set(declared(capture)) == before
