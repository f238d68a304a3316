"""Printing text of servers, files and operators without its control characters, and Ctrl-C."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from threading import Event
from types import FrameType

import click
from rich.console import Console
from rich.text import Text

from roost.model.errors import OperatorError
from roost.model.text import NEXT, printable, shown_text

UNBROKEN_WIDTH = 100_000
"""The columns of an output that is no terminal: a program reads each line whole."""


def output_console(*, is_wide: bool = False) -> Console:
    """Standard output; no line is broken if it is wide, or no terminal."""
    console = Console(highlight=False)
    if console.is_terminal and not is_wide:
        return console
    return Console(highlight=False, width=UNBROKEN_WIDTH)


def echo(text: str, *, err: bool = False) -> None:
    """Print a text: lines of the program's own, or one line."""
    click.echo(shown_text(text), err=err)


def echo_line(text: str, *, err: bool = False) -> None:
    """Print one line; a line feed in a name does not begin another line."""
    click.echo(printable(text), err=err)


def echo_above_bar(text: str) -> None:
    """Print one line to standard output; above a progress bar, if the terminal shows one."""
    # While a bar is shown, rich has put its own file in place. click finds the terminal below it.
    click.echo(printable(text), file=sys.stdout)


def plain(text: str, style: str = "") -> Text:
    """A text for rich, without markup: lines of the program's own, or one line."""
    return Text(shown_text(text), style=style)


def plain_line(text: str, style: str = "") -> Text:
    """One line for rich, without markup; a line feed in a name does not begin another line."""
    return Text(printable(text), style=style)


def unbroken(text: str, style: str = "") -> Text:
    """A text for rich that the terminal breaks: a copy of a command has no line feeds in it."""
    return Text(printable(text), style=style, no_wrap=True, overflow="ignore")


def complain(text: str) -> None:
    """Print why the command ends, in standard error.

    A terminal shows whole words. The next command stays one line, so that a copy of it is whole.
    """
    console = Console(stderr=True, highlight=False)
    sentences = Text.assemble(("roost:", "bold red"), " ", plain(text))
    for line in sentences.split():
        is_command = line.plain.startswith(NEXT)
        console.print(line, soft_wrap=is_command or not console.is_terminal)


class Interrupted(OperatorError):
    """The operator has interrupted the command."""


@contextmanager
def noticing_interruption(advice: str = "") -> Iterator[None]:
    """Turn Ctrl-C into `Interrupted`, before click calls it an abortion with status 1."""
    try:
        yield
    except KeyboardInterrupt:
        raise Interrupted(f"Interrupted. {advice}".rstrip()) from None


def continuing() -> AbstractContextManager[None]:
    """The same for a command that continues its work when it runs again."""
    return noticing_interruption("Run the same command again: it continues.")


@contextmanager
def ending_after_steps(*, at_once: bool = False) -> Iterator[Event]:
    """Ctrl-C sets the event, so that the command can end the steps under way; a second one ends it.

    With `at_once` the first one ends it: steps that only read need no end. A signal that comes
    while the context ends counts as before.
    """
    asked = Event()

    def ask(number: int, frame: FrameType | None) -> None:
        del number, frame
        signal.signal(signal.SIGINT, before)
        asked.set()
        if at_once:
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, ask)
    try:
        yield asked
    finally:
        signal.signal(signal.SIGINT, before)
