"""Loading a driver by its name or by its class."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Mapping
from inspect import Parameter
from types import ModuleType
from typing import Any

from roost.client.drivers.driver import DeclaringDriver, Driver
from roost.client.errors import NotConfigured

BUILT_IN = {
    "file": "roost.client.drivers.file:FileDriver",
    "libvirt": "roost.client.drivers.libvirt:LibvirtDriver",
    "linux": "roost.client.drivers.linux:LinuxDriver",
}
"""The classes of the drivers that have a name. `load_driver` imports only the one it needs."""

_METHODS = ("update_provider_tree", "declare")
_BY_KEYWORD = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)


def load_driver(spec: str, options: Mapping[str, str]) -> Driver | DeclaringDriver:
    """A driver by its name, or as `package.module:Class`, made with the options.

    Python finds the module on its path. The working directory is not on that path, because any
    user may have put files there.
    """
    driver_class = _driver_class(spec)
    _check_options(spec, driver_class, options)
    try:
        driver: Driver | DeclaringDriver = driver_class(**options)
    except (TypeError, ValueError) as error:
        raise NotConfigured(f"Driver {spec} cannot be made: {error}.") from error
    return driver


def _driver_class(spec: str) -> type[Any]:
    location = BUILT_IN.get(spec, spec)
    module_name, colon, class_name = location.partition(":")
    if not (module_name and colon and class_name):
        raise NotConfigured(
            f"There is no driver {spec!r}: take {', '.join(BUILT_IN)} or package.module:Class."
        )
    module = _imported(spec, module_name)
    found = getattr(module, class_name, None)
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
    except Exception as error:
        # A module runs code of its own while Python imports it, so any exception is possible.
        raise NotConfigured(
            f"Driver {spec}: {module_name} cannot be imported; {type(error).__name__}: {error}"
        ) from error


def _check_options(spec: str, driver_class: type[Any], options: Mapping[str, str]) -> None:
    signature = inspect.signature(driver_class)
    try:
        signature.bind(**options)
    except TypeError as error:
        accepted = ", ".join(_accepted(signature)) or "none"
        raise NotConfigured(
            f"Driver {spec} cannot take these options: {error}; it takes {accepted}."
        ) from None


def _accepted(signature: inspect.Signature) -> list[str]:
    return [
        name + (" (required)" if parameter.default is Parameter.empty else "")
        for name, parameter in signature.parameters.items()
        if parameter.kind in _BY_KEYWORD
    ]
