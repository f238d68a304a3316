"""A progress bar on standard error, for commands that move many rows."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

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

from roost.cli.terminal import plain_line


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
    silent: bool = False,
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
        disable=silent or not sys.stderr.isatty(),
        transient=transient,
        # What the command prints to a file or a pipe must not go above the bar.
        redirect_stdout=sys.stdout.isatty(),
    ) as progress:
        task = progress.add_task(what, total=None)

        def advance(total: int, done: int) -> None:
            progress.update(task, total=total, advance=done)

        yield advance
