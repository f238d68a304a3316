"""Parameters that commands share: words, numbers, directories, and what a wrong one means."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields
from functools import wraps
from pathlib import Path
from typing import Any, TypeAlias

import click

from roost.cli.shared.exit_status import ExitStatus
from roost.cli.shared.terminal import complain
from roost.client.errors import NotConfigured
from roost.model.errors import ConfigurationError
from roost.model.text import printable

CommandDecorator: TypeAlias = Callable[[Callable[..., Any]], Callable[..., Any]]
"""Adds something to a function that is to be a command."""


def adding(*options: CommandDecorator) -> CommandDecorator:
    """A decorator that adds these options to a command, in this order."""

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            command = option(command)
        return command

    return add


def gathering(
    name: str, kind: type[Any], *options: CommandDecorator, **fixed: Any
) -> CommandDecorator:
    """A decorator that adds options, which a command gets as one argument of a dataclass.

    Each field that is not fixed has the name of an option.
    """
    gathered = [field.name for field in fields(kind) if field.name not in fixed]

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(command)
        def with_one_argument(**arguments: Any) -> Any:
            values = {field: arguments.pop(field) for field in gathered}
            return command(**{name: kind(**values, **fixed)}, **arguments)

        return adding(*options)(with_one_argument)

    return add


class GivenWord(click.ParamType[str]):
    """A text that is not empty: a variable of the shell that is not set must not mean "all"."""

    name = "text"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The text as it is."""
        if not str(value).strip():
            self.fail("it is empty. Give a value, or leave the option out.", param, ctx)
        return str(value)


WORD = GivenWord()


class NumberRange(click.FloatRange):
    """A number in a range. `nan` is in no range, though no comparison tells."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """The number of a text."""
        number = float(super().convert(value, param, ctx))
        if math.isnan(number):
            self.fail(f"{value} is no number.", param, ctx)
        return number


records_option = click.option(
    "--records",
    metavar="DIRECTORY",
    type=click.Path(path_type=Path, file_okay=False),
    help="Directory with the records of what owners wrote. [default: $STATE_DIRECTORY, or a "
    "directory of the user such as ~/.local/state/roost/owners]",
)
"""Adds `--records`; the command gets the directory as `records`, or `None`."""


class ServiceCommand(click.Command):
    """A command that runs until it is stopped.

    After a wrong option or a wrong configuration, its status tells systemd not to start it again.
    """

    def make_context(self, *arguments: Any, **extra: Any) -> click.Context:
        """Read the options; a wrong configuration becomes a sentence and the status."""
        with _wrong_configuration():
            return super().make_context(*arguments, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; a wrong configuration becomes a sentence and the status."""
        with _wrong_configuration():
            return super().invoke(ctx)


@contextmanager
def _wrong_configuration() -> Iterator[None]:
    try:
        yield
    except (ConfigurationError, NotConfigured) as error:
        complain(error.explanation)
    except click.UsageError as error:
        error.message = printable(error.message)  # type: ignore[misc]  # click calls it final
        error.show()
    else:
        return
    sys.exit(ExitStatus.CONFIGURATION)
