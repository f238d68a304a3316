"""A command whose options may stand in variables of the environment and in a YAML file.

The command line takes precedence over the environment, and the environment over the file. An
address of a server, a URL or a cloud, beats what lower places say of another one. The places are
the command line, the command's own variables, the variables of all clients (`ROOST_URL`,
`OS_CLOUD`, ...) and the file, in this order.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from enum import IntEnum
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from roost.cli.shared.connection import ConnectionSettings
from roost.cli.shared.parameters import ServiceCommand
from roost.client.errors import NotConfigured
from roost.client.transport.connecting import names_a_server
from roost.client.tree_file.schema import JsonSchema, WordedSchema
from roost.client.tree_file.yaml_lines import FileProblem, Located, UnreadableYaml, decoded, locate
from roost.model.errors import ConfigurationError
from roost.model.secrets import is_secret_name, shown_words
from roost.model.text import nearest, own_lines

_SCALARS = ["string", "number", "boolean"]

COMMAND_LINE = "command line"
DEFAULT = "default"

_FILE = "roost.cli.configured_command.file"
"""The key of the file in `Context.meta`."""

_ADDRESSES = ("url", "cloud")
_VARIABLES = ("ROOST_URL", "OS_CLOUD", "OS_AUTH_URL", "OS_AUTH_TYPE", "OS_ENDPOINT")
# A token and a region belong to an address.
_BELONGING = ("token", "token_file", "region")


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


class ConfiguredCommand(ServiceCommand):
    """A service whose options have a variable each: the prefix and the name of the option."""

    def __init__(self, *arguments: Any, variable_prefix: str, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self._variable_prefix = variable_prefix
        for option in self.params:
            if isinstance(option, click.Option) and option.expose_value:
                option.envvar = variable_prefix + key_of(option).upper().replace("-", "_")

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the options; an error about one names the variable or the line that has it."""
        try:
            rest: list[str] = super().parse_args(ctx, args)
        except click.BadParameter as error:
            if isinstance(error.param, click.Option) and error.param.name:
                place = origin(ctx, error.param.name)
                error.param_hint = None if place in (COMMAND_LINE, DEFAULT) else place
            raise
        # After --help has ended the command, and not while the shell completes a word.
        if not ctx.resilient_parsing:
            self._refuse_unknown_variables(ctx)
        return rest

    def _refuse_unknown_variables(self, ctx: click.Context) -> None:
        known = {option.envvar for option in self.params if isinstance(option.envvar, str)}
        for name in os.environ:
            if name.startswith(self._variable_prefix) and name not in known:
                meant = nearest(name, known)
                fix = f"Did you mean {meant}?" if meant else f"See {ctx.command_path} --help."
                raise ConfigurationError(
                    f"The environment has {name}, which is no option of {ctx.command_path}. {fix}"
                )


def config_option(default: Callable[[], Path]) -> Callable[[Any], Any]:
    """The option `--config`. Without it the command reads the default file, if that exists."""

    def read(ctx: click.Context, _option: click.Parameter, given: Path | None) -> Path | None:
        path = given or _existing(default())
        if path is None:
            return None
        options = [
            option
            for option in ctx.command.params
            if isinstance(option, click.Option) and option.envvar and not option.is_eager
        ]
        file = read_option_file(path, options)
        names = {key_of(option): str(option.name) for option in options}
        ctx.default_map = {names[key]: value for key, value in file.values.items()}
        ctx.meta[_FILE] = file
        return path

    return click.option(
        "--config",
        metavar="FILE",
        type=click.Path(path_type=Path, dir_okay=False),
        is_eager=True,
        callback=read,
        help=f"YAML file with these options. [default: {default()}, if it exists]",
    )


def _existing(path: Path) -> Path | None:
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError:
        # Other rights would show a file: to read it tells what is wrong.
        return path
    return path


def file_in_force(ctx: click.Context) -> OptionFile | None:
    """The file that the command has read; `None` if there is none."""
    file: OptionFile | None = ctx.meta.get(_FILE)
    return file


def option_named(ctx: click.Context, name: str) -> click.Option:
    """The option with this parameter name."""
    return next(
        option
        for option in ctx.command.params
        if isinstance(option, click.Option) and option.name == name
    )


