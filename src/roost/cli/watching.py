"""The option `--watch`: a command prints its result again and again."""

from __future__ import annotations

import json
from collections.abc import Callable
from time import sleep
from typing import Any

import click
from rich.console import Console, Group, RenderableType
from rich.live import Live

from roost.cli.keys import quits_within, single_keys
from roost.cli.output import Output, OutputForm, print_output
from roost.cli.terminal import plain
from roost.client.errors import TransportFailed

_SECONDS = 2.0


class _Interval(click.ParamType[float]):
    """A number of seconds between two pictures."""

    name = "seconds"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        try:
            seconds = float(value)
        except ValueError:
            seconds = 0.0
        if not 0.1 <= seconds <= 3600:
            self.fail(
                f"{value!r} is no number of seconds from 0.1 to 3600. Write --watch=2, or give "
                "--watch as the last word.",
                param,
                ctx,
            )
        return seconds


watch_option = click.option(
    "--watch",
    type=_Interval(),
    metavar="[SECONDS]",
    is_flag=False,
    flag_value=str(_SECONDS),
    help="Show it again after this time, 2 seconds by default, until q or Ctrl-C.",
)
"""Adds `--watch`; the command gets the seconds as `watch`, or `None`."""


def present(read: Callable[[], Output], form: OutputForm, watch: float | None) -> None:
    """Print what `read` gives: once, or again after each interval."""
    if watch is None:
        print_output(read(), form)
    elif form is OutputForm.TABLE and Console().is_terminal:
        _redraw(read, watch)
    else:
        _repeat(read, form, watch)


def _redraw(read: Callable[[], Output], seconds: float) -> None:
    """Redraw one picture until the person presses q; a lost server may come back."""
    picture: RenderableType = read().picture
    with single_keys(), Live(picture, screen=True, auto_refresh=False) as live:
        live.refresh()
        while not quits_within(seconds):
            try:
                picture = read().picture
                live.update(picture, refresh=True)
            except TransportFailed as error:
                live.update(Group(plain(str(error), "bold red"), "", picture), refresh=True)


def _repeat(read: Callable[[], Output], form: OutputForm, seconds: float) -> None:
    """Print one result after another: JSON as one line each, YAML as documents."""
    is_first = True
    while True:
        result = read()
        if form is OutputForm.JSON:
            click.echo(json.dumps(result.value))
        elif form is OutputForm.TABLE:
            print_output(result, form)
            click.echo()
        else:
            if form is OutputForm.YAML:
                click.echo("---")
            click.echo(result.text(form, titles=is_first))
        is_first = False
        sleep(seconds)
