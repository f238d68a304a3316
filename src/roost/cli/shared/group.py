"""A command with subcommands, which knows what a misspelt one may have meant."""

from __future__ import annotations

import click

from roost.model.text import nearest_names


class CommandGroup(click.Group):
    """A group of commands; its error about an unknown one names those that are alike."""

    # The class of the groups below this one.
    group_class = type

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command of the first word."""
        known = self.list_commands(ctx)
        if not (args[0] in known or args[0].startswith("-") or ctx.resilient_parsing):
            ctx.fail(_unknown(args[0], known))
        return super().resolve_command(ctx, args)


def _unknown(name: str, known: list[str]) -> str:
    """The error about an unknown command.

    >>> _unknown("provder", ["provider", "usage"])
    "No such command 'provder'. Did you mean 'provider'?"
    >>> _unknown("lst", ["list", "show", "set"])
    "No such command 'lst'. Did you mean 'list' or 'set'?"
    >>> _unknown("xyz", ["list"])
    "No such command 'xyz'."
    """
    meant = " or ".join(f"'{other}'" for other in nearest_names(name, known))
    return f"No such command '{name}'." + (f" Did you mean {meant}?" if meant else "")
