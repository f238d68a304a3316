"""Misspelt groups and options: each is named, with the known name that is nearest."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib.metadata import entry_points
from types import MappingProxyType

from oslo_config import cfg

from roost.configuration import options
from roost.configuration.config_file import ConfigFile, read_config_file
from roost.configuration.keystone_options import known_keystone_options
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
# The libraries whose options take effect; they publish them by entry points.
_LIBRARIES = ("oslo.log", "oslo.policy")
_VARIABLE = re.compile(r"OS_([A-Z0-9_]+?)__([A-Z0-9_]+)")
# Other programs have such variables, too. Only a name near a group of Roost is a misspelling.
_VARIABLE_LIKENESS = 0.8

Known = Mapping[str, Mapping[str, cfg.Opt]]


def unknown_names(files: Iterable[str], environment: Mapping[str, str]) -> list[str]:
    """A sentence for each group or option that has no effect because of its name."""
    read = [read_config_file(path) for path in files]
    of_keystone = known_keystone_options(
        {_normal(group) for file in read for group in file.groups},
        [choice for file in read for choice in file.choices],
        environment,
    )
    known = options_by_name(of_keystone)
    found = [sentence for file in read for sentence in _of_file(file, known)]
    return [*found, *_of_environment(environment, known)]


def options_by_name(
    further: Mapping[str, Sequence[cfg.Opt]] = MappingProxyType({}),
) -> dict[str, dict[str, cfg.Opt]]:
    """All options that take effect, by group and by each name they can have in a file."""
    known: dict[str, dict[str, cfg.Opt]] = {}
    for group, members in (*all_options(), *further.items()):
        for option in members:
            known.setdefault(group, {})[option.dest] = option
            for old in option.deprecated_opts:
                names = known.setdefault(old.group or group, {})
                names.setdefault((old.name or option.dest).replace("-", "_"), option)
    return known


def all_options() -> Iterator[tuple[str, Sequence[cfg.Opt]]]:
    """Each group with its options, those of the libraries included."""
    yield from options.GROUPS.items()
    yield from options.WITHOUT_EFFECT.items()
    for list_options in _listings_of_libraries():
        for group, members in list_options():
            yield str(group or _DEFAULT), members


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
        elif times > 1 and not members[name].multi:
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


def _meant_option(name: str, members: Mapping[str, cfg.Opt], known: Known) -> str:
    plain = name.lower().replace("-", "_")
    homes = [group for group, others in known.items() if plain in others]
    if homes and plain not in members:
        return f" It belongs to [{homes[0]}]."
    near = nearest(plain, members)
    return f" Did you mean {near}?" if near else ""
