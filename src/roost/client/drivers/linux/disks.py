"""The whole disks that are fixed to a machine, and which of them are mounted or in use."""

from __future__ import annotations

import errno
import logging
import re
from collections.abc import Iterator
from dataclasses import dataclass
from os import strerror

from roost.client.drivers.linux.files import (
    Files,
    FileUnreadable,
    last_part,
    read_link,
    read_number,
    read_text,
    read_value,
    required_number,
)
from roost.client.drivers.machine.device_names import disk_path, readable_id, world_wide_id
from roost.client.drivers.machine.values import Disk, MachineUnreadable

_LOG = logging.getLogger(__name__)

# The agent's own mounts, and those of the host if the agent runs in a container as root.
_MOUNTS = ("/proc/1/mountinfo", "/proc/self/mountinfo")
_DEVICE_COLUMN = 2
_SWAPS = "/proc/swaps"
_BTRFS = "/sys/fs/btrfs"
# Only root may read the mounts of another process.
_FORBIDDEN = frozenset(strerror(code) for code in (errno.EACCES, errno.EPERM))

BLOCK = "/sys/block"
# A multipath device, or a partition of one: another name for the same disk.
_ALIAS = re.compile(r"(part\d+-)?mpath-.*")

_SECTOR_BYTES = 512  # the kernel counts in this unit, whatever the sectors of the disk are

# Partitions of an MMC for the firmware, and paths to an NVMe disk.
_PART = re.compile(r"mmcblk\d+(boot|gp|rpmb)\d*|nvme\d+c\d+n\d+")
_ATA = re.compile(r"/(ata\d+)/")
_NAMESPACE = re.compile(r"nvme\d+n(\d+)")
# The files of every disk with such a name. If one is missing, the id of the disk is not known.
_ID_FILES = {
    re.compile(r"mmcblk\d+"): ("device/serial",),
    re.compile(r"nvme\d+n\d+"): ("wwid", "device/serial"),
    re.compile(r"sd[a-z]+"): ("device/wwid",),
    re.compile(r"vd[a-z]+"): ("serial",),
}


@dataclass(frozen=True, slots=True)
class MountedDevices:
    """The names of block devices in use, and whether the host has no further mounts."""

    names: frozenset[str]
    are_all: bool = True


def read_mounted(files: Files) -> MountedDevices:
    """The mounted devices, the members of mounted btrfs file systems, and swap."""
    numbers, are_all = _mounted_numbers(files)
    links = (read_link(files, f"/sys/dev/block/{number}") for number in numbers)
    # A kernel without swap has no such file.
    swaps = files.column(_SWAPS, 0, "/dev/*") if files.has(_SWAPS) else ()
    names = frozenset(
        {last_part(link) for link in links if link is not None}
        | {last_part(path) for path in swaps}
        | _btrfs_members(files)
    )
    return MountedDevices(names, are_all)


def _mounted_numbers(files: Files) -> tuple[set[str], bool]:
    """Major and minor numbers, and whether these are all that the host has.

    0 is the major number of file systems without a device.
    """
    found: set[str] = set()
    readable = 0
    are_all = True
    for path in _MOUNTS:
        try:
            if files.has(path):
                found.update(files.column(path, _DEVICE_COLUMN, "[1-9]*:*"))
                readable += 1
        except FileUnreadable as error:
            if error.reason not in _FORBIDDEN:
                raise
            # The agent's own mounts are those of the host, unless it runs in a container.
            are_all = files.has_own_mounts
    if not readable:
        raise MachineUnreadable(f"None of {', '.join(_MOUNTS)} is readable; mount procfs.")
    return found, are_all


def _btrfs_members(files: Files) -> set[str]:
    """The devices of btrfs, whose mounts have numbers of their own."""
    return {
        member
        for file_system in files.names(_BTRFS, "*-*")
        for member in files.names(f"{_BTRFS}/{file_system}/devices")
    }


def is_in_use(files: Files, disk: str, mounted: MountedDevices) -> bool | None:
    """Whether the disk, a partition or something made of them is mounted, or held by the kernel.

    A RAID array, a volume or an encrypted device holds its members even while it is not mounted.
    `None` if only mounts that the driver does not see could tell.
    """
    if _is_used(files, f"{BLOCK}/{disk}", disk, mounted.names):
        return True
    return False if mounted.are_all else None


def multipath_ids(files: Files, disk: str) -> frozenset[str]:
    """The ids of the multipath devices that the disk is a path to."""
    ids = (alias for _, alias in _holders(files, f"{BLOCK}/{disk}"))
    return frozenset(found for found in ids if found is not None)


def _is_used(files: Files, directory: str, name: str, mounted: frozenset[str]) -> bool:
    if name in mounted:
        return True
    for holder, alias in _holders(files, directory):
        if alias is None or _is_used(files, f"{BLOCK}/{holder}", holder, mounted):
            return True
    # The directories of partitions have names that begin with that of the disk.
    return any(
        _is_used(files, f"{directory}/{partition}", partition, mounted)
        for partition in files.names(directory, f"{name}?*")
    )


