"""The place of a disk in the machine, as udev names it in `/dev/disk/by-path`."""

from __future__ import annotations

import re
from itertools import takewhile

_PCI = re.compile(r"[0-9a-f]{4,}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
# The kernel numbers these in the order in which it finds them.
_NUMBERED = re.compile(r"(ata|host|mmc|nvme|usb|virtio)\d+|block|mmc_host|nvme")
_NETWORK = re.compile(r"session\d+|rport-.*")
_USB = re.compile(r"\d+-(?P<ports>[\d.]+):(?P<interface>\d+\.\d+)")
_SCSI = re.compile(r"\d+:(?P<address>\d+:\d+:\d+)")


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
