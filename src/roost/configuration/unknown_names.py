"""The known options, and misspelt ones: each is named, with the known name that is nearest."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import entry_points
from typing import Any

from oslo_config import cfg

from roost.configuration import options
from roost.configuration.config_file import ConfigFile, read_config_file
from roost.configuration.keystone_options import (
    GROUP,
    register_keystone_options,
    registered_keystone_options,
)
from roost.configuration.options import Settings
from roost.model.text import nearest

_DEFAULT = "DEFAULT"
# Groups of libraries that the reference's file may configure and Roost does not use. Without its
# package, `keystone_authtoken` is one of them.
_FOREIGN_GROUPS = frozenset(
    {
        "cache",
        "healthcheck",
        "keystone_authtoken",
        "oslo_concurrency",
        "oslo_limit",
        "oslo_messaging_amqp",
        "oslo_messaging_kafka",
        "oslo_messaging_metrics",
        "oslo_messaging_notifications",
        "oslo_messaging_rabbit",
        "oslo_middleware_tracing",
        "oslo_reports",
        "oslo_versionedobjects",
        "profiler",
        "ssl",
    }
)
_OF_KEYSTONE = f"OS_{GROUP.upper()}__"
# The libraries whose options take effect; they publish them by entry points.
_LIBRARIES = ("oslo.log", "oslo.policy")
_VARIABLE = re.compile(r"OS_([A-Z0-9_]+?)__([A-Z0-9_]+)")
# Other programs have such variables, too. Only a name near a group of Roost is a misspelling.
_VARIABLE_LIKENESS = 0.8


@dataclass(frozen=True, slots=True)
class KnownOption:
    """An option and its group."""

    group: str
    option: cfg.Opt

    def __str__(self) -> str:
        return f"[{self.group}]{self.option.dest}"

    @property
    def names(self) -> list[tuple[str, str]]:
        """Group and name, and behind them the old ones that a file can still have."""
        old = [
            (each.group or self.group, (each.name or self.option.dest).replace("-", "_"))
            for each in self.option.deprecated_opts
        ]
        return [(self.group, self.option.dest), *old]

    @property
    def has_effect(self) -> bool:
        """Whether the option changes anything in Roost."""
        return self.option not in options.WITHOUT_EFFECT.get(self.group, ())

    def is_in(self, conf: Any) -> bool:
        """Whether this configuration has the option."""
        if self.group == _DEFAULT:
            return self.option.dest in conf
        return self.group in conf and self.option.dest in conf[self.group]

    def value(self, conf: Any) -> Any:
        """The value in a configuration; `None` in one that does not have the option."""
        if not self.is_in(conf):
            return None
        return (conf if self.group == _DEFAULT else conf[self.group])[self.option.dest]


Known = Mapping[str, Mapping[str, KnownOption]]


def unknown_names(settings: Settings, environment: Mapping[str, str] = os.environ) -> list[str]:
    """A sentence for each group or option that has no effect because of its name."""
    files = [read_config_file(path) for path in settings.config_files]
    groups = [_normal(group) for file in files for group in file.groups]
    is_named = GROUP in groups or any(name.startswith(_OF_KEYSTONE) for name in environment)
    known = options_by_name(_with_keystone(settings) if is_named else settings.oslo)
    found = [sentence for file in files for sentence in _of_file(file, known)]
    return [*found, *_of_environment(environment, known)]


def _with_keystone(settings: Settings) -> Any:
    """A configuration with the options of Keystone, even if another strategy is in force."""
    if GROUP in settings.oslo:
        return settings.oslo
    conf = cfg.ConfigOpts()
    conf(args=[], default_config_files=list(settings.config_files), default_config_dirs=[])
    try:
        register_keystone_options(conf)
    except cfg.Error:
        # Nothing uses the values of the group, so a wrong one is no error.
        return settings.oslo
    return conf


def options_by_name(conf: Any = ()) -> dict[str, dict[str, KnownOption]]:
    """All options that take effect, by group and by each name they can have in a file."""
    known: dict[str, dict[str, KnownOption]] = {}
    for option in all_options(conf):
        (own_group, own_name), *old_names = option.names
        known.setdefault(own_group, {})[own_name] = option
        for group, name in old_names:
            known.setdefault(group, {}).setdefault(name, option)
    return known


def all_options(conf: Any = ()) -> list[KnownOption]:
    """All options, those of the libraries included; of Keystone's, those in this configuration."""
    groups: list[tuple[object, Sequence[cfg.Opt]]] = [
        *options.GROUPS.items(),
        *options.WITHOUT_EFFECT.items(),
        *(pair for list_options in _listings_of_libraries() for pair in list_options()),
        *registered_keystone_options(conf).items(),
    ]
    return [
        KnownOption(str(group or _DEFAULT), option)
        for group, members in groups
        for option in members
    ]


@cache
def _listings_of_libraries() -> Sequence[Callable[[], Sequence[tuple[object, Sequence[cfg.Opt]]]]]:
    """The functions that list the options of the libraries.

    To find them takes longer than all other work on a configuration: it reads a file of each
    installed package.
    """
    return [
        entry.load()
        for library in _LIBRARIES
        for entry in entry_points(group="oslo.config.opts", name=library)
    ]


def _of_file(file: ConfigFile, known: Known) -> Iterator[str]:
    for group in dict.fromkeys(file.groups):
        if _normal(group) not in known.keys() | _FOREIGN_GROUPS:
            yield (
                f"{file.path}: the group [{group}] is unknown and has no effect."
                f"{_meant_group(group, known)}"
            )
    for (group, name), times in Counter(file.options).items():
        members = known.get(_normal(group))
        if members is None:
            continue
        if name not in members:
            yield (
                f"{file.path}: the option {name} in [{group}] is unknown and has no effect."
                f"{_meant_option(name, members, known)}"
            )
        elif times > 1 and not members[name].option.multi:
            yield (
                f"{file.path}: the option {name} in [{group}] is there {times} times. Only the "
                "last one has an effect."
            )


def _of_environment(environment: Mapping[str, str], known: Known) -> Iterator[str]:
    for variable in sorted(environment):
        matched = _VARIABLE.fullmatch(variable)
        if matched is None:
            continue
        group = _DEFAULT if matched[1] == _DEFAULT else matched[1].lower()
        name = matched[2].lower()
        if group in known and name not in known[group]:
            yield (
                f"The variable {variable} has no effect: [{group}] has no option {name}."
                f"{_meant_option(name, known[group], known)}"
            )
        elif group not in known and (near := nearest(group, known, _VARIABLE_LIKENESS)):
            yield (
                f"The variable {variable} has no effect: there is no group [{group}]. "
                f"Did you mean [{near}]?"
            )


def _normal(group: str) -> str:
    """The name of a group as the library compares it: case matters for DEFAULT alone."""
    return group if group == _DEFAULT else group.lower()


def _meant_group(group: str, known: Known) -> str:
    near = nearest(group.lower(), known) or nearest(group.upper(), known)
    return f" Did you mean [{near}]?" if near else ""


def _meant_option(name: str, members: Mapping[str, KnownOption], known: Known) -> str:
    plain = name.lower().replace("-", "_")
    homes = [group for group, others in known.items() if plain in others]
    if homes and plain not in members:
        return f" It belongs to [{homes[0]}]."
    near = nearest(plain, members)
    return f" Did you mean {near}?" if near else ""