def _holders(files: Files, directory: str) -> Iterator[tuple[str, str | None]]:
    """The devices made of this one, with their ids if they are other names for it."""
    for holder in files.names(f"{directory}/holders"):
        path = f"{BLOCK}/{holder}/dm/uuid"
        if holder.startswith("dm-") and not files.has(path):
            raise MachineUnreadable(f"{path} is missing.")
        uuid = read_text(files, path) or ""
        yield holder, uuid if _ALIAS.fullmatch(uuid) else None


def read_disks(files: Files) -> tuple[tuple[Disk, ...], bool]:
    """The disks, and whether these are all. A warning names each unreadable disk."""
    if not files.has(BLOCK):
        _LOG.info("%s does not exist; the providers of disks stay as they are.", BLOCK)
        return (), False
    try:
        names = files.names(BLOCK)
        mounted = read_mounted(files)
    except MachineUnreadable as error:
        _LOG.warning("The driver cannot read disks; their providers stay as they are: %s", error)
        return (), False
    return _read_named(files, names, mounted)


def _read_named(
    files: Files, names: tuple[str, ...], mounted: MountedDevices
) -> tuple[tuple[Disk, ...], bool]:
    disks = []
    is_whole = True
    multipath_seen: set[str] = set()
    for name in names:
        try:
            if not _is_fixed(files, name):
                continue
            multipath = multipath_ids(files, name)
            disk = _read_disk(files, name, min(multipath, default=None), mounted)
        except MachineUnreadable as error:
            if files.has(f"{BLOCK}/{name}"):
                is_whole = False
                _LOG.warning(
                    "The driver cannot read disk %s; its provider stays as it is: %s", name, error
                )
            continue
        # A multipath disk has a name for each path to it; the first name counts.
        if not multipath & multipath_seen and files.has(f"{BLOCK}/{name}"):
            disks.append(disk)
        multipath_seen |= multipath
    return tuple(disks), is_whole


def _is_fixed(files: Files, name: str) -> bool:
    """Whether the disk is a device of its own, and not removable.

    Loop, RAM, zram, device-mapper and RAID devices consist of other storage and have no link
    `device`. A hidden device is one path to a disk with another name.
    """
    return (
        not _PART.fullmatch(name)
        and _has_device(files, name)
        and required_number(files, f"{BLOCK}/{name}/removable") != 1
        and read_number(files, f"{BLOCK}/{name}/hidden") != 1
    )


def _has_device(files: Files, name: str) -> bool:
    link = f"{BLOCK}/{name}/device"
    if read_link(files, link) is not None:
        return True
    if any(names.fullmatch(name) for names in _ID_FILES):
        raise MachineUnreadable(f"{link} is missing.")
    return False


def _read_disk(files: Files, name: str, multipath: str | None, mounted: MountedDevices) -> Disk:
    _check_id_files(files, name)
    rotational = read_number(files, f"{BLOCK}/{name}/queue/rotational")
    return Disk(
        name,
        size_bytes=required_number(files, f"{BLOCK}/{name}/size") * _SECTOR_BYTES,
        rotational=None if rotational is None else rotational == 1,
        world_wide_id=_read_world_wide_id(files, name, multipath),
        serial=_read_serial(files, name),
        path=_read_path(files, name),
        in_use=is_in_use(files, name, mounted),
    )


def _check_id_files(files: Files, name: str) -> None:
    expected = (found for names, found in _ID_FILES.items() if names.fullmatch(name))
    for file in (each for found in expected for each in found):
        if not files.has(f"{BLOCK}/{name}/{file}"):
            raise MachineUnreadable(f"{BLOCK}/{name}/{file} is missing.")


def _read_world_wide_id(files: Files, name: str, multipath: str | None) -> str | None:
    for path in (f"{BLOCK}/{name}/wwid", f"{BLOCK}/{name}/device/wwid"):
        text = read_value(files, path)
        if text and (found := world_wide_id(text, is_nvme=name.startswith("nvme"))):
            return found
    return None if multipath is None else readable_id(multipath)


def _read_serial(files: Files, name: str) -> str | None:
    own = read_value(files, f"{BLOCK}/{name}/serial")
    if own is not None:
        return own
    of_device = read_value(files, f"{BLOCK}/{name}/device/serial")
    namespace = _read_namespace(files, name)
    # The namespaces of an NVMe controller share its serial number.
    return of_device if of_device is None or namespace is None else f"{of_device}-{namespace}"


def _read_path(files: Files, name: str) -> str | None:
    device = files.link(f"{BLOCK}/{name}")
    if device is None:  # some old kernels have a directory instead of the link
        return None
    ata = _ATA.search(device)
    port = required_number(files, f"/sys/class/ata_port/{ata[1]}/port_no") if ata else None
    return disk_path(device, ata_port=port, namespace=_read_namespace(files, name))


def _read_namespace(files: Files, name: str) -> int | None:
    match = _NAMESPACE.fullmatch(name)
    if match is None:
        return None
    number = read_number(files, f"{BLOCK}/{name}/nsid")
    return int(match[1]) if number is None else number
