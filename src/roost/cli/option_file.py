"""A YAML file with the options of a command, under the names that they have on its command line."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click

from roost.client.tree_file.violations import JsonSchema, WordedSchema
from roost.client.tree_file.yaml_lines import FileProblem, Located, UnreadableYaml, decoded, locate
from roost.model.errors import ConfigurationError
from roost.model.secrets import is_secret_name, shown_words
from roost.model.text import own_lines

_SCALARS = ["string", "number", "boolean"]


class KeyValueType(click.ParamType[tuple[str, str]]):
    """A key and its value; in a file, the options of this type are one mapping."""

    name = "KEY=VALUE"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, str]:
        """The key and the value of a text."""
        if isinstance(value, tuple):
            return value
        key, equals, rest = str(value).partition("=")
        if not equals or not key or key.startswith("-"):
            self.fail(f"{shown_words([str(value)])[0]}: write it as KEY=VALUE", param, ctx)
        return key, rest

    def split_envvar_value(self, rv: str) -> list[str]:
        """The pairs in a variable, with spaces between them; a value with spaces has quotes."""
        try:
            return shlex.split(rv)
        except ValueError as error:
            raise click.BadParameter(f"{error}; close the quotes.") from None


KEY_VALUE = KeyValueType()


@dataclass(frozen=True, slots=True)
class OptionFile:
    """The values of a file by the key of the option, and the lines of the keys."""

    path: str
    values: Mapping[str, Any] = field(default_factory=dict)
    lines: Mapping[str, int] = field(default_factory=dict)

    def place(self, key: str) -> str:
        """The file and the line of a key."""
        return f"{self.path}:{self.lines[key]}"


def key_of(option: click.Option) -> str:
    """The name of an option in a file, and in capitals in a variable.

    >>> key_of(click.Option(["-v", "--verbose"])), key_of(click.Option(["--set"], type=KEY_VALUE))
    ('verbose', 'sets')
    """
    long_name = max(option.opts, key=len).lstrip("-")
    return f"{long_name}s" if option.type is KEY_VALUE else long_name


def read_option_file(path: Path, options: Sequence[click.Option]) -> OptionFile:
    """The values of a file; an error lists the place of each key or value that is wrong."""
    try:
        document, problems = locate(decoded(path.read_bytes()))
    except OSError as error:
        raise ConfigurationError(
            f"The configuration {path} cannot be read: {error.strerror}. Check its name and its "
            "rights, or choose another file with --config (/dev/null for none)."
        ) from error
    except UnreadableYaml as error:
        raise ConfigurationError(error.problem.in_file(str(path))) from None
    if document is None or document.value is None:
        return OptionFile(str(path))
    by_key = {key_of(option): option for option in options}
    found = [*problems, *_problems(document, by_key)]
    if found:
        raise ConfigurationError(
            own_lines(*(problem.in_file(str(path)) for problem in sorted(found)))
        )
    return OptionFile(
        str(path),
        {
            key: _pairs(held) if by_key[key].type is KEY_VALUE else _value(key, held)
            for key, held in ((str(key), held) for key, held in document.items.items())
        },
        {key: held.line for key, held in document.keys.items()},
    )


def _problems(document: Located, by_key: Mapping[str, click.Option]) -> Iterator[FileProblem]:
    schema = WordedSchema(
        {
            "type": "object",
            "properties": {key: _schema(option) for key, option in by_key.items()},
            "propertyNames": {"enum": list(by_key)},
        }
    )
    yield from schema.problems(document)
    for key, option in by_key.items():
        if option.type is KEY_VALUE and key in document.items:
            yield from _comma_problems(document.items[key])


def _value(key: str, held: Located) -> Any:
    """The value of an option. A secret is text, whatever YAML reads it as."""
    return held.spelling if is_secret_name(key) and held.value is not None else held.value


def _schema(option: click.Option) -> JsonSchema:
    if is_secret_name(key_of(option)):
        # An error about its type would show the secret.
        return {"type": _SCALARS, "minLength": 1}
    if option.is_flag:
        return {"type": "boolean"}
    if option.type is KEY_VALUE:
        listed = {"type": "array", "items": {"type": _SCALARS}}
        return {"type": "object", "additionalProperties": listed | {"type": [*_SCALARS, "array"]}}
    if isinstance(option.type, click.IntRange | click.FloatRange):
        kind = "integer" if isinstance(option.type, click.IntRange) else "number"
        bounds = {"minimum": option.type.min, "maximum": option.type.max}
        return {"type": kind} | {key: value for key, value in bounds.items() if value is not None}
    return {"type": "string", "minLength": 1}


def _comma_problems(mapping: Located) -> Iterator[FileProblem]:
    for value in mapping.items.values():
        for item in value.items.values():
            if "," in (item.spelling or ""):
                yield item.problem("an item of a list has no comma: write two items")


def _pairs(mapping: Located) -> list[tuple[str, str]]:
    """The text that each value has on a command line: its spelling, and lists with commas."""
    return [
        (
            str(key),
            ",".join(item.spelling or "" for item in held.items.values())
            if isinstance(held.value, list)
            else held.spelling or "",
        )
        for key, held in mapping.items.items()
    ]
