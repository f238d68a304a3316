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
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)


@contextmanager
def progress_bar(
    what: str, *, transient: bool = False, silent: bool = False
) -> Iterator[Callable[[int, int], None]]:
    """A function that takes the total and how much was done since; silent without a terminal.

    A transient bar is gone when the work is done.
    """
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        disable=silent or not sys.stderr.isatty(),
        transient=transient,
    ) as progress:
        task = progress.add_task(what, total=None)

        def advance(total: int, done: int) -> None:
            progress.update(task, total=total, advance=done)

        yield advance
