"""Loading a driver by its name or by its class."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Mapping
from functools import reduce
from types import ModuleType
from typing import Any

from roost.client.drivers.driver import DeclaringDriver, Driver
from roost.client.drivers.options import options_of
from roost.client.drivers.registry import find_driver
from roost.client.errors import DriverFailed, NotConfigured
from roost.model.errors import OperatorError
from roost.model.secrets import without_secrets

_METHODS = ("update_provider_tree", "declare")


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
