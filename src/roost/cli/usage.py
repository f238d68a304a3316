"""What a command ends with that was called in a way it does not know."""

from __future__ import annotations

from typing import Any

import click


def usage_status(status: int) -> type[click.Command]:
    """A kind of command that ends with this status if an option or an argument is wrong.

    For commands to which the status 2, with which commands otherwise end then, means something
    else or too little.
    """

    class Command(click.Command):
        def make_context(self, *arguments: Any, **extra: Any) -> click.Context:
            try:
                return super().make_context(*arguments, **extra)
            except click.UsageError as error:
                error.show()
                raise click.exceptions.Exit(status) from error

    return Command
