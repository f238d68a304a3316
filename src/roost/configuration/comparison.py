"""The options that differ between two readings of the configuration."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from roost.configuration.keystone_options import registered_keystone_options
from roost.configuration.settings import Settings
from roost.configuration.unknown_names import all_options

# The groups that a reload puts into force: the policy, and the options of the log.
_RELOADED_GROUPS = frozenset({"oslo_policy"})
_LOG_GROUP = "DEFAULT"


def changed_options(before: Settings, after: Settings) -> list[tuple[str, str]]:
    """Group and name of each option with another value."""
    found = [
        (group, name)
        for group, name in dict.fromkeys((*_names(before), *_names(after)))
        if _value(before.oslo, group, name) != _value(after.oslo, group, name)
    ]
    if before.database.url != after.database.url:
        found.append(("placement_database", "connection"))
    return list(dict.fromkeys(found))


def needs_restart(group: str) -> bool:
    """Whether a running process cannot take over an option of this group."""
    return group not in _RELOADED_GROUPS and group != _LOG_GROUP


def _names(settings: Settings) -> Iterator[tuple[str, str]]:
    """Each option under its own group. The library warns at a name that another group had."""
    for group, members in (*all_options(), *registered_keystone_options(settings.oslo).items()):
        for option in members:
            yield group, option.dest


def _value(conf: Any, group: str, name: str) -> object:
    """The value; `None` for an option that this configuration does not have."""
    if group != _LOG_GROUP and group not in conf:
        return None
    registered: Any = conf if group == _LOG_GROUP else conf[group]
    if name not in registered:
        return None
    value: object = registered[name]
    return value
