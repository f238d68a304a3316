"""The options of commands that open the database, their settings, and the database itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import wraps
from typing import Any

import click

from roost.cli.shared.parameters import adding
from roost.cli.shared.terminal import echo_line
from roost.configuration.settings import Settings, load_settings
from roost.configuration.unknown_names import unknown_names
from roost.store.connections.driver_errors import explained
from roost.store.database import Database
from roost.store.migrations.schema import connect_or_explain

_SILENCE_SECONDS = 3600

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


def settings_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options to a command, which gets the settings as the argument `settings`."""

    @wraps(command)
    def with_settings(
        *, config_files: tuple[str, ...], database_url: str | None, **arguments: Any
    ) -> Any:
        return command(settings=read_settings(config_files, database_url), **arguments)

    return configuration_options(with_settings)


@contextmanager
def open_database(
    settings: Settings, *, may_make: bool = False, only_reads: bool = False
) -> Iterator[Database]:
    """The database of these settings. With `may_make`, a missing SQLite file is made.

    A command that `only_reads` leaves the mode of an SQLite file as it is.
    """
    # A check of a large database may take a while.
    patient = replace(
        settings.database, silence_seconds=_SILENCE_SECONDS, keeps_file_mode=only_reads
    )
    with closing(Database(patient)) as database:
        dialect = database.dialect
        (dialect.prepare_file if may_make else dialect.require_file)(database)
        connect_or_explain(database)
        with explained(database.url):
            yield database
