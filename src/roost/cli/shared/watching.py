"""The option `--watch`: a command prints its result again and again."""

from __future__ import annotations

import json
import os
import select
import sys
import termios
import time
import tty
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from time import sleep
from typing import NoReturn

import click
from rich.console import Console, Group, RenderableType
from rich.live import Live

from roost.cli.shared.output import FormName, Output, OutputForm, print_output
from roost.cli.shared.terminal import echo_line, plain_line
from roost.client.errors import PlacementError, TransportFailed
from roost.client.transport.retrying import TOO_MANY_REQUESTS

_WATCH_SECONDS = 2.0


@contextmanager
def single_keys() -> Iterator[None]:
    """Hear of each key at once, if standard input is a terminal."""
    if not sys.stdin.isatty():
        yield
        return
    before = termios.tcgetattr(sys.stdin)
    try:
        tty.setcbreak(sys.stdin)
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)


def quits_within(seconds: float) -> bool:
    """Wait for this time; return early, and true, if the person presses q."""
    deadline = time.monotonic() + seconds
    if not sys.stdin.isatty():
        time.sleep(seconds)
        return False
    while (rest := deadline - time.monotonic()) > 0:
        ready, _, _ = select.select([sys.stdin], [], [], rest)
        if ready and os.read(sys.stdin.fileno(), 1) in (b"q", b"Q", b""):
            return True
    return False


def _interval(text: str) -> float:
    """A number of seconds between two pictures."""
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0.1 <= seconds <= 3600:
        raise click.BadParameter(
            f"{text!r} is no number of seconds from 0.1 to 3600. Write --watch=2, or give "
            "--watch as the last word."
        )
    return seconds


watch_option = click.option(
    "--watch",
    type=_interval,
    metavar="[SECONDS]",
    is_flag=False,
    flag_value=str(_WATCH_SECONDS),
    help="Show it again after this time, 2 seconds by default, until q or Ctrl-C.",
)
"""Adds `--watch`; the command gets the seconds as `watch`, or `None`."""


def present(read: Callable[[], Output], form: OutputForm, watch: float | None) -> None:
    """Print what `read` gives, once or again after each interval; end as the last result says."""
    result = read().arranged(form)

    def read_again() -> Output:
        nonlocal result
        result = read().arranged(form)
        return result

    if watch is None:
        print_output(result, form)
    elif form.is_for_people and Console().is_terminal:
        redraw(result.picture, lambda: read_again().picture, watch)
    else:
        print_one(result, form)
        # The titles of CSV stand above the first result only.
        later = replace(form, titles=False) if form.name is FormName.CSV else form
        repeat(lambda: print_one(read(), later), watch)
    for note in result.notes:
        echo_line(note, err=True)
    if result.status:
        sys.exit(result.status)


def redraw(first: RenderableType, read: Callable[[], RenderableType], seconds: float) -> None:
    """Redraw one picture until the person presses q.

    A server that is lost for a while is told above the last picture.
    """
    picture = first
    with single_keys(), Live(picture, screen=True, auto_refresh=False) as live:
        live.refresh()
        while not quits_within(seconds):
            try:
                picture = read()
                live.update(picture, refresh=True)
            except PlacementError as error:
                _demand_passing(error)
                live.update(Group(plain_line(_lost(error), "bold red"), "", picture), refresh=True)


def repeat(step: Callable[[], None], seconds: float) -> NoReturn:
    """Take a step after each interval, until the process is ended.

    A server that is lost for a while is told in standard error, and so is its return.
    """
    told = ""
    while True:
        sleep(seconds)
        try:
            step()
        except PlacementError as error:
            _demand_passing(error)
            if told != _lost(error):
                told = _lost(error)
                echo_line(f"roost: warning: {told}", err=True)
        else:
            if told:
                told = ""
                echo_line("roost: The server answers again.", err=True)


def _demand_passing(error: PlacementError) -> None:
    """Raise the error, unless the server may answer soon: it restarts, or has too much to do."""
    is_busy = error.status is not None and (
        error.status >= 500 or error.status == TOO_MANY_REQUESTS
    )
    if not (is_busy or isinstance(error, TransportFailed)):
        raise error


def _lost(error: PlacementError) -> str:
    return f"{' '.join(str(error).split())}. The command goes on."


def print_one(result: Output, form: OutputForm) -> None:
    """Print one result of several: JSON as one line each, YAML as documents."""
    if form.name is FormName.JSON:
        click.echo(json.dumps(result.arranged(form).value))
        return
    if form.name is FormName.YAML:
        click.echo("---")
    print_output(result, form)
    if form.is_for_people:
        click.echo()
