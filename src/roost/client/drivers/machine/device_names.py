"""The names of the providers of devices: `<host>_<kind>_<id>`. No name contains a NUMA node."""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import takewhile

from roost.client.drivers.machine.values import DeviceKind, Disk, UnreadDevices
from roost.model.trees.declaration import UnreadProviders

_LOG = logging.getLogger(__name__)

# The API allows names of 200 characters, and the name of the host comes first.
_LENGTH_MAX = 100
_DIGEST_LENGTH = 12

# Some firmware reports one of these instead of an id.
_NO_ID = re.compile(r"(naa|eui|uuid)\.[0f-]*", re.IGNORECASE)

_PCI = re.compile(r"[0-9a-f]{4,}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
# The kernel numbers these in the order in which it finds them.
_NUMBERED = re.compile(r"(ata|host|mmc|nvme|usb|virtio)\d+|block|mmc_host|nvme")
_NETWORK = re.compile(r"session\d+|rport-.*")
_USB = re.compile(r"\d+-(?P<ports>[\d.]+):(?P<interface>\d+\.\d+)")
_SCSI = re.compile(r"\d+:(?P<address>\d+:\d+:\d+)")


def device_name(nodename: str, kind: DeviceKind, device_id: str) -> str:
    """The name of a device's provider.

    >>> device_name("m1", DeviceKind.PCI, "0000:17:00.0")
    'm1_pci_0000:17:00.0'
    """
    return f"{_prefix(nodename, kind)}{device_id}"


def unread_providers(nodename: str, unread: UnreadDevices) -> UnreadProviders:
    """The providers of the devices that a reader cannot read."""
    return UnreadProviders(
        names=frozenset(
            device_name(nodename, DeviceKind.PCI, address) for address in unread.pci_addresses
        ),
        prefixes=frozenset(_prefix(nodename, kind) for kind in unread.kinds),
    )


def readable_id(text: str) -> str:
    """A text as a part of a name: without blanks, and cut if it is too long.

    >>> readable_id("t10.ATA     QEMU HARDDISK   QM00005  ")
    't10.ATA_QEMU_HARDDISK_QM00005'
    """
    readable = re.sub(r"[^A-Za-z0-9.:+-]+", "_", text.strip()).strip("_")
    if len(readable) <= _LENGTH_MAX:
        return readable
    # The end of a long id often tells it apart, so its digest stays.
    digest = sha256(text.encode()).hexdigest()[:_DIGEST_LENGTH]
    return f"{readable[: _LENGTH_MAX - _DIGEST_LENGTH - 1]}-{digest}"


def custom_name(*parts: str) -> str:
    """A custom trait or resource class out of several parts.

    >>> custom_name("MDEV_TYPE", "nvidia-256")
    'CUSTOM_MDEV_TYPE_NVIDIA_256'
    """
    return re.sub(r"[^A-Z0-9_]+", "_", "_".join(("CUSTOM", *parts)).upper())


def _prefix(nodename: str, kind: DeviceKind) -> str:
    return f"{nodename}_{kind}_"


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


def disk_path(
    device: str, *, ata_port: int | None = None, namespace: int | None = None
) -> str | None:
    """The path of the disk whose directory in sysfs is `device`, or ends in it.

    `None` if nothing in the directory's name stays the same over boots.

    >>> disk_path("../devices/pci0000:00/0000:00:05.0/virtio2/host0/target0:0:1/0:0:1:0/block/sda")
    'pci-0000:00:05.0-scsi-0:0:1:0'
    """
    parts = device.rpartition("devices/")[2].split("/")
    fixed = list(takewhile(lambda part: not _NUMBERED.fullmatch(part), parts))
    place = _place(fixed)
    numbered = parts[len(fixed) :]
    if place is None or not numbered or any(_NETWORK.fullmatch(part) for part in numbered):
        return None
    if numbered[0].startswith("ata"):
        return None if ata_port is None else f"{place}-ata-{ata_port}"
    if numbered[0].startswith("nvme"):
        return None if namespace is None else f"{place}-nvme-{namespace}"
    usb = "".join(f"-usb-0:{match['ports']}:{match['interface']}" for match in _all(_USB, numbered))
    scsi = "".join(f"-scsi-0:{match['address']}" for match in _all(_SCSI, numbered))
    return f"{place}{usb}{scsi}"


def _place(fixed: list[str]) -> str | None:
    """The device that the disk is connected to."""
    if not fixed or fixed[0] == "virtual" or fixed == ["platform"]:
        return None
    if _PCI.fullmatch(fixed[-1]):
        return f"pci-{fixed[-1]}"
    return f"platform-{fixed[-1]}" if fixed[0] == "platform" else fixed[-1]


def _all(pattern: re.Pattern[str], parts: list[str]) -> list[re.Match[str]]:
    return [match for part in parts if (match := pattern.fullmatch(part))]
