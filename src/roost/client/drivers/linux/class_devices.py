"""The FPGA regions and TPMs of a machine that are no PCI devices."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from typing import TypeVar

from roost.client.drivers.linux.files import Files, read_link, read_number
from roost.client.drivers.machine.values import FpgaRegion, MachineUnreadable, Tpm

_LOG = logging.getLogger(__name__)

_Device = TypeVar("_Device")
_PCI = re.compile(r"[0-9a-f]{4,}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")


def read_fpga_regions(files: Files) -> tuple[tuple[FpgaRegion, ...], bool]:
    """The regions, and whether these are all. Those of a PCI function belong to its provider."""

    def read(_: str, parents: list[str]) -> FpgaRegion | None:
        is_pci = any(_PCI.fullmatch(parent) for parent in parents)
        return None if is_pci else FpgaRegion(parents[-1])

    return _read_all(files, "/sys/class/fpga_region", read)


def read_tpms(files: Files) -> tuple[tuple[Tpm, ...], bool]:
    """The TPMs, and whether these are all."""

    def read(path: str, parents: list[str]) -> Tpm | None:
        if _PCI.fullmatch(parents[-1]):
            return None
        return Tpm(parents[-1], read_number(files, f"{path}/tpm_version_major"))

    return _read_all(files, "/sys/class/tpm", read)


def _read_all(
    files: Files, directory: str, read: Callable[[str, list[str]], _Device | None]
) -> tuple[tuple[_Device, ...], bool]:
    """What `read` makes of the path of each device of a class, and of the device's parents."""
    found = []
    is_whole = True
    try:
        for entry in files.names(directory):
            parents = _parents(files, f"{directory}/{entry}")
            device = read(f"{directory}/{entry}", parents) if parents else None
            if device is not None:
                found.append(device)
    except MachineUnreadable as error:
        is_whole = False
        _LOG.warning(
            "The driver cannot read all of %s; the providers stay as they are: %s", directory, error
        )
    return tuple(found), is_whole


def _parents(files: Files, path: str) -> list[str]:
    """The devices above an entry of a class, the nearest last; none if software makes the entry."""
    link = read_link(files, path)
    # The link ends in the name of the class and the entry.
    parts = [] if link is None else link.partition("devices/")[2].split("/")[:-2]
    return [] if "virtual" in parts else parts
