"""The options of a driver that describes a machine, as values or as text."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from roost.client.drivers.options import OptionDescription
from roost.client.errors import NotConfigured
from roost.model.text import nearest_names


@dataclass(frozen=True, slots=True)
class Selection:
    """A choice of names by shell patterns; a pattern behind `!` excludes.

    >>> every_disk_but_one = Selection(("*", "!sda"))
    >>> every_disk_but_one.includes("sdb"), every_disk_but_one.includes("sda")
    (True, False)
    """

    patterns: tuple[str, ...] = ("*",)

    def includes(self, *names: str) -> bool:
        """Whether the selection includes a thing with these names."""
        wanted = [pattern for pattern in self.patterns if not pattern.startswith("!")]
        unwanted = [pattern[1:] for pattern in self.patterns if pattern.startswith("!")]
        return _matches(names, wanted or ["*"]) and not _matches(names, unwanted)


def _matches(names: tuple[str, ...], patterns: list[str]) -> bool:
    return any(fnmatchcase(name, pattern) for name in names for pattern in patterns)


@dataclass(frozen=True, slots=True)
class MachineOptions:
    """What the host keeps of a machine, which parts it offers, and at which allocation ratios.

    `offer` chooses devices that the host offers although it uses them. `mdev_types` chooses the
    types of mediated devices; `None` stands for those that the host has made devices of.
    """

    cpu_allocation_ratio: float | None = None
    ram_allocation_ratio: float | None = None
    reserved_memory_mb: int = 512
    reserved_cpus: int = 0
    disks: Selection = Selection()
    pci: Selection = Selection()
    offer: Selection = Selection(("!*",))
    mdev_types: Selection | None = None


def read_options(
    driver: str, given: Mapping[str, object], own: tuple[str, ...] = ()
) -> MachineOptions:
    """The options of a machine among the given ones; the driver reads those in `own` itself.

    >>> read_options("linux", {"reserved_cpus": "2"}).reserved_cpus
    2
    """
    known = (*own, *_READERS)
    for name in given:
        if name not in known:
            near = nearest_names(name, known)
            meant = f"; near it: {', '.join(near)}" if near else ""
            raise NotConfigured(
                f"The {driver} driver has no option {name!r}{meant}; it has: {', '.join(known)}."
            )
    values: dict[str, Any] = {}
    for name in given.keys() & _READERS.keys():
        try:
            values[name] = _READERS[name](given[name])
        except ValueError as error:
            raise NotConfigured(
                f"Option {name}={given[name]} of the {driver} driver: {error}."
            ) from None
    return MachineOptions(**values)


def _ratio(value: object) -> float:
    try:
        ratio = float(str(value))
    except ValueError:
        ratio = math.nan
    if not 0 < ratio < math.inf:
        raise ValueError("it must be a number above 0, such as 1.5")
    return ratio


def _amount(value: object) -> int:
    text = str(value)
    if not (text.isascii() and text.isdigit()):
        raise ValueError("it must be a whole number, 0 or more")
    return int(text)


def _selection(value: object) -> Selection:
    if isinstance(value, Selection):
        return value
    given = value if isinstance(value, list | tuple) else str(value).split(",")
    patterns = tuple(str(pattern).strip() for pattern in given)
    if not all(pattern.removeprefix("!") for pattern in patterns):
        raise ValueError("it must be patterns with commas between them, such as *,!sda")
    return Selection(patterns)


_RATIO = "a number above 0"
_AMOUNT = "a whole number"
_PATTERNS = "patterns with commas"
MACHINE_OPTION_HELP = {
    "cpu_allocation_ratio": OptionDescription(
        "Allocation ratio of VCPU; the server keeps its own if it is left out.", _RATIO
    ),
    "ram_allocation_ratio": OptionDescription(
        "Allocation ratio of MEMORY_MB; as for VCPU.", _RATIO
    ),
    "reserved_memory_mb": OptionDescription("Memory in MiB that the host keeps.", _AMOUNT, 512),
    "reserved_cpus": OptionDescription("Number of CPUs that the host keeps.", _AMOUNT, 0),
    "disks": OptionDescription(
        "Disks to report, by id or by the kernel's name, such as *,!sda.", _PATTERNS, "*"
    ),
    "pci": OptionDescription(
        "PCI functions to report, by address or as vendor:product.", _PATTERNS, "*"
    ),
    "offer": OptionDescription(
        "Disks, PCI functions and TPMs to offer although the host uses them, or may.",
        _PATTERNS,
        "!*",
    ),
    "mdev_types": OptionDescription(
        "Types of mediated devices to offer; without it, the only type in use.", _PATTERNS
    ),
}
"""What `roost driver show` says of the options of a machine."""

_READERS: dict[str, Callable[[object], Any]] = {
    "cpu_allocation_ratio": _ratio,
    "ram_allocation_ratio": _ratio,
    "reserved_memory_mb": _amount,
    "reserved_cpus": _amount,
    "disks": _selection,
    "pci": _selection,
    "offer": _selection,
    "mdev_types": _selection,
}
