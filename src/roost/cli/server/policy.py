"""`roost policy`: the rules that say what a caller may do."""

from __future__ import annotations

import click

from roost.api.policy.listing import sample_policy
from roost.cli.shared.group import CommandGroup


@click.group(cls=CommandGroup)
def policy() -> None:
    """Show the rules of the policy."""


@policy.command(epilog="Example: roost policy sample > /etc/placement/policy.yaml")
def sample() -> None:
    """Print a policy file with every rule and its default, each behind a comment sign."""
    click.echo(sample_policy(), nl=False)
