"""The configuration of `roost agent`: command line, variables, YAML file, and what is in force.

The command line takes precedence over the environment, and the environment over the file. An
address of a server, a URL or a cloud, beats what lower places say of another one. The places are
the command line, the agent's own variables, the variables of all clients (`ROOST_URL`,
`OS_CLOUD`, ...) and the file, in this order.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from enum import IntEnum
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from roost.cli.driver import KEY_VALUE
from roost.cli.shared.connection import ConnectionSettings
from roost.cli.shared.parameters import ServiceCommand
from roost.client.drivers.driver import DeclaringDriver, Driver
from roost.client.drivers.registry import load_driver
from roost.client.errors import NotConfigured
from roost.client.transport.connecting import names_a_server
from roost.client.tree_file.schema import JsonSchema, schema_problems
from roost.client.tree_file.yaml_lines import Located, locate
from roost.model.errors import ConfigurationError
from roost.model.secrets import HIDDEN, is_secret_name, shown_value
from roost.model.text import nearest, own_lines, plain_number

DEFAULT_FILE = Path("/etc/roost/agent.yaml")
VARIABLE_PREFIX = "ROOST_AGENT_"

COMMAND_LINE = "command line"
DEFAULT = "default"

# The key of the file in `Context.meta`.
_FILE = "roost.cli.agent_configuration.file"
_SCALARS = ["string", "number", "boolean"]
# Text that YAML takes for text without quotes.
_PLAIN = re.compile(r"[A-Za-z/][A-Za-z0-9_./:@-]*[A-Za-z0-9_/]")
# These belong to the ownership of a declaring driver.
_OF_OWNERS = ("owner", "adopt", "accept_loss", "missing_reports", "missing_minutes")

_VARIABLES = ("ROOST_URL", "OS_CLOUD", "OS_AUTH_URL", "OS_AUTH_TYPE", "OS_ENDPOINT")
_ADDRESSES = ("url", "cloud")
_TOKENS = ("token", "token_file")


def key_of(option: click.Option) -> str:
    """The name of an option in the file, and in capitals in a variable.

    >>> key_of(click.Option(["-v", "--verbose"])), key_of(click.Option(["--set"], type=KEY_VALUE))
    ('verbose', 'sets')
    """
    long_name = max(option.opts, key=len).lstrip("-")
    return f"{long_name}s" if option.type is KEY_VALUE else long_name


# -- the file


@dataclass(frozen=True, slots=True)
class OptionFile:
    """The values of a file by the key of the option, and the lines of the keys."""

    path: str
    values: Mapping[str, Any] = field(default_factory=dict)
    lines: Mapping[str, int] = field(default_factory=dict)

    def place(self, key: str) -> str:
        """The file and the line of a key."""
        return f"{self.path}:{self.lines[key]}"


def read_option_file(path: Path, options: Mapping[str, click.Option]) -> OptionFile:
    """The values of a file; an error lists the place of each key or value that is wrong."""
    try:
        document, problems = locate(path.read_bytes())
    except OSError as error:
        raise ConfigurationError(
            f"The configuration {path} cannot be read: {error.strerror}. Check its name and its "
            "rights, or choose another file with --config (/dev/null for none)."
        ) from error
    schema = {
        "type": "object",
        "properties": {key: _schema(key, option) for key, option in options.items()},
        "propertyNames": {"enum": list(options)},
    }
    if document is not None:
        problems += schema_problems(schema, document)
    if problems:
        raise ConfigurationError(
            own_lines(*(problem.in_file(str(path)) for problem in sorted(problems)))
        )
    if document is None:
        return OptionFile(str(path))
    return OptionFile(
        str(path),
        {str(key): _value(str(key), held) for key, held in document.items.items()},
        {key: held.line for key, held in document.keys.items()},
    )


def _schema(key: str, option: click.Option) -> JsonSchema:
    if is_secret_name(key):
        # An error about its type would show the secret.
        return {"type": _SCALARS, "minLength": 1}
    if option.is_flag:
        return {"type": "boolean"}
    if option.type is KEY_VALUE:
        listed = {"type": [*_SCALARS, "array"], "items": {"type": _SCALARS, "format": "item"}}
        return {"type": "object", "additionalProperties": listed}
    if isinstance(option.type, click.IntRange | click.FloatRange):
        kind = "integer" if isinstance(option.type, click.IntRange) else "number"
        bounds = {"minimum": option.type.min, "maximum": option.type.max}
        return {"type": kind} | {key: value for key, value in bounds.items() if value is not None}
    return {"type": "string", "minLength": 1}


def _value(key: str, held: Located) -> Any:
    """The value of an option. A secret is text, whatever YAML reads it as.

    The options of a driver have the text of a command line: their spelling, and lists with commas.
    """
    if isinstance(held.value, dict):
        return [
            (name, ",".join(each.spelling or "" for each in _members(one)))
            for name, one in held.items.items()
        ]
    return held.spelling if is_secret_name(key) else held.value


def _members(held: Located) -> list[Located]:
    return list(held.items.values()) if isinstance(held.value, list) else [held]


# -- the command


class AgentCommand(ServiceCommand):
    """A service whose options have a variable each: the prefix and the name of the option."""

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        for option in self.params:
            if isinstance(option, click.Option):
                option.envvar = VARIABLE_PREFIX + key_of(option).upper().replace("-", "_")

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the options; an error about one names the variable or the line that has it."""
        try:
            rest: list[str] = super().parse_args(ctx, args)
        except click.BadParameter as error:
            if isinstance(error.param, click.Option):
                place = place_of(ctx, error.param)
                error.param_hint = None if place in (COMMAND_LINE, DEFAULT) else place
            raise
        # After --help has ended the command, and not while the shell completes a word.
        if not ctx.resilient_parsing:
            self._refuse_unknown_variables(ctx)
        return rest

    def _refuse_unknown_variables(self, ctx: click.Context) -> None:
        known = {str(option.envvar) for option in self.params}
        for name in os.environ:
            if name.startswith(VARIABLE_PREFIX) and name not in known:
                meant = nearest(name, known)
                fix = f"Did you mean {meant}?" if meant else f"See {ctx.command_path} --help."
                raise ConfigurationError(
                    f"The environment has {name}, which is no option of {ctx.command_path}. {fix}"
                )


