"""The ids that disks keep over boots, by which their providers are named."""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from roost.client.drivers.machine.device_names import readable_id
from roost.client.drivers.machine.values import Disk

_LOG = logging.getLogger(__name__)

# Some firmware reports one of these instead of an id.
_NO_ID = re.compile(r"(naa|eui|uuid)\.[0f-]*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class DiskId:
    """An id of a disk. Its value is certain if no unread disk can have the same."""

    text: str
    is_certain: bool = False


def world_wide_id(text: str, *, is_nvme: bool = False) -> str | None:
    """The world-wide id that the kernel spells as `text`; `None` if it is none.

    >>> world_wide_id("naa.5000c500a1b2c3d4"), world_wide_id("eui.0025388b91", is_nvme=True)
    ('wwn-0x5000c500a1b2c3d4', 'nvme-eui.0025388b91')
    """
    if not text or _NO_ID.fullmatch(text):
        return None
    if is_nvme:
        return readable_id(f"nvme-{text}")
    kind, _, value = text.partition(".")
    return f"wwn-0x{value.lower()}" if kind in ("naa", "eui") else readable_id(f"scsi-{text}")


def every_id(disk: Disk) -> tuple[str, ...]:
    """All ids by which an operator may name the disk."""
    return (disk.name, _own_id(disk).text, _path_id(disk).text)


def disk_ids(disks: Sequence[Disk]) -> Mapping[str, DiskId]:
    """The id of each disk by the kernel's name: world-wide, else serial number, else path.

    Disks with the same id get their paths instead. The kernel's name is the last resort. A warning
    names such disks.
    """
    ids = {disk.name: _own_id(disk) for disk in disks}
    for shared, names in _shared(ids).items():
        _LOG.warning(
            "Disks %s all report the id %s, so the driver names their providers by their paths. If "
            "these are several paths to one disk, set up multipath, or choose one with disks=.",
            ", ".join(names),
            shared,
        )
        ids |= {disk.name: _path_id(disk) for disk in disks if disk.name in names}
    for names in _shared(ids).values():
        ids |= {name: _kernel_id(name) for name in names}
    for name, found in ids.items():
        if found == _kernel_id(name):
            _LOG.warning(
                "Disk %s has no id of its own and no path, so its provider has the kernel's name. "
                "After a boot another disk may have this name.",
                name,
            )
    return ids


def _shared(ids: Mapping[str, DiskId]) -> dict[str, list[str]]:
    """The ids that several disks have, with the names of these disks."""
    counts = Counter(found.text for found in ids.values())
    return {
        text: [name for name, found in ids.items() if found.text == text]
        for text, count in counts.items()
        if count > 1
    }


def _own_id(disk: Disk) -> DiskId:
    if disk.world_wide_id is not None:
        return DiskId(disk.world_wide_id, is_certain=True)
    if disk.serial is not None and (serial := readable_id(disk.serial)):
        return DiskId(f"serial-{serial}")
    return _path_id(disk)


def _path_id(disk: Disk) -> DiskId:
    path = "" if disk.path is None else readable_id(disk.path)
    return DiskId(f"path-{path}") if path else _kernel_id(disk.name)


def _kernel_id(name: str) -> DiskId:
    return DiskId(f"kernel-{name}")
