"""The command `roost man`: manual pages out of the text of `--help`."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from roost.cli.man.pages import manual_page
from roost.cli.terminal import echo_line
from roost.model.errors import OperatorError
from roost.model.text import counted, nearest_names, with_next


@click.command(
    short_help="Show or write manual pages.",
    epilog="""\b
Examples:
  roost man
  roost man provider list
  roost man --directory /usr/local/share/man/man1
""",
)
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
    """
    top = context.find_root()
    root = click.Context(top.command, info_name="roost", help_option_names=top.help_option_names)
    if directory is not None:
        _write(root, directory)
        return
    page = manual_page(_context_of(root, words))
    viewer = shutil.which("man") if sys.stdout.isatty() else None
    if viewer is None:
        click.echo(page.encode(), nl=False)
    else:
        subprocess.run([viewer, "-l", "-"], input=page.encode(), check=False)


def _context_of(context: click.Context, words: tuple[str, ...]) -> click.Context:
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
    command = context.command
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            if below is not None:
                yield from _contexts(click.Context(below, info_name=name, parent=context))
