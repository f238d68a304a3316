"""The block devices that have file systems or swap in use, by the kernel's names."""

from __future__ import annotations

import errno
from dataclasses import dataclass
from os import strerror

from roost.client.drivers.linux.files import Files, FileUnreadable, last_part, read_link
from roost.client.drivers.machine.values import MachineUnreadable

# The agent's own mounts, and those of the host if the agent runs in a container as root.
_MOUNTS = ("/proc/1/mountinfo", "/proc/self/mountinfo")
_DEVICE_COLUMN = 2
_SWAPS = "/proc/swaps"
_BTRFS = "/sys/fs/btrfs"
# Only root may read the mounts of another process.
_FORBIDDEN = frozenset(strerror(code) for code in (errno.EACCES, errno.EPERM))


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
