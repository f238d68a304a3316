"""The command `roost man`: manual pages out of the text of `--help`."""

from __future__ import annotations

import inspect
import re
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import click

import roost
from roost.cli.shared.command import command
from roost.cli.shared.terminal import echo_line
from roost.model.errors import OperatorError
from roost.model.text import counted, nearest_names, with_next

_UNWRAPPED = "\b"
"""click keeps the lines of a paragraph that begins with this character."""


def manual_page(context: click.Context) -> str:
    """The page of a command."""
    return "\n".join([*_page(context), ""])


def _page(context: click.Context) -> Iterator[str]:
    shown = context.command
    name = context.command_path.replace(" ", "-")
    summary = shown.get_short_help_str(limit=200).rstrip(".")
    yield f'.TH "{_escaped(name.upper())}" 1 "" "roost {roost.__version__}" "Roost"'
    yield ".SH NAME"
    yield rf"{_escaped(name)} \- {_escaped(summary)}"
    yield ".SH SYNOPSIS"
    yield f".B {_escaped(context.command_path)}"
    yield _escaped(" ".join(shown.collect_usage_pieces(context)))
    help_text = inspect.cleandoc(shown.help or "")
    if help_text:
        yield ".SH DESCRIPTION"
        yield from _blocks(help_text)
    yield from _options(context)
    if isinstance(shown, click.Group):
        yield from _commands(shown, context)
    if shown.epilog:
        yield from _blocks(inspect.cleandoc(shown.epilog))
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
        found = group.get_command(context, name)
        if found is not None:
            yield ".TP"
            yield f".B {_escaped(name)}"
            yield _escaped(found.get_short_help_str(limit=200))


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


@command()
@click.argument("words", metavar="[COMMAND]...", nargs=-1)
@click.option(
    "--directory",
    metavar="DIRECTORY",
    type=click.Path(file_okay=False, path_type=Path),
    help="Write the pages of all commands into this directory.",
)
@click.pass_context
def man(context: click.Context, words: tuple[str, ...], directory: Path | None) -> None:
    """Show the manual page of a command; without a terminal, print it for `man -l -`.

    The pages have the text of --help. Packages write them with --directory.

    \b
    Examples:
      roost man
      roost man provider list
      roost man --directory /usr/local/share/man/man1
    """
    root = root_context(context)
    if directory is not None:
        _write(root, directory)
        return
    page = manual_page(context_of(root, words))
    viewer = shutil.which("man") if sys.stdout.isatty() else None
    if viewer is None:
        click.echo(page.encode(), nl=False)
    else:
        subprocess.run([viewer, "-l", "-"], input=page.encode(), check=False)


def root_context(context: click.Context) -> click.Context:
    """A context of `roost` itself, without arguments."""
    top = context.find_root()
    return click.Context(top.command, info_name="roost", help_option_names=top.help_option_names)


def context_of(context: click.Context, words: tuple[str, ...]) -> click.Context:
    """The context of a command below this one."""
    for word in words:
        group = context.command
        names = group.list_commands(context) if isinstance(group, click.Group) else []
        found = group.get_command(context, word) if isinstance(group, click.Group) else None
        if found is None:
            near = nearest_names(word, names)
            hint = f" Near it: {', '.join(near)}." if near else ""
            raise OperatorError(
                with_next(
                    f"`{context.command_path}` has no command {word}.{hint}",
                    f"{context.command_path} --help",
                )
            )
        context = click.Context(found, info_name=word, parent=context)
    return context


def _write(root: click.Context, directory: Path) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    count = 0
    for context in _contexts(root):
        name = context.command_path.replace(" ", "-")
        (directory / f"{name}.1").write_text(manual_page(context), encoding="utf-8")
        count += 1
    echo_line(f"{counted(count, 'page')} written to {directory}", err=True)


def _contexts(context: click.Context) -> Iterator[click.Context]:
    """A command and all below it."""
    yield context
    group = context.command
    if isinstance(group, click.Group):
        for name in group.list_commands(context):
            below = group.get_command(context, name)
            if below is not None:
                yield from _contexts(click.Context(below, info_name=name, parent=context))
