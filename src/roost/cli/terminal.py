"""Printing: every command prints texts of servers, files and operators through here."""

from __future__ import annotations

import click
from rich.text import Text

from roost.model.printable import printable


def printable_lines(text: str) -> str:
    """A text of several lines, each of them printable."""
    return "\n".join(map(printable, text.split("\n")))


def echo(text: str, *, err: bool = False) -> None:
    """Print a text of several lines."""
    click.echo(printable_lines(text), err=err)


def echo_line(text: str, *, err: bool = False) -> None:
    """Print one line; a line feed in a name does not begin another one."""
    click.echo(printable(text), err=err)


def plain(text: str, style: str = "") -> Text:
    """A text for rich, in which brackets are brackets."""
    return Text(printable_lines(text), style=style)
