"""The drivers that have a name: those of Roost, and those that installed packages register."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points

import roost
from roost.client.errors import NotConfigured
from roost.model.text import nearest_names, with_next

BUILT_IN = {
    "file": "roost.client.drivers.file:FileDriver",
    "libvirt": "roost.client.drivers.libvirt:LibvirtDriver",
    "linux": "roost.client.drivers.linux:LinuxDriver",
}
"""The classes of Roost's drivers. No package can take their names over."""

ENTRY_POINTS = "roost.drivers"
"""The group of entry points under which a package registers its drivers."""


@dataclass(frozen=True, slots=True)
class RegisteredDriver:
    """A driver with a name: where its class is, and the package that registers it."""

    name: str
    location: str
    package: str

    @property
    def is_built_in(self) -> bool:
        """Whether this is a driver of Roost."""
        return BUILT_IN.get(self.name) == self.location

    @property
    def is_hidden(self) -> bool:
        """Whether a driver of Roost has the name."""
        return self.name in BUILT_IN and not self.is_built_in


def registered_drivers() -> list[RegisteredDriver]:
    """All drivers, by name. No driver is imported for it."""
    own = [
        RegisteredDriver(name, location, f"roost {roost.__version__}")
        for name, location in BUILT_IN.items()
    ]
    others = {_registered(point) for point in entry_points(group=ENTRY_POINTS)}
    return sorted([*own, *others], key=lambda driver: (driver.name, driver.package))


def find_driver(name: str) -> RegisteredDriver:
    """The driver with this name; an error if there is none, or if two packages register it."""
    if name in BUILT_IN:
        # Other packages are not looked at, so a broken one cannot stop a driver of Roost.
        return RegisteredDriver(name, BUILT_IN[name], "roost")
    known = registered_drivers()
    found = [driver for driver in known if driver.name == name]
    if not found:
        raise NotConfigured(_unknown(name, [driver.name for driver in known]))
    if len(found) > 1:
        both = " and ".join(f"{driver.package} ({driver.location})" for driver in found)
        raise NotConfigured(
            f"Several packages register a driver {name}: {both}. Remove one of them, or name the"
            f" class: --driver {found[0].location}"
        )
    return found[0]


def _registered(point: EntryPoint) -> RegisteredDriver:
    package = point.dist
    origin = f"{package.name} {package.version}" if package else "an unknown package"
    return RegisteredDriver(point.name, f"{point.module}:{point.attr or ''}", origin)


def _unknown(name: str, known: list[str]) -> str:
    near = nearest_names(name, known)
    meant = f" Near it: {', '.join(near)}." if near else ""
    names = ", ".join(dict.fromkeys(known))
    text = f"There is no driver {name!r}: take {names} or package.module:Class.{meant}"
    return with_next(text, "roost driver list")
