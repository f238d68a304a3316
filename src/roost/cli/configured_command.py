"""A command whose options may stand in variables of the environment and in a YAML file.

The command line takes precedence over the environment, and the environment over the file.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from roost.cli.option_file import OptionFile, key_of, read_option_file
from roost.cli.service_command import ServiceCommand
from roost.client.errors import NotConfigured
from roost.model.errors import ConfigurationError
from roost.model.text import nearest

COMMAND_LINE = "command line"
DEFAULT = "default"

_FILE = "roost.cli.configured_command.file"
"""The key of the file in `Context.meta`."""


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