def _read_file(ctx: click.Context, _option: click.Parameter, given: Path | None) -> Path | None:
    options = {
        key_of(option): option
        for option in ctx.command.params
        if isinstance(option, click.Option) and not option.is_eager
    }
    try:
        file = read_option_file(given or DEFAULT_FILE, options)
    except ConfigurationError as error:
        if given is None and isinstance(error.__cause__, FileNotFoundError | NotADirectoryError):
            return None
        raise
    ctx.default_map = {str(options[key].name): value for key, value in file.values.items()}
    ctx.meta[_FILE] = file
    return given


config_option = click.option(
    "--config",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False),
    is_eager=True,
    callback=_read_file,
    help=f"YAML file with these options. [default: {DEFAULT_FILE}, if it exists]",
)


def place_of(ctx: click.Context, option: click.Option) -> str:
    """Where the value of an option stands: its variable, or its line in the file."""
    source = ctx.get_parameter_source(str(option.name))
    if source is ParameterSource.COMMANDLINE:
        return COMMAND_LINE
    if source is ParameterSource.ENVIRONMENT:
        return str(option.envvar)
    if source is ParameterSource.DEFAULT_MAP:
        file: OptionFile = ctx.meta[_FILE]
        return file.place(key_of(option))
    return DEFAULT


# -- the server


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


