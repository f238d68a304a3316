"""The options of a driver: the parameters of its constructor, with their types and help."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, replace
from inspect import Parameter
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from roost.client.drivers.option_kinds import OptionKind, kind_of
from roost.client.errors import NotConfigured
from roost.model.secrets import shown_value, without_secrets
from roost.model.text import nearest_names

_BY_KEYWORD = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)
NO_DEFAULT = Parameter.empty
"""Stands for the default of an option that is required, or whose driver alone knows it."""

HELP_OF_FURTHER = "option_help"
"""The class attribute in which a driver with a `**parameter` may describe what that takes."""


@dataclass(frozen=True, slots=True)
class OptionDescription:
    """What a driver says of an option that it checks itself."""

    help: str
    takes: str
    default: object = NO_DEFAULT


@dataclass(frozen=True, slots=True)
class DriverOption:
    """One option. `help` is the text beside the type in `Annotated[type, "text"]`."""

    name: str
    kind: OptionKind
    required: bool
    default: object = NO_DEFAULT
    help: str = ""

    def read(self, driver: str, value: object) -> Any:
        """The value that the constructor gets; an error names the option, the value and why."""
        try:
            return self.kind.read(value)
        except ValueError as error:
            raise NotConfigured(
                f"Driver {driver}: option {self.name} is {shown_value(self.name, value)!r}, but "
                f"{without_secrets(str(error), {self.name: value})}."
            ) from None


@dataclass(frozen=True, slots=True)
class DriverOptions:
    """All options of a driver; `further` is the kind of those that its `**parameter` takes."""

    options: Mapping[str, DriverOption]
    further: OptionKind | None = None

    def read(self, driver: str, given: Mapping[str, object]) -> dict[str, Any]:
        """The arguments of the constructor."""
        arguments = {name: self._option(driver, name).read(driver, given[name]) for name in given}
        missing = [
            option.name
            for option in self.options.values()
            if option.required and option.name not in given
        ]
        if missing:
            raise NotConfigured(
                f"Driver {driver} lacks the option {' and '.join(missing)}; {self._accepted()}."
            )
        return arguments

    def _option(self, driver: str, name: str) -> DriverOption:
        if name in self.options:
            return self.options[name]
        if self.further is not None:
            return DriverOption(name, self.further, required=False)
        near = nearest_names(name, self.options)
        meant = f"; near it: {', '.join(near)}" if near else ""
        raise NotConfigured(f"Driver {driver} has no option {name!r}{meant}; {self._accepted()}.")

    def _accepted(self) -> str:
        names = [
            option.name + (" (required)" if option.required else "")
            for option in self.options.values()
        ]
        return f"it takes {', '.join(names) or 'none'}"


def options_of(driver_class: type[Any]) -> DriverOptions:
    """The options of a driver, by the signature and the annotations of its constructor."""
    parameters = list(inspect.signature(driver_class).parameters.values())
    hints = _hints(driver_class)
    options = {
        parameter.name: _option(
            parameter.name,
            hints.get(parameter.name, Parameter.empty),
            required=parameter.default is Parameter.empty,
            default=parameter.default,
        )
        for parameter in parameters
        if parameter.kind in _BY_KEYWORD
    }
    keywords = [each.name for each in parameters if each.kind is Parameter.VAR_KEYWORD]
    if not keywords:
        return DriverOptions(options)
    further = kind_of(_without_help(hints.get(keywords[0], Parameter.empty))[0])
    described = {
        name: _described(name, further, description)
        for name, description in getattr(driver_class, HELP_OF_FURTHER, {}).items()
    }
    return DriverOptions(options | described, further)


def _option(name: str, hint: Any, *, required: bool, default: object = NO_DEFAULT) -> DriverOption:
    annotation, text = _without_help(hint)
    return DriverOption(name, kind_of(annotation), required, default, text)


def _described(name: str, kind: OptionKind, said: str | OptionDescription) -> DriverOption:
    if isinstance(said, str):
        return DriverOption(name, kind, required=False, help=said)
    kind = replace(kind, words=said.takes)
    return DriverOption(name, kind, required=False, default=said.default, help=said.help)


def _without_help(hint: Any) -> tuple[Any, str]:
    """The type of an annotation, and the text that `Annotated` has beside it."""
    if get_origin(hint) is not Annotated:
        return hint, ""
    annotation, *notes = get_args(hint)
    return annotation, next((note for note in notes if isinstance(note, str)), "")


def _hints(driver_class: type[Any]) -> dict[str, Any]:
    if driver_class.__init__ is object.__init__:
        return {}
    try:
        return get_type_hints(driver_class.__init__, include_extras=True)
    except (NameError, TypeError, AttributeError, SyntaxError) as error:
        raise NotConfigured(
            f"The annotations of {driver_class.__name__}.__init__ cannot be read: {error}; import"
            " the types where Python finds them at run time."
        ) from error
