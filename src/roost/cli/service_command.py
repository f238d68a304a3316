"""A command that systemd runs: it ends with a status of its own if trying again cannot help."""

from __future__ import annotations

import sys
from typing import Any

import click

from roost.cli.terminal import complain
from roost.cli.usage_status import usage_status
from roost.client.errors import NotConfigured
from roost.model.errors import ConfigurationError

EX_CONFIG = 78
"""The exit status after wrong options or a wrong configuration: systemd need not restart."""


class ServiceCommand(usage_status(EX_CONFIG)):  # type: ignore[misc]  # a class that is made
    """A command that runs until it is stopped."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; a wrong configuration becomes a sentence and the status."""
        try:
            return super().invoke(ctx)
        except (ConfigurationError, NotConfigured) as error:
            complain(error.explanation)
            sys.exit(EX_CONFIG)
