"""Bars of characters: a part of a whole, and the progress of a command that moves many rows."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

import click
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from roost.cli.shared.terminal import plain_line

BAR_WIDTH = 20


class Ink(NamedTuple):
    """The characters of a bar."""

    used: str
    free: str


_BLOCKS = Ink("█", "░")
_ASCII = Ink("#", ".")


def ink_for(console: Console) -> Ink:
    """The characters that a console can show."""
    return _ASCII if console.options.ascii_only else _BLOCKS


def share_bar(share: float, ink: Ink, width: int = BAR_WIDTH, style: str = "") -> Text:
    """A bar of which this share is filled; any part above nothing fills one character.

    >>> share_bar(0.5, Ink("#", "."), 4).plain, share_bar(0.001, Ink("#", "."), 4).plain
    ('##..', '#...')
    """
    filled = max(round(min(1.0, share) * width), 1 if share > 0 else 0)
    bar = Text(ink.used * filled, style=style)
    bar.append(ink.free * (width - filled), style="dim")
    return bar


def usage_bar(used: float, capacity: float, ink: Ink, width: int = BAR_WIDTH) -> Text:
    """A bar whose colour warns at 70 and 90 percent; its length says the same without colour."""
    # What has no capacity is full once something of it is allocated.
    share = min(1.0, used / capacity) if capacity > 0 else float(used > 0)
    filled = round(share * width)
    colour = "red" if share >= 0.9 else "yellow" if share >= 0.7 else "green"
    bar = Text(ink.used * filled, style=f"not bold {colour}")
    bar.append(ink.free * (width - filled), style="not bold dim")
    return bar


def is_watching() -> bool:
    """Whether the command shows its result again and again: a sign of progress would disturb it."""
    context = click.get_current_context(silent=True)
    return context is not None and context.params.get("watch") is not None


class _RemarkColumn(ProgressColumn):
    """A text that each refresh of the bar asks for."""

    def __init__(self, remark: Callable[[], str]) -> None:
        super().__init__()
        self._remark = remark

    def render(self, task: Task) -> Text:
        return plain_line(self._remark())


@contextmanager
def progress_bar(
    what: str,
    *,
    transient: bool = False,
    remark: Callable[[], str] | None = None,
) -> Iterator[Callable[[int, int], None]]:
    """A function that takes the total and how much was done since; silent without a terminal.

    A transient bar is gone when the work is done. The bar ends with the `remark` of the moment.
    """
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        *([_RemarkColumn(remark)] if remark else []),
        console=Console(stderr=True),
        disable=is_watching() or not sys.stderr.isatty(),
        transient=transient,
        # What the command prints to a file or a pipe must not go above the bar.
        redirect_stdout=sys.stdout.isatty(),
    ) as progress:
        task = progress.add_task(what, total=None)

        def advance(total: int, done: int) -> None:
            progress.update(task, total=total, advance=done)

        yield advance
