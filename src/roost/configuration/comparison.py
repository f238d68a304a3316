"""The options that differ between two readings of the configuration."""

from __future__ import annotations

from roost.configuration.settings import Settings
from roost.configuration.unknown_names import options_by_name

# The groups that a reload puts into force: the policy, and the options of the log.
_RELOADED_GROUPS = frozenset({"oslo_policy"})
_LOG_GROUP = "DEFAULT"


def changed_options(before: Settings, after: Settings) -> list[tuple[str, str]]:
    """Group and name of each option with another value."""
    found = []
    for group, members in options_by_name().items():
        for name in dict.fromkeys(option.dest for option in members.values()):
            if _value(before, group, name) != _value(after, group, name):
                found.append((group, name))
    if before.database.url != after.database.url:
        found.append(("placement_database", "connection"))
    return list(dict.fromkeys(found))


def needs_restart(group: str) -> bool:
    """Whether a running process cannot take over an option of this group."""
    return group not in _RELOADED_GROUPS and group != _LOG_GROUP


def _value(settings: Settings, group: str, name: str) -> object:
    """The value; `None` for a name that belongs to another group."""
    conf = settings.oslo
    try:
        value: object = conf[name] if group == _LOG_GROUP else conf[group][name]
    except (KeyError, AttributeError):
        return None
    return value
