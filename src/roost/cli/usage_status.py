"""The exit status of a command with a wrong option or argument."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

from roost.model.text import printable


def usage_status(status: int) -> type[click.Command]:
    """The class of a command that exits with this status if an option or an argument is wrong.

    The default of click is 2, which means something else for some commands.
    """

    class UsageStatusCommand(click.Command):
        def make_context(self, *arguments: Any, **extra: Any) -> click.Context:
            with _exiting_with(status):
                return super().make_context(*arguments, **extra)

        def invoke(self, ctx: click.Context) -> Any:
            # The command itself refuses options that contradict each other.
            with _exiting_with(status):
                return super().invoke(ctx)

    return UsageStatusCommand


@contextmanager
def _exiting_with(status: int) -> Iterator[None]:
    try:
        yield
    except click.UsageError as error:
        error.message = printable(error.message)  # type: ignore[misc]  # click calls it final
        error.show()
        raise click.exceptions.Exit(status) from error
