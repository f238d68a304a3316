"""Whether the host uses a disk: mounts, swap, RAID, volumes and encryption on it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from roost.client.drivers.linux.files import Files, read_text
from roost.client.drivers.linux.mounts import MountedDevices
from roost.client.drivers.machine.values import MachineUnreadable

BLOCK = "/sys/block"
# A multipath device, or a partition of one: another name for the same disk.
_ALIAS = re.compile(r"(part\d+-)?mpath-.*")


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
