"""The names of the providers of devices: `<host>_<kind>_<id>`. No name contains a NUMA node."""

from __future__ import annotations

import re
from hashlib import sha256

from roost.client.declaration import UnreadProviders
from roost.client.drivers.machine.values import DeviceKind, UnreadDevices

# The API allows names of 200 characters, and the name of the host comes first.
_LENGTH_MAX = 100
_DIGEST_LENGTH = 12


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
