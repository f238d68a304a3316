"""The options of a driver that describes a machine, as values or as text."""

from __future__ import annotations

from dataclasses import dataclass, fields
from fnmatch import fnmatchcase
from typing import Annotated, get_type_hints

from roost.client.drivers.options import (
    DriverOption,
    OptionKind,
    read_number,
    read_whole_number,
)


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

    def __str__(self) -> str:
        return ",".join(self.patterns)


def _matches(names: tuple[str, ...], patterns: list[str]) -> bool:
    return any(fnmatchcase(name, pattern) for name in names for pattern in patterns)


def _read_ratio(value: object) -> float:
    if (ratio := read_number(value)) <= 0:
        raise ValueError
    return ratio


def _read_amount(value: object) -> int:
    if (amount := read_whole_number(value)) < 0:
        raise ValueError
    return amount


def _read_selection(value: object) -> Selection:
    if isinstance(value, Selection):
        return value
    given = value if isinstance(value, list | tuple) else str(value).split(",")
    patterns = tuple(str(pattern).strip() for pattern in given)
    if not all(pattern.removeprefix("!") for pattern in patterns):
        raise ValueError
    return Selection(patterns)


_RATIO = OptionKind("a number above 0", _read_ratio)
_AMOUNT = OptionKind("a whole number, 0 or more", _read_amount)
_PATTERNS = OptionKind("patterns with commas, such as *,!sda", _read_selection)


@dataclass(kw_only=True)
class MachineOptions:
    """What the host keeps of a machine, which parts it offers, and at which allocation ratios.

    A driver of machines has these options as arguments of its constructor.
    """

    cpu_allocation_ratio: Annotated[
        float | None,
        _RATIO,
        "Allocation ratio of VCPU; the server keeps its own if it is left out.",
    ] = None
    ram_allocation_ratio: Annotated[
        float | None, _RATIO, "Allocation ratio of MEMORY_MB; as for VCPU."
    ] = None
    reserved_memory_mb: Annotated[int, _AMOUNT, "Memory in MiB that the host keeps."] = 512
    reserved_cpus: Annotated[int, _AMOUNT, "Number of CPUs that the host keeps."] = 0
    disks: Annotated[
        Selection, _PATTERNS, "Disks to report, by id or by the kernel's name, such as *,!sda."
    ] = Selection()
    pci: Annotated[
        Selection, _PATTERNS, "PCI functions to report, by address or as vendor:product."
    ] = Selection()
    offer: Annotated[
        Selection,
        _PATTERNS,
        "Disks, PCI functions and TPMs to offer although the host uses them, or may.",
    ] = Selection(("!*",))
    mdev_types: Annotated[
        Selection | None,
        _PATTERNS,
        "Types of mediated devices to offer; without it, the only type in use.",
    ] = None

    def __post_init__(self) -> None:
        """Read what a program gives as text."""
        hints = get_type_hints(type(self), include_extras=True)
        for field in fields(self):
            option = DriverOption.of(field.name, hints[field.name], field.default)
            given = getattr(self, field.name)
            setattr(self, field.name, option.read(type(self).__name__, given))
