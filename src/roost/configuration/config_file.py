"""The groups and options that a configuration file sets, and where."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from oslo_config import iniparser

from roost.configuration.regular_files import regular_file
from roost.model.errors import ConfigurationError


@dataclass(frozen=True, slots=True)
class ConfigFile:
    """What one file sets, in the order of its lines."""

    path: str
    groups: list[str] = field(default_factory=list)
    options: list[tuple[str, str]] = field(default_factory=list)
    # The last value of each option, and the line in which it begins. Values may be secrets.
    values: dict[tuple[str, str], str] = field(default_factory=dict)
    lines: dict[tuple[str, str], int] = field(default_factory=dict)


def read_config_file(path: str) -> ConfigFile:
    """Read one file. `ConfigurationError` names a wrong line without its text, maybe a secret."""
    found = ConfigFile(path)
    try:
        with open(path, encoding="utf-8", opener=regular_file) as lines:
            _Parser(found).parse(_counted(lines, found))
    except OSError as error:
        raise ConfigurationError(
            f"The configuration file {path} cannot be read: {error.strerror}. Let this user read "
            "it, or name another one."
        ) from None
    except UnicodeDecodeError:
        raise ConfigurationError(
            f"The configuration file {path} is not a text in UTF-8. Save it as one."
        ) from None
    except iniparser.ParseError as error:
        raise ConfigurationError(
            f"The configuration file {path} cannot be read: {error.msg}, in line {error.lineno}. "
            "Write [group], and below it option = value, at the beginning of lines."
        ) from None
    return found


def _counted(lines: Iterable[str], found: ConfigFile) -> Iterator[str]:
    """The lines, while `found.lines` gets the number of each line that begins an option."""
    group = ""
    for number, line in enumerate(lines, 1):
        if line.startswith("["):
            group = line.rstrip()[1:-1]
        elif line[:1].strip() and not line.startswith(("#", ";")):
            found.lines[group, re.split("[=:]", line, maxsplit=1)[0].strip()] = number
        yield line


class _Parser(iniparser.BaseParser):
    """Collects the names of groups and options."""

    def __init__(self, found: ConfigFile) -> None:
        self._found = found

    def new_section(self, section: str) -> None:
        self._found.groups.append(section)

    def assignment(self, key: str, value: list[str]) -> None:
        if not self._found.groups:
            raise self.parse_exc("there is no group before the first option", self.lineno, "")
        name = self._found.groups[-1], key
        self._found.options.append(name)
        self._found.values[name] = "\n".join(value)