def out_of_force(places: Mapping[str, OptionPlace], environ: Mapping[str, str]) -> list[str]:
    """The options about the server that a place above theirs puts out of force.

    >>> out_of_force({"url": OptionPlace.COMMAND_LINE, "token": OptionPlace.FILE}, {})
    ['token']
    >>> out_of_force({"url": OptionPlace.FILE, "token": OptionPlace.OWN_VARIABLE}, {})
    []
    >>> out_of_force({"token": OptionPlace.COMMAND_LINE, "token_file": OptionPlace.FILE}, {})
    ['token_file']
    """

    def first(names: Iterable[str], *, is_variable: bool) -> OptionPlace:
        elsewhere = OptionPlace.CLIENT_VARIABLE if is_variable else OptionPlace.NOWHERE
        return min([elsewhere, *(places[name] for name in names if name in places)])

    address = first(_ADDRESSES, is_variable=names_a_server(environ))
    token = first(_TOKENS, is_variable=bool(environ.get("ROOST_TOKEN")))
    return [
        name
        for name, place in places.items()
        if OptionPlace.NOWHERE > place > (min(address, token) if name in _TOKENS else address)
    ]


def variable_of_server(connection: ConnectionSettings, environ: Mapping[str, str]) -> str | None:
    """The variable of all clients that names the server; `None` if an option does, or nothing."""
    if connection.url is not None or connection.cloud is not None:
        return None
    # A token belongs to an address, and never goes to a cloud.
    has_token = connection.token is not None or connection.token_file is not None
    names = _VARIABLES[:1] if has_token else _VARIABLES
    return next((name for name in names if environ.get(name)), None)


# -- what is in force


@dataclass(frozen=True, slots=True)
class AgentOptions:
    """The values of the options, but for those of the connection and of the driver."""

    name: str
    uuid: str | None
    interval: float
    owner: str
    records: Path | None
    adopt: bool
    accept_loss: bool
    missing_reports: int
    missing_minutes: float
    metrics_file: Path | None
    once: bool
    dry_run: bool
    offline: bool
    output: str | None
    as_json: bool
    verbose: bool
    debug: bool


@dataclass(frozen=True, slots=True)
class AgentSetting:
    """An option with its value and its place; a secret is hidden."""

    name: str
    value: Any
    origin: str
    in_force: bool = True

    @property
    def group(self) -> str:
        """The key that has the option in a file; empty if the option has a key of its own."""
        return self.name.rpartition(".")[0]

    @property
    def has_effect(self) -> bool:
        """Whether a file with the option says the same. A hidden secret is no secret."""
        return self.in_force and self.value not in (None, HIDDEN)


