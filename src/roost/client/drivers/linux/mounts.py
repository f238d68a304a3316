"""The block devices that have file systems or swap in use, by the kernel's names."""

from __future__ import annotations

import errno
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


def read_mounted(files: Files) -> frozenset[str]:
    """The mounted devices, the members of mounted btrfs file systems, and swap."""
    links = (read_link(files, f"/sys/dev/block/{numbers}") for numbers in _mounted_numbers(files))
    # A kernel without swap has no such file.
    swaps = files.column(_SWAPS, 0, "/dev/*") if files.has(_SWAPS) else ()
    return frozenset(
        {last_part(link) for link in links if link is not None}
        | {last_part(path) for path in swaps}
        | _btrfs_members(files)
    )


def _mounted_numbers(files: Files) -> set[str]:
    """Major and minor numbers; 0 is the major number of file systems without a device."""
    found: set[str] = set()
    readable = 0
    for path in _MOUNTS:
        try:
            if files.has(path):
                found.update(files.column(path, _DEVICE_COLUMN, "[1-9]*:*"))
                readable += 1
        except FileUnreadable as error:
            if error.reason not in _FORBIDDEN:
                raise
    if not readable:
        raise MachineUnreadable(f"None of {', '.join(_MOUNTS)} is readable; mount procfs.")
    return found


def _btrfs_members(files: Files) -> set[str]:
    """The devices of btrfs, whose mounts have numbers of their own."""
    return {
        member
        for file_system in files.names(_BTRFS, "*-*")
        for member in files.names(f"{_BTRFS}/{file_system}/devices")
    }
