"""The options in force: each with its value and its origin, and what two readings differ in."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from oslo_config import cfg
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError

from roost.configuration import options
from roost.configuration.config_file import ConfigFile, read_config_file
from roost.configuration.keystone_options import registered_keystone_options
from roost.configuration.settings import Settings
from roost.configuration.unknown_names import all_options
from roost.model.text import without_user_info
from roost.store.connections.driver_errors import shown_url

_HIDDEN = "***"
_ABSENT = object()
_DEFAULT = "DEFAULT"
_CONNECTION = ("placement_database", "connection")
# The groups that a reload puts into force: the policy, and the options of the log.
_RELOADED_GROUPS = frozenset({"oslo_policy", _DEFAULT})


@dataclass(frozen=True, slots=True)
class OptionInForce:
    """One option with its value, and the place that gives the value."""

    group: str
    name: str
    value: Any
    origin: str

    @property
    def is_default(self) -> bool:
        """Whether no file and no variable names the option."""
        return self.origin == "default"


def options_in_force(settings: Settings, *, url_is_given: bool) -> list[OptionInForce]:
    """All options, in the order of their groups; `url_is_given` on the command line."""
    files = {path: read_config_file(path) for path in settings.config_files}
    found: dict[tuple[str, str], OptionInForce] = {}
    of_keystone = registered_keystone_options(settings.oslo)
    for group, option in _options(settings):
        value = _value(settings.oslo, group, option.dest, _ABSENT)
        without_effect = option in options.WITHOUT_EFFECT.get(group, ())
        if value is _ABSENT or (without_effect and value is None):
            continue
        origin = _origin(settings.oslo, group, option, files)
        if (group, option.dest) == _CONNECTION:
            value = _shown(settings.database.url)
            origin = "--db" if url_is_given else origin
        elif option.secret and value is not None:
            value = _HIDDEN
        elif group in of_keystone and isinstance(value, str):
            value = without_user_info(value)
        found[group, option.dest] = OptionInForce(group, option.dest, value, origin)
    return sorted(found.values(), key=lambda one: (one.group != _DEFAULT, one.group))


def _value(conf: Any, group: str, name: str, absent: object = None) -> Any:
    """The value; `absent` for an option that this configuration does not have."""
    try:
        return conf[name] if group == _DEFAULT else conf[group][name]
    except (KeyError, AttributeError):
        return absent


def _shown(url: str) -> str:
    try:
        return shown_url(make_url(url))
    except (ArgumentError, ValueError):
        return _HIDDEN


def _origin(conf: Any, group: str, option: cfg.Opt, files: dict[str, ConfigFile]) -> str:
    location = conf.get_location(option.dest, None if group == _DEFAULT else group)
    if location is None or not location.location.is_user_controlled:
        return "default"
    if location.location is cfg.Locations.environment:
        return f"variable {location.detail}" if location.detail else "environment"
    names = [(group, option.dest)]
    names += [(old.group or group, old.name or option.dest) for old in option.deprecated_opts]
    # A later file beats an earlier one.
    for path, file in reversed(files.items()):
        for wanted_group, name in names:
            for (line_group, line_name), line in file.lines.items():
                if line_name == name and line_group.lower() == wanted_group.lower():
                    return f"{path}:{line}"
    return str(location.detail)


def changed_options(before: Settings, after: Settings) -> list[tuple[str, str]]:
    """Group and name of each option with another value."""
    both = (*_options(before), *_options(after))
    found = [
        (group, name)
        for group, name in dict.fromkeys((group, option.dest) for group, option in both)
        if _value(before.oslo, group, name) != _value(after.oslo, group, name)
    ]
    if before.database.url != after.database.url:
        found.append(_CONNECTION)
    return list(dict.fromkeys(found))


def needs_restart(group: str) -> bool:
    """Whether a running process cannot take over an option of this group."""
    return group not in _RELOADED_GROUPS


def _options(settings: Settings) -> Iterator[tuple[str, cfg.Opt]]:
    """Each option under its own group. The library warns at a name that another group had."""
    for group, members in (*all_options(), *registered_keystone_options(settings.oslo).items()):
        for option in members:
            yield group, option