class AgentConfiguration:
    """The options of a context, with the places of their values.

    An option about the server that is out of force is left to the variables of all clients.
    """

    def __init__(
        self, ctx: click.Context, connection: ConnectionSettings, options: AgentOptions
    ) -> None:
        self._ctx = ctx
        self._options = {
            str(option.name): option
            for option in ctx.command.params
            if isinstance(option, click.Option)
        }
        self._file: OptionFile | None = ctx.meta.get(_FILE)
        places = {
            name: _PLACES.get(source, OptionPlace.NOWHERE)
            for name in (*_ADDRESSES, *_TOKENS, "region")
            if (source := ctx.get_parameter_source(name)) is not None
        }
        self._out_of_force = out_of_force(places, os.environ)
        left_out: dict[str, Any] = dict.fromkeys(self._out_of_force)
        self.connection = replace(connection, **left_out)
        self.options = options
        self.driver_name: str | None = ctx.params["driver_name"]

    @property
    def file(self) -> str | None:
        """The configuration file in force."""
        return None if self._file is None else self._file.path

    def load_driver(self) -> Driver | DeclaringDriver:
        """The driver in force; options of owners are refused for a driver that has none."""
        if self.driver_name is None:
            where = DEFAULT_FILE if self.file in (None, os.devnull) else self.file
            raise NotConfigured(
                "There is no driver. Choose one with --driver, ROOST_AGENT_DRIVER, or `driver:` in "
                f"{where}: linux describes this machine."
            )
        given = {option.name: option.value for option in self._driver_options()}
        with self.naming("driver_name", "driver_options"):
            driver = load_driver(self.driver_name, given)
        if not isinstance(driver, DeclaringDriver):
            self._refuse_options_of_owners()
        return driver

    def _refuse_options_of_owners(self) -> None:
        for name in _OF_OWNERS:
            place = place_of(self._ctx, self._options[name])
            if place != DEFAULT and self._ctx.params[name]:
                option = f"--{key_of(self._options[name])}"
                at = "" if place == COMMAND_LINE else f" ({place})"
                raise NotConfigured(
                    f"{option}{at} is for drivers that declare, and {self.driver_name} edits the "
                    f"tree itself with update_provider_tree. Leave {option} out."
                )

    @contextmanager
    def naming(self, *names: str) -> Iterator[None]:
        """Put the variables or the lines of these options before an error about their values."""
        try:
            yield
        except NotConfigured as error:
            places = dict.fromkeys(place_of(self._ctx, self._options[name]) for name in names)
            shown = ", ".join(place for place in places if place not in (COMMAND_LINE, DEFAULT))
            if not shown:
                raise
            raise NotConfigured(f"{shown}: {error}") from error

    def settings(self) -> Iterator[AgentSetting]:
        """All options, those of the driver behind its name."""
        for name, option in self._options.items():
            if option.type is KEY_VALUE:
                for one in self._driver_options():
                    value = shown_value(one.name, one.value)
                    yield AgentSetting(f"options.{one.name}", value, one.origin)
            elif name not in ("config", "show_config"):
                value = self._ctx.params[name]
                shown = shown_value(name, str(value) if isinstance(value, Path) else value)
                place = place_of(self._ctx, option)
                yield AgentSetting(key_of(option), shown, place, name not in self._out_of_force)

    def _driver_options(self) -> list[AgentSetting]:
        """The options of the driver in force, from all places, with their secrets.

        A place that names another driver has options of that driver, so these are left out.
        """
        found: dict[str, AgentSetting] = {}
        for driver, pairs, place in self._places_of_driver_options():
            if driver in (None, self.driver_name):
                for key, value in pairs:
                    found.setdefault(key, AgentSetting(key, value, place))
        return list(found.values())

    def _places_of_driver_options(self) -> Iterator[tuple[str | None, list[tuple[str, str]], str]]:
        """The driver and the options of the driver in each place, the first place first."""
        driver, options = self._options["driver_name"], self._options["driver_options"]
        if place_of(self._ctx, options) == COMMAND_LINE:
            yield None, self._ctx.params["driver_options"], COMMAND_LINE
        texts = options.value_from_envvar(self._ctx) or ()
        pairs = [KEY_VALUE.convert(text, options, self._ctx) for text in texts]
        yield driver.value_from_envvar(self._ctx), pairs, str(options.envvar)
        key = key_of(options)
        if self._file is not None and key in self._file.values:
            values = self._file.values
            yield values.get(key_of(driver)), values[key], self._file.place(key)

    def lines(self) -> Iterator[tuple[str, bool]]:
        """The lines of a file with the options, and whether each line has a default."""
        settings = list(self.settings())
        groups = {one.group for one in settings if one.has_effect}
        before = ""
        for one in settings:
            if one.group and one.group != before:
                yield f"{'' if one.group in groups else '# '}{one.group}:", False
            before = one.group
            key = one.name.removeprefix(f"{one.group}.")
            start = f"{'  ' if one.group else ''}{'' if one.has_effect else '# '}"
            remark = one.origin if one.in_force else f"{one.origin}, not in force"
            yield (
                f"{start}{key}: {_yaml(one.value)}".rstrip() + f"    # {remark}",
                one.origin == DEFAULT,
            )


def _yaml(value: Any) -> str:
    """A value as YAML.

    >>> _yaml(60.0), _yaml(True), _yaml("*,!sda"), _yaml("compute-1")
    ('60', 'true', '"*,!sda"', 'compute-1')
    """
    if value is None:
        return ""
    if isinstance(value, float):
        return plain_number(value)
    plain = isinstance(value, str) and _PLAIN.fullmatch(value)
    return str(value) if plain else json.dumps(value)
