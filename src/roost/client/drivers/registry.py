"""The drivers that have a name, and the loading of a driver by its name or by its class."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from importlib.metadata import EntryPoint, entry_points
from types import ModuleType
from typing import Any

import roost
from roost.client.drivers.driver import DeclaringDriver, Driver
from roost.client.drivers.options import options_of
from roost.client.errors import DriverFailed, NotConfigured
from roost.model.errors import OperatorError
from roost.model.secrets import without_secrets
from roost.model.text import nearest_names, with_next

BUILT_IN = {
    "file": "roost.client.drivers.file:FileDriver",
    "libvirt": "roost.client.drivers.libvirt:LibvirtDriver",
    "linux": "roost.client.drivers.linux:LinuxDriver",
}
"""The classes of Roost's drivers. No package can take their names over."""

ENTRY_POINTS = "roost.drivers"
"""The group of entry points under which a package registers its drivers."""

_METHODS = ("update_provider_tree", "declare")


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


def load_driver(spec: str, options: Mapping[str, object]) -> Driver | DeclaringDriver:
    """A driver by its name, or as `package.module:Class`, made with the options.

    An option is text or a native value; the constructor gets what its annotations say. Python
    finds the module on its path. The working directory is not on that path, because any user may
    have put files there.
    """
    driver_class = load_driver_class(spec)
    arguments = options_of(driver_class).read(spec, options)
    try:
        driver: Driver | DeclaringDriver = driver_class(**arguments)
    except OperatorError:
        raise
    except (TypeError, ValueError) as error:
        said = without_secrets(str(error), options)
        raise NotConfigured(f"Driver {spec} cannot be made: {said}.") from error
    except (Exception, SystemExit) as error:
        # The constructor may ask hardware, which may answer at the next start.
        said = without_secrets(f"{type(error).__name__}: {error}", options)
        raise DriverFailed(f"Driver {spec} cannot be made: {said}") from error
    return driver


def load_driver_class(spec: str) -> type[Any]:
    """The class of a driver by its name, or as `package.module:Class`."""
    location = spec if _is_location(spec) else find_driver(spec).location
    if not _is_location(location):
        raise NotConfigured(
            f"Driver {spec}: its package registers {location!r}, which names no class; the entry"
            " point has to be package.module:Class."
        )
    module_name, _, class_name = location.partition(":")
    module = _imported(spec, module_name)
    try:
        found = reduce(getattr, class_name.split("."), module)
    except AttributeError:
        found = None
    if not inspect.isclass(found):
        raise NotConfigured(
            f"Driver {spec}: there is no class {class_name} in {module_name}"
            f" ({module.__file__}); check its name."
        )
    if not any(callable(getattr(found, method, None)) for method in _METHODS):
        raise NotConfigured(
            f"Driver {spec}: {class_name} is no driver; it needs a method {' or '.join(_METHODS)}."
        )
    return found


def _is_location(text: str) -> bool:
    module_name, _, class_name = text.partition(":")
    return bool(module_name and class_name)


def _imported(spec: str, module_name: str) -> ModuleType:
    try:
        return importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        missing = error.name or ""
        if module_name == missing or module_name.startswith(f"{missing}."):
            raise NotConfigured(
                f"Driver {spec}: there is no module {missing}; check the name, install it, or add"
                " the directory that has it to PYTHONPATH."
            ) from error
        raise NotConfigured(
            f"Driver {spec}: {module_name} needs the missing module {missing}; install it."
        ) from error
    except (Exception, SystemExit) as error:
        # A module runs code of its own while Python imports it, so any exception is possible.
        raise NotConfigured(
            f"Driver {spec}: {module_name} cannot be imported; {type(error).__name__}: {error}"
        ) from error
