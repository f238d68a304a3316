"""The options in force: each with its value and its origin, and what two readings differ in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from oslo_config import cfg
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError

from roost.configuration.config_file import ConfigFile, read_config_file
from roost.configuration.keystone_options import registered_keystone_options
from roost.configuration.settings import Settings
from roost.configuration.unknown_names import KnownOption, all_options
from roost.model.secrets import HIDDEN
from roost.model.text import without_user_info
from roost.store.connections.driver_errors import shown_url

_DEFAULT = "DEFAULT"
_CONNECTION = "[placement_database]connection"
# What a reload puts into force: the policy, the options of the log, and the named queries.
_RELOADED_GROUPS = frozenset({"oslo_policy", _DEFAULT})
_RELOADED_OPTIONS = frozenset({"[roost]metrics_queries"})


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
    found: dict[str, OptionInForce] = {}
    of_keystone = registered_keystone_options(settings.oslo)
    for known in all_options(settings.oslo):
        group, option = known.group, known.option
        value = known.value(settings.oslo)
        if not known.is_in(settings.oslo) or (value is None and not known.has_effect):
            continue
        origin = _origin(settings.oslo, known, files)
        if str(known) == _CONNECTION:
            value = _shown(settings.database.url)
            origin = "--db" if url_is_given else origin
        elif option.secret and value is not None:
            value = HIDDEN
        elif group in of_keystone and isinstance(value, str):
            value = without_user_info(value)
        found[str(known)] = OptionInForce(group, option.dest, value, origin)
    return sorted(found.values(), key=lambda one: (one.group != _DEFAULT, one.group))


def _shown(url: str) -> str:
    try:
        return shown_url(make_url(url))
    except (ArgumentError, ValueError):
        return HIDDEN


def _origin(conf: Any, known: KnownOption, files: dict[str, ConfigFile]) -> str:
    group = None if known.group == _DEFAULT else known.group
    location = conf.get_location(known.option.dest, group)
    if location is None or not location.location.is_user_controlled:
        return "default"
    if location.location is cfg.Locations.environment:
        return f"variable {location.detail}" if location.detail else "environment"
    # A later file beats an earlier one.
    for path, file in reversed(files.items()):
        for wanted_group, wanted in known.names:
            for (line_group, name), line in file.lines.items():
                if name.replace("-", "_") == wanted and line_group.lower() == wanted_group.lower():
                    return f"{path}:{line}"
    return str(location.detail)


def changed_options(before: Settings, after: Settings) -> list[KnownOption]:
    """Each option with another value."""
    both = {str(known): known for known in (*all_options(before.oslo), *all_options(after.oslo))}
    return [
        known
        for name, known in both.items()
        if known.value(before.oslo) != known.value(after.oslo)
        or (name == _CONNECTION and before.database.url != after.database.url)
    ]


def needs_restart(option: KnownOption) -> bool:
    """Whether a running process cannot take over another value of this option."""
    return option.group not in _RELOADED_GROUPS and str(option) not in _RELOADED_OPTIONS