def is_given(ctx: click.Context, name: str) -> bool:
    """Whether the command line, the environment or the file gives the option."""
    return ctx.get_parameter_source(name) is not ParameterSource.DEFAULT


def origin(ctx: click.Context, name: str) -> str:
    """Where the value of an option stands: its variable, or its line in the file."""
    source = ctx.get_parameter_source(name)
    option = option_named(ctx, name)
    file = file_in_force(ctx)
    if source is ParameterSource.COMMANDLINE:
        return COMMAND_LINE
    if source is ParameterSource.ENVIRONMENT:
        return str(option.envvar)
    if source is ParameterSource.DEFAULT_MAP and file is not None:
        return file.place(key_of(option))
    return DEFAULT


@contextmanager
def naming_origin(ctx: click.Context, names: Sequence[str]) -> Iterator[None]:
    """Put the variables or the lines of these options before an error about their values."""
    try:
        yield
    except NotConfigured as error:
        places = dict.fromkeys(origin(ctx, name) for name in names)
        shown = ", ".join(place for place in places if place not in (COMMAND_LINE, DEFAULT))
        if not shown:
            raise
        raise NotConfigured(f"{shown}: {error}") from error


class OptionPlace(IntEnum):
    """Where an option may stand; the lowest number takes precedence."""

    COMMAND_LINE = 0
    OWN_VARIABLE = 1
    CLIENT_VARIABLE = 2
    FILE = 3
    NOWHERE = 4


_PLACES = {
    ParameterSource.COMMANDLINE: OptionPlace.COMMAND_LINE,
    ParameterSource.ENVIRONMENT: OptionPlace.OWN_VARIABLE,
    ParameterSource.DEFAULT_MAP: OptionPlace.FILE,
}


def options_out_of_force(ctx: click.Context, environ: Mapping[str, str]) -> list[str]:
    """The options about the server that an address in a place above theirs puts out of force."""
    places = {
        name: _PLACES.get(source, OptionPlace.NOWHERE)
        for name in (*_ADDRESSES, *_BELONGING)
        if (source := ctx.get_parameter_source(name)) is not None
    }
    return out_of_force(places, environ)


def without(connection: ConnectionSettings, names: Iterable[str]) -> ConnectionSettings:
    """The connection without these options, which leaves them to the variables of clients."""
    dropped: dict[str, Any] = dict.fromkeys(names)
    return replace(connection, **dropped)


def variable_of_server(connection: ConnectionSettings, environ: Mapping[str, str]) -> str | None:
    """The variable of all clients that names the server; `None` if an option does, or nothing."""
    if connection.url is not None or connection.cloud is not None:
        return None
    # A token belongs to an address, and never goes to a cloud.
    has_token = connection.token is not None or connection.token_file is not None
    names = _VARIABLES[:1] if has_token else _VARIABLES
    return next((name for name in names if environ.get(name)), None)


def out_of_force(places: Mapping[str, OptionPlace], environ: Mapping[str, str]) -> list[str]:
    """The options that a place above theirs puts out of force.

    >>> out_of_force({"url": OptionPlace.COMMAND_LINE, "token": OptionPlace.FILE}, {})
    ['token']
    >>> out_of_force({"url": OptionPlace.FILE, "token": OptionPlace.OWN_VARIABLE}, {})
    []
    >>> out_of_force({"token": OptionPlace.COMMAND_LINE, "token_file": OptionPlace.FILE}, {})
    ['token_file']
    """
    address = min(places.get(name, OptionPlace.NOWHERE) for name in _ADDRESSES)
    if names_a_server(environ):
        address = min(address, OptionPlace.CLIENT_VARIABLE)
    dropped = _below(places, address)
    token, file = (places.get(name, OptionPlace.NOWHERE) for name in ("token", "token_file"))
    if environ.get("ROOST_TOKEN"):
        dropped += _below({"token": token, "token_file": file}, OptionPlace.CLIENT_VARIABLE)
    dropped += _below({"token": token}, file) + _below({"token_file": file}, token)
    return list(dict.fromkeys(dropped))


def _below(places: Mapping[str, OptionPlace], place: OptionPlace) -> list[str]:
    """The options that stand in a lower place than this one."""
    return [name for name, its in places.items() if OptionPlace.NOWHERE > its > place]
