"""The linux driver reserves the disks that the host uses."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from roost.client.drivers.linux import LinuxDriver
from roost.client.drivers.linux.captures import open_files, parse_capture
from roost.client.drivers.linux.disks import is_in_use, multipath_ids, read_mounted
from roost.client.drivers.machine.options import Selection
from roost.client.drivers.machine.values import MachineUnreadable
from support.client.captured_machines import captured, unpack

LINK = "../../devices/pci0000:00/0000:00:17.0/ata1/host0/target0:0:0/0:0:0:0/block/sda"
MOUNTS = "/proc/self/mountinfo = 27 1 8:2 / / rw - ext4 /dev/sda2 rw\n"
TABLE = f"""\
/sys/dev/block/8:0 -> {LINK}
/sys/dev/block/8:2 -> {LINK}/sda2
/sys/dev/block/253:1 -> ../../devices/virtual/block/dm-1
"""


def in_use(text: str, disk: str = "sda") -> bool | None:
    files = parse_capture(TABLE + text)
    return is_in_use(files, disk, read_mounted(files))


EMPTY = "/proc/self/mountinfo =\n"
MPATH = "/sys/block/sda/holders/dm-0/\n/sys/block/dm-0/dm/uuid = mpath-36\n"
PART = "/sys/block/dm-0/holders/dm-1/\n/sys/block/dm-1/dm/uuid = part1-mpath-36\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (EMPTY + "/sys/block/sda/sda1/\n/sys/block/sda/sda2/\n", False),
        (MOUNTS + "/sys/block/sda/sda1/\n/sys/block/sda/sda2/\n", True),
        ("/proc/self/mountinfo = 27 1 8:0 / /data rw - xfs /dev/sda rw\n", True),
        (
            EMPTY
            + "/proc/swaps = Filename Type\n    /dev/sda1 partition 8 0 -2\n/sys/block/sda/sda1/\n",
            True,
        ),
        (EMPTY + "/proc/swaps = Filename Type\n    /swap/sda file 8 0 -2\n", False),
        (EMPTY + "/sys/fs/btrfs/1f-2e/devices/sda/\n/sys/fs/btrfs/features/x/\n", True),
        (EMPTY + "/sys/block/sda/sda1/holders/md0/\n", True),
        (EMPTY + "/sys/block/sda/holders/dm-0/\n/sys/block/dm-0/dm/uuid = LVM-x\n", True),
        (EMPTY + "/sys/block/sda/holders/bcache0/\n", True),
        (EMPTY + MPATH + PART, False),
        ("/proc/self/mountinfo = 27 1 253:1 / / rw - ext4 x rw\n" + MPATH + PART, True),
        (EMPTY + MPATH + "/sys/block/dm-0/holders/dm-2/\n/sys/block/dm-2/dm/uuid = LVM-x\n", True),
        (EMPTY + "/sys/block/sdaa/holders/md0/\n", False),
    ],
)
def test_mounts_swap_and_holders_use_a_disk(text: str, expected: bool) -> None:
    assert in_use(text) is expected


def test_the_mounts_of_the_host_count_beside_those_of_a_container() -> None:
    host = MOUNTS.replace("self", "1")
    assert in_use(host + EMPTY + "/sys/block/sda/sda2/\n")
    assert in_use("/proc/1/mountinfo ! Permission denied\n" + MOUNTS + "/sys/block/sda/sda2/\n")


def test_the_use_of_a_disk_is_unknown_in_a_container_without_the_mounts_of_the_host(
    tmp_path: Path,
) -> None:
    """The host may run on it."""
    assert open_files("/").has_own_mounts
    assert not open_files(str(tmp_path)).has_own_mounts
    files = parse_capture(TABLE + "/proc/1/mountinfo ! Permission denied\n" + MOUNTS)
    files.has_own_mounts = False
    mounted = read_mounted(files)
    assert is_in_use(files, "sda2", mounted) is True
    assert is_in_use(files, "sdb", mounted) is None


@pytest.mark.parametrize(("offered", "free"), [("!*", 0), ("nvme*", 894)])
def test_a_container_without_the_mounts_of_the_host_offers_only_disks_that_an_operator_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, offered: str, free: int
) -> None:
    unpack(captured("arm-server"), tmp_path)
    hidden = tmp_path / "proc" / "1" / "mountinfo"
    hidden.parent.mkdir()
    hidden.touch()
    read_text = Path.read_text

    def read_as_a_user(path: Path, *arguments: Any, **options: Any) -> str:
        if path == hidden:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        return read_text(path, *arguments, **options)

    monkeypatch.setattr(Path, "read_text", read_as_a_user)
    declared = LinuxDriver(root=tmp_path, offer=Selection((offered,))).declare("m1")
    (disk,) = (each.inventories["DISK_GB"] for each in declared.providers if "_disk_" in each.name)
    assert int(disk["total"]) - int(disk["reserved"]) == free


def test_mounts_that_a_fault_hides_leave_all_disks_unread() -> None:
    """Without them a disk of the host would be offered."""
    for broken in ("/proc/1/mountinfo", "/proc/swaps"):
        with pytest.raises(MachineUnreadable):
            in_use(f"{broken} ! Input/output error\n" + MOUNTS)


def test_a_mount_of_a_device_that_is_gone_is_no_error() -> None:
    assert not in_use("/proc/self/mountinfo = 27 1 8:99 / /mnt rw - ext4 x rw\n")


def test_a_volume_is_no_second_path_to_its_disk() -> None:
    files = parse_capture(MPATH + "/sys/block/sdb/holders/dm-9/\n/sys/block/dm-9/dm/uuid = LVM-x\n")
    assert multipath_ids(files, "sda") == {"mpath-36"}
    assert multipath_ids(files, "sdb") == frozenset()
