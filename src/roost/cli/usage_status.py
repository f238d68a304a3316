"""The exit status of a command with a wrong option or argument."""

from __future__ import annotations

from typing import Any

import click


def usage_status(status: int) -> type[click.Command]:
    """The class of a command that exits with this status if an option or an argument is wrong.

    The default of click is 2, which means something else for some commands.
    """

    class UsageStatusCommand(click.Command):
        def make_context(self, *arguments: Any, **extra: Any) -> click.Context:
            try:
                return super().make_context(*arguments, **extra)
            except click.UsageError as error:
                error.show()
                raise click.exceptions.Exit(status) from error

    return UsageStatusCommand
