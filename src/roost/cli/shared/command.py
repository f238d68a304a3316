"""How a command declares itself: its name, its help, the server that it asks, what it prints."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial, wraps
from typing import Any, TypeAlias

import click

from roost.cli.shared.connection import server_options
from roost.cli.shared.output import OutputForm, output_options
from roost.cli.shared.parameters import CommandDecorator, adding
from roost.cli.shared.watching import present, watch_option

_Declaration: TypeAlias = Callable[[Callable[..., Any]], click.Command]


def command(
    name: str | None = None,
    summary: str | None = None,
    *,
    of: click.Group | None = None,
    text: str = "",
    cls: type[click.Command] = click.Command,
) -> _Declaration:
    r"""Declare a command. Its help is `text` or its docstring, and that of its group has `summary`.

    What stands in the text behind the first `\b`, such as examples, is below the options.
    The table of `roost.cli.main` has the name and the summary of a command without a group.
    """

    def declare(function: Callable[..., Any]) -> click.Command:
        whole = inspect.cleandoc(text or function.__doc__ or "")
        first, mark, below = whole.partition("\n\n\b\n")
        made = click.command(
            name, cls=cls, short_help=summary, help=first, epilog=f"\b\n{below}" if mark else None
        )(function)
        if of is not None:
            of.add_command(made)
        return made

    return declare


def server_command(
    name: str | None = None,
    summary: str | None = None,
    *,
    of: click.Group | None = None,
    text: str = "",
    watches: bool = False,
) -> _Declaration:
    """Declare a command that asks a server: a function from a `server` to an `Output`.

    The options of the connection and of the output are behind those of the function itself.
    """

    def declare(function: Callable[..., Any]) -> click.Command:
        @wraps(function)
        def run(*, output: OutputForm, watch: float | None = None, **arguments: Any) -> None:
            present(partial(function, **arguments), output, watch)

        watching: list[CommandDecorator] = [watch_option] if watches else []
        options = (output_options, *watching, server_options)
        return command(name, summary, of=of, text=text)(behind_own(run, *options))

    return declare


def behind_own(function: Callable[..., Any], *shared: CommandDecorator) -> Callable[..., Any]:
    """A function with further options; in the help they are behind its own."""
    own = function.__dict__.pop("__click_params__", [])
    made = adding(*shared)(function)
    made.__dict__["__click_params__"] += own
    return made
