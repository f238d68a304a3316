"""A command that systemd runs: it ends with a status of its own if trying again cannot help."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
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

    def make_context(self, *arguments: Any, **extra: Any) -> click.Context:
        """Read the options; a wrong configuration becomes a sentence and the status."""
        with _wrong_configuration():
            context: click.Context = super().make_context(*arguments, **extra)
        return context

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; a wrong configuration becomes a sentence and the status."""
        with _wrong_configuration():
            return super().invoke(ctx)


@contextmanager
def _wrong_configuration() -> Iterator[None]:
    try:
        yield
    except (ConfigurationError, NotConfigured) as error:
        complain(error.explanation)
        sys.exit(EX_CONFIG)
