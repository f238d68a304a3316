"""The options and settings of commands that open the database."""

from __future__ import annotations

import click

from roost.cli.parameters import adding
from roost.cli.terminal import echo_line
from roost.configuration.settings import Settings, load_settings
from roost.configuration.unknown_names import unknown_names

configuration_options = adding(
    click.option(
        "--config-file",
        "config_files",
        metavar="FILE",
        multiple=True,
        help="A placement.conf; may be repeated. [default: OS_PLACEMENT_CONFIG_DIR, ~/.placement, "
        "/etc/placement]",
    ),
    click.option(
        "--db",
        "database_url",
        metavar="URL",
        help="SQLAlchemy URL: sqlite:///FILE, postgresql://..., mysql://... "
        "[default: an SQLite file in your data directory]",
    ),
)
"""Adds `--config-file` and `--db`, which name the database."""


def read_settings(config_files: tuple[str, ...], database_url: str | None) -> Settings:
    """The settings of these options. A warning names each unknown setting."""
    settings = load_settings(config_files, database_url)
    for sentence in unknown_names(settings):
        echo_line(f"roost: warning: {sentence}", err=True)
    return settings
