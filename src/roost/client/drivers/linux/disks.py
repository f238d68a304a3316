"""The whole disks that are fixed to a machine."""

from __future__ import annotations

import logging
from collections.abc import Iterator

from roost.client.drivers.linux.files import Files, read_number, required_number
from roost.client.drivers.machine.values import Disk, MachineUnreadable

_LOG = logging.getLogger(__name__)

_BLOCK = "/sys/block"
_SECTOR_BYTES = 512  # the kernel counts in this unit, whatever the sectors of the disk are


def read_disks(files: Files) -> tuple[Disk, ...]:
    """The disks; a warning names each unreadable one, which is left out."""
    return tuple(_disks(files))


def _disks(files: Files) -> Iterator[Disk]:
    multipath_seen: set[str] = set()
    for name in files.names(_BLOCK):
        try:
            if not _is_fixed(files, name):
                continue
            disk = _read_disk(files, name)
            multipath = _multipath(files, name)
        except MachineUnreadable as error:
            _LOG.warning("The driver leaves out disk %s: %s", name, error)
            continue
        # A multipath disk has a name for each path to it; the first name counts.
        if not multipath & multipath_seen:
            yield disk
        multipath_seen |= multipath


def _is_fixed(files: Files, name: str) -> bool:
    """Whether the disk is a device of its own, and not removable.

    Loop, RAM, zram, device-mapper and RAID devices consist of other storage and have no link
    `device`. A hidden device is one path to a disk with another name.
    """
    return (
        files.link(f"{_BLOCK}/{name}/device") is not None
        and read_number(files, f"{_BLOCK}/{name}/removable") != 1
        and read_number(files, f"{_BLOCK}/{name}/hidden") != 1
    )


def _read_disk(files: Files, name: str) -> Disk:
    rotational = read_number(files, f"{_BLOCK}/{name}/queue/rotational")
    return Disk(
        name,
        size_bytes=required_number(files, f"{_BLOCK}/{name}/size") * _SECTOR_BYTES,
        rotational=None if rotational is None else rotational == 1,
    )


def _multipath(files: Files, name: str) -> set[str]:
    """The ids of the multipath devices that the disk is a path to."""
    holders = files.names(f"{_BLOCK}/{name}/holders", "dm-*")
    ids = {files.text(f"{_BLOCK}/{holder}/dm/uuid") for holder in holders}
    return {found for found in ids if found is not None and found.startswith("mpath-")}
