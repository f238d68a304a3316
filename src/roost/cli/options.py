"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])


def configuration_options(command: F) -> F:
    """`--config-file` and `--db`: where the database is."""
    command = click.option(
        "--db",
        "database_url",
        metavar="URL",
        help="SQLAlchemy URL: sqlite:///FILE, postgresql://..., mysql://... "
        "[default: an SQLite file in your data directory]",
    )(command)
    return click.option(
        "--config-file",
        "config_files",
        metavar="FILE",
        multiple=True,
        help="A placement.conf; may be repeated. [default: OS_PLACEMENT_CONFIG_DIR, ~/.placement, "
        "/etc/placement]",
    )(command)
