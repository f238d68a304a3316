"""Names in the configuration that an operator should change: unknown, ignored, deprecated."""

from __future__ import annotations

import os
from collections.abc import Iterator

from roost.configuration.concerns import Concern, ConcernKind, Severity
from roost.configuration.config_file import read_config_file
from roost.configuration.settings import Settings, options_without_effect
from roost.configuration.unknown_names import all_options, unknown_names


def name_concerns(settings: Settings) -> Iterator[Concern]:
    """A concern for each name that has no effect, or that a later version may not know."""
    for sentence in unknown_names(settings.config_files, os.environ):
        yield Concern(ConcernKind.UNKNOWN, Severity.WARNING, sentence)
    for name in options_without_effect(settings):
        text = f"{name} is an option of the reference that has no effect in Roost. Remove it."
        yield Concern(ConcernKind.IGNORED, Severity.NOTE, text)
    yield from _deprecated(settings)


def _deprecated(settings: Settings) -> Iterator[Concern]:
    today: dict[tuple[str, str], str] = {}
    removed = set()
    for group, members in all_options():
        for option in members:
            if option.deprecated_for_removal:
                removed.add((group, option.dest))
            for old in option.deprecated_opts:
                name = (old.name or option.dest).replace("-", "_")
                today[old.group or group, name] = f"[{group}]{option.dest}"
    for path in settings.config_files:
        file = read_config_file(path)
        for group, name in dict.fromkeys(file.options):
            where = f"{path}:{file.lines[group, name]}"
            if (group, name) in today:
                text = f"{where}: [{group}]{name} is the old name of {today[group, name]}."
            elif (group, name) in removed:
                text = f"{where}: [{group}]{name} is deprecated by its library. Remove it."
            else:
                continue
            yield Concern(ConcernKind.DEPRECATED, Severity.NOTE, text)
