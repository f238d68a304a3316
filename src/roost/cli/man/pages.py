"""A manual page out of a command: the text of its help in the language of man. Pure."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Iterator

import click

import roost

_UNWRAPPED = "\b"
"""click keeps the lines of a paragraph that begins with this character."""


def manual_page(context: click.Context) -> str:
    """The page of a command."""
    return "\n".join([*_page(context), ""])


def _page(context: click.Context) -> Iterator[str]:
    command = context.command
    name = context.command_path.replace(" ", "-")
    summary = command.get_short_help_str(limit=200).rstrip(".")
    yield f'.TH "{_escaped(name.upper())}" 1 "" "roost {roost.__version__}" "Roost"'
    yield ".SH NAME"
    yield rf"{_escaped(name)} \- {_escaped(summary)}"
    yield ".SH SYNOPSIS"
    yield f".B {_escaped(context.command_path)}"
    yield _escaped(" ".join(command.collect_usage_pieces(context)))
    help_text = inspect.cleandoc(command.help or "")
    if help_text:
        yield ".SH DESCRIPTION"
        yield from _blocks(help_text)
    yield from _options(context)
    if isinstance(command, click.Group):
        yield from _commands(command, context)
    if command.epilog:
        yield from _blocks(inspect.cleandoc(command.epilog))
    yield from _see_also(context)


def _options(context: click.Context) -> Iterator[str]:
    records = [
        record
        for parameter in context.command.get_params(context)
        if isinstance(parameter, click.Option)
        and (record := parameter.get_help_record(context)) is not None
    ]
    if records:
        yield ".SH OPTIONS"
    for names, text in records:
        yield ".TP"
        yield f".B {_escaped(names)}"
        yield _escaped(text)


def _commands(group: click.Group, context: click.Context) -> Iterator[str]:
    yield ".SH COMMANDS"
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if command is not None:
            yield ".TP"
            yield f".B {_escaped(name)}"
            yield _escaped(command.get_short_help_str(limit=200))


def _see_also(context: click.Context) -> Iterator[str]:
    """The pages above and below this one."""
    own = context.command_path.replace(" ", "-")
    names = [own.rpartition("-")[0]] if context.parent else []
    if isinstance(context.command, click.Group):
        names += [f"{own}-{name}" for name in context.command.list_commands(context)]
    if names:
        yield ".SH SEE ALSO"
        yield ",\n".join(f".BR {_escaped(name)} (1)" for name in names)


def _blocks(text: str) -> Iterator[str]:
    """Paragraphs, lists of commands below a title, and lines that stay as they are."""
    for number, block in enumerate(re.split(r"\n\s*\n|\n(?=\x08\n)", text)):
        lines = block.strip("\n").split("\n")
        if lines[0].strip() == _UNWRAPPED:
            yield from _unwrapped(lines[1:])
        else:
            if number:
                yield ".PP"
            yield from (_escaped(line.strip()) for line in lines if line.strip())


def _unwrapped(lines: list[str]) -> Iterator[str]:
    title, _, rest = lines[0].partition(":")
    if title == "Exit status":
        yield ".SH EXIT STATUS"
        yield from (_escaped(line.strip()) for line in [rest, *lines[1:]])
        return
    if not rest:
        yield f".SH {_escaped(title.upper())}"
        lines = lines[1:]
    yield ".nf"
    yield from (_escaped(line) for line in textwrap.dedent("\n".join(lines)).split("\n"))
    yield ".fi"


def _escaped(text: str) -> str:
    r"""A text for a page: no character of it is a command.

    >>> print(_escaped(".B --url \\ x"))
    \&.B \-\-url \e x
    """
    text = " ".join(text.split("\n")).replace("\\", "\\e").replace("-", "\\-")
    return rf"\&{text}" if text.startswith((".", "'")) else text
